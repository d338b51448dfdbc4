"""Clebsch-Gordan coefficients in the real basis, float64, from Racah's closed form in exact integers."""

import functools
from fractions import Fraction
from math import factorial, sqrt

import numpy as np

from sciax.core.errors import InputError


def _su2(l1: int, m1: int, l2: int, m2: int, l3: int) -> float:
    """<l1 m1 l2 m2 | l3 m1+m2>. G. Racah, Phys. Rev. 62, 438 (1942), eq. 16."""
    m3 = m1 + m2
    if abs(m3) > l3:
        return 0.0
    f = factorial
    square = Fraction(
        (2 * l3 + 1) * f(l3 + l1 - l2) * f(l3 - l1 + l2) * f(l1 + l2 - l3) * f(l3 + m3) * f(l3 - m3),
        f(l1 + l2 + l3 + 1) * f(l1 - m1) * f(l1 + m1) * f(l2 - m2) * f(l2 + m2),
    )
    total = Fraction(0)
    for k in range(l3 + m3 + 1):
        a, b, c, d = l3 - l1 + l2 - k, l3 + m3 - k, k + l1 - l2 - m3, l2 + l3 + m1 - k
        if min(a, b, c, d) < 0:
            continue
        total += Fraction((-1) ** (k + l2 + m2) * f(d) * f(l1 - m1 + k), f(k) * f(a) * f(b) * f(c))
    return float(total) * sqrt(square)


def _to_complex(l: int) -> np.ndarray:
    """Unitary matrix from the real basis (columns) to the complex one (rows); the phase (-i)^l makes the coefficients real."""
    q = np.zeros((2 * l + 1, 2 * l + 1), complex)
    q[l, l] = 1
    for m in range(1, l + 1):
        q[l - m, l + m], q[l - m, l - m] = 1 / sqrt(2), -1j / sqrt(2)
        q[l + m, l + m], q[l + m, l - m] = (-1) ** m / sqrt(2), 1j * (-1) ** m / sqrt(2)
    return (-1j) ** l * q


@functools.cache
def _real(l1: int, l2: int, l3: int) -> np.ndarray:
    c = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1))
    for m1 in range(-l1, l1 + 1):
        for m2 in range(-l2, l2 + 1):
            if abs(m1 + m2) <= l3:
                c[l1 + m1, l2 + m2, l3 + m1 + m2] = _su2(l1, m1, l2, m2, l3)
    q1, q2, q3 = _to_complex(l1), _to_complex(l2), _to_complex(l3)
    out = np.einsum("ai,bj,ck,abc->ijk", q1, q2, q3.conj(), c).real
    out[np.abs(out) < 1e-14] = 0
    out /= np.linalg.norm(out)
    out.setflags(write=False)
    return out


def clebsch_gordan(l1: int, l2: int, l3: int) -> np.ndarray:
    """C of shape (2l₁+1, 2l₂+1, 2l₃+1) with Σ C² = 1, invariant: C(D₁x, D₂y) = D₃C(x, y). Sign and basis as in e3nn.

    Raises:
        InputError: degrees that violate |l₁ - l₂| <= l₃ <= l₁ + l₂.
    """
    if min(l1, l2, l3) < 0 or not abs(l1 - l2) <= l3 <= l1 + l2:
        raise InputError("no coupling of these degrees", got=(l1, l2, l3), expected="|l1 - l2| <= l3 <= l1 + l2")
    return _real(l1, l2, l3)
