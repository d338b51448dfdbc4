"""PaiNN: scalars and vectors exchanging messages. K. Schütt, O. Unke, M. Gastegger, ICML 2021 (arXiv 2102.03150).

Unlike the paper's, features enter a block's products divided by √(1 + mean square over channels). The products are of third degree
in the features, so three blocks without a bound are of degree 27, and what a bond length does to the first is an overflow in
the last.
"""

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


def _bounded(x: Array, axes: tuple[int, ...]) -> Array:
    """x / √(1 + mean square over channels): itself while small, of size 1 when large; vectors keep their direction."""
    return x * jax.lax.rsqrt(1 + jnp.mean(jnp.sum(x * x, axes[:-1], keepdims=True), axes[-1], keepdims=True))


class _Block(eqx.Module):
    message: Mlp
    filters: Array
    u: Array
    v: Array
    update: Mlp

    def __init__(self, channels: int, basis: int, key: Array, dtype):
        k = jax.random.split(key, 5)
        self.message = Mlp((channels, channels, 3 * channels), key=k[0], bias=True, dtype=dtype)
        self.filters = normal(k[1], (basis, 3 * channels), dtype) * basis**-0.5
        self.u = normal(k[2], (channels, channels), dtype) * channels**-0.5
        self.v = normal(k[3], (channels, channels), dtype) * channels**-0.5
        self.update = Mlp((2 * channels, channels, 3 * channels), key=k[4], bias=True, dtype=dtype)

    def __call__(self, s: Array, v: Array, e, unit: Array, average: float) -> tuple[Array, Array]:
        n = s.shape[0]
        scale = np.asarray(average**-0.5, s.dtype)
        a, b, c = jnp.split(self.message(_bounded(s, (-1,)))[e.others] * (e.radial @ self.filters), 3, -1)
        near = _bounded(v, (0, -1))
        s = s + sum_to_nodes(a, e.centers, n) * scale
        v = v + sum_to_nodes(b * near[:, e.others] + unit[:, :, None] * c, e.centers, n, axis=1) * scale
        inner = _bounded(v, (0, -1))
        uv, vv = inner @ self.u, inner @ self.v
        # forces are trained by its third derivative, of the order of 1/(the small number)
        norm = jnp.sqrt(jnp.sum(vv * vv, 0) + 1e-2)
        a, b, c = jnp.split(self.update(jnp.concatenate([_bounded(s, (-1,)), norm], -1)), 3, -1)
        # products of fields grow fast from layer to layer: start with a small step
        step = np.asarray(0.3, s.dtype)
        return s + step * (a + b * jnp.sum(uv * vv, 0) * np.asarray(3**-0.5, s.dtype)), v + step * c * uv


class PaiNN(eqx.Module):
    """Per-atom energies of a graph; arguments as for `Mace`."""

    embedding: Array
    layers: tuple[_Block, ...]
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
        self.layers = tuple(_Block(channels, basis, k, dtype) for k in keys[2:])
        self.last = Mlp((channels, channels // 2 or 1, 1), key=keys[1], bias=True, dtype=dtype)
        self.cutoff, self.basis, self.average = float(cutoff), basis, float(average_neighbours)

    def __call__(self, vectors, species, centers, others) -> Float[Array, " nodes"]:
        e = edge_features(vectors, centers, others, self.cutoff, self.basis, 0)
        # without the 1/r of the Bessel functions, which makes a bond count many times what a next neighbour does
        e = e._replace(radial=e.radial * (e.r / self.cutoff)[:, None])
        unit = (vectors / e.r[:, None]).T
        s = self.embedding[species]
        v = jnp.zeros((3, *s.shape), s.dtype)
        for layer in self.layers:
            s, v = layer(s, v, e, unit, self.average)
        return self.last(s)[:, 0]
