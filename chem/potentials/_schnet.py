"""SchNet: continuous-filter convolutions on invariants. K. Schütt et al., J. Chem. Phys. 148, 241722 (2018)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.chem.potentials._edges import edge_features
from sciax.core.errors import InputError
from sciax.science.equivariant import Mlp
from sciax.science.equivariant._random import normal
from sciax.science.graph import sum_to_nodes


class _Interaction(eqx.Module):
    filters: Mlp
    into: Array
    out: Mlp

    def __init__(self, channels: int, basis: int, key: Array, dtype):
        k = jax.random.split(key, 3)
        self.filters = Mlp((basis, channels, channels), key=k[0], bias=True, dtype=dtype)
        self.into = normal(k[1], (channels, channels), dtype) * channels**-0.5
        self.out = Mlp((channels, channels, channels), key=k[2], bias=True, dtype=dtype)

    def __call__(self, x: Array, e, average: float) -> Array:
        w = (
            self.filters(e.radial) * e.cut[:, None]
        )  # biases make filters live beyond the cutoff; the envelope ends them
        m = sum_to_nodes((x @ self.into)[e.others] * w, e.centers, x.shape[0]) * np.asarray(average**-0.5, x.dtype)
        return x + self.out(m)


class SchNet(eqx.Module):
    """Per-atom energies of a graph; arguments as for `Mace`."""

    embedding: Array
    layers: tuple[_Interaction, ...]
    last: Mlp
    cutoff: float = eqx.field(static=True)
    basis: int = eqx.field(static=True)
    average: float = eqx.field(static=True)

    def __init__(
        self,
        species: int,
        cutoff: float,
        *,
        channels: int = 64,
        layers: int = 3,
        basis: int = 20,
        average_neighbours: float = 10.0,
        key: Array,
        dtype=jnp.float32,
    ):
        if layers < 1 or channels < 1:
            raise InputError("a network needs layers and channels >= 1", got=(layers, channels))
        keys = jax.random.split(key, layers + 2)
        self.embedding = normal(keys[0], (species, channels), dtype)
        self.layers = tuple(_Interaction(channels, basis, k, dtype) for k in keys[2:])
        self.last = Mlp((channels, channels // 2 or 1, 1), key=keys[1], bias=True, dtype=dtype)
        self.cutoff, self.basis, self.average = float(cutoff), basis, float(average_neighbours)

    def __call__(self, vectors, species, centers, others) -> Float[Array, " nodes"]:
        e = edge_features(vectors, centers, others, self.cutoff, self.basis, 0, kind="gaussian")
        x = self.embedding[species]
        for layer in self.layers:
            x = layer(x, e, self.average)
        return self.last(x)[:, 0]
