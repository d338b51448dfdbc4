"""Method of moving asymptotes: bounded minimisation of expensive functions of many variables under a few constraints.

    minimise f0(x)   subject to   fi(x) <= 0, i = 1..m,   lower <= x <= upper

At an iterate each function is replaced by a convex separable one that agrees with it in value and slope,

    fi~(x) = ri + sum_j pij / (uj - xj) + qij / (xj - lj),   l < x < u the asymptotes,

and the minimum of the replacement, found through its dual (m unknowns, concave), is the next iterate. Asymptotes draw in where a
variable oscillates and move out where it goes on. With `conservative=True` the replacement is made steeper until it lies above the
function at the new point (globally convergent; costs evaluations). A constraint that cannot be met is let slip at a price, so that
every subproblem has a solution and an infeasible start is no error.

Sources: K. Svanberg, Int. J. Numer. Methods Eng. 24 (1987) 359 (asymptotes); K. Svanberg, SIAM J. Optim. 12 (2002) 555
(conservative form, constants of p and q). The dual is maximised by a projected Newton method of our own; it runs in NumPy float64
on the host: the user's function is what takes the time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from sciax.core.errors import ConvergenceError, InputError, ShapeError

Vector = Float[np.ndarray, " n"]


class MMAState(NamedTuple):
    """Where a minimisation is.

    Attributes:
        x, before, older: the last three iterates.
        span: distance of the asymptotes from x, as fractions of upper - lower.
        stiffness: (1 + m,) curvature added to each replacement (grows in the conservative form).
        iteration: how many updates were made.
    """

    x: Vector
    before: Vector
    older: Vector
    span: Vector
    stiffness: Float[np.ndarray, " k"]
    iteration: int


class MMAResult(NamedTuple):
    """What `mma` gives back.

    Attributes:
        x: the best point: the lowest objective among those that meet the constraints; if none does, the least violated.
        value: objective there.
        violation: largest max(fi, 0) there.
        multipliers: (m,) of the last subproblem.
        history: (iterations, 2) objective and violation of every iterate.
        evaluations: of the function.
        state: to go on from.
    """

    x: Vector
    value: float
    violation: float
    multipliers: Float[np.ndarray, " m"]
    history: Float[np.ndarray, "iterations 2"]
    evaluations: int
    state: MMAState


class _Approximation(NamedTuple):
    """fi~(x) = r + sum p / (u - x) + q / (x - l); rows are functions, the objective first."""

    p: Any
    q: Any
    r: Any
    lower: Any
    upper: Any
    low: Any  # box of the subproblem
    high: Any

    def __call__(self, x):
        return self.r + self.p @ (1 / (self.upper - x)) + self.q @ (1 / (x - self.lower))


def mma_start(x, constraints: int, *, span: float = 0.5) -> MMAState:
    """The state before the first update.

    Args:
        x: start.
        constraints: m.
        span: first distance of the asymptotes, as a fraction of upper - lower.
    """
    x = np.array(x, np.float64).reshape(-1)
    return MMAState(x, x, x, np.full(x.shape, float(span)), np.full(1 + constraints, 1e-5), 0)


def _approximate(state: MMAState, values, slopes, lower, upper, move: float) -> _Approximation:
    x, width = state.x, upper - lower
    u, l = x + state.span * width, x - state.span * width
    reach = np.minimum(move, 0.9 * state.span) * width
    low, high = np.maximum(lower, x - reach), np.minimum(upper, x + reach)
    up, down = np.maximum(slopes, 0.0), np.maximum(-slopes, 0.0)
    extra = state.stiffness[:, None] / width
    p = (u - x) ** 2 * (1.001 * up + 0.001 * down + extra)
    q = (x - l) ** 2 * (0.001 * up + 1.001 * down + extra)
    r = values - p @ (1 / (u - x)) - q @ (1 / (x - l))
    return _Approximation(p, q, r, l, u, low, high)


def _solve(a: _Approximation, price: float) -> tuple[Vector, Any]:
    """Minimum of the replacement and its multipliers; constraint i may slip by y at a cost of price y + y^2 / 2.

    The dual, min_x over the box of f0~ + lambda f~ in closed form, is concave with the gradient f~(x(lambda)) - y(lambda).
    """
    m = a.r.size - 1

    def inner(dual):
        weight = np.concatenate([[1.0], dual])
        p, q = weight @ a.p, weight @ a.q
        x = (np.sqrt(p) * a.lower + np.sqrt(q) * a.upper) / (np.sqrt(p) + np.sqrt(q))
        inside = (x > a.low) & (x < a.high)
        x = np.clip(x, a.low, a.high)
        y = np.maximum(dual - price, 0.0)
        f = a(x)
        return x, f[1:] - y, float(weight @ f - 0.5 * y @ y), p, q, inside

    dual = np.zeros(m)
    x, gradient, value, p, q, inside = inner(dual)
    size = np.abs(a.p).sum(1)[1:] + np.abs(a.q).sum(1)[1:] + 1.0
    for _ in range(200):
        free = (dual > 0) | (gradient > 0)
        if not m or not np.any(free) or np.max(np.abs(gradient[free]) / size[free]) < 1e-12:
            break
        # -second derivative: J D^-1 J' over the variables inside the box, and 1 where a constraint slips
        slope = a.p[1:] / (a.upper - x) ** 2 - a.q[1:] / (x - a.lower) ** 2
        bend = 2 * (p / (a.upper - x) ** 3 + q / (x - a.lower) ** 3)
        curve = (slope * np.where(inside, 1 / bend, 0.0)) @ slope.T + np.diag((dual > price).astype(float))
        curve = curve[np.ix_(free, free)]
        curve += np.diag(1e-12 * np.diag(curve) + 1e-12 * np.max(np.diag(curve)) + 1e-300)
        turn = np.zeros(m)
        turn[free] = np.linalg.solve(curve, gradient[free])
        if gradient @ turn <= 0 or not np.all(np.isfinite(turn)):
            turn = np.where(free, gradient, 0.0)
        limit = 10 * (1 + dual.max() + price)  # curvature vanishes where all variables are at their bounds
        turn *= min(1.0, limit / max(np.abs(turn).max(), 1e-300))
        step, found = 1.0, None
        while step > 1e-14:
            trial = np.maximum(dual + step * turn, 0.0)
            new = inner(trial)
            if new[2] >= value + 1e-4 * float(gradient @ (trial - dual)) - 1e-14 * abs(value):
                found = trial
                break
            step *= 0.5
        if found is None or np.array_equal(found, dual):
            break
        dual = found
        x, gradient, value, p, q, inside = new
    return x, dual


def mma_update(
    state: MMAState, values, slopes, lower, upper, *, move: float = 0.5, price: float = 1000.0
) -> tuple[MMAState, Any, _Approximation]:
    """One update from the values (1 + m,) and slopes (1 + m, n) of objective and constraints at `state.x`.

    Args:
        move: largest change of a variable, as a fraction of upper - lower.
        price: of a constraint's violation; well above the multipliers to be expected.

    Returns:
        (new state, multipliers, the replacement that was minimised).
    """
    x = state.x
    if state.iteration >= 2:
        turn = (x - state.before) * (state.before - state.older)
        span = np.clip(state.span * np.where(turn > 0, 1.2, np.where(turn < 0, 0.7, 1.0)), 0.01, 10.0)
        state = state._replace(span=span)
    replacement = _approximate(state, values, slopes, lower, upper, move)
    new, dual = _solve(replacement, price)
    return state._replace(x=new, before=x, older=state.before, iteration=state.iteration + 1), dual, replacement


def mma(
    function: Callable[[Vector], tuple[Any, Any]],
    start,
    lower,
    upper,
    *,
    iterations: int = 50,
    move: float = 0.5,
    price: float = 1000.0,
    tolerance: float = 0.0,
    feasible: float = 1e-6,
    conservative: bool = False,
    state: MMAState | None = None,
    callback: Callable[[int, Vector, Any], None] | None = None,
) -> MMAResult:
    """Minimise an objective under constraints fi(x) <= 0 and bounds.

    Args:
        function: x (n,) -> (values (1 + m,), slopes (1 + m, n)), the objective first. Scale it so that values are of order
            one to a hundred, and constraints alike.
        start: (n,), within the bounds.
        lower, upper: bounds, numbers or (n,); finite, since the asymptotes start from their distance.
        iterations: updates; each costs one evaluation, more with `conservative`.
        move: largest change of a variable in one update, as a fraction of upper - lower.
        price: of a violated constraint, see `mma_update`.
        tolerance: stop when no variable moves by more than this fraction of upper - lower.
        feasible: violation up to which a point counts as one that meets the constraints.
        conservative: raise each replacement until it lies above its function at the new point.
        state: of an earlier result, to go on from; `start` is then not used.
        callback: (iteration, x, values) at every iterate.

    Raises:
        InputError, ShapeError: bounds that do not enclose the start; values and slopes of wrong shape.
        ConvergenceError: a value or slope that is not finite; carries the history.
    """
    x = np.array(start if state is None else state.x, np.float64).reshape(-1)
    lower, upper = (np.broadcast_to(np.asarray(b, np.float64), x.shape) for b in (lower, upper))
    if not (np.all(np.isfinite(x)) and np.all(lower < upper) and np.all(np.isfinite(upper - lower))):
        raise InputError("mma needs a finite start and finite bounds, lower < upper")
    if np.any(x < lower) or np.any(x > upper):
        raise InputError("the start lies outside its bounds", got=f"{int(np.sum((x < lower) | (x > upper)))} variables")
    if iterations < 1:
        raise InputError("iterations", got=iterations, expected=">= 1")
    history: list[tuple[float, float]] = []
    evaluations = 0

    def evaluate(x):
        nonlocal evaluations
        values, slopes = function(x)
        values, slopes = np.atleast_1d(np.asarray(values, np.float64)), np.asarray(slopes, np.float64)
        slopes = slopes.reshape(values.size, -1) if slopes.size == values.size * x.size else slopes
        if values.ndim != 1 or slopes.shape != (values.size, x.size):
            raise ShapeError(
                "function returns values (1 + m,) and slopes (1 + m, n)",
                got=(values.shape, slopes.shape),
                expected=f"n = {x.size}",
            )
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(slopes)):
            raise ConvergenceError("the objective is not finite", got=values, history=[v for v, _ in history])
        evaluations += 1
        return values, slopes

    values, slopes = evaluate(x)
    m = values.size - 1
    state = mma_start(x, m) if state is None else state
    dual = np.zeros(m)
    best: tuple | None = None

    def note(x, values) -> None:
        nonlocal best
        violation = float(np.max(values[1:], initial=0.0))
        history.append((float(values[0]), violation))
        rank = (max(violation - feasible, 0.0), float(values[0]))
        if best is None or rank < best[0]:
            best = (rank, x, float(values[0]), violation)
        if callback is not None:
            callback(len(history), x, values)

    note(x, values)
    for _ in range(iterations):
        old = state
        scaled = np.abs(slopes) * (upper - lower)
        stiffness = 0.1 * scaled.mean(1) if conservative else 1e-5 * scaled.max(1)
        old = old._replace(stiffness=np.maximum(stiffness, 1e-12))
        state, dual, replacement = mma_update(old, values, slopes, lower, upper, move=move, price=price)
        new_values, new_slopes = evaluate(state.x)
        for _ in range(15 if conservative else 0):
            above = new_values - replacement(state.x)
            if np.all(above <= 1e-7 * (1 + np.abs(new_values))):
                break
            # curvature by which each replacement fell short at the new point
            x, u, l = old.x, replacement.upper, replacement.lower
            d = np.sum(
                (u - l) * (state.x - x) ** 2 / ((u - state.x) * (state.x - l) * (upper - lower)),
            )
            short = np.maximum(above, 0.0) / max(d, 1e-300)
            stiffer = np.where(above > 0, np.minimum(10 * old.stiffness, 1.1 * (old.stiffness + short)), old.stiffness)
            # the asymptotes were already renewed: keep them
            old = old._replace(stiffness=stiffer, span=state.span)
            replacement = _approximate(old, values, slopes, lower, upper, move)
            new, dual = _solve(replacement, price)
            state = state._replace(x=new)
            new_values, new_slopes = evaluate(new)
        moved = np.max(np.abs(state.x - old.x) / (upper - lower))
        values, slopes = new_values, new_slopes
        note(state.x, values)
        if moved <= tolerance:
            break
    assert best is not None
    return MMAResult(best[1], best[2], best[3], dual, np.array(history), evaluations, state)
