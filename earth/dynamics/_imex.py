"""Implicit-explicit Runge-Kutta time stepping."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

State = TypeVar("State")

# SIL3 of Whitaker and Kar (2013), MWR 141, table 7: three explicit evaluations and three implicit solves; both tableaux end in
# their weights, so the last stage is the step.
EXPLICIT = np.array([[1 / 3, 0, 0], [1 / 6, 1 / 2, 0], [1 / 2, -1 / 2, 1]])
IMPLICIT = np.array([[1 / 6, 0, 0], [1 / 3, 0, 0], [3 / 8, 0, 3 / 8]])
DIAGONAL = np.array([1 / 6, 1 / 3, 1 / 4])


def sil3(
    explicit: Callable[[State], State],
    implicit: Callable[[State], State],
    solve: Callable[[State, jax.Array], State],
    state: State,
    dt: float,
) -> State:
    """One step of y' = explicit(y) + implicit(y), second order, stable for fast linear waves in `implicit`.

    Args:
        solve: (r, h) -> y with y - h implicit(y) = r.

    Stages run in a scan, so that the explicit part is traced and compiled once.
    """
    real = jax.tree.leaves(state)[0].real.dtype
    zeros = jax.tree.map(lambda x: jnp.zeros((3, *x.shape), x.dtype), state)

    def combine(weights, history):
        return jax.tree.map(lambda h: jnp.tensordot(weights.astype(h.dtype), h, 1), history)

    def stage(carry, row):
        y, slopes, stiff = carry
        index, a_explicit, a_implicit, diagonal = row

        def put(history, new):
            return jax.tree.map(lambda h, x: jax.lax.dynamic_update_index_in_dim(h, x, index, 0), history, new)

        slopes, stiff = put(slopes, explicit(y)), put(stiff, implicit(y))
        total = jax.tree.map(
            lambda y0, n, l: y0 + dt * (n + l), state, combine(a_explicit, slopes), combine(a_implicit, stiff)
        )
        return (solve(total, dt * diagonal), slopes, stiff), None

    rows = (jnp.arange(3), *(jnp.asarray(x, real) for x in (EXPLICIT, IMPLICIT, DIAGONAL)))
    (y, _, _), _ = jax.lax.scan(stage, (state, zeros, zeros), rows)
    return y
