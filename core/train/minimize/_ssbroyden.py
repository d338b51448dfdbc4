"""Self-scaled Broyden minimisation with a dense inverse Hessian, for networks of a few thousand parameters in float64.

With s = x+ - x = a p, y = g+ - g and the inverse Hessian H (Urban, Stefanou & Pons 2025, arXiv 2405.04230; Kiyani et al. 2025,
arXiv 2501.16371; the self-scaling of Al-Baali 1998):

    b = s'Bs / y's = -a g's / y's,   h = y'Hy / y's,   c = b h - 1
    rho = min(1, h (1 - sqrt(c / (1 + c)))),   theta = max((rho - 1) / c, min(1 / rho, (1 - b) / b)),   sigma = 1 + theta c
    r = min(1, 1/b),   tau = r min(sigma^(1/(1-n)), 1/theta) if theta > 0 else min(r sigma^(1/(1-n)), sigma)
    phi = (1 - theta) / sigma,   v = s / y's - Hy / y'Hy
    H+ = (H - Hy Hy' / y'Hy + phi y'Hy v v') / tau + s s' / y's

One matrix-vector product an iteration: Hy = H g+ + p, since p = -H g.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from sciax.core.train.minimize._common import MinimizeResult, flat_start, require_finite
from sciax.core.train.minimize._line_search import strong_wolfe

Objective = Callable[[PyTree, Any], Float[Array, ""]]


class BroydenState(NamedTuple):
    """Where a minimisation is: position, inverse Hessian and the length of its history."""

    x: Float[Array, " n"]
    inverse: Float[Array, "n n"]
    iterations: Int[Array, ""]


def _update(inverse, hg, p, s, y, step, gradient):
    """H+ as rank-two corrections of H, from Hy = H g+ + p."""
    n = s.shape[0]
    ys = y @ s
    hy = hg + p
    yhy = y @ hy
    b = -step * (gradient @ s) / ys
    h = yhy / ys
    # c >= 0 by Cauchy-Schwarz; rounding must not make it negative.
    c = jnp.maximum(b * h - 1, 1e-14)
    rho = jnp.minimum(1.0, h * (1 - jnp.sqrt(c / (1 + c))))
    theta = jnp.maximum((rho - 1) / c, jnp.minimum(1 / rho, (1 - b) / b))
    sigma = 1 + theta * c
    power = sigma ** (1 / (1 - n)) if n > 1 else 1.0
    r = jnp.minimum(1.0, 1 / b)
    tau = jnp.where(theta > 0, r * jnp.minimum(power, 1 / theta), jnp.minimum(r * power, sigma))
    phi = (1 - theta) / sigma
    v = s / ys - hy / yhy
    new = (inverse - jnp.outer(hy, hy / yhy) + jnp.outer(phi * yhy * v, v)) / tau + jnp.outer(s, s / ys)
    good = (ys > 1e-14 * jnp.linalg.norm(s) * jnp.linalg.norm(y)) & (yhy > 0) & jnp.isfinite(tau) & (tau > 0)
    return jnp.where(good & jnp.all(jnp.isfinite(new)), new, inverse)


@partial(jax.jit, static_argnames=("objective", "unravel", "iterations"))
def _run(objective, unravel, iterations, start: BroydenState, data):
    value_and_grad = jax.value_and_grad(lambda x: objective(unravel(x), data))
    value, gradient = value_and_grad(start.x)
    history = jnp.full(iterations, jnp.nan, value.dtype)

    def go_on(carry):
        i, _, _, _, _, _, _, stalled = carry
        return (i < iterations) & ~stalled

    def body(carry):
        i, state, value, gradient, hg, history, evaluations, _ = carry
        p = -hg
        # H is positive definite up to rounding; where it is not, start it over.
        lost = (gradient @ p >= 0) | ~jnp.all(jnp.isfinite(p))
        inverse = jnp.where(lost, jnp.eye(p.shape[0], dtype=p.dtype), state.inverse)
        p = jnp.where(lost, -gradient, p)
        fresh = lost | (state.iterations == 0)
        first = jnp.where(fresh, jnp.minimum(1.0, 1 / (jnp.linalg.norm(gradient) + 1e-300)), 1.0)
        search = strong_wolfe(value_and_grad, state.x, p, value, gradient, first)
        point = search.point
        s = point.step * p
        moved = point.step > 0
        new_hg = inverse @ point.gradient
        inverse = jnp.where(
            moved, _update(inverse, new_hg, p, s, point.gradient - gradient, point.step, gradient), inverse
        )
        stalled = (~moved & fresh) | (jnp.linalg.norm(gradient) == 0)  # steepest descent failed too, or nowhere to go
        # Nothing lower along p: try once more from the unit matrix before giving up.
        inverse = jnp.where(moved, inverse, jnp.eye(p.shape[0], dtype=p.dtype))
        state = BroydenState(state.x + s, inverse, jnp.where(moved, state.iterations + 1, 0))
        history = history.at[i].set(point.value)
        return (
            i + 1,
            state,
            point.value,
            point.gradient,
            inverse @ point.gradient,
            history,
            evaluations + search.evaluations,
            stalled,
        )

    zero = jnp.zeros((), jnp.int32)
    carry = (zero, start, value, gradient, start.inverse @ gradient, history, zero + 1, jnp.zeros((), bool))
    i, state, value, _, _, history, evaluations, stalled = jax.lax.while_loop(go_on, body, carry)
    return state, value, history, i, evaluations, stalled


def ssbroyden(
    objective: Objective,
    params: PyTree,
    data: Any = None,
    *,
    iterations: int = 1000,
    state: BroydenState | None = None,
    max_parameters: int = 5000,
) -> MinimizeResult:
    """Minimise `objective(params, data)` from `params`; all iterations in one compiled loop.

    For the many rounds of a PINN, call it again with renewed points as `data` and `state=result.state`: position and inverse
    Hessian are kept, and nothing is compiled anew as long as `objective` is the same function.

    Args:
        objective: smooth real function of a pytree of float64 arrays (and of `data`, whose shapes stay the same).
        params: pytree; arrays of inexact dtype only.
        state: of an earlier call; `params` then only gives the structure.
        max_parameters: refuse above it; H has n^2 entries.

    Raises:
        PrecisionError: parameters in less than float64; the line search then stalls near 1e-7.
        InputError: no parameters, too many, or a start where the objective is not finite.
    """
    x, unravel = flat_start("ssbroyden", params, max_parameters)
    start = state
    if start is None:
        start = BroydenState(x, jnp.eye(x.size, dtype=x.dtype), jnp.zeros((), jnp.int32))
    end, value, history, taken, evaluations, stalled = _run(objective, unravel, iterations, start, data)
    require_finite(value)
    return MinimizeResult(unravel(end.x), end, value, history, taken, evaluations, stalled)
