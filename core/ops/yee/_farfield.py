"""Radiation integral of a rectangle of surface currents."""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sciax.core.errors import ShapeError
from sciax.core.ops._registry import Sample, operator


def _oracle(current, u, v, ku, kv):
    current = np.asarray(current)
    phase = np.asarray(ku)[:, None, None] * np.asarray(u)[:, None] + np.asarray(kv)[:, None, None] * np.asarray(v)
    return np.einsum("uv,duv->d", current, np.exp(-1j * phase))


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    def make(n, m, d, scale=1.0):
        return (
            scale * rng.standard_normal((n, m)),
            rng.uniform(-1, 1, n),
            rng.uniform(-1, 1, m),
            rng.uniform(-3, 3, d),
            rng.uniform(-3, 3, d),
        )

    for label, sizes in (("ordinary", (5, 4, 6)), ("size one", (1, 1, 1)), ("empty", (0, 3, 2)), ("odd", (7, 3, 5))):
        yield Sample(label, make(*sizes), real=(1, 2, 3, 4))
    yield Sample("badly scaled", make(4, 3, 3, 1e7), real=(1, 2, 3, 4))


@operator(
    "yee.radiate",
    oracle=_oracle,
    samples=_samples,
    flops=lambda current, u, v, ku, kv: 8.0 * np.size(current) * np.size(ku),
)
def radiate(
    current: Inexact[Array, "u v"],
    u: Float[Array, " u"],
    v: Float[Array, " v"],
    ku: Float[Array, " d"],
    kv: Float[Array, " d"],
) -> Inexact[Array, " d"]:
    """sum over (u, v) of current exp(-i (ku u + kv v)), for each of d directions.

    Args:
        current: surface current times area at the points of a rectangle.
        u, v: their coordinates (m) along its two sides.
        ku, kv: components of the wave vector (rad/m) along the sides.

    Returns:
        The radiation integral of each direction: two small matrix products, not d sums over the rectangle.
    """
    if current.shape != (*u.shape, *v.shape) or ku.shape != kv.shape:
        raise ShapeError(
            "radiate: a current (u, v), and as many ku as kv",
            got=(current.shape, u.shape, v.shape, ku.shape, kv.shape),
        )
    along_u, along_v = (jnp.exp(-1j * k[:, None] * p[None, :]) for k, p in ((ku, u), (kv, v)))
    return jnp.einsum("dv,dv->d", along_u @ current.astype(along_u.dtype), along_v)
