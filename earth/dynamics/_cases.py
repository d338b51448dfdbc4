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


def williamson2(lat: np.ndarray, lon: np.ndarray, alpha: float = 0.0) -> dict[str, np.ndarray]:
    """Steady geostrophic flow: solid rotation about an axis tilted by `alpha` (radians); u, v, h and the Coriolis field."""
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    u0 = 2 * np.pi * RADIUS / (12 * 86400)
    axis = -np.cos(lam) * np.cos(phi) * np.sin(alpha) + np.sin(phi) * np.cos(alpha)
    u = u0 * (np.cos(phi) * np.cos(alpha) + np.sin(phi) * np.cos(lam) * np.sin(alpha))
    v = -u0 * np.sin(lam) * np.sin(alpha) + 0 * phi
    gh = 2.94e4 - (RADIUS * ROTATION * u0 + u0**2 / 2) * axis**2
    return {"u": u, "v": v, "h": gh / GRAVITY, "coriolis": 2 * ROTATION * axis}


def williamson5(lat: np.ndarray, lon: np.ndarray) -> dict[str, np.ndarray]:
    """Zonal flow over an isolated mountain: u, v, h (depth of the fluid) and orography."""
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    u0, h0, peak, reach = 20.0, 5960.0, 2000.0, np.pi / 9
    away = np.abs((lam - 3 * np.pi / 2 + np.pi) % (2 * np.pi) - np.pi)
    r = np.minimum(reach, np.sqrt(away**2 + (phi - np.pi / 6) ** 2))
    ground = peak * (1 - r / reach)
    surface = h0 - (RADIUS * ROTATION * u0 + u0**2 / 2) * np.sin(phi) ** 2 / GRAVITY
    u = u0 * np.cos(phi) + 0 * lam
    return {"u": u, "v": 0 * u, "h": surface - ground, "orography": ground}


def williamson6(lat: np.ndarray, lon: np.ndarray) -> dict[str, np.ndarray]:
    """Rossby-Haurwitz wave 4: u, v and the height in nonlinear balance."""
    phi, lam = np.radians(lat)[:, None], np.radians(lon)[None, :]
    w, r, h0 = WAVE, 4, 8000.0
    c = np.cos(phi)
    u = RADIUS * w * (c + c ** (r - 1) * (r * np.sin(phi) ** 2 - c**2) * np.cos(r * lam))
    v = -RADIUS * w * r * c ** (r - 1) * np.sin(phi) * np.sin(r * lam)
    a = w / 2 * (2 * ROTATION + w) * c**2 + w**2 / 4 * c ** (2 * r) * (
        (r + 1) * c**2 + (2 * r * r - r - 2) - 2 * r * r * c**-2
    )
    b = 2 * (ROTATION + w) * w / ((r + 1) * (r + 2)) * c**r * ((r * r + 2 * r + 2) - (r + 1) ** 2 * c**2)
    d = w**2 / 4 * c ** (2 * r) * ((r + 1) * c**2 - (r + 2))
    gh = GRAVITY * h0 + RADIUS**2 * (a + b * np.cos(r * lam) + d * np.cos(2 * r * lam))
    return {"u": u, "v": v, "h": gh / GRAVITY}


def galewsky(lat: np.ndarray, lon: np.ndarray, *, perturbed: bool = True) -> dict[str, np.ndarray]:
    """Barotropically unstable mid-latitude jet of 80 m/s and mean depth 10 km, with or without the 120 m bump."""
    phi, lam = np.radians(lat), np.radians(lon)
    south, north, speed = np.pi / 7, np.pi / 2 - np.pi / 7, 80.0
    norm = np.exp(-4 / (north - south) ** 2)

    def jet(x):
        inside = (x > south) & (x < north)
        gap = np.where(inside, (x - south) * (x - north), -1.0)
        return np.where(inside, speed / norm * np.exp(1 / gap), 0.0)

    def slope(x):
        u = jet(x)
        return RADIUS * u * (2 * ROTATION * np.sin(x) + np.tan(x) * u / RADIUS)

    # Gauss quadrature panel by panel from the south edge of the jet; the integrand is smooth (all derivatives vanish there).
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.linspace(south, north, 81)
    half = (edges[1] - edges[0]) / 2

    def integral(x):
        x = min(max(x, south), north)
        full = int(min((x - south) // (2 * half), 80))
        total = sum(half * weights @ slope(edges[k] + half * (nodes + 1)) for k in range(full))
        rest = (x - edges[full]) / 2
        return total + rest * weights @ slope(edges[full] + rest * (nodes + 1))

    drop = np.array([integral(x) for x in phi]) / GRAVITY
    # Mean depth 10 km: the mean of the drop over the sphere, on a fine Gauss grid.
    mu, w = np.polynomial.legendre.leggauss(400)
    mean = (w * np.array([integral(x) for x in np.arcsin(mu)])).sum() / 2 / GRAVITY
    h = np.broadcast_to((10_000.0 + mean - drop)[:, None], (phi.size, lam.size)).copy()
    if perturbed:
        centred = (lam + np.pi) % (2 * np.pi) - np.pi
        h += (
            120
            * np.cos(phi)[:, None]
            * np.exp(-((centred / (1 / 3)) ** 2))
            * np.exp(-(((np.pi / 4 - phi) / (1 / 15)) ** 2))[:, None]
        )
    u = np.broadcast_to(jet(phi)[:, None], h.shape).copy()
    return {"u": u, "v": np.zeros_like(h), "h": h}
