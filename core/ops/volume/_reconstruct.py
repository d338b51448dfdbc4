"""Face values from the averages of neighbouring cells, without new extrema (limited) or nearly so (WENO).

Both take the stencil along the leading axis and give the value at the right face of its middle cell. The left face of a cell
is the right face of the reversed stencil, so one function serves both sides; characteristic variables are projected before.
"""

from itertools import pairwise
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator

LIMITERS = ("minmod", "mc", "vanleer", "none")
_COMPLEX = {"complex": "limiters compare values, which complex numbers do not allow"}


def _stencil(stencil: Any, points: int, who: str) -> Array:
    u = jnp.asarray(stencil)
    if not jnp.issubdtype(u.dtype, jnp.floating):
        raise DTypeError(f"{who}: cell averages are real floating numbers", got=u.dtype)
    if u.ndim == 0 or u.shape[0] != points:
        raise ShapeError(f"{who}: the leading axis holds the {points} cells of the stencil", got=u.shape)
    return u


def _weno_oracle(stencil: Any, *, weights: str = "z", epsilon: float = 1e-6) -> np.ndarray:
    v = np.asarray(stencil)
    flat, out = v.reshape(5, -1).T, []
    # candidate parabolas by their averages, smoothness as the integral of squared derivatives (Jiang & Shu's definition)
    x, w = np.polynomial.legendre.leggauss(3)
    for cells in flat:
        values, beta = [], []
        for start in range(3):
            edges = np.arange(start, start + 4) - 2.5
            moments = [[(b ** (k + 1) - a ** (k + 1)) / (k + 1) for k in range(3)] for a, b in pairwise(edges)]
            c = np.linalg.solve(moments, cells[start : start + 3])
            values.append(c[0] + c[1] / 2 + c[2] / 4)
            beta.append(np.sum(w / 2 * (c[1] + 2 * c[2] * x / 2) ** 2) + (2 * c[2]) ** 2)
        floor = epsilon * np.mean(cells**2) + np.finfo(np.float32).tiny
        linear, smooth = np.array([0.1, 0.6, 0.3]), np.array(beta)
        if weights == "z":
            alpha = linear * (1 + (np.abs(smooth[0] - smooth[2]) / (smooth + floor)) ** 2)
        else:
            alpha = linear / (smooth / floor + 1) ** 2
        out.append(alpha @ values / alpha.sum())
    return np.reshape(out, v.shape[1:])


def _weno_samples(rng: np.random.Generator) -> list[Sample]:
    u = rng.standard_normal((5, 7))
    smooth = np.sin(np.linspace(0, 1, 5)[:, None] + np.linspace(0, 3, 7))
    loose = {"tolerance": 10.0, "reason": "smoothness indicators are small differences of close values"}
    return [
        Sample("ordinary", (u,)),
        Sample("smooth, Jiang-Shu weights", (smooth,), {"weights": "js"}, **loose),
        Sample("badly scaled", (u * 1e8,)),
        Sample("single face", (rng.standard_normal((5,)),)),
    ]


@operator(
    "volume.weno5",
    oracle=_weno_oracle,
    samples=_weno_samples,
    flops=lambda stencil, **_: 12.0 * np.size(stencil),
    unsupported=_COMPLEX,
)
def weno5(stencil: Float[Array, "5 *faces"], *, weights: str = "z", epsilon: float = 1e-6) -> Float[Array, "*faces"]:
    """Fifth-order weighted essentially non-oscillatory value at the right face of the middle cell.

    A convex mixture of three parabolas, `sum_k w_k q_k`, `w_k ~ d_k / (epsilon + beta_k)^2` ("js") or
    `w_k ~ d_k (1 + (|beta_0 - beta_2| / (epsilon + beta_k))^2)` ("z"), with d = (1, 6, 3)/10 and smoothness indicators beta_k.

    Args:
        stencil: averages of cells i-2 .. i+2. weights: "z" (sharper, full order at extrema) or "js".
        epsilon: times the mean square of the stencil, so that the result scales with its input.

    Raises:
        ShapeError: the leading axis is not 5. DTypeError: not real and floating. InputError: unknown weights.

    Source: Jiang & Shu, J. Comput. Phys. 126 (1996) 202; Borges, Carmona, Costa & Don, J. Comput. Phys. 227 (2008) 3191;
    the scaled epsilon after Don & Borges, J. Comput. Phys. 250 (2013) 347.
    """
    if weights not in ("z", "js"):
        raise InputError(f"weno5: unknown weights {weights!r}", remedy=did_you_mean(weights, ("z", "js")))
    a, b, c, d, e = _stencil(stencil, 5, "weno5")
    values = ((2 * a - 7 * b + 11 * c) / 6, (-b + 5 * c + 2 * d) / 6, (2 * c + 5 * d - e) / 6)
    beta = (
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    )
    floor = epsilon / 5 * (a * a + b * b + c * c + d * d + e * e) + float(np.finfo(np.float32).tiny)
    if weights == "z":
        spread = beta[0] - beta[2]
        alpha = [w * (1 + (spread / (s + floor)) ** 2) for w, s in zip((0.1, 0.6, 0.3), beta)]
    else:
        alpha = [
            w / (s / floor + 1) ** 2 for w, s in zip((0.1, 0.6, 0.3), beta)
        ]  # the ratio, so that nothing underflows
    mixed = alpha[0] * values[0] + alpha[1] * values[1] + alpha[2] * values[2]
    return mixed / (alpha[0] + alpha[1] + alpha[2])


