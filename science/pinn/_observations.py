"""Measurements that a network should agree with, for inverse problems."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sciax.core.errors import InputError, ShapeError
from sciax.science.pde import Expr
from sciax.science.pde._expr import as_expr, fields_of


@dataclass(frozen=True, eq=False)
class Observations:
    """Values of a field, or of an expression in fields and their derivatives, at points.

    Attributes:
        what: `u`, `v[0]`, `grad(u)[0]`, ...
        points: [k, dim], or [k, dim + 1] with the time last where the problem has one.
        values: [k] or [k, components].
    """

    what: Any
    points: Any
    values: Any

    def checked(self, system: Any) -> tuple[Expr, np.ndarray, np.ndarray]:
        """(expression, points [axes, k], values [rows, k]).

        Raises:
            InputError: not finite, outside the time interval, or about no field of the problem.
            ShapeError: points or values of the wrong shape.
        """
        expr, frame = as_expr(self.what), system.frame
        known = {f.name for f in system.problem.fields}
        about = {f.name for f in fields_of(expr)}
        if not about or not about <= known:
            raise InputError(f"observations of {expr!r}", expected=f"an expression in {', '.join(sorted(known))}")
        points, values = np.asarray(self.points, float), np.asarray(self.values, float)
        if points.ndim == 1 and frame.axes == 1:
            points = points[:, None]
        if points.ndim != 2 or points.shape[1] != frame.axes or not len(points):
            raise ShapeError("where was it observed?", got=points.shape, expected=f"[k, {frame.axes}], time last")
        if values.shape[:1] != points.shape[:1] or values.ndim > 2:
            raise ShapeError("one value for each point", got=values.shape, expected=f"[{len(points)}] or [k, m]")
        if not (np.isfinite(points).all() and np.isfinite(values).all()):
            raise InputError("an observation is not finite")
        slack = 1e-9 * (frame.upper - frame.lower)
        if (points < frame.lower - slack).any() or (points > frame.upper + slack).any():
            raise InputError(
                "observations outside the domain", expected=f"between {frame.lower.tolist()} and {frame.upper.tolist()}"
            )
        return expr, points.T, values[None] if values.ndim == 1 else values.T
