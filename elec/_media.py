"""Media: permittivity, permeability, conductivity, dispersive poles, graded densities."""

from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import finite, is_traced, positive
from sciax.elec._constants import EPS0


@dataclass(frozen=True)
class Lorentz:
    """Adds strength w0^2 / (w0^2 - w^2 - i gamma w); frequency w0 and gamma in rad/s."""

    strength: Any
    frequency: Any
    gamma: Any

    def __post_init__(self) -> None:
        positive(self.strength, "Lorentz strength (a negative one gains energy)", zero=True)
        positive(self.frequency, "Lorentz frequency")
        positive(self.gamma, "Lorentz gamma", zero=True)

    def terms(self):
        """(a2, a1, a0, s) of a2 P'' + a1 P' + a0 P = s E, time in seconds."""
        return 1.0, self.gamma, self.frequency**2, self.strength * self.frequency**2


@dataclass(frozen=True)
class Drude:
    """Adds -wp^2 / (w^2 + i gamma w); plasma frequency and gamma in rad/s."""

    plasma: Any
    gamma: Any

    def __post_init__(self) -> None:
        positive(self.plasma, "Drude plasma frequency")
        positive(self.gamma, "Drude gamma", zero=True)

    def terms(self):
        return 1.0, self.gamma, 0.0 * self.gamma, self.plasma**2


@dataclass(frozen=True)
class Debye:
    """Adds strength / (1 - i w tau); tau in seconds."""

    strength: Any
    tau: Any

    def __post_init__(self) -> None:
        positive(self.strength, "Debye strength (a negative one gains energy)", zero=True)
        positive(self.tau, "Debye relaxation time")

    def terms(self):
        return 0, self.tau, 1.0, self.strength


@dataclass(frozen=True)
class Medium:
    """A linear medium.

    Attributes:
        permittivity: relative, a number or three (diagonal of the tensor); the high-frequency limit if there are poles.
        permeability: relative, a number or three.
        conductivity: electric (S/m).
        poles: Lorentz, Drude, Debye.
        perfect_conductor: E is zero inside; everything else is ignored.

    Raises:
        InputError: values at which the medium would gain energy or the scheme would not be stable.
    """

    permittivity: Any = 1.0
    permeability: Any = 1.0
    conductivity: Any = 0.0
    poles: tuple = ()
    perfect_conductor: bool = False

    def __post_init__(self) -> None:
        for name in ("permittivity", "permeability"):
            value = getattr(self, name)
            if np.ndim(value) not in (0, 1) or (np.ndim(value) == 1 and np.shape(value) != (3,)):
                raise ShapeError(f"{name} is one number or three", got=np.shape(value))
            positive(value, name)
        positive(self.conductivity, "conductivity", zero=True)
        object.__setattr__(self, "poles", tuple(self.poles))
        for pole in self.poles:
            if not hasattr(pole, "terms"):
                raise InputError("a pole is a Lorentz, Drude or Debye", got=type(pole).__name__)

    @property
    def lossless(self) -> bool:
        """True where a step can be undone: no poles and no conductivity."""
        traced = is_traced(self.conductivity)
        return not self.poles and not traced and float(np.max(np.asarray(self.conductivity))) == 0.0

    def epsilon(self, frequency):
        """Complex relative permittivity at `frequency` (Hz), time dependence exp(-i w t) (loss: positive imaginary part)."""
        w = 2 * np.pi * jnp.asarray(frequency)
        value = jnp.asarray(self.permittivity) + 1j * self.conductivity / (w * EPS0)
        for pole in self.poles:
            a2, a1, a0, s = pole.terms()
            value = value + s / (a0 - 1j * w * a1 - a2 * w**2)
        return value


PEC = Medium(perfect_conductor=True)
"""A perfect electric conductor."""


@dataclass(frozen=True, eq=False)
class Density:
    """A graded medium for inverse design: permittivity low + rho (high - low), rho on a pixel lattice over the structure's box.

    Attributes:
        density: values between 0 and 1, shape (nx, ny) or (nx, ny, nz), pixel-centred over the bounding box of the shape.
        low, high: permittivity at density 0 and 1.
    """

    density: Any
    low: float = 1.0
    high: float = 12.0
    poles: tuple = field(default=(), init=False)
    conductivity: float = field(default=0.0, init=False)
    permeability: float = field(default=1.0, init=False)
    perfect_conductor: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if np.ndim(self.density) not in (2, 3):
            raise ShapeError("a density is a 2-D or 3-D array", got=np.shape(self.density))
        finite(self.density, "density")
        positive(self.low, "permittivity of the low phase")
        positive(self.high, "permittivity of the high phase")

    @property
    def lossless(self) -> bool:
        return True

    def sample(self, box, x, y, z):
        """Permittivity at points by linear interpolation between pixel centres (constant beyond the outermost ones)."""
        rho = jnp.asarray(self.density)
        if rho.ndim == 2:
            rho = rho[:, :, None]
        rho = rho.astype(jnp.result_type(rho.dtype, x.dtype))
        out_index = []
        for (lo, hi), p, n in zip(box, (x, y, z), rho.shape):
            if n == 1:
                out_index.append((0, 0, jnp.zeros((), x.dtype)))
                continue
            u = jnp.clip((p - lo) / (hi - lo) * n - 0.5, 0.0, n - 1.0)
            i = jnp.clip(jnp.floor(u).astype(jnp.int32), 0, n - 2)
            out_index.append((i, i + 1, u - i))
        (i0, i1, u), (j0, j1, v), (k0, k1, w) = out_index

        def plane(k):
            low = (1 - v) * rho[i0, j0, k] + v * rho[i0, j1, k]
            return (1 - u) * low + u * ((1 - v) * rho[i1, j0, k] + v * rho[i1, j1, k])

        value = plane(k0) if rho.shape[2] == 1 else (1 - w) * plane(k0) + w * plane(k1)
        return self.low + (self.high - self.low) * value
