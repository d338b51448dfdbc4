"""Designs from gradients: a schedule of steepness around moving asymptotes or Adam."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.core.train.minimize._mma import mma_start, mma_update
from sciax.elec._checks import one_of
from sciax.elec.design._sizes import binarisation


@dataclass(frozen=True)
class Step:
    """One iteration: value of the objective, steepness, how black and white the variables are, largest violation."""

    iteration: int
    value: float
    beta: float
    binary: float
    violation: float = 0.0


def _check(value, gradient, shape, history) -> tuple[np.ndarray, np.ndarray]:
    v, g = np.asarray(value, float), np.asarray(gradient, float)
    if g.shape != (*v.shape, *shape):
        raise ShapeError("a gradient of the optimisation", got=g.shape, expected=(*v.shape, *shape))
    if not np.all(np.isfinite(v)) or not np.all(np.isfinite(g)):
        raise ConvergenceError("the objective is not finite", got=v, history=[s.value for s in history])
    return v, g


def maximise(
    objective: Callable[[Any, float], tuple[Any, Any]],
    start: Float[np.ndarray, "..."],
    *,
    constraints: Callable[[Any, float], tuple[Any, Any]] | None = None,
    betas: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
    iterations: int = 10,
    move: float = 0.1,
    span: float = 0.15,
    method: str = "mma",
    rate: float = 0.05,
    feasible: float = 1e-3,
    price: float = 100.0,
    callback: Callable[[Step, np.ndarray], None] | None = None,
) -> tuple[np.ndarray, list[Step]]:
    """Maximise over variables in [0, 1], with a schedule of steepness.

    Args:
        objective: (x, beta) -> (value, gradient).
        start: in [0, 1], any shape.
        constraints: (x, beta) -> (values (m,), gradients (m, *x.shape)), met where <= 0; of order one. MMA only.
        betas: steepness of the projection, one after the other; `iterations` evaluations at each. Every steepness starts
            from the best point of the one before.
        move: largest change of a variable in one iteration (MMA).
        span: distance of the asymptotes at the start of each steepness; wider takes longer steps, which may oscillate.
        method: "mma" (method of moving asymptotes) or "adam".
        rate: step length of Adam.
        feasible: violation up to which a point counts as one that meets the constraints.
        price: of a violation of one, in units of the objective.
        callback: (step, x) at every evaluation.

    Returns:
        The best x of the last steepness (the highest value among those that meet the constraints, else the least violated),
        and the history.

    Raises:
        InputError: a start outside [0, 1]; constraints with Adam. ConvergenceError: a value or gradient that is not finite.

    Source: `sciax.core.train.minimize.mma`; D. P. Kingma, J. Ba, arXiv 1412.6980.
    """
    one_of(method, ("mma", "adam"), "method")
    if method == "adam" and constraints is not None:
        raise InputError("Adam takes no constraints", remedy='method="mma"')
    x = np.array(start, float)
    if np.any(x < 0) or np.any(x > 1) or not np.all(np.isfinite(x)):
        raise InputError("start of the optimisation must lie in [0, 1]")
    shape, history = x.shape, []
    lower, upper = np.zeros(x.size), np.ones(x.size)
    best_x = x
    for beta in betas:
        x, best, m = best_x, None, 0
        state: Any = None
        first, second = np.zeros(shape), np.zeros(shape)  # moments of Adam
        for n in range(iterations):
            value, gradient = _check(*objective(x, beta), shape, history)
            limits, slopes = np.zeros(0), np.zeros((0, x.size))
            if constraints is not None:
                limits, slopes = _check(*constraints(x, beta), shape, history)
                slopes = slopes.reshape(limits.size, x.size)
            violation = float(np.max(limits, initial=0.0))
            step = Step(len(history) + 1, float(value), beta, binarisation(x), violation)
            history.append(step)
            if callback is not None:
                callback(step, x)
            rank = (-max(violation - feasible, 0.0), float(value))
            if best is None or rank > best:
                best, best_x = rank, x
            if method == "adam":
                first = 0.9 * first + 0.1 * gradient
                second = 0.999 * second + 0.001 * gradient**2
                ahead = first / (1 - 0.9 ** (n + 1))
                size = np.sqrt(second / (1 - 0.999 ** (n + 1)))
                x = np.clip(x + rate * ahead / (size + 1e-12 * np.abs(gradient).max() + 1e-300), 0.0, 1.0)
                continue
            if state is None:
                m = limits.size
                state = mma_start(x, m, span=span)
            values = np.concatenate([[-float(value)], limits])
            rows = np.concatenate([-gradient.reshape(1, -1), slopes])
            stiffness = 1e-5 * np.maximum(np.abs(rows).max(1), 1e-12)
            state, _, _ = mma_update(
                state._replace(stiffness=stiffness), values, rows, lower, upper, move=move, price=price
            )
            x = state.x.reshape(shape)
    return best_x, history
