"""Exact solutions in NumPy, for checking and for reference lines in plots.

Time dependence exp(-i w t): a lossy index has a positive imaginary part.
"""

import numpy as np
from scipy import optimize, special

from sciax.core.errors import InputError


def cylinder_scattering(index: complex, size: float, component: str = "ez") -> float:
    """Scattering efficiency (per diameter) of an infinite cylinder at normal incidence.

    Args:
        index: refractive index relative to the surroundings.
        size: 2 pi radius / wavelength in the surroundings.
        component: "ez" (E along the cylinder) or "hz".

    Source: C. F. Bohren, D. R. Huffman, Absorption and Scattering of Light by Small Particles (1983), section 8.4.
    """
    _, a = _cylinder_coefficients(index, size, component)
    return float(2 / size * np.sum(np.abs(a) ** 2))


def cylinder_pattern(index: complex, size: float, angle, component: str = "ez") -> np.ndarray:
    """Far field of what an infinite cylinder scatters, F of E0 F e^{ikr} / sqrt(k r); arguments as `cylinder_scattering`.

    Args:
        angle: from the direction of travel (rad).

    Returns:
        Complex F, of the component along the cylinder; int |F|^2 dangle / (2 size) is `cylinder_scattering`.
    """
    m, a = _cylinder_coefficients(index, size, component)
    turn = np.exp(1j * m * np.asarray(angle, float)[..., None])
    return -np.sqrt(2 / np.pi) * np.exp(-0.25j * np.pi) * np.sum(a * turn, axis=-1)


def _cylinder_coefficients(index: complex, size: float, component: str) -> tuple[np.ndarray, np.ndarray]:
    """Orders m, and the share of outgoing wave m in what is scattered."""
    top = int(size + 4 * size ** (1 / 3) + 12)
    m = np.arange(-top, top + 1)
    n, x = index, size
    j, h, jp, hp = special.jv(m, x), special.hankel1(m, x), special.jvp(m, x), special.h1vp(m, x)
    ji, jip = special.jv(m, n * x), special.jvp(m, n * x)
    if component == "ez":
        return m, (n * jip * j - ji * jp) / (n * jip * h - ji * hp)
    if component == "hz":
        return m, (jip * j - n * ji * jp) / (jip * h - n * ji * hp)
    raise InputError("component is 'ez' or 'hz'", got=component)


def sphere_scattering(index: complex, size: float) -> tuple[float, float, float]:
    """Mie efficiencies (extinction, scattering, backscattering) of a sphere; arguments as `cylinder_scattering`.

    Source: Bohren and Huffman (1983), chapter 4 (logarithmic derivative by downward recurrence).
    """
    top = int(size + 4 * size ** (1 / 3) + 12)
    n = np.arange(1, top + 1)
    z = index * size
    start = int(max(top, abs(z)) + 16)
    d = np.zeros(start + 1, complex)
    for i in range(start, 0, -1):
        d[i - 1] = i / z - 1.0 / (d[i] + i / z)
    orders = np.arange(top + 1)
    psi = size * special.spherical_jn(orders, size)
    xi = psi + 1j * size * special.spherical_yn(orders, size)
    d = d[1 : top + 1]
    electric, magnetic = d / index + n / size, d * index + n / size
    a = (electric * psi[1:] - psi[:-1]) / (electric * xi[1:] - xi[:-1])
    b = (magnetic * psi[1:] - psi[:-1]) / (magnetic * xi[1:] - xi[:-1])
    scattered = 2 / size**2 * np.sum((2 * n + 1) * (np.abs(a) ** 2 + np.abs(b) ** 2))
    extinct = 2 / size**2 * np.sum((2 * n + 1) * (a + b).real)
    back = np.abs(np.sum((2 * n + 1) * (-1.0) ** n * (a - b))) ** 2 / size**2
    return float(extinct), float(scattered), float(back)


def slab_power(index: complex, thickness: float, wavelength) -> tuple[np.ndarray, np.ndarray]:
    """(Reflectance, transmittance) of a slab in vacuum at normal incidence (Airy's formula)."""
    k = 2 * np.pi / np.asarray(wavelength, float)
    r = (1 - index) / (1 + index)
    p = np.exp(2j * k * index * thickness)
    t = (1 - r * r) * np.exp(1j * k * index * thickness) / (1 - r * r * p)
    return np.abs(r * (1 - p) / (1 - r * r * p)) ** 2, np.abs(t) ** 2


