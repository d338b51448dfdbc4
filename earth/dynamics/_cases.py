"""Flows with known behaviour: Williamson et al. (1992), Haurwitz (1940), Galewsky et al. (2004)."""

import numpy as np

RADIUS = 6.37122e6  # m, Williamson et al. (1992)
ROTATION = 7.292e-5  # rad s-1
GRAVITY = 9.80616  # m s-2

WAVE = 7.848e-6  # s-1, omega and K of case 6


def rossby_haurwitz_streamfunction(
    lat: np.ndarray, lon: np.ndarray, wavenumber: int = 4, rate: float = WAVE
) -> np.ndarray:
    """Stream function (m2 s-1) of Williamson's case 6 on a grid in degrees: psi = a^2 rate (cos^R sin cos(R lon) - sin)."""
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    r = wavenumber
    return RADIUS**2 * rate * (-np.sin(phi) + np.cos(phi) ** r * np.sin(phi) * np.cos(r * lam))


def rossby_haurwitz_speed(wavenumber: int = 4, rate: float = WAVE) -> float:
    """Eastward speed in degrees per day in the non-divergent model: (R (3 + R) w - 2 Omega) / ((1 + R)(2 + R))."""
    r = wavenumber
    return float(np.degrees((r * (3 + r) * rate - 2 * ROTATION) / ((1 + r) * (2 + r))) * 86400)
