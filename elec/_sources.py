"""Sources: electric and magnetic dipoles, plane waves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec._checks import finite, one_of, vector
from sciax.elec._constants import COMPONENTS


@dataclass(frozen=True)
class Dipole:
    """A point current.

    Attributes:
        name: unique in the scene.
        position: (m); between grid points the current is shared linearly, so it can be differentiated.
        component: "ex" ... "ez" electric (amplitude in A m; A in 2-D, A/m in 1-D), "hx" ... "hz" magnetic (V m).
        waveform: signal of time.
        amplitude: factor on the waveform.
    """

    name: str
    position: Any
    component: str
    waveform: Callable
    amplitude: Any = 1.0

    def __post_init__(self) -> None:
        one_of(self.component, COMPONENTS, "component")
        object.__setattr__(self, "position", vector(self.position, f"position of source {self.name!r}"))
        finite(self.amplitude, f"amplitude of source {self.name!r}")


DIRECTIONS = ("+x", "-x", "+y", "-y", "+z", "-z")


@dataclass(frozen=True)
class PlaneWave:
    """A plane wave in the background medium, by total field / scattered field.

    It travels along an axis, or obliquely where the scene has a `Bloch(k)` axis across its direction and polarisation: the
    transverse wave number is k at every frequency, so the angle from the axis is arcsin(k c / (2 pi f n)). Waves below
    f = k c / (2 pi n) are evanescent: keep the pulse above.

    The incident field is marched on a one-dimensional grid with the spacing and time step of the scene, so it obeys the
    same numerical dispersion and leaks out of the box only by rounding.

    Attributes:
        name: unique in the scene.
        direction: "+x" ... "-z".
        polarization: electric component, "ex" ... "ez", across the direction.
        waveform: signal of time.
        center, size: box of total field (m). A size of None along an axis means the whole axis, for periodic faces there.
        amplitude: of the electric field (V/m).
    """

    name: str
    direction: str
    polarization: str
    waveform: Callable
    center: Any = (0.0, 0.0, 0.0)
    size: Any = (None, None, None)
    amplitude: Any = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.direction, str):
            raise UnsupportedError(
                f"source {self.name!r}: a total-field box travels along an axis",
                got=self.direction,
                expected=f"one of {DIRECTIONS}",
                remedy="oblique: periodic structures with a Bloch(k) face across, others with GaussianBeam(tilt=...)",
            )
        one_of(self.direction, DIRECTIONS, "direction")
        one_of(self.polarization, COMPONENTS[:3], "polarization")
        if self.polarization[1] == self.direction[1]:
            raise InputError(
                f"source {self.name!r}: the polarization lies along the direction of travel",
                got=(self.direction, self.polarization),
                expected="a component across it",
            )
        object.__setattr__(self, "center", vector(self.center, f"center of source {self.name!r}"))
        size = tuple(self.size) + (None,) * (3 - len(tuple(self.size)))
        object.__setattr__(self, "size", size)
        if size["xyz".index(self.direction[1])] is None:
            raise InputError(
                f"source {self.name!r}: the total-field box needs a size along {self.direction[1]}", got=size
            )
        finite(self.amplitude, f"amplitude of source {self.name!r}")
