"""Natural gradient for sums of squares: the energy metric by default, or that of any map of the parameters.

The gradient of f = |r|^2 is preconditioned by a Gram matrix G = M'M, M = d metric / d params:

    (G + lam I) p = J'r + lam mu p_before,     x <- x - eta p,     lam = damping * f

With `metric` left out M = J: the energy natural gradient of residual networks (Müller & Zeinhofer 2023, arXiv 2302.13163), which
then is Gauss-Newton. Momentum mu is SPRING's (Goldshlager, Abrahamsen & Lin 2024; Guzmán-Cordero et al. 2025). Where there are
fewer residuals than parameters the same p comes from the m x m matrix J J' + lam I (Woodbury).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve
from jaxtyping import Array, Float, Int, PyTree

from sciax.core.errors import InputError
from sciax.core.train.minimize._common import MinimizeResult, flat_start, require_finite
from sciax.core.train.minimize._levenberg import DenseJacobian, Jacobian, Residual, flatten_jacobian

HALVINGS = 30


class NaturalState(NamedTuple):
    """Where a minimisation is: position and the last direction."""

    x: Float[Array, " n"]
    direction: Float[Array, " n"]
    iterations: Int[Array, ""]


def _best_step(value_at: Callable[[Array], Array], value: Array) -> tuple[Array, Array, Array]:
    """(step, value there, evaluations): of 1, 1/2, 1/4, ... the first local minimum of the objective; step 0 if none is lower."""

    def go_on(state):
        _, best, previous, count = state
        return (count < HALVINGS) & ~((best < value) & (previous > best))

    def body(state):
        step, best, _, count = state
        trial = 0.5 ** count.astype(value.dtype)
        now = value_at(trial)
        now = jnp.where(jnp.isfinite(now), now, jnp.inf)
        better = now < best
        return jnp.where(better, trial, step), jnp.minimum(now, best), now, count + 1

    zero = jnp.zeros((), value.dtype)
    step, best, _, count = jax.lax.while_loop(go_on, body, (zero, value, value, jnp.zeros((), jnp.int32)))
    return step, best, count


@partial(jax.jit, static_argnames=("residual", "jacobian", "metric", "unravel", "iterations"))
def _run(residual, jacobian, metric, unravel, iterations, start: NaturalState, damping, momentum, data):
    def f(x: Array) -> Array:
        r = residual(unravel(x), data)
        return r @ r

    def direction(x: Array, before: Array) -> Array:
        r, rows = jacobian(unravel(x), data)
        j = flatten_jacobian(rows)
        # A vanishing damping with a vanishing loss keeps convergence quadratic (Yamashita & Fukushima 2001).
        lam = damping * (r @ r) + 1e-300
        if metric is None and j.shape[0] < j.shape[1]:
            kernel = j @ j.T
            shift = lam + 1e-15 * jnp.trace(kernel)
            inverse = cho_factor(kernel + shift * jnp.eye(j.shape[0], dtype=x.dtype))
            return momentum * before + j.T @ cho_solve(inverse, r - momentum * (j @ before))
        m = j if metric is None else flatten_jacobian(metric(unravel(x), data)[1])
        gram = m.T @ m
        shift = lam + 1e-15 * jnp.trace(gram)
        inverse = cho_factor(gram + shift * jnp.eye(x.size, dtype=x.dtype))
        return cho_solve(inverse, j.T @ r + lam * momentum * before)

    value = f(start.x)
    history = jnp.full(iterations, jnp.nan, value.dtype)

    def go_on(carry):
        i, _, _, _, _, stalled = carry
        return (i < iterations) & ~stalled

    def body(carry):
        i, state, value, history, evaluations, _ = carry
        p = direction(state.x, state.direction)
        p = jnp.where(jnp.all(jnp.isfinite(p)), p, 0.0)
        step, lower, count = _best_step(lambda s: f(state.x - s * p), value)
        # With momentum p may fail to descend: drop it once before giving up.
        stalled = (step == 0) & (~jnp.any(state.direction != 0) | (momentum == 0))
        state = NaturalState(state.x - step * p, jnp.where(step > 0, p, 0.0), state.iterations + 1)
        return i + 1, state, lower, history.at[i].set(lower), evaluations + count + 1, stalled

    zero = jnp.zeros((), jnp.int32)
    i, state, last, history, evaluations, stalled = jax.lax.while_loop(
        go_on, body, (zero, start, value, history, zero + 1, jnp.zeros((), bool))
    )
    return state, value, last, history, i, evaluations, stalled


def natural_gradient(
    residual: Residual,
    params: PyTree,
    data: Any = None,
    *,
    iterations: int = 100,
    state: NaturalState | None = None,
    jacobian: Jacobian | None = None,
    metric: Jacobian | None = None,
    damping: float = 1e-3,
    momentum: float = 0.0,
    max_parameters: int = 5000,
) -> MinimizeResult:
    """Minimise the sum of squares of `residual(params, data)` along natural gradients, with steps 1, 1/2, 1/4, ...

    Args:
        residual, params, data, jacobian, state: as of `levenberg_marquardt`.
        metric: (params, data) -> (values, their derivative as a pytree with a leading axis): the map whose Jacobian gives the
            metric, say `DenseJacobian` of a network's outputs for the L2 metric; the residual's own if not given.
        damping: lam divided by f.
        momentum: mu in [0, 1).
        max_parameters: refuse above it, unless there are fewer residuals.

    Raises:
        PrecisionError: parameters in less than float64.
        InputError: no parameters, too many, damping or momentum out of range, a start where a residual is not finite.
    """
    if not damping >= 0 or not 0 <= momentum < 1:
        raise InputError(
            "damping >= 0 and 0 <= momentum < 1 are expected", got=f"damping={damping}, momentum={momentum}"
        )
    x, unravel = flat_start("natural_gradient", params, None)
    if x.size > max_parameters:
        count = jax.eval_shape(lambda p: residual(p, data), params).size
        if metric is not None or count > max_parameters:
            flat_start("natural_gradient", params, max_parameters)
    start = NaturalState(x, jnp.zeros_like(x), jnp.zeros((), jnp.int32)) if state is None else state
    chosen = jacobian if jacobian is not None else DenseJacobian(residual)
    weights = (jnp.asarray(damping, x.dtype), jnp.asarray(momentum, x.dtype))
    end, first, value, history, taken, evaluations, stalled = _run(
        residual, chosen, metric, unravel, iterations, start, *weights, data
    )
    require_finite(first)
    return MinimizeResult(unravel(end.x), end, value, history, taken, evaluations, stalled)
