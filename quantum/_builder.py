"""The gate methods of a circuit. Angles come first, then targets; every gate takes controls."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from sciax.core.errors import InputError
from sciax.quantum._expression import as_expression
from sciax.quantum._gate import CustomFunction, Gate, Matrix
from sciax.quantum._noise_families import NamedChannel

Qubits = int | Sequence[int]


def as_indices(qubits: Any) -> tuple[int, ...]:
    """Numbers of qubits or bits as a tuple.

    Raises:
        InputError: something that is not a whole number, which rounding would send to another qubit.
    """
    items = tuple(qubits) if isinstance(qubits, Iterable) and not isinstance(qubits, str) else (qubits,)
    for q in items:
        if isinstance(q, bool) or not isinstance(q, int | np.integer):
            raise InputError("a qubit or bit is given by its number", got=repr(q), expected="a whole number")
    return tuple(int(q) for q in items)


class Builder(ABC):
    """Methods that append a gate and return the longer circuit.

    An angle is a number, a traced scalar, a symbol's name, or an expression such as `2 * symbol("a") + 0.5`.
    `controls` act on |1>, `negative` controls on |0>.
    """

    @abstractmethod
    def gate(self, name: str, targets: Qubits, angles: Any = (), **options: Any) -> Self: ...

    @abstractmethod
    def _add(self, gate: Gate, angles: Sequence[Any]) -> Self: ...

    # -- fixed gates on one qubit

    def i(self, q: int, **options: Any) -> Self:
        """Identity."""
        return self.gate("id", q, **options)

    def x(self, q: int, **options: Any) -> Self:
        """Pauli X."""
        return self.gate("x", q, **options)

    def y(self, q: int, **options: Any) -> Self:
        """Pauli Y."""
        return self.gate("y", q, **options)

    def z(self, q: int, **options: Any) -> Self:
        """Pauli Z."""
        return self.gate("z", q, **options)

    def h(self, q: int, **options: Any) -> Self:
        """Hadamard."""
        return self.gate("h", q, **options)

    def s(self, q: int, **options: Any) -> Self:
        """diag(1, i)."""
        return self.gate("s", q, **options)

    def sdg(self, q: int, **options: Any) -> Self:
        """diag(1, -i)."""
        return self.gate("sdg", q, **options)

    def t(self, q: int, **options: Any) -> Self:
        """diag(1, exp(i pi/4))."""
        return self.gate("t", q, **options)

    def tdg(self, q: int, **options: Any) -> Self:
        """diag(1, exp(-i pi/4))."""
        return self.gate("tdg", q, **options)

    def sx(self, q: int, **options: Any) -> Self:
        """Square root of X, with sx^2 = X exactly."""
        return self.gate("sx", q, **options)

    def sxdg(self, q: int, **options: Any) -> Self:
        """Inverse of sx."""
        return self.gate("sxdg", q, **options)

    # -- rotations of one qubit

    def rx(self, angle: Any, q: int, **options: Any) -> Self:
        """exp(-i angle/2 X)."""
        return self.gate("rx", q, (angle,), **options)

    def ry(self, angle: Any, q: int, **options: Any) -> Self:
        """exp(-i angle/2 Y)."""
        return self.gate("ry", q, (angle,), **options)

    def rz(self, angle: Any, q: int, **options: Any) -> Self:
        """exp(-i angle/2 Z)."""
        return self.gate("rz", q, (angle,), **options)

    def p(self, angle: Any, q: int, **options: Any) -> Self:
        """Phase shift diag(1, exp(i angle))."""
        return self.gate("p", q, (angle,), **options)

    def u2(self, phi: Any, lam: Any, q: int, **options: Any) -> Self:
        """u3(pi/2, phi, lam)."""
        return self.gate("u2", q, (phi, lam), **options)

    def u3(self, theta: Any, phi: Any, lam: Any, q: int, **options: Any) -> Self:
        """[[cos, -exp(i lam) sin], [exp(i phi) sin, exp(i (phi+lam)) cos]] of theta/2."""
        return self.gate("u3", q, (theta, phi, lam), **options)

    def rn(self, a: Any, b: Any, c: Any, q: int, **options: Any) -> Self:
        """exp(-i/2 (a X + b Y + c Z)): a rotation about any axis."""
        return self.gate("rn", q, (a, b, c), **options)

    def gphase(self, angle: Any, **options: Any) -> Self:
        """The scalar exp(i angle); under controls a relative phase."""
        return self.gate("gphase", (), (angle,), **options)

    # -- controlled shorthands

    def cx(self, control: int, target: int, **options: Any) -> Self:
        """Controlled X."""
        return self.gate("x", target, controls=(control, *as_indices(options.pop("controls", ()))), **options)

    def cy(self, control: int, target: int, **options: Any) -> Self:
        """Controlled Y."""
        return self.gate("y", target, controls=(control, *as_indices(options.pop("controls", ()))), **options)

    def cz(self, control: int, target: int, **options: Any) -> Self:
        """Controlled Z."""
        return self.gate("z", target, controls=(control, *as_indices(options.pop("controls", ()))), **options)

    def ch(self, control: int, target: int, **options: Any) -> Self:
        """Controlled Hadamard."""
        return self.gate("h", target, controls=(control, *as_indices(options.pop("controls", ()))), **options)

    def cp(self, angle: Any, control: int, target: int) -> Self:
        """Controlled phase shift."""
        return self.gate("p", target, (angle,), controls=control)

    def crx(self, angle: Any, control: int, target: int) -> Self:
        """Controlled rx."""
        return self.gate("rx", target, (angle,), controls=control)

    def cry(self, angle: Any, control: int, target: int) -> Self:
        """Controlled ry."""
        return self.gate("ry", target, (angle,), controls=control)

    def crz(self, angle: Any, control: int, target: int) -> Self:
        """Controlled rz."""
        return self.gate("rz", target, (angle,), controls=control)

    def ccx(self, a: int, b: int, target: int) -> Self:
        """Toffoli."""
        return self.gate("x", target, controls=(a, b))

    def cswap(self, control: int, a: int, b: int) -> Self:
        """Fredkin."""
        return self.gate("swap", (a, b), controls=control)

    # -- two qubits

    def swap(self, a: int, b: int, **options: Any) -> Self:
        """Exchange of two qubits."""
        return self.gate("swap", (a, b), **options)

    def iswap(self, a: int, b: int, **options: Any) -> Self:
        """Exchange with a factor i on |01> and |10>."""
        return self.gate("iswap", (a, b), **options)

    def swapalpha(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """swap to the power `angle`: (1 +- exp(i pi angle))/2 on |01>, |10>."""
        return self.gate("swapalpha", (a, b), (angle,), **options)

    def fsim(self, theta: Any, phi: Any, a: int, b: int, **options: Any) -> Self:
        """cos theta and -i sin theta on |01>, |10>; exp(-i phi) on |11>."""
        return self.gate("fsim", (a, b), (theta, phi), **options)

    def givens(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """Real rotation of the pair |b a> = |01>, |10>: |01> to cos |01> + sin |10>."""
        return self.gate("givens", (a, b), (angle,), **options)

    def rxx(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 XX)."""
        return self.gate("rxx", (a, b), (angle,), **options)

    def rxy(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 X_a Y_b)."""
        return self.gate("rxy", (a, b), (angle,), **options)

    def rxz(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 X_a Z_b)."""
        return self.gate("rxz", (a, b), (angle,), **options)

    def ryy(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 YY)."""
        return self.gate("ryy", (a, b), (angle,), **options)

    def ryz(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 Y_a Z_b)."""
        return self.gate("ryz", (a, b), (angle,), **options)

    def rzz(self, angle: Any, a: int, b: int, **options: Any) -> Self:
        """exp(-i angle/2 ZZ)."""
        return self.gate("rzz", (a, b), (angle,), **options)

    # -- any number of qubits

    def rp(self, angle: Any, letters: str, targets: Qubits, **options: Any) -> Self:
        """exp(-i angle/2 P) for the string with letters[k] on targets[k]; identities are dropped.

        Raises:
            InputError: letters other than I, X, Y, Z, or not one for each target.
        """
        targets = as_indices(targets)
        if len(letters) != len(targets) or set(letters) - set("IXYZ"):
            raise InputError(
                "a Pauli rotation needs one letter of I, X, Y, Z for each target", got=f"{letters!r} on {list(targets)}"
            )
        if len(set(targets)) != len(targets):
            raise InputError("gate 'rp': a qubit is used twice", got=list(targets), expected="distinct qubits")
        kept = [(p, q) for p, q in zip(letters, targets) if p != "I"]
        if not kept:  # the identity string is the scalar exp(-i angle/2)
            return self.gphase(as_expression(angle) * -0.5 if isinstance(angle, str) else angle * -0.5, **options)
        return self.gate("rp", tuple(q for _, q in kept), (angle,), extra="".join(p for p, _ in kept), **options)

    def excitation(self, angle: Any, creators: Sequence[int], annihilators: Sequence[int], **options: Any) -> Self:
        """exp(angle (T - T^dagger)), T = prod a^dagger_p (creators, in order) prod a_q (annihilators, in order), Jordan-Wigner.

        One two-level rotation of the occupations with the sign of the strings between, not a product of Pauli rotations.

        Raises:
            InputError: empty lists, unequal lengths, or an index in both.
        """
        creators, annihilators = as_indices(creators), as_indices(annihilators)
        if not creators or len(creators) != len(annihilators) or set(creators) & set(annihilators):
            raise InputError(
                "an excitation moves as many electrons as it takes, between different orbitals",
                got=f"{creators} <- {annihilators}",
            )
        own = creators + annihilators
        string = [k for k in range(min(own), max(own)) if k not in own and sum(q > k for q in own) % 2]
        occupied, sign = set(annihilators), 1
        for q in reversed(annihilators):
            sign *= -1 if sum(k < q for k in occupied) % 2 else 1
            occupied.discard(q)
        for q in reversed(creators):
            sign *= -1 if sum(k < q for k in occupied) % 2 else 1
            occupied.add(q)
        targets = (*own, *string)
        m = len(creators)
        extra = (tuple(range(m)), tuple(range(m, 2 * m)), tuple(range(2 * m, len(targets))))
        if sign < 0:
            angle = -(as_expression(angle) if isinstance(angle, str) else angle)
        return self.gate("excitation", targets, (angle,), extra=extra, **options)

    def unitary(self, matrix: Any, targets: Qubits, *, controls: Qubits = (), negative: Qubits = ()) -> Self:
        """A constant unitary matrix; targets[0] is its least significant bit.

        Raises:
            InputError: not unitary, or not of the targets' size.
        """
        targets = as_indices(targets)
        m = Matrix.of(matrix)
        if m.size != 1 << len(targets):
            raise InputError("the matrix does not fit its targets", got=f"{m.size} rows", expected=1 << len(targets))
        return self._add(Gate("unitary", targets, _controls(controls, negative), (), m), ())

    def custom(
        self,
        function: Callable[..., Any],
        angles: Sequence[Any],
        targets: Qubits,
        *,
        controls: Qubits = (),
        negative: Qubits = (),
    ) -> Self:
        """A differentiable gate: `function(*angles)` returns its unitary matrix as a JAX array.

        The function must be the same object every time for compiled programs to be shared.

        Raises:
            InputError: at an angle of 0.7, 0.8, ... its matrix is not unitary or has a wrong size.
        """
        targets = as_indices(targets)
        probe = np.asarray(function(*(0.7 + 0.1 * k for k in range(len(angles)))))
        size = 1 << len(targets)
        if probe.shape != (size, size):
            raise InputError("the custom matrix does not fit its targets", got=probe.shape, expected=(size, size))
        Matrix.of(probe)  # refuses what is not unitary
        return self._add(
            Gate("custom", targets, _controls(controls, negative), (), CustomFunction(function)), tuple(angles)
        )

    # -- operations that are not unitary

    def measure(self, qubits: Qubits, bits: Qubits | None = None) -> Self:
        """Measure qubits in the computational basis into classical bits (default: bits of the same numbers)."""
        qubits = as_indices(qubits)
        bits = qubits if bits is None else as_indices(bits)
        if len(bits) != len(qubits):
            raise InputError("one classical bit for each measured qubit", got=f"{len(qubits)} qubits, {len(bits)} bits")
        out = self
        for q, b in zip(qubits, bits):
            out = out._add(Gate("measure", (q,), bits=(b,)), ())
        return out

    def reset(self, qubits: Qubits) -> Self:
        """Set qubits to |0>."""
        out = self
        for q in as_indices(qubits):
            out = out._add(Gate("reset", (q,)), ())
        return out

    def barrier(self, *qubits: int) -> Self:
        """A mark in the drawing; no effect."""
        return self._add(Gate("barrier", qubits or tuple(range(getattr(self, "num_qubits", 0)))), ())

    def channel(self, channel: Any, targets: Qubits) -> Self:
        """A noise channel (see sciax.quantum's channel functions); strengths given as names become parameters."""
        targets = as_indices(targets)
        if channel.num_qubits != len(targets):
            raise InputError("the channel does not fit its targets", got=len(targets), expected=channel.num_qubits)
        if isinstance(channel, NamedChannel):
            return self._add(Gate("channel", targets, extra=channel.family), channel.strengths)
        return self._add(Gate("channel", targets, extra=channel), ())

    def when(self, bits: Qubits, value: int, body: "Builder") -> Self:
        """The gates of `body`, each only where the classical bits, least significant first, hold `value`.

        Raises:
            InputError: a value that does not fit the bits; a condition inside the body.
        """
        bits = as_indices(bits)
        if not 0 <= value < 1 << len(bits):
            raise InputError(
                "a condition's value does not fit its bits", got=value, expected=f"0..{(1 << len(bits)) - 1}"
            )
        return self._conditioned((bits, value), body)

    @abstractmethod
    def _conditioned(self, condition: tuple[tuple[int, ...], int], body: "Builder") -> Self: ...


def _controls(positive: Qubits, negative: Qubits) -> tuple[tuple[int, int], ...]:
    return tuple((q, 1) for q in as_indices(positive)) + tuple((q, 0) for q in as_indices(negative))
