"""NequIP: equivariant convolutions with gates. S. Batzner et al., Nat. Commun. 13, 2453 (2022)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.chem.potentials._edges import Edges, edge_features
from sciax.chem.potentials._mace import SpeciesLinear, stacked
from sciax.core.errors import InputError
from sciax.science.equivariant import ChannelwiseProduct, Gate, Irreps, IrrepsArray, Linear, Mlp
from sciax.science.equivariant._random import normal
from sciax.science.graph import sum_to_nodes


class _Convolution(eqx.Module):
    up: Linear
    product: ChannelwiseProduct
    radial: Mlp
    down: Linear
    gates: Linear | None
    skip: SpeciesLinear
    gate: Gate
    source: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)

    def __init__(self, source, harmonics, keep, species, channels, basis, width, key, dtype):
        k = jax.random.split(key, 5)
        self.source = source
        self.product = ChannelwiseProduct(source, harmonics, keep)
        self.target = self.product.target
        self.up = Linear(source * channels, source * channels, key=k[0], dtype=dtype)
        self.radial = Mlp((basis, width, width, self.product.paths * channels), key=k[1], dtype=dtype)
        self.down = Linear(self.target * channels, self.target * channels, key=k[2], dtype=dtype)
        self.gate = Gate(self.target * channels)
        count = self.gate.gates
        self.gates = Linear(self.target * channels, [(count, "0e")], key=k[3], dtype=dtype) if count else None  # pyright: ignore
        self.skip = SpeciesLinear(source, self.target, species, channels=channels, key=k[4], dtype=dtype)

    def __call__(self, h: Array, e: Edges, species: Array, average: float) -> Array:
        n, channels = h.shape[1:]
        up = stacked(self.up, self.source, h)
        weights = jnp.moveaxis(self.radial(e.radial).reshape(-1, self.product.paths, channels), 1, 0)
        message = self.product(up[:, e.others], e.harmonics, weights)
        a = sum_to_nodes(message, e.centers, n, axis=1) * np.asarray(average**-0.5, h.dtype)
        x = IrrepsArray.from_stack(self.target, a)
        mixed = self.down(x).stack() + self.skip(h, species)
        chunks = IrrepsArray.from_stack(self.target, mixed).chunks
        if self.gates is not None:
            chunks = (self.gates(x).chunks[0], *chunks)
        return self.gate(IrrepsArray(self.gate.irreps_in, chunks)).stack()


class NequIP(eqx.Module):
    """Per-atom energies of a graph; arguments as for `Mace`, `hidden` up to lmax with the parity of the harmonics."""

    embedding: Array
    layers: tuple[_Convolution, ...]
    last: Mlp
    cutoff: float = eqx.field(static=True)
    lmax: int = eqx.field(static=True)
    basis: int = eqx.field(static=True)
    average: float = eqx.field(static=True)

    def __init__(
        self,
        species: int,
        cutoff: float,
        *,
        channels: int = 32,
        hidden: str = "0e+1o+2e",
        lmax: int = 2,
        layers: int = 3,
        basis: int = 8,
        width: int = 64,
        average_neighbours: float = 10.0,
        key: Array,
        dtype=jnp.float32,
    ):
        if layers < 1 or channels < 1:
            raise InputError("a network needs layers and channels >= 1", got=(layers, channels))
        keys = jax.random.split(key, layers + 2)
        harmonics, scalar = Irreps.harmonics(lmax), Irreps("0e")
        self.embedding = normal(keys[0], (species, channels), dtype)
        found, source = [], scalar
        for k in range(layers):
            keep = Irreps(hidden) if k + 1 < layers else scalar
            found.append(_Convolution(source, harmonics, keep, species, channels, basis, width, keys[k + 2], dtype))
            source = found[-1].target
        self.layers = tuple(found)
        self.last = Mlp((channels, channels // 2 or 1, 1), key=keys[1], dtype=dtype)
        self.cutoff, self.lmax, self.basis, self.average = float(cutoff), lmax, basis, float(average_neighbours)

    def __call__(self, vectors, species, centers, others) -> Float[Array, " nodes"]:
        e = edge_features(vectors, centers, others, self.cutoff, self.basis, self.lmax)
        h = self.embedding[species][None]
        for layer in self.layers:
            h = layer(h, e, species, self.average)
        return self.last(h[0])[:, 0]
