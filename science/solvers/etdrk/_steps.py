"""Exponential Runge-Kutta steps for `du/dt = L u + N(u, t)` with a diagonal L (Cox & Matthews 2002)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from sciax.core.ops.phi import phi


class Coefficients(NamedTuple):
    """decay, half: e^(hL), e^(hL/2); stage: h/2 phi_1(hL/2); weights: what multiplies N at the stages in the last sum."""

    decay: Any
    half: Any
    stage: Any
    weights: tuple[Any, ...]


def etdrk_coefficients(symbol: Any, step: Any, order: int) -> Coefficients:
    """Coefficients of ETDRK1-4 for the diagonal `symbol` of L and a time step; phi functions by contour where z is small.

    Source: Cox & Matthews, J. Comput. Phys. 176 (2002) 430; Kassam & Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214.
    """
    z = symbol * step
    e, p1, p2, p3 = phi(z, order=3)
    half = phi(z / 2, order=1)
    rows = {
        1: (p1,),
        2: (p1, p2),
        3: (p1 - 3 * p2 + 4 * p3, 4 * p2 - 8 * p3, 4 * p3 - p2, p1),
        4: (p1 - 3 * p2 + 4 * p3, 2 * p2 - 4 * p3, 4 * p3 - p2),
    }[order]
    return Coefficients(e, half[0], step / 2 * half[1], tuple(step * r for r in rows))


def etdrk_step(c: Coefficients, nonlinear: Callable[..., Any], u: Any, t: Any, step: Any):
    """One step of the order that the coefficients are for."""
    n0 = nonlinear(u, t)
    w = c.weights
    match len(w):
        case 1:
            return c.decay * u + w[0] * n0
        case 2:
            a = c.decay * u + w[0] * n0
            return a + w[1] * (nonlinear(a, t + step) - n0)
        case 4:  # third order
            a = c.half * u + c.stage * n0
            na = nonlinear(a, t + step / 2)
            b = c.decay * u + w[3] * (2 * na - n0)
            return c.decay * u + w[0] * n0 + w[1] * na + w[2] * nonlinear(b, t + step)
    a = c.half * u + c.stage * n0
    na = nonlinear(a, t + step / 2)
    nb = nonlinear(c.half * u + c.stage * na, t + step / 2)
    nc = nonlinear(c.half * a + c.stage * (2 * nb - n0), t + step)
    return c.decay * u + w[0] * n0 + w[1] * (na + nb) + w[2] * nc


def etdrk_march(nonlinear, symbol, u, t0: float, t1: float, *, order: int, steps: int, saves: int):
    """Equal steps from t0 to t1; reverse mode keeps `saves` states and the steps between two of them.

    Returns:
        [saves + 1, *u.shape], the start first.
    """
    step = (t1 - t0) / steps
    c = etdrk_coefficients(symbol, step, order)

    def one(u, index):
        return etdrk_step(c, nonlinear, u, t0 + index * step, step), None

    @jax.checkpoint
    def stretch(u, first):
        u, _ = jax.lax.scan(one, u, first + jnp.arange(steps // saves))
        return u, u

    _, states = jax.lax.scan(stretch, u, jnp.arange(saves) * (steps // saves))
    return jnp.concatenate([u[None], states])
