"""Strong-stability-preserving Runge-Kutta steps (Shu & Osher 1988, three stages, third order), fixed or by the Courant number."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

STAGES = ((0.0, 1.0, 0.0), (0.75, 0.25, 1.0), (1 / 3, 2 / 3, 0.5))
"""(share of the start, share of the Euler step, time of the stage in steps)."""


class Track(NamedTuple):
    """What is known of a march.

    Attributes:
        steps: done. courant: the largest Courant number met.
        bad: first step with a state that is none, 0 if there was none; quantity, cell: which, and where (flat index).
    """

    steps: Any
    courant: Any
    bad: Any
    quantity: Any
    cell: Any


def one_step(rate: Callable[..., Any], positive: Callable[..., Any], q: Any, t: Any, dt: Any, track: Track):
    """One step; a state that is none is noted with its cell, and the run is frozen there."""
    start = q

    # Computed again in reverse: the four hundred arrays a rate leaves behind would cost memory, and XLA minutes of compilation.
    @partial(jax.checkpoint, prevent_cse=False)
    def stage(carry, row):
        q, found = carry
        share, other, when = row
        q = share * start + other * (q + dt * rate(q, t + when * dt))
        quantities = jax.lax.stop_gradient(positive(q))
        worst = jnp.argmin(quantities)
        cells = quantities[0].size
        fails = (quantities.ravel()[worst] <= 0) & (found.bad == 0)
        found = found._replace(
            bad=jnp.where(fails, track.steps + 1, found.bad).astype(jnp.int32),
            quantity=jnp.where(fails, worst // cells, found.quantity).astype(jnp.int32),
            cell=jnp.where(fails, worst % cells, found.cell).astype(jnp.int32),
        )
        return (q, found), None

    # scanned, not written out: the rate is compiled once
    (q, found), _ = jax.lax.scan(stage, (q, track), jnp.asarray(STAGES, q.dtype))
    good = found.bad == 0
    return jnp.where(good, q, start), found._replace(steps=jnp.where(good, track.steps + 1, track.steps))


def march(rate, positive, courant_rate, q, t0, t1, *, steps: int | None, saves: int, courant: float, limit: int):
    """Integrate from t0 to t1.

    Args:
        rate: `rate(q, t)`. positive: rows that must stay positive. courant_rate: inverse time scale [cells] of a state.
        steps: equal steps, a multiple of `saves`; reverse mode keeps `saves` states and the steps between two of them.
            None: as long as the Courant number allows, at most `limit` of them; forward mode only.

    Returns:
        (states [saves + 1, ...], times [saves + 1], Track).
    """
    zero = jnp.zeros((), jnp.int32)
    track = Track(zero, jnp.zeros((), q.dtype), zero, zero, zero)

    def fastest(q):
        return jax.lax.stop_gradient(jnp.max(courant_rate(q)))

    if steps is not None:
        dt = (t1 - t0) / steps

        def fixed(carry, index):
            q, track = carry
            track = track._replace(courant=jnp.maximum(track.courant, dt * fastest(q)))
            q, track = one_step(rate, positive, q, t0 + index * dt, dt, track)
            return (q, track), None

        @jax.checkpoint
        def stretch(carry, first):
            carry, _ = jax.lax.scan(fixed, carry, first + jnp.arange(steps // saves))
            return carry, carry[0]

        firsts = jnp.arange(saves) * (steps // saves)
        (_, track), states = jax.lax.scan(stretch, (q, track), firsts)
    else:

        def until(carry, end):
            def go_on(state):
                _, t, track = state
                return (t < end) & (track.bad == 0) & (track.steps < limit)

            def step(state):
                q, t, track = state
                speed = fastest(q)
                left = end - t
                dt = jnp.minimum(courant / speed, left)
                # two even steps rather than a long one and a sliver
                dt = jnp.where((dt < left) & (2 * dt > left), left / 2, dt)
                track = track._replace(courant=jnp.maximum(track.courant, dt * speed))
                q, track = one_step(rate, positive, q, t, dt, track)
                return q, jnp.where(dt >= left, end, t + dt), track

            carry = jax.lax.while_loop(go_on, step, carry)
            return carry, carry[0]

        ends = t0 + (t1 - t0) * jnp.arange(1, saves + 1, dtype=q.dtype) / saves
        (_, _, track), states = jax.lax.scan(until, (q, jnp.asarray(t0, q.dtype), track), ends)
    times = t0 + (t1 - t0) * jnp.arange(saves + 1, dtype=q.dtype) / saves
    return jnp.concatenate([q[None], states]), times, track
