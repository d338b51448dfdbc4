"""Rectilinear grids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.elec._constants import AXES, C0


@dataclass(frozen=True, eq=False)
class Grid:
    """Cell edges along each axis, in metres; None for an axis along which nothing varies (1-D, 2-D).

    Attributes:
        x, y, z: increasing edges, n + 1 of them for n cells.

    Raises:
        InputError: fewer than two cells, edges not increasing, no axis at all.
    """

    x: np.ndarray | None = None
    y: np.ndarray | None = None
    z: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in AXES:
            edges = getattr(self, name)
            if edges is None:
                continue
            edges = np.asarray(edges, np.float64)
            if edges.ndim != 1 or edges.size < 3:
                raise InputError(
                    f"grid axis {name} needs at least two cells", got=f"{edges.size} edges", expected=">= 3 edges"
                )
            if not np.all(np.isfinite(edges)) or np.any(np.diff(edges) <= 0):
                raise InputError(f"grid edges along {name} must be finite and increasing")
            object.__setattr__(self, name, edges)
        if not self.active_axes:
            raise InputError("a grid needs at least one axis", remedy="Grid.uniform((length,), spacing)")

    @classmethod
    def uniform(cls, size: Sequence[float | None], spacing: float, center: Sequence[float] = (0.0, 0.0, 0.0)) -> "Grid":
        """Equal cells: `size` (m) along x, y, z (None or missing: no such axis), rounded to a whole number of cells."""
        if not spacing > 0 or not np.isfinite(spacing):
            raise InputError("grid spacing must be positive", got=spacing)
        edges = []
        for length, mid in zip(size, center):
            if length is None:
                edges.append(None)
                continue
            n = round(length / spacing)
            if n < 2:
                raise InputError("a grid axis needs at least two cells", got=f"size {length}, spacing {spacing}")
            edges.append(mid + spacing * (np.arange(n + 1) - n / 2))
        return cls(*edges)

    @property
    def edges(self) -> tuple[Any, Any, Any]:
        return self.x, self.y, self.z

    @property
    def active_axes(self) -> tuple[int, ...]:
        return tuple(a for a in range(3) if self.edges[a] is not None)

    @property
    def cells(self) -> tuple[int, int, int]:
        """Number of cells along each axis (1 where there is none)."""
        return tuple(1 if e is None else e.size - 1 for e in self.edges)  # type: ignore[return-value]

    def steps(self, axis: int) -> np.ndarray:
        """Cell widths along an axis (m)."""
        e = self.edges[axis]
        return np.ones(1) if e is None else np.diff(e)

    def centers(self, axis: int) -> np.ndarray:
        e = self.edges[axis]
        return np.zeros(1) if e is None else 0.5 * (e[1:] + e[:-1])

    def courant_limit(self) -> float:
        """Largest stable time step in vacuum (s): 1 / (c sqrt(sum 1/d_min^2))."""
        return float(1.0 / (C0 * np.sqrt(sum(1.0 / self.steps(a).min() ** 2 for a in self.active_axes))))

    def bounds(self) -> tuple[tuple[float, float], ...]:
        return tuple((-np.inf, np.inf) if e is None else (float(e[0]), float(e[-1])) for e in self.edges)
