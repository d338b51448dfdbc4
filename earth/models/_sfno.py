"""Spherical Fourier neural operator: pointwise networks and filters that act degree by degree on the sphere's harmonics."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sciax.core.ops.sphere import SphereGrid, SphereTables, analysis, sphere_tables, synthesis


class Pointwise(eqx.Module):
    """A linear map of the channels, the same at every point: (..., in, lat, lon) -> (..., out, lat, lon)."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    def __init__(self, inside: int, out: int, *, key: PRNGKeyArray, scale: float = 1.0, dtype=jnp.float32):
        self.weight = scale * jax.random.normal(key, (out, inside), dtype) / jnp.sqrt(jnp.asarray(inside, dtype))
        self.bias = jnp.zeros(out, dtype)

    def __call__(self, x):
        return jnp.einsum("oi,...iyx->...oyx", self.weight, x) + self.bias[:, None, None]


class SphericalConvolution(eqx.Module):
    """c_lm -> W_l c_lm with a complex matrix W_l over the channels for each degree: a filter that knows no longitude.

    Real and imaginary parts are separate real arrays, so that the products are real matrix products.
    """

    real: Float[Array, "l out in"]
    imag: Float[Array, "l out in"]

    def __init__(self, channels: int, degrees: int, *, key: PRNGKeyArray, dtype=jnp.float32):
        a, b = jax.random.split(key)
        scale = (0.5 / channels) ** 0.5
        self.real = scale * jax.random.normal(a, (degrees, channels, channels), dtype)
        self.imag = scale * jax.random.normal(b, (degrees, channels, channels), dtype)

    def __call__(self, x, tables: SphereTables):
        c = analysis(x, tables)[..., : self.real.shape[0]]
        re, im = c.real, c.imag
        mix = lambda w, z: jnp.einsum("loi,...iml->...oml", w, z)  # noqa: E731
        out = jax.lax.complex(mix(self.real, re) - mix(self.imag, im), mix(self.real, im) + mix(self.imag, re))
        pad = tables.lmax + 1 - out.shape[-1]
        return synthesis(jnp.pad(out, [(0, 0)] * (out.ndim - 1) + [(0, pad)]), tables)


class Block(eqx.Module):
    """x + mlp(gelu(filter(x) + linear(x)))."""

    filter: SphericalConvolution
    skip: Pointwise
    up: Pointwise
    down: Pointwise

    def __init__(self, channels: int, degrees: int, expand: int, *, key: PRNGKeyArray, dtype=jnp.float32):
        k = jax.random.split(key, 4)
        self.filter = SphericalConvolution(channels, degrees, key=k[0], dtype=dtype)
        self.skip = Pointwise(channels, channels, key=k[1], dtype=dtype)
        self.up = Pointwise(channels, expand * channels, key=k[2], dtype=dtype)
        # Near zero at first: the network starts as almost the identity, and deep stacks train from there.
        self.down = Pointwise(expand * channels, channels, key=k[3], scale=0.1, dtype=dtype)

    def __call__(self, x, tables):
        y = jax.nn.gelu(self.filter(x, tables) + self.skip(x))
        return x + self.down(jax.nn.gelu(self.up(y)))


class SFNO(eqx.Module):
    """Fields to fields on one grid: encoder, blocks, decoder; tables are leaves and travel as arguments.

    Besides the fields it sees sin and cos of the latitude (rotation breaks the sphere's symmetry) and any static fields.

    Source: Bonev et al. (2023), spherical Fourier neural operators.
    """

    encoder: Pointwise
    blocks: list[Block]
    decoder: Pointwise
    static: Float[Array, "fixed lat lon"]
    tables: SphereTables

    def __init__(
        self,
        inside: int,
        out: int,
        grid: SphereGrid,
        *,
        truncation: int,
        channels: int = 32,
        depth: int = 4,
        expand: int = 2,
        static: Float[Array, "fixed lat lon"] | None = None,
        key: PRNGKeyArray,
        dtype=jnp.float32,
    ):
        keys = jax.random.split(key, depth + 2)
        self.tables = sphere_tables(grid, truncation, dtype, spare=0)
        shape = (grid.nlat, grid.nlon)
        sine, cosine = (
            jnp.broadcast_to(jnp.asarray(x, dtype)[:, None], shape)
            for x in (self.tables.sin_latitude, self.tables.cos_latitude)
        )
        extra = jnp.zeros((0, *shape), dtype) if static is None else jnp.asarray(static, dtype)
        self.static = jnp.concatenate([sine[None], cosine[None], extra])
        self.encoder = Pointwise(inside + self.static.shape[0], channels, key=keys[0], dtype=dtype)
        self.blocks = [Block(channels, truncation + 1, expand, key=k, dtype=dtype) for k in keys[1:-1]]
        self.decoder = Pointwise(channels + inside, out, key=keys[-1], scale=0.1, dtype=dtype)

    def __call__(self, x: Float[Array, "*batch inside lat lon"]) -> Float[Array, "*batch out lat lon"]:
        static = jnp.broadcast_to(jax.lax.stop_gradient(self.static), (*x.shape[:-3], *self.static.shape))
        tables = jax.tree.map(jax.lax.stop_gradient, self.tables)
        y = jax.nn.gelu(self.encoder(jnp.concatenate([x, static], axis=-3)))
        for block in self.blocks:
            y = block(y, tables)
        return self.decoder(jnp.concatenate([y, x], axis=-3))
