"""Adaptive Fourier neural operator (the network of FourCastNet): patches mixed by a shared network in Fourier space."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from sciax.core.errors import InputError


class Mixer(eqx.Module):
    """A two-layer complex network, block-diagonal over the channels, shared by all wavenumbers; small outputs shrink to 0."""

    first: Float[Array, "part block in hidden"]
    second: Float[Array, "part block hidden in"]
    shrink: float = eqx.field(static=True)

    def __init__(self, channels: int, blocks: int, *, key: PRNGKeyArray, shrink: float = 0.01):
        size = channels // blocks
        a, b = jax.random.split(key)
        self.first = jax.random.normal(a, (2, blocks, size, size)) / (2 * size) ** 0.5
        self.second = jax.random.normal(b, (2, blocks, size, size)) / (2 * size) ** 0.5
        self.shrink = shrink

    def __call__(self, x: Float[Array, "h w c"]) -> Float[Array, "h w c"]:
        h, w, c = x.shape
        f = jnp.fft.rfft2(x, axes=(0, 1), norm="ortho").reshape(h, w // 2 + 1, self.first.shape[1], -1)

        def layer(weights, re, im):
            product = lambda k, z: jnp.einsum("hwbi,bio->hwbo", z, weights[k])  # noqa: E731
            return product(0, re) - product(1, im), product(0, im) + product(1, re)

        re, im = layer(self.first, f.real, f.imag)
        re, im = layer(self.second, jax.nn.relu(re), jax.nn.relu(im))
        soft = lambda z: jnp.sign(z) * jnp.maximum(jnp.abs(z) - self.shrink, 0)  # noqa: E731
        out = jax.lax.complex(soft(re), soft(im)).reshape(h, w // 2 + 1, c)
        return jnp.fft.irfft2(out, s=(h, w), axes=(0, 1), norm="ortho")


class AFNO(eqx.Module):
    """Patch embedding, blocks of Fourier mixing and pointwise networks, patch decoding.

    The transform is periodic in both directions: right in longitude, an approximation at the poles (SFNO has none).

    Source: Guibas et al. (2022), Pathak et al. (2022).
    """

    embed: eqx.nn.Linear
    position: Float[Array, "h w c"]
    norms: list[tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]]
    mixers: list[Mixer]
    mlps: list[eqx.nn.MLP]
    head: eqx.nn.Linear
    patch: int = eqx.field(static=True)
    out: int = eqx.field(static=True)

    def __init__(
        self,
        inside: int,
        out: int,
        shape: tuple[int, int],
        *,
        patch: int = 4,
        channels: int = 64,
        depth: int = 4,
        blocks: int = 4,
        key: PRNGKeyArray,
    ):
        """
        Raises:
            InputError: a grid that the patches do not tile, or channels that the blocks do not divide.
        """
        if shape[0] % patch or shape[1] % patch:
            raise InputError("the patches do not tile the grid", got=shape, expected=f"multiples of {patch}")
        if channels % blocks:
            raise InputError("blocks must divide the channels", got=(channels, blocks))
        keys = jax.random.split(key, 2 * depth + 3)
        self.embed = eqx.nn.Linear(inside * patch * patch, channels, key=keys[0])
        self.position = 0.02 * jax.random.normal(keys[1], (shape[0] // patch, shape[1] // patch, channels))
        self.head = eqx.nn.Linear(channels, out * patch * patch, key=keys[2])
        self.norms = [(eqx.nn.LayerNorm(channels), eqx.nn.LayerNorm(channels)) for _ in range(depth)]
        self.mixers = [Mixer(channels, blocks, key=k) for k in keys[3 : 3 + depth]]
        self.mlps = [eqx.nn.MLP(channels, channels, 2 * channels, 1, jax.nn.gelu, key=k) for k in keys[3 + depth :]]
        self.patch, self.out = patch, out

    def __call__(self, x: Float[Array, "*batch inside lat lon"]) -> Float[Array, "*batch out lat lon"]:
        flat = x.reshape(-1, *x.shape[-3:])
        return jax.vmap(self._one)(flat).reshape(*x.shape[:-3], self.out, *x.shape[-2:])

    def _one(self, x):
        c, h, w = x.shape
        p = self.patch
        everywhere = lambda f, z: jax.vmap(jax.vmap(f))(z)  # noqa: E731
        patches = x.reshape(c, h // p, p, w // p, p).transpose(1, 3, 0, 2, 4).reshape(h // p, w // p, -1)
        y = everywhere(self.embed, patches) + self.position
        for (before, after), mixer, mlp in zip(self.norms, self.mixers, self.mlps):
            y = y + mixer(everywhere(before, y))
            y = y + everywhere(mlp, everywhere(after, y))
        out = everywhere(self.head, y).reshape(h // p, w // p, self.out, p, p)
        return out.transpose(2, 0, 3, 1, 4).reshape(self.out, h, w)
