"""Boundary conditions of the six faces."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.elec._checks import finite, one_of, positive
from sciax.elec._constants import AXES

FACES = ("pec", "pmc", "periodic")


@dataclass(frozen=True)
class PML:
    """An absorbing face: convolutional PML backed by a conductor.

    Attributes:
        cells: thickness in cells.
        order, kappa_max, sigma_scale, alpha_max: grading, see `sciax.core.ops.yee.cpml_profile`.
    """

    cells: int = 10
    order: float = 3.5
    kappa_max: float = 3.0
    sigma_scale: float = 0.8
    alpha_max: float = 0.02

    def __post_init__(self) -> None:
        if not isinstance(self.cells, int) or self.cells < 2:
            raise InputError("a PML needs at least two cells", got=self.cells)
        positive(self.order, "PML order")
        positive(self.sigma_scale, "PML sigma scale")
        positive(self.alpha_max, "PML alpha", zero=True)
        if not self.kappa_max >= 1:
            raise InputError("PML kappa_max must be at least 1", got=self.kappa_max)


@dataclass(frozen=True)
class Bloch:
    """Fields repeat with the phase exp(i k L) over the period L; wave number k in rad/m. Fields become complex."""

    wavenumber: Any

    def __post_init__(self) -> None:
        finite(self.wavenumber, "Bloch wave number")


def _pair(value: Any, axis: str) -> tuple:
    pair = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise InputError(f"boundary along {axis} is one condition or a pair (low, high)", got=value)
    for face in pair:
        if isinstance(face, str):
            one_of(face, FACES, f"boundary along {axis}")
        elif not isinstance(face, PML | Bloch):
            raise InputError(f"boundary along {axis}", got=face, expected=f"PML(...), Bloch(k) or one of {FACES}")
    wrapping = [face == "periodic" or isinstance(face, Bloch) for face in pair]
    if any(wrapping) and pair[0] != pair[1]:
        raise InputError(f"a periodic or Bloch boundary along {axis} needs both faces", got=value)
    return pair


@dataclass(frozen=True)
class Boundaries:
    """Conditions along x, y, z: one for both faces or a pair (low, high).

    "pec" and "pmc" on a low face are also the odd and even mirror planes of the tangential electric field: give half the
    domain and the plane as its face.
    """

    x: Any = field(default_factory=PML)
    y: Any = field(default_factory=PML)
    z: Any = field(default_factory=PML)

    def __post_init__(self) -> None:
        for axis in AXES:
            object.__setattr__(self, axis, _pair(getattr(self, axis), axis))

    @classmethod
    def all(cls, face: Any) -> "Boundaries":
        return cls(face, face, face)

    @property
    def faces(self) -> tuple[tuple, tuple, tuple]:
        return self.x, self.y, self.z

    def wraps(self, axis: int) -> bool:
        face = self.faces[axis][0]
        return face == "periodic" or isinstance(face, Bloch)

    @property
    def complex(self) -> bool:
        return any(isinstance(pair[0], Bloch) for pair in self.faces)

    def thickness(self, axis: int, side: int) -> int:
        face = self.faces[axis][side]
        return face.cells if isinstance(face, PML) else 0

    def phase(self, axis: int, length: float):
        """Factor over one period, None where the axis does not wrap."""
        face = self.faces[axis][0]
        if face == "periodic":
            return 1.0
        if isinstance(face, Bloch):
            import jax.numpy as jnp

            angle = face.wavenumber * length
            return (
                jnp.exp(1j * jnp.asarray(angle)) if not isinstance(angle, float | int) else complex(np.exp(1j * angle))
            )
        return None
