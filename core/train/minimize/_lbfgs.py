"""L-BFGS in the same form as the dense minimisers: optax's, with its zoom line search, in one compiled loop."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, PyTree

from sciax.core.errors import InputError
from sciax.core.train.minimize._common import MinimizeResult, flat_start, require_finite
from sciax.core.train.minimize._ssbroyden import Objective

MAX_SEARCH = 20


class LbfgsState(NamedTuple):
    """Where a minimisation is: position and the last pairs of steps and gradient differences."""

    x: Float[Array, " n"]
    inner: Any
    iterations: Int[Array, ""]


def _method(memory: int) -> Any:
    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=MAX_SEARCH, initial_guess_strategy="one")
    return optax.lbfgs(memory_size=memory, linesearch=search)


@partial(jax.jit, static_argnames=("objective", "unravel", "iterations", "memory"))
def _run(objective, unravel, iterations, memory, x, start, data):
    def f(x: Array) -> Array:
        return objective(unravel(x), data)

    method = _method(memory)
    # The kept value and gradient belong to the data of the call before.
    start = (*start[:-1], start[-1]._replace(value=jnp.asarray(jnp.inf, x.dtype)))
    both = optax.value_and_grad_from_state(f)
    first = f(x)
    history = jnp.full(iterations, jnp.nan, x.dtype)

    def go_on(carry):
        i, *_, stalled = carry
        return (i < iterations) & ~stalled

    def body(carry: Any):
        i, x, state, _, history, evaluations, _ = carry
        now, gradient = both(x, state=state)
        updates, after = method.update(gradient, state, x, value=now, grad=gradient, value_fn=f)
        state: Any = after
        moved: Any = optax.apply_updates(x, updates)
        lower = state[-1].value
        ok = jnp.isfinite(lower) & (lower < now)
        searched = state[-1].info.num_linesearch_steps.astype(jnp.int32)
        history = history.at[i].set(jnp.where(ok, lower, now))
        return i + 1, jnp.where(ok, moved, x), state, jnp.where(ok, lower, now), history, evaluations + searched, ~ok

    zero = jnp.zeros((), jnp.int32)
    carry = (zero, x, start, first, history, zero + 1, jnp.zeros((), bool))
    i, x, state, last, history, evaluations, stalled = jax.lax.while_loop(go_on, body, carry)
    return x, state, first, last, history, i, evaluations, stalled


def lbfgs(
    objective: Objective,
    params: PyTree,
    data: Any = None,
    *,
    iterations: int = 1000,
    state: LbfgsState | None = None,
    memory: int = 30,
) -> MinimizeResult:
    """Minimise `objective(params, data)` with limited memory (Liu & Nocedal 1989); for more parameters than a dense matrix allows.

    Args:
        objective, params, data, state: as of `ssbroyden`.
        memory: pairs kept; 2 * memory * n numbers.

    Raises:
        PrecisionError: parameters in less than float64.
        InputError: no parameters, or a start where the objective is not finite.
    """
    if memory < 1:
        raise InputError("memory is a positive number of pairs", got=memory)
    x, unravel = flat_start("lbfgs", params, None)
    start = state
    if start is None:
        start = LbfgsState(x, _method(memory).init(x), jnp.zeros((), jnp.int32))
    end, inner, first, value, history, taken, evaluations, stalled = _run(
        objective, unravel, iterations, memory, start.x, start.inner, data
    )
    require_finite(first)
    kept = LbfgsState(end, inner, start.iterations + taken)
    return MinimizeResult(unravel(end), kept, value, history, taken, evaluations, stalled)
