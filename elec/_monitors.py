"""Monitors: what a run records."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import one_of, vector
from sciax.elec._constants import AXES, COMPONENTS


def _frequencies(value: Any, name: str) -> np.ndarray:
    f = np.atleast_1d(np.asarray(value, np.float64))
    if f.ndim != 1 or f.size == 0:
        raise ShapeError(f"monitor {name!r}: frequencies are a 1-D array", got=f.shape)
    if not np.all(np.isfinite(f)) or np.any(f <= 0):
        raise InputError(f"monitor {name!r}: frequencies must be positive (Hz)", got=value)
    return f


def _components(value: Any, name: str) -> tuple[str, ...]:
    components = (value,) if isinstance(value, str) else tuple(value)
    for c in components:
        one_of(c, COMPONENTS, f"component of monitor {name!r}")
    return components


@dataclass(frozen=True)
class Probe:
    """Field components at a point, every time step (V/m, A/m)."""

    name: str
    position: Any
    components: Any = ("ez",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", vector(self.position, f"position of monitor {self.name!r}"))
        object.__setattr__(self, "components", _components(self.components, self.name))


@dataclass(frozen=True, eq=False)
class FieldMonitor:
    """Spectra of fields over a box at cell centres: f int F(t) exp(+2 pi i f t) dt (V/m, A/m).

    Attributes:
        frequencies: Hz.
        center, size: box (m); size None along an axis: all of it; 0: the one layer of cells that holds the centre.
    """

    name: str
    frequencies: Any
    center: Any = (0.0, 0.0, 0.0)
    size: Any = (None, None, None)
    components: Any = ("ez",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", _frequencies(self.frequencies, self.name))
        object.__setattr__(self, "center", vector(self.center, f"center of monitor {self.name!r}"))
        object.__setattr__(self, "size", tuple(self.size) + (None,) * (3 - len(tuple(self.size))))
        object.__setattr__(self, "components", _components(self.components, self.name))


@dataclass(frozen=True, eq=False)
class SnapshotMonitor:
    """Fields over a box at cell centres at given times (V/m, A/m), each at the step nearest to its time.

    Attributes:
        times: s, within the run.
        center, size, components: as `FieldMonitor`.
    """

    name: str
    times: Any
    center: Any = (0.0, 0.0, 0.0)
    size: Any = (None, None, None)
    components: Any = ("ez",)

    def __post_init__(self) -> None:
        times = np.atleast_1d(np.asarray(self.times, np.float64))
        if times.ndim != 1 or times.size == 0 or not np.all(np.isfinite(times)) or np.any(times < 0):
            raise InputError(f"monitor {self.name!r}: times are a 1-D array of seconds, not negative", got=self.times)
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "center", vector(self.center, f"center of monitor {self.name!r}"))
        object.__setattr__(self, "size", tuple(self.size) + (None,) * (3 - len(tuple(self.size))))
        object.__setattr__(self, "components", _components(self.components, self.name))


@dataclass(frozen=True, eq=False)
class FluxMonitor:
    """Flux of the spectra through a plane, or out of a closed box: Re int E x H* dA (W; per m of an absent axis).

    Attributes:
        normal: "x", "y", "z" for a plane (its `size` along that axis is ignored); "box" for all faces, outward positive.
        center, size: as `FieldMonitor`; the plane is moved to the nearest grid plane.
    """

    name: str
    frequencies: Any
    center: Any = (0.0, 0.0, 0.0)
    size: Any = (None, None, None)
    normal: str = "x"

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequencies", _frequencies(self.frequencies, self.name))
        object.__setattr__(self, "center", vector(self.center, f"center of monitor {self.name!r}"))
        object.__setattr__(self, "size", tuple(self.size) + (None,) * (3 - len(tuple(self.size))))
        one_of(self.normal, (*AXES, "box"), "normal")