def _limited_oracle(stencil: Any, *, limiter: str = "mc") -> np.ndarray:
    v = np.asarray(stencil)
    out = []
    for before, here, after in v.reshape(3, -1).T:
        left, right = here - before, after - here
        if limiter == "none":
            slope = (left + right) / 2
        elif left * right <= 0:
            slope = 0.0
        else:
            sizes = {
                "minmod": min(abs(left), abs(right)),
                "mc": min(2 * abs(left), 2 * abs(right), abs(left + right) / 2),
                "vanleer": 2 * abs(left) * abs(right) / (abs(left) + abs(right)),
            }
            slope = np.sign(left) * sizes[limiter]
        out.append(here + slope / 2)
    return np.reshape(out, v.shape[1:])


def _limited_samples(rng: np.random.Generator) -> list[Sample]:
    u = rng.standard_normal((3, 9))
    rising = np.sort(rng.standard_normal((3, 9)), axis=0)
    return [
        Sample("ordinary", (u,)),
        Sample("badly scaled", (rising * 1e-8,)),
        *(Sample(f"monotone, {name}", (rising,), {"limiter": name}) for name in ("minmod", "vanleer")),
        Sample("edge: constant", (np.ones((3, 9)),), {"limiter": "vanleer"}, smooth=False),
    ]


@operator(
    "volume.limited",
    oracle=_limited_oracle,
    samples=_limited_samples,
    flops=lambda stencil, **_: 4.0 * np.size(stencil),
    unsupported=_COMPLEX,
)
def limited(stencil: Float[Array, "3 *faces"], *, limiter: str = "mc") -> Float[Array, "*faces"]:
    """Second-order (MUSCL) value at the right face of the middle cell, `u_i + s_i / 2` with a limited slope s_i.

    With a = u_i - u_(i-1) and b = u_(i+1) - u_i of one sign: minmod min(a, b); "mc" (monotonised central)
    min(2a, 2b, (a+b)/2); "vanleer" 2ab/(a+b); zero at extrema. "none" is (a+b)/2 always: second order, not monotone.

    Args:
        stencil: averages of cells i-1, i, i+1.

    Raises:
        ShapeError: the leading axis is not 3. DTypeError: not real and floating. InputError: unknown limiter.

    Source: van Leer, J. Comput. Phys. 32 (1979) 101; Sweby, SIAM J. Numer. Anal. 21 (1984) 995.
    """
    if limiter not in LIMITERS:
        raise InputError(f"limited: unknown limiter {limiter!r}", remedy=did_you_mean(limiter, LIMITERS))
    before, here, after = _stencil(stencil, 3, "limited")
    left, right = here - before, after - here
    if limiter == "none":
        return here + (left + right) / 4
    together = jnp.sign(left) == jnp.sign(right)
    if limiter == "vanleer":
        total = jnp.where(together & (left != 0), left + right, 1.0)
        slope = jnp.where(together, 2 * left * (right / total), 0.0)  # this order of factors does not underflow
    else:
        a, b = jnp.abs(left), jnp.abs(right)
        size = jnp.minimum(a, b) if limiter == "minmod" else jnp.minimum(2 * jnp.minimum(a, b), (a + b) / 2)
        slope = jnp.where(together, jnp.sign(left) * size, 0.0)
    return here + slope / 2
