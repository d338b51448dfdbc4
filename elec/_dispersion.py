"""Taking the mean numerical dispersion of the lattice out of the media."""

from dataclasses import replace
from typing import Any

import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec._constants import C0
from sciax.elec._media import Density


def match_dispersion(scene: Any, frequency: float) -> Any:
    """The scene with permittivities lowered so that waves of `frequency` have the right mean wavelength on its grid.

    On the Yee lattice a plane wave of wave number k = w n / c is short by the factor 1 + delta, in two or three dimensions,
    with spacing d and S = c dt / (d n)

        delta = (k d)^2 / 24 (<sum u_i^4> - S^2),    <sum u_i^4> = 1, 3/4, 3/5 over directions u in 1-D, 2-D, 3-D.

    Every medium's permittivity is multiplied by 1 - 2 delta: what remains is the anisotropy of the lattice, and the trend
    away from `frequency`. Narrow resonances, which shift by delta, gain most (a tenfold smaller error is usual).

    Args:
        scene: of a uniform grid, media without loss or poles.
        frequency: Hz.

    Raises:
        UnsupportedError: graded grids; lossy, dispersive or graded (`Density`) media.
        InputError: fewer than six cells a wavelength, where the expansion does not hold.

    Source: the expansion of the dispersion relation, A. Taflove, S. C. Hagness, Computational Electrodynamics, 3rd ed. (2005),
    section 4.5; tuning the media is its section 4.9.
    """
    axes = scene.grid.active_axes
    steps = np.concatenate([scene.grid.steps(a) for a in axes])
    d = float(steps.mean())
    if np.ptp(steps) > 1e-6 * d:
        raise UnsupportedError("the dispersion of a graded grid differs from cell to cell", remedy="a uniform grid")
    mean = {1: 1.0, 2: 0.75, 3: 0.6}[len(axes)]

    def lowered(medium: Any, name: str) -> Any:
        if getattr(medium, "perfect_conductor", False):
            return medium
        if isinstance(medium, Density) or not medium.lossless:
            raise UnsupportedError(f"the medium of {name!r} has no one wavelength to match", got=type(medium).__name__)
        eps = np.asarray(medium.permittivity, float)
        index = np.sqrt(eps * np.asarray(medium.permeability, float))
        kd = 2 * np.pi * frequency * index * d / C0
        if np.max(kd) > 2 * np.pi / 6:
            raise InputError(
                f"the medium of {name!r} is too coarsely resolved to match its dispersion",
                got=f"{2 * np.pi / np.max(kd):.3g} cells a wavelength",
                expected=">= 6",
            )
        delta = kd**2 / 24 * (mean - (C0 * scene.dt / (d * index)) ** 2)
        new = eps * (1 - 2 * delta)
        return replace(medium, permittivity=float(new) if new.ndim == 0 else tuple(map(float, new)))

    return replace(
        scene,
        background=lowered(scene.background, "background"),
        structures=tuple(replace(s, medium=lowered(s.medium, s.name)) for s in scene.structures),
    )
