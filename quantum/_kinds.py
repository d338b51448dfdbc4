"""The gate table: how each kind of gate acts, as two-sparse instructions, and its algebra (inverse, power, names).

Each kind gives, for its targets, the masks of one or more instructions (see sciax.core.ops.gates) and a function from its
angles to their coefficients A0, A1, B0, B1. The same function serves NumPy and JAX.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sciax.core.errors import InputError, did_you_mean

Mask = tuple[int, int, int, int]  # x, z, cmask, cval
Coefficients = tuple[Any, Any, Any, Any]
_R = 1 / np.sqrt(2)


@dataclass(frozen=True)
class Kind:
    """One kind of gate.

    Attributes:
        targets: number of target qubits; 0 means any.
        angles: number of parameters.
        masks: target bits and the gate's `extra` to instruction masks.
        coefficients: (array namespace, angles) to coefficients of each instruction.
        real: for each instruction, whether its coefficients are real whatever the angles.
        inverse: name of the inverse kind, "negate" (negated angles) or "special".
        power: "scale" (multiplied angles), a name with the angle of the first power ("p:pi"), or "matrix".
        shift: frequencies of the parameter-shift rule, the differences of the generator's eigenvalues.
        label: what drawings show.
    """

    targets: int
    angles: int
    masks: Callable[[tuple[int, ...], Any], list[Mask]]
    coefficients: Callable[[Any, tuple[Any, ...]], list[Coefficients]]
    real: tuple[bool, ...] = (False,)
    inverse: str = "special"
    power: str = "matrix"
    shift: tuple[float, ...] = (1.0,)
    label: str = ""


def _one(t, _):
    return [(t[0], t[0], 0, 0)]


def _phase_mask(t, _):
    return [(0, 0, t[0], t[0])]


def _none(t, _):
    return [(0, 0, 0, 0)]


def _exchange(t, _):
    """The pair |01>, |10>: s = 1 where the first target is set."""
    return [(t[0] | t[1], t[0], t[0] | t[1], t[0])]


def _exchange_phase(t, _):
    return [(t[0] | t[1], t[0], t[0] | t[1], t[0]), (0, 0, t[0] | t[1], t[0] | t[1])]


def _matrix(a, b, c, d):
    """[[a, b], [c, d]] on one qubit."""
    return lambda xp, angles: [(a, d, b, c)]


def _phase(value):
    return lambda xp, angles: [(value, value, 0, 0)]


def _expi(xp, angle):
    return xp.cos(angle) + 1j * xp.sin(angle)


def _rx(xp, angles):
    c, s = xp.cos(angles[0] / 2), -1j * xp.sin(angles[0] / 2)
    return [(c, c, s, s)]


def _ry(xp, angles):
    c, s = xp.cos(angles[0] / 2), xp.sin(angles[0] / 2)
    return [(c, c, -s, s)]


def _rz(xp, angles):
    return [(_expi(xp, -angles[0] / 2), _expi(xp, angles[0] / 2), 0, 0)]


def _p(xp, angles):
    e = _expi(xp, angles[0])
    return [(e, e, 0, 0)]


def _u3(xp, angles):
    theta, phi, lam = angles
    c, s = xp.cos(theta / 2), xp.sin(theta / 2)
    return [(c + 0j, _expi(xp, phi + lam) * c, -_expi(xp, lam) * s, _expi(xp, phi) * s)]


def _u2(xp, angles):
    phi, lam = angles
    one = xp.ones_like(phi)
    return [(_R * one + 0j, _R * _expi(xp, phi + lam), -_R * _expi(xp, lam), _R * _expi(xp, phi))]


def _rn(xp, angles):
    a, b, c = angles
    square = a * a + b * b + c * c
    small = square < 1e-12
    r = xp.sqrt(xp.where(small, 1.0, square))  # the square root is kept away from 0, where its derivative is not finite
    half = xp.where(small, 0.5 - square / 48, xp.sin(r / 2) / r)
    cos = xp.where(small, 1 - square / 8, xp.cos(r / 2))
    return [(cos - 1j * half * c, cos + 1j * half * c, half * (-b - 1j * a), half * (b - 1j * a))]


def _fsim(xp, angles):
    theta, phi = angles
    c, s = xp.cos(theta), -1j * xp.sin(theta)
    e = _expi(xp, -phi)
    return [(c, c, s, s), (e, e, 0, 0)]


def _givens(xp, angles):
    # |01>, |10> in the order (second target, first target): the amplitude with the first target set is the second of the pair
    c, s = xp.cos(angles[0]), xp.sin(angles[0])
    return [(c, c, s, -s)]


def _swapalpha(xp, angles):
    e = _expi(xp, np.pi * angles[0])
    return [((1 + e) / 2, (1 + e) / 2, (1 - e) / 2, (1 - e) / 2)]


def _pauli_masks(t, letters):
    x = sum(b for b, p in zip(t, letters) if p in "XY")
    z = sum(b for b, p in zip(t, letters) if p in "YZ")
    return [(x, z, 0, 0)]


def _rotation(y: int):
    """exp(-i angle/2 P) for a string with y letters Y."""
    unit = -1j * (-1j) ** y

    def coefficients(xp, angles):
        c, s = xp.cos(angles[0] / 2), unit * xp.sin(angles[0] / 2)
        return [(c, c, s, -s)]

    return coefficients


def _diagonal_rotation(xp, angles):
    return _rz(xp, angles)


def _rp_masks(t, letters):
    return _pauli_masks(t, letters)


def _pair_rotation(letters: str) -> Kind:
    diagonal = set(letters) <= {"Z"}
    y = letters.count("Y")
    return Kind(
        2,
        1,
        lambda t, _: _pauli_masks(t, letters),
        _diagonal_rotation if diagonal else _rotation(y),
        (y % 2 == 1,),
        "negate",
        "scale",
        label=f"R{letters.lower()}",
    )


def _excitation_masks(t, extra):
    """extra = (creators, annihilators, string) as index tuples into the targets; see Circuit.excitation."""
    up, down, string = extra
    ups, downs = sum(t[k] for k in up), sum(t[k] for k in down)
    # s is odd where the excited configuration meets an even string: the first creator's bit tells the branches apart
    return [(ups | downs, t[up[0]] | sum(t[k] for k in string), ups | downs, downs)]


def _excitation(xp, angles):
    c, s = xp.cos(angles[0]), xp.sin(angles[0])
    # ground branch (creators empty, s even): -sin; excited branch (s odd): +sin; both times the sign of the string
    return [(c, c, -s, s)]


KINDS: dict[str, Kind] = {
    "id": Kind(1, 0, _none, _phase(1), (True,), "same", "scale", (), "I"),
    "x": Kind(1, 0, _one, _matrix(0, 1, 1, 0), (True,), "same", label="X", shift=()),
    "y": Kind(1, 0, _one, _matrix(0, -1j, 1j, 0), (False,), "same", label="Y", shift=()),
    "z": Kind(1, 0, _phase_mask, _phase(-1), (True,), "same", "p:1", (), "Z"),
    "h": Kind(1, 0, _one, _matrix(_R, _R, _R, -_R), (True,), "same", label="H", shift=()),
    "s": Kind(1, 0, _phase_mask, _phase(1j), (False,), "sdg", "p:0.5", (), "S"),
    "sdg": Kind(1, 0, _phase_mask, _phase(-1j), (False,), "s", "p:-0.5", (), "S†"),
    "t": Kind(1, 0, _phase_mask, _phase((1 + 1j) * _R), (False,), "tdg", "p:0.25", (), "T"),
    "tdg": Kind(1, 0, _phase_mask, _phase((1 - 1j) * _R), (False,), "t", "p:-0.25", (), "T†"),
    "sx": Kind(
        1,
        0,
        _one,
        _matrix((1 + 1j) / 2, (1 - 1j) / 2, (1 - 1j) / 2, (1 + 1j) / 2),
        (False,),
        "sxdg",
        label="√X",
        shift=(),
    ),
    "sxdg": Kind(
        1,
        0,
        _one,
        _matrix((1 - 1j) / 2, (1 + 1j) / 2, (1 + 1j) / 2, (1 - 1j) / 2),
        (False,),
        "sx",
        label="√X†",
        shift=(),
    ),
    "rx": Kind(1, 1, _one, _rx, (False,), "negate", "scale", label="Rx"),
    "ry": Kind(1, 1, _one, _ry, (True,), "negate", "scale", label="Ry"),
    "rz": Kind(1, 1, lambda t, _: [(0, t[0], 0, 0)], _rz, (False,), "negate", "scale", label="Rz"),
    "p": Kind(1, 1, _phase_mask, _p, (False,), "negate", "scale", label="P"),
    "u2": Kind(1, 2, _one, _u2, (False,), label="U2", shift=(1.0,)),
    "u3": Kind(1, 3, _one, _u3, (False,), label="U3", shift=(1.0,)),
    "rn": Kind(1, 3, _one, _rn, (False,), "negate", "scale", (), "Rn"),
    "gphase": Kind(-1, 1, _none, _p, (False,), "negate", "scale", label="phase"),
    "swap": Kind(2, 0, _exchange, lambda xp, a: [(0, 0, 1, 1)], (True,), "same", "swapalpha:1", (), "swap"),
    "iswap": Kind(2, 0, _exchange, lambda xp, a: [(0, 0, 1j, 1j)], (False,), "iswapdg", "fsim:-0.5", (), "iSW"),
    "iswapdg": Kind(2, 0, _exchange, lambda xp, a: [(0, 0, -1j, -1j)], (False,), "iswap", "fsim:0.5", (), "iSW†"),
    "swapalpha": Kind(2, 1, _exchange, _swapalpha, (False,), "negate", "scale", (np.pi,), "SWα"),
    "fsim": Kind(2, 2, _exchange_phase, _fsim, (False, False), "negate", "scale", (1.0, 2.0), "fSim"),
    "givens": Kind(2, 1, _exchange, _givens, (True,), "negate", "scale", (1.0, 2.0), "Giv"),
    **{f"r{a}{b}".lower(): _pair_rotation(a + b) for a in "XYZ" for b in "XYZ" if a <= b},
    "rp": Kind(0, 1, _rp_masks, _rotation(0), (False,), "negate", "scale", label="Rp"),  # coefficients chosen by string
    "excitation": Kind(0, 1, _excitation_masks, _excitation, (True,), "negate", "scale", (1.0, 2.0), "Exc"),
}

NON_UNITARY = ("measure", "reset", "channel")
ALIASES = {"i": "id", "u": "u3", "u1": "p", "phase": "p", "phaseshift": "p", "toffoli": "x", "sxd": "sxdg"}


def kind_of(name: str) -> Kind:
    """Raises:
    InputError: an unknown gate, with the nearest name.
    """
    if name not in KINDS:
        raise InputError(f"unknown gate {name!r}", remedy=did_you_mean(name, [*KINDS, *ALIASES]))
    return KINDS[name]


def rotation_coefficients(letters: str):
    """Coefficient function and realness of exp(-i angle/2 P)."""
    if set(letters) <= {"I", "Z"}:
        # A string of identities is the scalar exp(-i angle/2), which s = 0 of the diagonal form already is.
        return _diagonal_rotation, False
    y = letters.count("Y")
    return _rotation(y), y % 2 == 1
