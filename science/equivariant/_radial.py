"""Radial bases of the pair distance, ended smoothly at the cutoff."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError, did_you_mean

RADIAL_BASES = ("bessel", "gaussian", "chebyshev")
ENVELOPES = ("polynomial", "cosine", "mollifier")


def envelope(r: Float[Array, "*n"], cutoff: float, kind: str = "polynomial", order: int = 6) -> Float[Array, "*n"]:
    """1 at r = 0, 0 from the cutoff on.

    Args:
        kind: "polynomial": 1 - (p+1)(p+2)/2 x^p + p(p+2) x^(p+1) - p(p+1)/2 x^(p+2), first and second derivatives 0 at
            the cutoff (Gasteiger et al., ICLR 2020). "cosine": (1 + cos πx)/2 (Behler & Parrinello 2007), second
            derivative jumps. "mollifier": exp(1 - 1/(1 - x²)), all derivatives 0.
        order: p of the polynomial.

    Raises:
        InputError: an unknown kind, a cutoff or order that is not positive.
    """
    if kind not in ENVELOPES:
        raise InputError(f"unknown envelope {kind!r}", remedy=did_you_mean(kind, ENVELOPES))
    if not (cutoff > 0 and order >= 2):
        raise InputError("an envelope needs cutoff > 0 and order >= 2", got=(cutoff, order))
    x = r / cutoff
    inside = x < 1
    x = jnp.where(inside, x, 0)  # double where: no NaN from outside the cutoff
    if kind == "polynomial":
        p = float(order)
        xp = x**order
        value = 1 + xp * (-(p + 1) * (p + 2) / 2 + x * (p * (p + 2) - x * (p * (p + 1) / 2)))
    elif kind == "cosine":
        value = (1 + jnp.cos(np.pi * x)) / 2
    else:
        value = jnp.exp(1 - 1 / (1 - x * x))
    return jnp.where(inside, value, 0)


def radial_basis(r: Float[Array, "*n"], cutoff: float, size: int, kind: str = "bessel") -> Float[Array, "*n size"]:
    """`size` functions on (0, cutoff), without envelope, of variance about 1.

    Args:
        kind: "bessel": √2 sin(kπx)/x (Gasteiger et al., ICLR 2020); "gaussian": equidistant, width = spacing;
            "chebyshev": T_k(2x - 1).

    Raises:
        InputError: an unknown kind, a size that is not positive.
    """
    if kind not in RADIAL_BASES:
        raise InputError(f"unknown radial basis {kind!r}", remedy=did_you_mean(kind, RADIAL_BASES))
    if size < 1 or not cutoff > 0:
        raise InputError("a radial basis needs size >= 1 and cutoff > 0", got=(size, cutoff))
    x = (r / cutoff)[..., None]
    k = jnp.arange(1, size + 1, dtype=r.dtype)
    if kind == "bessel":
        return np.sqrt(2).astype(r.dtype) * np.asarray(np.pi, r.dtype) * k * jnp.sinc(k * x)
    if kind == "gaussian":
        centre = (k - 1) / max(size - 1, 1)
        return 1.5 * jnp.exp(-0.5 * ((x - centre) * max(size - 1, 1)) ** 2)
    t = 2 * x[..., 0] - 1
    rows = [jnp.ones_like(t), t]
    for _ in range(2, size):
        rows.append(2 * t * rows[-1] - rows[-2])
    return jnp.stack(rows[:size], -1)
