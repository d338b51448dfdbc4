"""Stepping in time with the nonlinear terms taken explicitly: one linear system, the same at every step."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def march_imex(
    prepare: Callable[[Any], Any],
    implicit: Callable[..., Any],
    explicit: Callable[..., Any],
    start: Any,
    t0: float,
    t1: float,
    steps: int,
    saves: int,
):
    """Integrate `L(u, du/dt, t) + N(u, t) = 0` with the two-step scheme SBDF2 of Ascher, Ruuth & Wetton (1995).

    `(3 u[n+1] - 4 u[n] + u[n-1]) / (2 h)` is the rate, `2 N(u[n]) - N(u[n-1])` the nonlinear part; the first step is Euler's.
    Second order; the step is bound by the explicit part (a Courant number of about one half).

    Args:
        prepare: rate factor -> whatever `implicit` needs that stays the same at all steps (the matrix).
        implicit: `implicit(system, base, rate, t, guess, push)` solves `L(u, rate * (u - base), t) + push = 0` for u, and gives
            (u, status).
        explicit: `explicit(u, t)` is N.
        start: the state at `t0`.
        saves: states kept after the start; `steps` is a multiple of it.

    Returns:
        (states [saves + 1, n], their time derivatives, worst status), checkpointed as `march` is.
    """
    step = (t1 - t0) / steps
    pushed = explicit(start, t0)
    system = prepare(1.5 / step)
    first, status = implicit(prepare(1.0 / step), start, 1.0 / step, t0 + step, start, pushed)
    begun = (first - start) / step

    def one(carry, index):
        u, before, push, _, worst = carry
        t = t0 + index * step
        now = explicit(u, t)
        base = (4 * u - before) / 3
        new, status = implicit(system, base, 1.5 / step, t + step, 2 * u - before, 2 * now - push)
        return (new, u, now, 1.5 / step * (new - base), jnp.maximum(worst, status)), None

    def keep(carry):
        return carry[0], carry[3]

    @jax.checkpoint
    def stretch(carry, indices):
        carry, _ = jax.lax.scan(one, carry, indices)
        return carry, keep(carry)

    every = steps // saves
    carry = (first, start, pushed, begun, jnp.asarray(status, jnp.int32))
    carry, _ = jax.lax.scan(one, carry, jnp.arange(1, every))
    kept = [(start, begun), keep(carry)]
    if saves > 1:
        later = every + jnp.arange((saves - 1) * every).reshape(saves - 1, every)
        carry, rest = jax.lax.scan(stretch, carry, later)
    else:
        rest = tuple(jnp.zeros((0, *start.shape), start.dtype) for _ in range(2))
    states, rates = (jnp.concatenate([jnp.stack([a, b]), c]) for a, b, c in zip(*kept, rest, strict=True))
    return states, rates, carry[4]
