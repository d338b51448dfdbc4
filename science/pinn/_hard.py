"""Hard conditions: u = lift + mask * network, so that values on boundary and at the start hold whatever the network says.

On a box in space and time the lift is transfinite interpolation (Gordon & Hall 1973): with P_a the linear interpolation along axis
a between the data on its two ends (constant from one end, where only that end has data),

    lift = (1 - (1 - P_x)(1 - P_y)(1 - P_t)) u,      mask = product of the distances to the ends with data, scaled to at most 1.

On other shapes the mask is built from approximate distances phi_i to the parts with data, the lift by inverse distances
(Rvachev & Sheiko 1995; Sukumar & Srivastava 2022): lift = sum_i g_i prod_{j != i} phi_j / sum_k prod_{j != k} phi_j.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.core.errors import InputError, UnsupportedError
from sciax.science.geometry import BoxDomain
from sciax.science.geometry._sampling import unit_points
from sciax.science.pde import Dirichlet, Env, Expr, Field, Initial, Periodic, Problem, evaluate

Data = Callable[[Array], Array]
"""Value of one component at a point (x, t), meant on its face."""


@dataclass(frozen=True)
class Frame:
    """Where the unknowns live: the domain's box, and the time interval where there is one."""

    problem: Problem
    lower: np.ndarray
    upper: np.ndarray
    timed: bool

    @property
    def axes(self) -> int:
        return len(self.lower)

    @property
    def dim(self) -> int:
        return self.problem.dim


def frame_of(problem: Problem, timed: bool, time: tuple[float, float] | None) -> Frame:
    """The frame of a problem.

    Raises:
        InputError: a time interval for a problem without time, or none for one with it.
    """
    domain = problem.domain
    if isinstance(domain, BoxDomain):
        lower, upper = domain.lower, domain.upper
    elif hasattr(domain, "bounds"):
        lower, upper = (np.asarray(v, float) for v in domain.bounds)  # type: ignore[attr-defined]
    else:
        points = domain.mesh().points
        lower, upper = points.min(axis=0), points.max(axis=0)
    if timed and time is None:
        raise InputError("the problem depends on time", remedy="solve(p, method='pinn', time=(0, 1))")
    if time is not None:
        if not timed:
            raise InputError("the problem does not depend on time", got=f"time={time}", remedy="leave time out")
        start, end = float(time[0]), float(time[1])
        if not end > start:
            raise InputError("the time interval is empty", got=time, expected="(start, end), start < end")
        lower, upper = np.append(lower, start), np.append(upper, end)
    return Frame(problem, np.asarray(lower, float), np.asarray(upper, float), timed)


def value_of(expr: Expr, frame: Frame, values: dict[str, Any], component: int | None) -> Data:
    """The value of a condition as a function of the point."""

    def data(z: Array) -> Array:
        t = z[frame.dim] if frame.timed else None
        out = evaluate(expr, Env(z[: frame.dim], values=values, t=t))
        out = jnp.asarray(out, z.dtype)
        return out[component] if component is not None and out.ndim else out

    return data


def components(condition: Any) -> list[int | None]:
    """Components that a condition is about; None stands for a scalar field."""
    if condition.component is not None:
        return [condition.component]
    size = condition.field.components
    return [None] if size is None else list(range(size))


def parts_of(problem: Problem, condition: Any) -> tuple[str, ...]:
    """Names of the parts a condition holds on, "boundary" and "rest" resolved."""
    domain = problem.domain
    resolve = getattr(domain, "resolve", tuple)
    everything = resolve(("boundary",)) if hasattr(domain, "resolve") else tuple(domain.boundaries)
    if condition.on == "boundary":
        return everything
    if condition.on == "rest":
        taken: set[str] = set()
        for other in problem.conditions:
            if other is condition or other.field.name != condition.field.name or isinstance(other, Initial | Periodic):
                continue
            if condition.component is None or other.component in (None, condition.component):
                if callable(other.on):
                    raise UnsupportedError("'rest' beside a function of x", remedy="name the parts")
                taken |= set(parts_of(problem, other)) if other.on != "rest" else set()
        return tuple(n for n in everything if n not in taken)
    if callable(condition.on):
        raise UnsupportedError(
            "a condition on a part given by a function", got=repr(condition), remedy="name the part, or method='fem'"
        )
    return tuple(resolve((condition.on,) if isinstance(condition.on, str) else tuple(condition.on)))


def periodic_axes(problem: Problem) -> tuple[int, ...]:
    """Axes along which all fields repeat.

    Raises:
        UnsupportedError: only some of the fields repeat.
    """
    found = {}
    for condition in problem.of_kind(Periodic):
        axes = condition.axes or tuple(range(problem.dim))
        if any(not 0 <= a < problem.dim for a in axes):
            raise InputError(f"{condition!r} names an axis that is not there", got=axes)
        found[condition.field.name] = tuple(sorted(set(found.get(condition.field.name, ())) | set(axes)))
    if not found:
        return ()
    first = next(iter(found.values()))
    if len(found) != len(problem.fields) or any(a != first for a in found.values()):
        raise UnsupportedError("all fields repeat along the same axes, or none does", got=found)
    return first


