"""The gates of qelib1.inc, the extended one, as gates of the table or as short sequences.

Where the paper's definitions leave a global phase open (rz, rzz, u3), the matrices are those that all tools use today:
rz and rzz are traceless exponentials, u3 has a real first entry.
"""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

from sciax.quantum._circuit import GateList

Emit = Callable[[GateList, Sequence[float], Sequence[int]], Any]


def _table(name: str, controls: int = 0) -> Emit:
    return lambda c, p, q: c.gate(name, tuple(q[controls:]), tuple(p), controls=tuple(q[:controls]))


def _cu(c: GateList, p, q):
    theta, phi, lam, gamma = p
    c.p(gamma, q[0])
    c.gate("u3", q[1], (theta, phi, lam), controls=q[0])


def _rzx(c: GateList, p, q):
    c.rxz(p[0], q[1], q[0])


def _dcx(c: GateList, p, q):
    c.cx(q[0], q[1]).cx(q[1], q[0])


def _ecr(c: GateList, p, q):
    c.rxz(pi / 4, q[1], q[0]).x(q[0]).rxz(-pi / 4, q[1], q[0])


def _margolus(c: GateList, p, q):
    """Toffoli up to relative phases, with three CX."""
    a, b, t = q
    c.h(t).t(t).cx(b, t).tdg(t).cx(a, t).t(t).cx(b, t).tdg(t).h(t)


def _margolus3(c: GateList, p, q):
    a, b, d, t = q
    c.h(t).t(t).cx(d, t).tdg(t).h(t)
    c.cx(a, t).t(t).cx(b, t).tdg(t).cx(a, t).t(t).cx(b, t).tdg(t)
    c.h(t).t(t).cx(d, t).tdg(t).h(t)


def _wait(c: GateList, p, q):
    c.i(q[0])


GATES: dict[str, tuple[int, int, Emit]] = {
    # name: (parameters, qubits, emit)
    "u3": (3, 1, _table("u3")),
    "u": (3, 1, _table("u3")),
    "u2": (2, 1, _table("u2")),
    "u1": (1, 1, _table("p")),
    "p": (1, 1, _table("p")),
    "u0": (1, 1, _wait),
    **{name: (0, 1, _table(name)) for name in ("id", "x", "y", "z", "h", "s", "sdg", "t", "tdg", "sx", "sxdg")},
    **{name: (1, 1, _table(name)) for name in ("rx", "ry", "rz")},
    **{f"c{name}": (0, 2, _table(name, 1)) for name in ("x", "y", "z", "h", "s", "sdg", "sx", "sxdg")},
    **{f"c{name}": (1, 2, _table(name, 1)) for name in ("rx", "ry", "rz", "p")},
    "cu1": (1, 2, _table("p", 1)),
    "cu3": (3, 2, _table("u3", 1)),
    "cu": (4, 2, _cu),
    "swap": (0, 2, _table("swap")),
    "cswap": (0, 3, _table("swap", 1)),
    "iswap": (0, 2, _table("iswap")),
    "ccx": (0, 3, _table("x", 2)),
    "ccz": (0, 3, _table("z", 2)),
    "c3x": (0, 4, _table("x", 3)),
    "mcx": (0, 4, _table("x", 3)),
    "c4x": (0, 5, _table("x", 4)),
    "c3sqrtx": (0, 4, _table("sx", 3)),
    "c3sx": (0, 4, _table("sx", 3)),
    "rccx": (0, 3, _margolus),
    "rc3x": (0, 4, _margolus3),
    "rcccx": (0, 4, _margolus3),
    "rxx": (1, 2, _table("rxx")),
    "ryy": (1, 2, _table("ryy")),
    "rzz": (1, 2, _table("rzz")),
    "rzx": (1, 2, _rzx),
    "dcx": (0, 2, _dcx),
    "ecr": (0, 2, _ecr),
}
BUILTIN: dict[str, tuple[int, int, Emit]] = {"U": (3, 1, _table("u3")), "CX": (0, 2, _table("x", 1))}
