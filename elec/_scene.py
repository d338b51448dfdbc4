"""The scene: what is simulated, stated once and checked before anything runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, did_you_mean
from sciax.core.precision import require_dtype
from sciax.elec._boundaries import PML, Bloch, Boundaries
from sciax.elec._checks import is_traced, one_of
from sciax.elec._constants import AXES, C0
from sciax.elec._grid import Grid
from sciax.elec._media import Density, Medium
from sciax.elec._monitors import Probe
from sciax.elec._shapes import Shape
from sciax.elec._sources import PlaneWave

SMOOTHINGS = ("auto", "tensor", "diagonal", "none")


@dataclass(frozen=True)
class Structure:
    """A shape filled with a medium; later structures of a scene lie over earlier ones."""

    name: str
    shape: Shape
    medium: Medium | Density


@dataclass(frozen=True, eq=False)
class Scene:
    """A simulation, in SI units.

    Attributes:
        grid: rectilinear cells.
        structures, sources, monitors: named; names are unique over all three.
        boundaries: of the six faces; faces of absent axes are ignored.
        duration: simulated time (s).
        courant: time step as a fraction of the stability limit, in (0, 1).
        background: medium outside every structure.
        smoothing: interfaces that cut cells. "auto" takes the best that the media allow. "tensor" averages along and across
            the interface with the full tensor (second order; lossless isotropic media), "diagonal" keeps its diagonal,
            "none" takes the medium of each point. Lossy and dispersive media get the volume average under "auto".
        dtype: "float32" or "float64" (needs 64-bit arrays on).

    Raises:
        InputError: anything that would make the run meaningless, named, with a remedy.
        PrecisionError: float64 with 64-bit arrays off.
    """

    grid: Grid
    structures: Sequence[Structure] = ()
    sources: Sequence[Any] = ()
    monitors: Sequence[Any] = ()
    boundaries: Boundaries = field(default_factory=Boundaries)
    duration: float = 0.0
    courant: float = 0.95
    background: Medium = field(default_factory=Medium)
    smoothing: str = "auto"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        for name in ("structures", "sources", "monitors"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        require_dtype(self.dtype, "Scene")
        one_of(self.dtype, ("float32", "float64"), "dtype")
        one_of(self.smoothing, SMOOTHINGS, "smoothing")
        if not 0 < self.courant < 1:
            raise InputError(
                "time step is not stable",
                got=f"courant = {self.courant}",
                expected="0 < courant < 1",
                remedy="the limit is 1 / (c sqrt(sum 1/d^2)) over the smallest cells; 0.95 of it is usual",
            )
        if not self.duration > 0 or not np.isfinite(self.duration):
            raise InputError("duration must be positive", got=self.duration, remedy="Scene(..., duration=seconds)")
        self._check_names()
        self._check_boundaries()
        self._check_speed()
        self._check_positions()

    # -- derived numbers ------------------------------------------------------------------------------------------------
    @property
    def dt(self) -> float:
        """Time step (s)."""
        return self.courant * self.grid.courant_limit()

    @property
    def steps(self) -> int:
        return int(np.ceil(self.duration / self.dt))

    def interior(self, axis: int) -> tuple[float, float]:
        """Bounds of the part free of absorbers along an axis (m)."""
        e = self.grid.edges[axis]
        if e is None:
            return -np.inf, np.inf
        lo, hi = (self.boundaries.thickness(axis, s) for s in (0, 1))
        return float(e[lo]), float(e[e.size - 1 - hi])

    # -- checks -----------------------------------------------------------------------------------------------------------
    def _check_names(self) -> None:
        seen: set[str] = set()
        for item in (*self.structures, *self.sources, *self.monitors):
            if item.name in seen or item.name in ("background", "boundaries"):
                raise InputError(f"the name {item.name!r} is used twice in the scene", remedy="names are unique")
            if not item.name or "." in item.name:
                raise InputError("a name is not empty and has no dot", got=item.name)
            seen.add(item.name)

    def _check_boundaries(self) -> None:
        for a in self.grid.active_axes:
            n = self.grid.cells[a]
            taken = sum(self.boundaries.thickness(a, s) for s in (0, 1))
            if taken and n - taken < 3:
                raise InputError(
                    f"absorbers fill the whole {AXES[a]} axis",
                    got=f"{taken} of {n} cells",
                    remedy="enlarge the grid or make the PML thinner",
                )
            for side in (0, 1):
                face = self.boundaries.faces[a][side]
                if isinstance(face, PML):
                    d = self.grid.steps(a)
                    d = d[: face.cells] if side == 0 else d[-face.cells :]
                    if d.max() / d.min() > 1.5:
                        raise InputError(
                            f"cells inside the absorber along {AXES[a]} vary by more than half",
                            got=f"{d.min():.3g} to {d.max():.3g} m",
                            remedy="keep the spacing constant there",
                        )

    def _check_speed(self) -> None:
        """No medium may carry waves faster than light in vacuum, which the time step is made for."""
        for name, medium in (("background", self.background), *((s.name, s.medium) for s in self.structures)):
            if getattr(medium, "perfect_conductor", False):
                continue
            low = medium.low if isinstance(medium, Density) else medium.permittivity
            if is_traced(low) or is_traced(medium.permeability):
                continue
            slow = float(np.min(np.asarray(low))) * float(np.min(np.asarray(medium.permeability)))
            if slow < self.courant**2:
                raise InputError(
                    f"medium {name!r} makes the time step unstable: waves in it outrun the grid",
                    got=f"permittivity x permeability = {slow:.4g}",
                    expected=f">= {self.courant**2:.4g}",
                    remedy="lower courant below sqrt of that product, or model the response with a pole",
                )
            for pole in getattr(medium, "poles", ()):
                rate = [v for v in (getattr(pole, "frequency", 0.0), getattr(pole, "plasma", 0.0)) if not is_traced(v)]
                if rate and max(rate) * self.dt > 1.0:
                    raise InputError(
                        f"medium {name!r}: a pole oscillates faster than the time step resolves",
                        got=f"frequency x dt = {max(rate) * self.dt:.3g}",
                        expected="<= 1",
                        remedy="refine the grid, or fit the medium over a narrower band",
                    )

    def _inside(self, point, who: str, clear_of_absorber: bool) -> None:
        for a in self.grid.active_axes:
            if is_traced(point[a]):
                continue
            lo, hi = self.grid.bounds()[a]
            slack = 1e-9 * (hi - lo)
            if not lo - slack <= point[a] <= hi + slack:
                raise InputError(
                    f"{who} lies outside the grid",
                    got=f"{AXES[a]} = {float(point[a]):.4g} m",
                    expected=f"{lo:.4g} to {hi:.4g} m",
                )
            lo, hi = self.interior(a)
            if clear_of_absorber and not lo - slack <= point[a] <= hi + slack:
                raise InputError(
                    f"{who} touches the absorber (PML)",
                    got=f"{AXES[a]} = {float(point[a]):.4g} m",
                    expected=f"{lo:.4g} to {hi:.4g} m",
                    remedy="move it inward or enlarge the grid",
                )

    def _check_positions(self) -> None:
        for s in self.structures:
            try:
                box = s.shape.bounds()
            except (TypeError, ValueError):  # traced parameters have no concrete bounds
                continue
            for a in self.grid.active_axes:
                lo, hi = self.grid.bounds()[a]
                if box[a][1] <= lo or box[a][0] >= hi:
                    raise InputError(
                        f"structure {s.name!r} lies outside the grid",
                        got=f"{AXES[a]} from {box[a][0]:.4g} to {box[a][1]:.4g} m",
                        expected=f"some of {lo:.4g} to {hi:.4g} m",
                    )
        for source in self.sources:
            who = f"source {source.name!r}"
            for corner in _corners(source, self.grid):
                self._inside(corner, who, True)
            self._check_conductors(source, who)
            self._check_band(source, who)
        for monitor in self.monitors:
            for corner in _corners(monitor, self.grid):
                self._inside(corner, f"monitor {monitor.name!r}", False)
        for a, face in enumerate(self.boundaries.faces):
            if isinstance(face[0], Bloch) and self.grid.edges[a] is None:
                raise InputError(f"Bloch boundary along {AXES[a]}, where the grid has no cells")

    def _check_conductors(self, source: Any, who: str) -> None:
        point = getattr(source, "position", None)
        if point is None or any(map(is_traced, point)):
            return
        for s in reversed(self.structures):
            with jax.ensure_compile_time_eval():  # concrete numbers even where a scene is made inside jit
                inside = bool(s.shape.distance(*(jnp.asarray(v) for v in point)) < 0)
            if inside:
                if getattr(s.medium, "perfect_conductor", False):
                    raise InputError(
                        f"{who} lies inside the conductor {s.name!r}, where it cannot radiate",
                        got=tuple(map(float, point)),
                        remedy="move the source out of the conductor",
                    )
                return

    def _check_band(self, source: Any, who: str) -> None:
        """At least six cells a wavelength at the top of the band, in the densest medium."""
        try:
            top = source.waveform.band()[1]
        except Exception:
            return  # a signal of the user's own may state no band
        n = 1.0
        for medium in (self.background, *(s.medium for s in self.structures)):
            if getattr(medium, "perfect_conductor", False) or getattr(medium, "poles", ()):
                continue
            eps = medium.high if isinstance(medium, Density) else medium.permittivity
            if not is_traced(eps):
                n = max(n, float(np.sqrt(np.max(np.asarray(eps)))))
        coarse = max(self.grid.steps(a).max() for a in self.grid.active_axes)
        if top * self.dt > 0.25 or C0 / (top * n * coarse) < 3.0:
            raise InputError(
                f"{who}: its band is not resolved by the grid",
                got=f"{C0 / (top * n * coarse):.2g} cells a wavelength at {top:.3g} Hz",
                expected="at least 3 (20 at the centre for accuracy)",
                remedy="refine the grid or narrow the band",
            )


def _corners(item: Any, grid: Grid) -> list[tuple]:
    """Points of a source or monitor that must lie in the grid."""
    if hasattr(item, "position"):
        return [item.position]
    if not hasattr(item, "size"):
        return []
    lo, hi = [], []
    normal = getattr(item, "normal", None)
    for a in range(3):
        s = item.size[a]
        if grid.edges[a] is None:
            lo.append(0.0)
            hi.append(0.0)
        elif s is None and normal != AXES[a]:
            mid = 0.5 * sum(grid.bounds()[a]) if not isinstance(item, PlaneWave) else None
            lo.append(mid)
            hi.append(mid)
        else:
            half = 0.0 if s is None or normal == AXES[a] else s / 2
            lo.append(item.center[a] - half)
            hi.append(item.center[a] + half)
    if any(v is None for v in lo):  # a plane wave over a whole axis: only the other axes are checked
        mids = [0.5 * sum(b) if grid.edges[a] is not None else 0.0 for a, b in enumerate(grid.bounds())]
        lo = [m if v is None else v for v, m in zip(lo, mids)]
        hi = [m if v is None else v for v, m in zip(hi, mids)]
    return [tuple(lo), tuple(hi)]


def find(items: Sequence[Any], name: str, what: str) -> Any:
    """The item of that name, or an error with the nearest."""
    for item in items:
        if item.name == name:
            return item
    raise InputError(f"no {what} named {name!r}", remedy=did_you_mean(name, [i.name for i in items]))


__all__ = ["Probe", "Scene", "Structure", "find"]