def box_faces(frame: Frame, field: Field, component: int | None, values: dict[str, Any]) -> dict[tuple[int, int], Data]:
    """(axis, end) -> data, for one component on a box; the time axis counts as one more."""
    faces: dict[tuple[int, int], Data] = {}
    problem = frame.problem
    for condition in problem.of_kind(Dirichlet):
        if condition.field.name == field.name and component in components(condition):
            for name in parts_of(problem, condition):
                faces[problem.domain.side(name)] = value_of(condition.value, frame, values, component)  # type: ignore[attr-defined]
    for condition in problem.of_kind(Initial):
        if condition.field.name == field.name and component in components(condition):
            if not frame.timed:
                raise InputError(f"{condition!r} in a problem without time")
            faces[(frame.dim, 0)] = value_of(condition.value, frame, values, component)
    return faces


def box_ansatz(frame: Frame, faces: dict[tuple[int, int], Data]) -> tuple[Data, Data]:
    """(lift, mask) of one component on a box."""
    by_axis: dict[int, list[tuple[int, Data]]] = {}
    for (axis, end), data in sorted(faces.items(), key=lambda item: item[0]):
        by_axis.setdefault(axis, []).append((end, data))
    low, high = frame.lower, frame.upper

    def hat(z: Array, axis: int, end: int) -> Any:
        if len(by_axis[axis]) == 1:
            return 1.0
        share = (z[axis] - low[axis]) / (high[axis] - low[axis])
        return share if end else 1 - share

    def lift(z: Array) -> Array:
        total = jnp.zeros((), z.dtype)
        for count in range(1, len(by_axis) + 1):
            for axes in itertools.combinations(sorted(by_axis), count):
                for choice in itertools.product(*(by_axis[a] for a in axes)):
                    at, weight = z, jnp.ones((), z.dtype)
                    for axis, (end, _) in zip(axes, choice, strict=True):
                        at = at.at[axis].set((low, high)[end][axis])
                        weight = weight * hat(z, axis, end)
                    # where faces meet their data agree; the later axis (time last) speaks for all
                    total = total + (-1) ** (count + 1) * weight * choice[-1][1](at)
        return total

    def mask(z: Array) -> Array:
        out = jnp.ones((), z.dtype)
        for axis, ends in by_axis.items():
            share = (z[axis] - low[axis]) / (high[axis] - low[axis])
            for end, _ in ends:
                out = out * ((1 - share) if end else share)
            if len(ends) == 2:
                out = 4 * out
        return out

    return lift, mask


def disagreement(frame: Frame, faces: dict[tuple[int, int], Data]) -> float:
    """The largest difference of data where two faces meet, relative to the largest value: 0 for data that fit together."""
    dtype = jnp.result_type(float)
    z = frame.lower + (frame.upper - frame.lower) * unit_points(64, frame.axes, "sobol", 1)
    worst, scale = 0.0, 0.0
    for ((a, i), one), ((b, j), two) in itertools.combinations(faces.items(), 2):
        if a == b:
            continue
        at = z.copy()
        at[:, a] = (frame.lower, frame.upper)[i][a]
        at[:, b] = (frame.lower, frame.upper)[j][b]
        u, v = (np.asarray(jax.vmap(f)(jnp.asarray(at, dtype))) for f in (one, two))
        worst, scale = max(worst, float(np.abs(u - v).max())), max(scale, float(np.abs(u).max()))
    return worst / scale if scale else worst


def shape_ansatz(parts: list[tuple[Data, Data]], initial: tuple[Data, Data] | None, frame: Frame) -> tuple[Data, Data]:
    """(lift, mask) from (distance, data) of the parts; `initial` is (time since the start, data).

    In time the lift is the Boolean sum of both: S(x, t) + u0(x) - S(x, t0), S being the lift of the parts.
    """

    def inverse_distance(z: Array) -> Array:
        if not parts:
            return jnp.zeros((), z.dtype)
        if len(parts) == 1:
            return parts[0][1](z)
        distances = [phi(z) for phi, _ in parts]
        top: Any = jnp.zeros((), z.dtype)
        bottom: Any = jnp.zeros((), z.dtype)
        for i, (_, data) in enumerate(parts):
            others = jnp.ones((), z.dtype)
            for j, d in enumerate(distances):
                others = others * d if i != j else others
            top, bottom = top + others * data(z), bottom + others
        return top / bottom

    def lift(z: Array) -> Array:
        if initial is None:
            return inverse_distance(z)
        start = z.at[frame.dim].set(frame.lower[frame.dim])
        return inverse_distance(z) + initial[1](start) - inverse_distance(start)

    def mask(z: Array) -> Array:
        out = jnp.ones((), z.dtype)
        for phi, _ in parts if initial is None else [*parts, initial]:
            out = out * phi(z)
        return out

    return lift, mask