def slab_mode(
    core: float, cladding: float, width: float, wavelength: float, polarization: str = "te", order: int = 0
) -> float:
    """Effective index of a mode of a symmetric slab guide.

    Raises:
        InputError: the guide carries no mode of that order.
    """
    k = 2 * np.pi / wavelength
    ratio = {"te": 1.0, "tm": (core / cladding) ** 2}.get(polarization)
    if ratio is None:
        raise InputError("polarization is 'te' or 'tm'", got=polarization)
    if k * width * np.sqrt(core**2 - cladding**2) <= order * np.pi:
        raise InputError(f"the guide carries no {polarization} mode of order {order}")

    def mismatch(n):
        across, decay = k * np.sqrt(core**2 - n**2), k * np.sqrt(n**2 - cladding**2)
        return across * width / 2 - np.arctan(ratio * decay / across) - order * np.pi / 2

    tiny = 1e-12 * (core - cladding)
    return float(np.real(optimize.brentq(mismatch, cladding + tiny, core - tiny, xtol=1e-15)))  # type: ignore[arg-type]


def ring_resonance(
    index: float, inner: float, outer: float, order: int, guess: complex, component: str = "ez"
) -> complex:
    """Complex frequency f of a mode exp(i order phi) of a 2-D ring, in units of c per unit of the radii; Q = -Re f / (2 Im f).

    Roots of the determinant that matches Bessel functions at both radii, outgoing Hankel function outside.

    Raises:
        InputError: no root is reached from the guess.
    """
    m, p = order, (1.0 if component == "ez" else 1.0 / index**2)

    def determinant(f):
        k = 2 * np.pi * f
        kn = index * k
        j, y, h = special.jv, special.yv, special.hankel1
        jp, yp, hp = special.jvp, special.yvp, special.h1vp
        rows = [
            [j(m, k * inner), -j(m, kn * inner), -y(m, kn * inner), 0],
            [jp(m, k * inner), -index * p * jp(m, kn * inner), -index * p * yp(m, kn * inner), 0],
            [0, j(m, kn * outer), y(m, kn * outer), -h(m, k * outer)],
            [0, index * p * jp(m, kn * outer), index * p * yp(m, kn * outer), -hp(m, k * outer)],
        ]
        return np.linalg.det(np.array(rows, complex))

    try:
        return complex(optimize.newton(determinant, guess, x1=guess * (1 + 1e-4) - 1e-7j, tol=1e-15, maxiter=100))
    except RuntimeError as error:
        raise InputError("no resonance is reached from this guess", got=guess) from error


def fibre_mode(core: float, cladding: float, radius: float, wavelength: float) -> float:
    """Effective index of the fundamental mode HE11 of a step-index fibre, full vector.

    Largest root of (J'/uJ + K'/wK)(n1^2 J'/uJ + n2^2 K'/wK) = (1/u^2 + 1/w^2)(n1^2/u^2 + n2^2/w^2), Bessel functions of order
    one at u = k a sqrt(n1^2 - n^2), w = k a sqrt(n^2 - n2^2).

    Source: K. Okamoto, Fundamentals of Optical Waveguides, 2nd ed. (2006), equation 3.65.
    """
    ka = 2 * np.pi / wavelength * radius

    def mismatch(n):
        u, w = ka * np.sqrt(core**2 - n**2), ka * np.sqrt(n**2 - cladding**2)
        a, b = special.jvp(1, u) / (u * special.jv(1, u)), special.kvp(1, w) / (w * special.kv(1, w))
        right = (1 / u**2 + 1 / w**2) * (core**2 / u**2 + cladding**2 / w**2)
        # J1^2 takes the poles out
        return ((a + b) * (core**2 * a + cladding**2 * b) - right) * special.jv(1, u) ** 2

    first = float(special.jn_zeros(1, 1)[0])  # HE11 lies below the first zero of J1
    low = cladding + 1e-9 * (core - cladding)
    if ka * np.sqrt(core**2 - cladding**2) > first:
        low = max(low, float(np.sqrt(core**2 - (0.999999 * first / ka) ** 2)))
    grid = np.linspace(core - 1e-9 * (core - cladding), low, 400)
    values = mismatch(grid)
    change = np.nonzero(values[:-1] * values[1:] < 0)[0]
    if not change.size:
        raise InputError("no fundamental mode is found", remedy="a larger V number")
    return float(np.real(optimize.brentq(mismatch, grid[change[0] + 1], grid[change[0]], xtol=1e-15)))  # type: ignore[arg-type]
