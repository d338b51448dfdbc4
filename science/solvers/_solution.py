"""What a solve returns, whichever method it was."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, did_you_mean
from sciax.science.pde import Expr, Field, Problem


class Solution:
    """Base of all solutions.

    Attributes:
        problem: what was solved.
        method: by which method.
        info: iterations, residual and status of the solve.
    """

    problem: Problem
    method: str
    info: Any

    def __call__(self, points: Any, field: Any = None) -> Any:
        """Values [k] (or [k, components]) at `points` [k, dim]."""
        raise NotImplementedError

    def integrate(self, what: Any = None) -> Any:
        """Integral over the domain of a field, an expression in fields, or a function of x."""
        raise NotImplementedError

    def to_xarray(self) -> Any:
        raise NotImplementedError

    def plot(self, field: Any = None) -> Any:
        raise NotImplementedError

    @property
    def error_estimate(self) -> float:
        """How wrong the solution is, where the method can tell."""
        from sciax.core.errors import UnsupportedError

        raise UnsupportedError(
            f"method {self.method!r} makes no error estimate", remedy="compare(s, solve(p, method=...))"
        )

    def field(self, which: Any = None) -> Field:
        """A field by name or as it is; the first if none is named."""
        fields = self.problem.fields
        if which is None:
            return fields[0]
        name = which.name if isinstance(which, Field) else str(which)
        for field in fields:
            if field.name == name:
                return field
        raise InputError(f"the solution has no field {name!r}", remedy=did_you_mean(name, [f.name for f in fields]))

    def _save(self, figure: Any, path: Any) -> Any:
        if path is not None:
            figure.savefig(Path(path), dpi=120)
        return figure


def expression(what: Any, default: Field) -> Expr:
    from sciax.science.pde._expr import as_expr

    return default if what is None else as_expr(what)


@dataclass(frozen=True)
class Comparison:
    """Two solutions at the same points.

    Attributes:
        relative: relative L2 difference over the points.
        largest: largest difference.
        scale: root mean square of the first.
        points: how many.
    """

    relative: float
    largest: float
    scale: float
    points: int
    methods: tuple[str, str]

    def __str__(self) -> str:
        a, b = self.methods
        return f"{a} against {b}: relative L2 difference {self.relative:.2e}, largest {self.largest:.2e} ({self.points} points)"


def compare(first: Solution, second: Solution, *, field: Any = None, points: Any = None) -> Comparison:
    """How far two solutions of the same problem are apart.

    Args:
        field: the one to compare; the first by default.
        points: where; 2000 points inside the first solution's domain unless given.
    """
    name = first.field(field).name
    at = first.sample_points() if points is None else np.asarray(points)  # type: ignore[attr-defined]
    a, b = np.asarray(jax.device_get(first(at, name))), np.asarray(jax.device_get(second(at, name)))
    if a.shape != b.shape:
        raise InputError("the solutions differ in shape", got=(a.shape, b.shape))
    difference = np.linalg.norm(a - b)
    size = np.linalg.norm(a)
    relative = float(difference / size) if size else float(difference)
    return Comparison(
        relative, float(np.abs(a - b).max()), float(size / np.sqrt(len(a))), len(a), (first.method, second.method)
    )


def as_points(points: Any, dim: int) -> tuple[Any, bool]:
    """[k, dim] from [k, dim], one point [dim], or [k] in one dimension; and whether it was one point."""
    at = jnp.asarray(points)
    if dim == 1 and at.ndim <= 1 and (at.ndim == 0 or at.shape != (1,)):
        return at.reshape(-1, 1), at.ndim == 0
    if at.ndim == 1 and at.shape[0] == dim:
        return at[None], True
    if at.ndim != 2 or at.shape[1] != dim:
        raise InputError("points have the wrong shape", got=at.shape, expected=f"[k, {dim}]")
    return at, False
