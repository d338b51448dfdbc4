"""Latitude grids on the sphere, their quadrature weights, and exact interpolation between them.

Latitudes ascend (south to north) and longitudes start at 0. All of this runs once, in NumPy, in the widest float of the machine.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from sciax.core.errors import InputError, did_you_mean

GridKind = Literal["gauss", "equiangular", "equiangular_poles"]
KINDS = ("equiangular", "equiangular_poles", "gauss")


@dataclass(frozen=True)
class SphereGrid:
    """A product grid on the sphere.

    Attributes:
        kind: "gauss" (Gauss-Legendre latitudes, no poles), "equiangular" (cell centres, no poles) or "equiangular_poles"
            (both poles are grid points).
        nlat, nlon: number of latitudes and longitudes.

    Raises:
        InputError: unknown kind, fewer than 2 latitudes (3 with poles) or 1 longitude.
    """

    kind: GridKind
    nlat: int
    nlon: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown sphere grid {self.kind!r}", remedy=did_you_mean(str(self.kind), KINDS))
        least = 3 if self.kind == "equiangular_poles" else 2
        if self.nlat < least or self.nlon < 1:
            raise InputError(
                "sphere grid too small", got=f"{self.nlat} x {self.nlon}", expected=f"nlat >= {least}, nlon >= 1"
            )

    @property
    def colatitude(self) -> np.ndarray:
        """Colatitude in radians, from the south pole's side (descending from pi)."""
        return np.arccos(np.clip(self.sin_latitude, -1.0, 1.0))

    @property
    def sin_latitude(self) -> np.ndarray:
        return _nodes(self.kind, self.nlat)[0].astype(np.float64)

    @property
    def latitude(self) -> np.ndarray:
        """Latitude in degrees, ascending."""
        if self.kind == "equiangular":
            return (np.arange(self.nlat) + 0.5) * (180.0 / self.nlat) - 90.0
        if self.kind == "equiangular_poles":
            return np.linspace(-90.0, 90.0, self.nlat)
        return np.degrees(np.arcsin(self.sin_latitude))

    @property
    def longitude(self) -> np.ndarray:
        """Longitude in degrees, from 0."""
        return np.arange(self.nlon) * (360.0 / self.nlon)

    @property
    def weights(self) -> np.ndarray:
        """Quadrature weights in latitude that sum to 2 (the integral of d sin(latitude))."""
        return _nodes(self.kind, self.nlat)[2].astype(np.float64)

    @property
    def max_degree(self) -> int:
        """Highest degree whose transform is exact on these latitudes."""
        return self.nlat - (2 if self.kind == "equiangular_poles" else 1)


@lru_cache(maxsize=32)
def _nodes(kind: str, nlat: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(sin latitude, cos latitude, weights) in long double, ascending latitude."""
    if kind == "gauss":
        mu, weights = gauss_nodes(nlat)
        return mu, np.sqrt((1 - mu) * (1 + mu)), weights
    pi = 4 * np.arctan(np.longdouble(1))
    k = np.arange(nlat, dtype=np.longdouble)
    colatitude = pi - (pi * (k + 0.5) / nlat if kind == "equiangular" else pi * k / (nlat - 1))
    mu, cosine = np.cos(colatitude), np.sin(colatitude)
    if kind == "equiangular_poles":
        mu[0], mu[-1], cosine[0], cosine[-1] = -1, 1, 0, 0
    if nlat % 2:
        mu[nlat // 2] = 0
    gauss_mu, gauss_weights = gauss_nodes(nlat)
    # Weights that integrate every even trigonometric polynomial the grid resolves: those of the interpolant's Gauss sum.
    weights = gauss_weights @ trig_interpolation(kind, nlat, np.arccos(gauss_mu), odd=False)
    return mu, cosine, weights


@lru_cache(maxsize=32)
def gauss_nodes(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes (ascending) and weights in long double, by Newton from the Chebyshev guess."""
    pi = 4 * np.arctan(np.longdouble(1))
    x = -np.cos(pi * (np.arange(n, dtype=np.longdouble) + 0.75) / (n + 0.5))
    for _ in range(8):
        p, slope = _legendre_and_slope(x, n)
        step = p / slope
        x = x - step
        if np.max(np.abs(step)) < 4 * np.finfo(np.longdouble).eps:
            break
    x = (x - x[::-1]) / 2  # exact symmetry
    slope = _legendre_and_slope(x, n)[1]
    weights = 2 / ((1 - x) * (1 + x) * slope * slope)
    return x, (weights + weights[::-1]) / 2


def _legendre_and_slope(x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    p0, p1 = np.ones_like(x), x
    for l in range(2, n + 1):
        p0, p1 = p1, ((2 * l - 1) * x * p1 - (l - 1) * p0) / l
    return p1, n * (p0 - x * p1) / ((1 - x) * (1 + x))


def trig_interpolation(kind: str, nlat: int, theta: np.ndarray, *, odd: bool) -> np.ndarray:
    """Matrix that takes values on an equiangular grid to colatitudes `theta`, exact for the functions the grid resolves.

    The Fourier coefficient F_m of a smooth field continues over the poles as F_m(2 pi - theta) = (-1)^m F_m(theta), so it is
    a cosine series for even m and a sine series for odd m; the interpolant is that series.

    Args:
        odd: sine series (odd m) instead of cosine series.

    Returns:
        (len(theta), nlat), columns in ascending latitude.
    """
    pi = 4 * np.arctan(np.longdouble(1))
    if kind == "equiangular":
        nodes = pi * (np.arange(nlat, dtype=np.longdouble) + 0.5) / nlat
        intervals = nlat
    else:
        nodes = pi * np.arange(nlat, dtype=np.longdouble) / (nlat - 1)
        intervals = nlat - 1
    end = np.ones(nlat, dtype=np.longdouble)
    if kind == "equiangular_poles":
        end[[0, -1]] = 0.5
    theta = np.asarray(theta, dtype=np.longdouble)
    if odd:
        degrees = np.arange(1, intervals + (1 if kind == "equiangular" else 0), dtype=np.longdouble)
        half = np.where(degrees == intervals, 0.5, 1).astype(np.longdouble)
        matrix = (np.sin(np.outer(theta, degrees)) * half) @ np.sin(np.outer(degrees, nodes))
        matrix = matrix * 2 / intervals
    else:
        degrees = np.arange(0, intervals + (0 if kind == "equiangular" else 1), dtype=np.longdouble)
        half = np.where((degrees == 0) | (degrees == intervals), 0.5, 1).astype(np.longdouble)
        matrix = (np.cos(np.outer(theta, degrees)) * half) @ (np.cos(np.outer(degrees, nodes)) * end)
        matrix = matrix * 2 / intervals
    return matrix[:, ::-1]  # theta ascending is latitude descending
