"""Implicit-explicit Runge-Kutta time stepping."""

from collections.abc import Callable
from typing import TypeVar

import jax
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
    solve: Callable[[State, float], State],
    state: State,
    dt: float,
) -> State:
    """One step of y' = explicit(y) + implicit(y), second order, stable for fast linear waves in `implicit`.

    Args:
        solve: (r, h) -> y with y - h implicit(y) = r.
    """
    slopes: list[State] = []
    stiff: list[State] = []
    y = state
    for stage in range(3):
        slopes.append(explicit(y))
        stiff.append(implicit(y))
        total = state
        for k in range(stage + 1):
            for weight, slope in ((EXPLICIT[stage, k], slopes[k]), (IMPLICIT[stage, k], stiff[k])):
                if weight:
                    total = jax.tree.map(lambda x, s, w=float(weight): x + (dt * w) * s, total, slope)
        y = solve(total, dt * float(DIAGONAL[stage]))
    return y
