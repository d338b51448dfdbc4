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

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from sciax.core.errors import InputError, PrecisionError
from sciax.core.train.minimize._line_search import strong_wolfe

Objective = Callable[[PyTree, Any], Float[Array, ""]]


class BroydenState(NamedTuple):
    """Where a minimisation is: position, inverse Hessian and the length of its history."""

    x: Float[Array, " n"]
    inverse: Float[Array, "n n"]
    iterations: Int[Array, ""]


class BroydenResult(NamedTuple):
    """What `ssbroyden` gives back.

    Attributes:
        params: where it ended.
        state: to go on from, with the same or with new data (H is kept).
        value: objective there.
        history: (iterations,) objective after each iteration; NaN past `taken`.
        taken: iterations done.
        evaluations: of value and gradient.
        stalled: the line search found no lower point: rounding is reached, or the objective is not smooth.
    """

    params: PyTree
    state: BroydenState
    value: Float[Array, ""]
    history: Float[Array, " iterations"]
    taken: Int[Array, ""]
    evaluations: Int[Array, ""]
    stalled: Bool[Array, ""]


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
) -> BroydenResult:
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
    leaves = jax.tree.leaves(params)
    if not leaves or not all(eqx.is_inexact_array(leaf) for leaf in leaves):
        raise InputError(
            "ssbroyden minimises over inexact arrays", remedy="equinox.partition(model, equinox.is_inexact_array)"
        )
    if any(leaf.dtype != jnp.float64 for leaf in leaves):
        raise PrecisionError(
            "ssbroyden needs float64 parameters",
            got=str(sorted({str(leaf.dtype) for leaf in leaves})),
            remedy="inside `with sciax.core.x64():` make them float64",
        )
    x, unravel = _ravel(params)
    if x.size > max_parameters:
        raise InputError(
            f"ssbroyden keeps a dense matrix of {x.size}^2 entries ({x.size**2 * 8 / 1e9:.1f} GB)",
            expected=f"at most {max_parameters} parameters",
            remedy="optax.lbfgs() in fit, or raise max_parameters",
        )
    start = state
    if start is None:
        start = BroydenState(x, jnp.eye(x.size, dtype=x.dtype), jnp.zeros((), jnp.int32))
    end, value, history, taken, evaluations, stalled = _run(objective, unravel, iterations, start, data)
    if not bool(jnp.isfinite(value)):
        raise InputError("the objective is not finite at the start", got=float(value))
    return BroydenResult(unravel(end.x), end, value, history, taken, evaluations, stalled)


_UNRAVEL: dict[Any, Callable[[Array], PyTree]] = {}


def _ravel(params: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """`ravel_pytree`, with the same inverse function for the same structure: it is a static argument of the compiled loop."""
    x, unravel = ravel_pytree(params)
    key = (jax.tree.structure(params), tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(params)))
    return x, _UNRAVEL.setdefault(key, unravel)
