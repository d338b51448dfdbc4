"""One operation of a circuit, and the things it may carry."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.quantum._expression import Expression
from sciax.quantum._kinds import KINDS, kind_of


@dataclass(frozen=True)
class Matrix:
    """A constant matrix that hashes by its content."""

    data: bytes
    size: int

    @classmethod
    def of(cls, matrix, *, unitary: bool = True) -> "Matrix":
        """Raises:
        InputError: not square with a power of two, not finite, or (when asked) not unitary.
        """
        m = np.ascontiguousarray(np.asarray(matrix, np.complex128))
        if m.ndim != 2 or m.shape[0] != m.shape[1] or m.shape[0] & (m.shape[0] - 1) or m.shape[0] < 2:
            raise InputError("a gate matrix must be square with a power of two", got=m.shape, expected="2^k x 2^k")
        if not np.all(np.isfinite(m)):
            raise InputError("a gate matrix has entries that are not finite")
        if unitary:
            error = float(np.abs(m.conj().T @ m - np.eye(len(m))).max())
            if error > 1e-6:
                raise InputError(
                    "a gate matrix is not unitary",
                    got=f"max |U^dagger U - 1| = {error:.3g}",
                    expected="at most 1e-6",
                    remedy="normalise it, or use a Kraus channel for a map that is not unitary",
                )
        return cls(m.tobytes(), len(m))

    @cached_property
    def array(self) -> np.ndarray:
        return np.frombuffer(self.data, np.complex128).reshape(self.size, self.size)


@dataclass(frozen=True)
class CustomFunction:
    """A user's matrix function of the angles; `dagger` asks for its conjugate transpose."""

    function: Callable[..., Any]
    dagger: bool = False


@dataclass(frozen=True)
class Gate:
    """One operation: a gate, measurement, reset, barrier or channel.

    Attributes:
        kind: a name of the gate table, or "unitary", "custom", "measure", "reset", "barrier", "channel".
        targets: target qubits, the first the least significant of the gate's own matrix.
        controls: (qubit, value) pairs; value 0 is a negative control.
        angles: parameters.
        extra: what the kind needs besides: a Pauli string, a matrix, a function, a channel.
        bits: classical bits written by a measurement.
        condition: (classical bits, value): the gate acts only where these bits, least significant first, hold the value.
    """

    kind: str
    targets: tuple[int, ...]
    controls: tuple[tuple[int, int], ...] = ()
    angles: tuple[Expression, ...] = ()
    extra: Any = None
    bits: tuple[int, ...] = ()
    condition: tuple[tuple[int, ...], int] | None = None

    @property
    def qubits(self) -> tuple[int, ...]:
        return self.targets + tuple(q for q, _ in self.controls)

    @property
    def is_unitary(self) -> bool:
        return self.kind not in ("measure", "reset", "channel") and self.condition is None

    def inverse(self) -> "Gate":
        """Raises:
        UnsupportedError: measurement, reset, channels and conditions have none.
        """
        if self.kind == "barrier":
            return self
        if not self.is_unitary:
            raise UnsupportedError(f"a {self.kind} or a classically controlled gate has no inverse")
        if self.kind == "unitary":
            return replace(self, extra=Matrix.of(self.extra.array.conj().T))
        if self.kind == "custom":
            return replace(self, extra=replace(self.extra, dagger=not self.extra.dagger))
        if self.kind == "u3":
            theta, phi, lam = self.angles
            return replace(self, angles=(-theta, -lam, -phi))
        if self.kind == "u2":
            phi, lam = self.angles
            return replace(self, kind="u3", angles=(Expression((), -np.pi / 2), -lam, -phi))
        how = kind_of(self.kind).inverse
        if how == "same":
            return self
        if how == "negate":
            return replace(self, angles=tuple(-a for a in self.angles))
        return replace(self, kind=how)

    def power(self, exponent: float) -> "Gate":
        """The gate to a real power, by the principal branch of its matrix.

        Raises:
            UnsupportedError: a kind whose fractional power is not a gate of the table.
        """
        if self.kind == "barrier" or exponent == 1:
            return self
        if exponent == -1:
            return self.inverse()
        if not self.is_unitary:
            raise UnsupportedError(f"a {self.kind} or a classically controlled gate has no power")
        kind = KINDS.get(self.kind)
        if kind is not None and kind.power == "scale":
            return replace(self, angles=tuple(a * exponent for a in self.angles))
        if kind is not None and ":" in kind.power:
            name, angle = kind.power.split(":")
            # swapalpha counts in units of pi already
            first = Expression((), float(angle) * exponent * (1.0 if name == "swapalpha" else np.pi))
            return replace(self, kind=name, angles=(first, Expression()) if name == "fsim" else (first,))
        if self.kind == "unitary" or (kind is not None and kind.angles == 0):
            from sciax.quantum._lower import gate_matrix

            m = self.extra.array if self.kind == "unitary" else gate_matrix(replace(self, controls=()), ())
            return replace(self, kind="unitary", extra=Matrix.of(_unitary_power(m, exponent)))
        raise UnsupportedError(
            f"the gate {self.kind!r} has no fractional power",
            got=exponent,
            remedy="use an integer power, or its matrix",
        )


def _unitary_power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    from scipy.linalg import schur

    # The Schur form of a normal matrix is diagonal, with orthonormal vectors even for repeated eigenvalues.
    triangle, vectors = schur(matrix, output="complex")  # pyright: ignore[reportAssignmentType]
    angles = np.angle(np.diag(triangle))
    # -1 may come out as either branch from rounding: take +pi for both
    angles = np.where(np.isclose(angles, -np.pi), np.pi, angles)
    return (vectors * np.exp(1j * exponent * angles)) @ vectors.conj().T
