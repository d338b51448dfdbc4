"""Stepping in time, for every method that can solve one implicit stage."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

GAMMA = 0.435866521508458999
"""Root of x^3 - 3 x^2 + 3/2 x - 1/6: the third-order, stiffly accurate SDIRK of Alexander (1977)."""
_B1 = -(6 * GAMMA**2 - 16 * GAMMA + 1) / 4
_B2 = (6 * GAMMA**2 - 20 * GAMMA + 5) / 4
STAGES = ((GAMMA,), ((1 - GAMMA) / 2, GAMMA), (_B1, _B2, GAMMA))
TIMES = (GAMMA, (1 + GAMMA) / 2, 1.0)


def march(
    stage: Callable[..., Any], start: Any, t0: float, t1: float, steps: int, saves: int, *, rates: bool = False
) -> Any:
    """Integrate with `steps` equal steps of the L-stable SDIRK method of order 3.

    Args:
        stage: `stage(base, rate, t, guess)` solves `F(u, rate * (u - base), t) = 0` for u, and gives (u, worst status).
        start: the state at `t0`.
        saves: states kept after the start; `steps` is a multiple of it.
        rates: give the time derivatives of the states as well (of the first one: that of the first step's end).

    Returns:
        (states [saves + 1, n], worst status), or (states, rates, worst status). The outer loop is checkpointed: reverse mode keeps
        `saves` states and the steps between two of them.
    """
    step = (t1 - t0) / steps

    def one(carry, index):
        u, _, worst = carry
        t = t0 + index * step
        slopes: list[Any] = []
        scale = 1.0 / (step * GAMMA)
        v = u
        for row, c in zip(STAGES, TIMES):
            base = u + step * sum((a * k for a, k in zip(row[:-1], slopes)), jnp.zeros_like(u))
            v, status = stage(base, scale, t + c * step, v)
            slopes.append(scale * (v - base))
            worst = jnp.maximum(worst, status)
        return (v, slopes[-1], worst), None

    @jax.checkpoint
    def stretch(carry, first):
        carry, _ = jax.lax.scan(one, carry, first + jnp.arange(steps // saves))
        return carry, carry[:2] if rates else carry[:1]

    firsts = jnp.arange(saves) * (steps // saves)
    begin = (start, jnp.zeros_like(start), jnp.zeros((), jnp.int32))
    (_, _, worst), kept = jax.lax.scan(stretch, begin, firsts)
    states = jnp.concatenate([start[None], kept[0]])
    return (states, jnp.concatenate([kept[1][:1], kept[1]]), worst) if rates else (states, worst)


def save_count(steps: int, saves: int | None) -> int:
    """A divisor of `steps` near its square root, or the one asked for."""
    from sciax.core.errors import InputError

    if steps < 1:
        raise InputError("at least one time step", got=steps)
    if saves is not None:
        if saves < 1 or steps % saves:
            raise InputError("steps must be a multiple of saves", got=f"steps={steps}, saves={saves}")
        return saves
    divisors = [d for d in range(1, steps + 1) if steps % d == 0]
    return min(divisors, key=lambda d: abs(np.log(d / np.sqrt(steps))))
