"""Ordinary problems on cells: averages at centres, two-point fluxes at faces, values of their own on the boundary."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.science.pde import Problem
from sciax.science.solvers.collocation._axis import Axis, _matrix
from sciax.science.solvers.collocation._method import Collocation


@dataclass(frozen=True, eq=False)
class CellAxis(Axis):
    """Centres of cells, and the two boundary points unless the axis is periodic; `mids` are the faces."""

    @cached_property
    def weights(self) -> np.ndarray:
        """Cells weigh their width, boundary points nothing: integrals are those that fluxes balance."""
        return self.widths

    @cached_property
    def widths(self) -> np.ndarray:
        if self.period is not None:
            return np.full(len(self.nodes), self.period / len(self.nodes))
        return np.concatenate([[0.0], np.diff(self.mids), [0.0]])


def cell_axis(lower: float, upper: float, cells: int) -> CellAxis:
    """A bounded axis: fluxes from (u_(i+1) - u_i) / h, at the boundary from the half cell."""
    if cells < 3:
        raise InputError("finite volumes need at least 3 cells along an axis", got=cells)
    faces = np.linspace(lower, upper, cells + 1)
    nodes = np.concatenate([[lower], (faces[1:] + faces[:-1]) / 2, [upper]])
    slope = _matrix(nodes, nodes, 1, 3)
    values, slopes = np.zeros((cells + 1, cells + 2)), np.zeros((cells + 1, cells + 2))
    for i in range(cells + 1):
        gap = nodes[i + 1] - nodes[i]
        slopes[i, i : i + 2] = -1 / gap, 1 / gap
        values[i, i : i + 2] = (0.5, 0.5)
    values[0, :2], values[-1, -2:] = (1.0, 0.0), (0.0, 1.0)
    out = np.zeros((cells + 2, cells + 1))
    for i in range(cells):
        out[i + 1, i : i + 2] = np.array([-1.0, 1.0]) / (faces[i + 1] - faces[i])
    return CellAxis(nodes, faces, slope, values, slopes, out, 2)


def ring_axis(lower: float, upper: float, cells: int) -> CellAxis:
    """A periodic axis; face i lies before cell i."""
    if cells < 3:
        raise InputError("finite volumes need at least 3 cells along an axis", got=cells)
    h = (upper - lower) / cells
    faces, eye = lower + h * np.arange(cells), np.eye(cells)
    before, after = np.roll(eye, -1, axis=0), np.roll(eye, 1, axis=0)  # rows that pick the next and the previous cell
    return CellAxis(faces + h / 2, faces, (before - after) / (2 * h), (eye + after) / 2, (eye - after) / h,
                    (before - eye) / h, 2, upper - lower)  # fmt: skip


class Cells(Collocation):
    """Cell-centred finite volumes of second order for problems in strong form."""

    name = "fvm"

    def __init__(self, problem: Problem, *, cells: Any, dtype: Any, newton: int, tol: float | None, time: Any, steps: int,
                 saves: int | None):  # fmt: skip
        default = {1: 200, 2: 40, 3: 12}[problem.dim]
        self._prepare(problem, default if cells is None else cells, dtype, newton, tol, time, steps, saves)

    def axes(self, domain, periodic):
        return [(ring_axis if k in periodic else cell_axis)(a, b, int(n))
                for k, (a, b, n) in enumerate(zip(domain.lower, domain.upper, self.counts))]  # fmt: skip
