"""MACE: higher-order equivariant message passing. I. Batatia et al., NeurIPS 2022 (arXiv 2206.07697)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sciax.chem.potentials._edges import Edges, edge_features
from sciax.core.errors import InputError
from sciax.science.equivariant import ChannelwiseProduct, Irreps, IrrepsArray, Linear, Mlp, SymmetricContraction
from sciax.science.equivariant._random import normal
from sciax.science.graph import sum_to_nodes


class SpeciesLinear(eqx.Module):
    """A linear map of equal irreps with weights of its own for each species."""

    source: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)
    weights: tuple[Array, ...]

    def __init__(self, source, target, species: int, *, channels: int, key: Array, dtype):
        self.source, self.target = Irreps(source), Irreps(target)
        keys = jax.random.split(key, len(self.target) + 1)
        self.weights = tuple(
            normal(k, (species, channels, channels), dtype) if self.source.count(ir) else None
            for k, (_, ir) in zip(keys, self.target)
        )  # type: ignore[assignment]

    def __call__(
        self, x: Float[Array, "d nodes channels"], species: Int[Array, " nodes"]
    ) -> Float[Array, "d2 nodes channels"]:
        blocks = dict(zip((ir for _, ir in self.source), IrrepsArray.from_stack(self.source, x).chunks))
        out = []
        for w, (_, ir) in zip(self.weights, self.target):
            if w is None:
                out.append(jnp.zeros((ir.dim, *x.shape[1:]), x.dtype))
            else:
                out.append(jnp.einsum("dnu,nuv->dnv", blocks[ir], w[species] * np.asarray(w.shape[1] ** -0.5, w.dtype)))
        return jnp.concatenate(out)


def stacked(linear: Linear, single: Irreps, x: Array) -> Array:
    """A `Linear` on a stack of single irreps."""
    return linear(IrrepsArray.from_stack(single, x)).stack()


class _Layer(eqx.Module):
    up: Linear
    product: ChannelwiseProduct
    radial: Mlp
    down: Linear
    skip: SpeciesLinear
    contraction: SymmetricContraction
    mix: Linear
    source: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)

    def __init__(
        self, source: Irreps, target: Irreps, harmonics: Irreps, species, channels, order, basis, width, key, dtype
    ):
        k = jax.random.split(key, 6)
        self.source, self.target = source, target
        self.product = ChannelwiseProduct(source, harmonics, harmonics)
        inner = self.product.target
        self.up = Linear(source * channels, source * channels, key=k[0], dtype=dtype)
        self.radial = Mlp((basis, width, width, width, self.product.paths * channels), key=k[1], dtype=dtype)
        self.down = Linear(inner * channels, inner * channels, key=k[2], dtype=dtype)
        self.skip = SpeciesLinear(source, target, species, channels=channels, key=k[3], dtype=dtype)
        self.contraction = SymmetricContraction(inner, target, order, species, channels, key=k[4], dtype=dtype)
        self.mix = Linear(target * channels, target * channels, key=k[5], dtype=dtype)

    def __call__(self, h: Array, e: Edges, species: Array, average: float) -> Array:
        n, channels = h.shape[1:]
        up = stacked(self.up, self.source, h)
        weights = jnp.moveaxis(self.radial(e.radial).reshape(-1, self.product.paths, channels), 1, 0)
        message = self.product(up[:, e.others], e.harmonics, weights)
        a = sum_to_nodes(message, e.centers, n, axis=1) * np.asarray(1 / average, h.dtype)
        a = stacked(self.down, self.product.target, a)
        b = self.contraction(a, species)
        return stacked(self.mix, self.target, b) + self.skip(h, species)


class Mace(eqx.Module):
    """Per-atom energies of a graph. See `make_potential` for what wraps it.

    Args:
        species: number of species.
        cutoff: Å.
        channels: of every irrep.
        hidden: irreps between layers, "0e" to "0e+1o+2e".
        lmax: of the spherical harmonics.
        order: of the symmetric contraction; the body order of a layer is order + 1.
        layers: message-passing steps; the receptive field is layers x cutoff.
        average_neighbours: normalises messages; from the training set.
    """

    embedding: Array
    layers: tuple[_Layer, ...]
    readouts: tuple[Array, ...]
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
        hidden: str = "0e+1o",
        lmax: int = 3,
        order: int = 3,
        layers: int = 2,
        basis: int = 8,
        width: int = 64,
        average_neighbours: float = 10.0,
        key: Array,
        dtype=jnp.float32,
    ):
        if layers < 1 or channels < 1:
            raise InputError("a network needs layers and channels >= 1", got=(layers, channels))
        keys = jax.random.split(key, layers + 3)
        harmonics, middle, scalar = Irreps.harmonics(lmax), Irreps(hidden), Irreps("0e")
        shapes = [scalar, *[middle] * (layers - 1), scalar]
        self.embedding = normal(keys[0], (species, channels), dtype)
        self.layers = tuple(
            _Layer(a, b, harmonics, species, channels, order, basis, width, k, dtype)
            for a, b, k in zip(shapes[:-1], shapes[1:], keys[3:])
        )
        self.readouts = tuple(normal(k, (channels,), dtype) for k in jax.random.split(keys[1], layers)[1:])
        self.last = Mlp((channels, 16, 1), key=keys[2], dtype=dtype)
        self.cutoff, self.lmax, self.basis, self.average = float(cutoff), lmax, basis, float(average_neighbours)

    def __call__(self, vectors, species, centers, others) -> Float[Array, " nodes"]:
        e = edge_features(vectors, centers, others, self.cutoff, self.basis, self.lmax)
        h = self.embedding[species][None]
        energy = jnp.zeros(species.shape, h.dtype)
        for k, layer in enumerate(self.layers):
            h = layer(h, e, species, self.average)
            if k + 1 < len(self.layers):
                energy = energy + h[0] @ (self.readouts[k] * np.asarray(len(self.readouts[k]) ** -0.5, h.dtype))
        return energy + self.last(h[0])[:, 0]
