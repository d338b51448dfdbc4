"""Noise channels, by their Kraus matrices: rho -> sum_k K_k rho K_k^dagger.

A strength given as a number is a constant of the circuit's structure. Given as a name, an expression of names or a traced
number it is a parameter of the circuit, and `expectation` and `density_matrix` are differentiable in it; a value outside its
range is then refused, or gives NaN inside a trace.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import jax.core
import numpy as np

from sciax.core.errors import InputError
from sciax.quantum._expression import Expression
from sciax.quantum._gate import Matrix
from sciax.quantum._noise_families import PAULIS, Family, NamedChannel

Strength = float | str | Expression | jax.Array


@dataclass(frozen=True)
class Channel:
    """A trace-preserving map of `num_qubits` qubits with constant strengths.

    Attributes:
        name: for drawings and messages.
        operators: the Kraus matrices; the first target is the least significant bit.
    """

    name: str
    operators: tuple[Matrix, ...]

    @property
    def num_qubits(self) -> int:
        return (self.operators[0].size - 1).bit_length()

    @cached_property
    def kraus(self) -> np.ndarray:
        """(K, d, d) matrices."""
        return np.stack([m.array for m in self.operators])

    @cached_property
    def superoperator(self) -> np.ndarray:
        """sum_k K_k (x) conj(K_k), acting on (row, column) with the column's bits low."""
        return np.sum([np.kron(k, k.conj()) for k in self.kraus], axis=0)

    def kraus_at(self, angles, dtype):
        return self.kraus

    def superoperator_at(self, angles, dtype):
        return self.superoperator

    @property
    def mixes_unitaries(self) -> bool:
        """Whether every Kraus matrix is a multiple of a unitary, so that which one acts does not depend on the state."""
        products = np.einsum("kba,kbc->kac", self.kraus.conj(), self.kraus)
        return bool(np.allclose(products, products[:, :1, :1] * np.eye(products.shape[-1]), atol=1e-12))


def kraus(operators: Sequence[Any], name: str = "kraus") -> Channel:
    """A channel from its Kraus matrices.

    Raises:
        InputError: sizes that differ, or sum_k K_k^dagger K_k is not the identity.
    """
    matrices = tuple(Matrix.of(k, unitary=False) for k in operators)
    if not matrices or len({m.size for m in matrices}) != 1:
        raise InputError("a channel needs Kraus matrices of one size", got=[m.size for m in matrices])
    total = np.sum([m.array.conj().T @ m.array for m in matrices], axis=0)
    error = float(np.abs(total - np.eye(len(total))).max())
    if error > 1e-6:
        raise InputError(
            "the channel does not keep the trace",
            got=f"max |sum K^dagger K - 1| = {error:.3g}",
            expected="at most 1e-6",
        )
    return Channel(name, matrices)


def _named(name: str, num_qubits: int, *strengths: Strength) -> NamedChannel | None:
    """The channel with parameters, when a strength is one."""
    if any(isinstance(v, str | Expression | jax.core.Tracer) for v in strengths):
        return NamedChannel(Family(name, num_qubits), strengths)
    return None


def _number(value: Strength) -> float:
    return float(value)  # pyright: ignore[reportArgumentType]  # names have been taken out by `_named`


def _probability(strength: Strength, what: str) -> float:
    value = _number(strength)
    if not 0 <= value <= 1:
        raise InputError(f"{what} is a probability", got=value, expected="0..1")
    return value


def pauli_channel(px: Strength, py: Strength, pz: Strength) -> Channel | NamedChannel:
    """X, Y, Z with probabilities px, py, pz.

    Raises:
        InputError: not probabilities.
    """
    if named := _named("pauli", 1, px, py, pz):
        return named
    rest = _probability(1 - sum(_probability(p, "an error rate") for p in (px, py, pz)), "the rate of no error")
    return kraus([np.sqrt(p) * m for p, m in zip((rest, *map(_number, (px, py, pz))), PAULIS)], "pauli")


def bit_flip(p: Strength) -> Channel | NamedChannel:
    """X with probability p."""
    return pauli_channel(p, 0, 0)


def phase_flip(p: Strength) -> Channel | NamedChannel:
    """Z with probability p."""
    return pauli_channel(0, 0, p)


def bit_phase_flip(p: Strength) -> Channel | NamedChannel:
    """Y with probability p."""
    return pauli_channel(0, p, 0)


def depolarising(p: Strength, num_qubits: int = 1) -> Channel | NamedChannel:
    """One of the 4^n - 1 Pauli errors, each equally likely, with total probability p: <Z> of |0> becomes 1 - 4p/3 (n = 1)."""
    if named := _named("depolarising", num_qubits, p):
        return named
    rate = _probability(p, "the error rate")
    count = 4**num_qubits
    operators = []
    for k, letters in enumerate(product(range(4), repeat=num_qubits)):
        matrix = np.eye(1)
        for letter in letters:
            matrix = np.kron(PAULIS[letter], matrix)
        operators.append(np.sqrt(1 - rate if k == 0 else rate / (count - 1)) * matrix)
    return kraus(operators, "depolarising")


def amplitude_damping(gamma: Strength, excited: Strength = 0.0) -> Channel | NamedChannel:
    """Decay |1> to |0> with probability gamma, towards an equilibrium population `excited` of |1>."""
    if named := _named("amplitude damping", 1, gamma, excited):
        return named
    g, e = _probability(gamma, "gamma"), _probability(excited, "the excited population")
    down = [np.diag([1, np.sqrt(1 - g)]), np.array([[0, np.sqrt(g)], [0, 0]])]
    up = [np.diag([np.sqrt(1 - g), 1]), np.array([[0, 0], [np.sqrt(g), 0]])]
    parts = [np.sqrt(1 - e) * m for m in down] + ([np.sqrt(e) * m for m in up] if e else [])
    return kraus(parts, "amplitude damping")


def phase_damping(gamma: Strength) -> Channel | NamedChannel:
    """Coherences times sqrt(1 - gamma)."""
    if named := _named("phase damping", 1, gamma):
        return named
    g = _probability(gamma, "gamma")
    return kraus([np.diag([1, np.sqrt(1 - g)]), np.diag([0, np.sqrt(g)])], "phase damping")


def thermal_relaxation(t1: Strength, t2: Strength, time: Strength, excited: Strength = 0.0) -> Channel | NamedChannel:
    """Relaxation for `time`: populations decay with t1 (any unit, the same for all), coherences with t2.

    Raises:
        InputError: t2 > 2 t1, which no channel has, or times that are not positive.
    """
    if named := _named("thermal relaxation", 1, t1, t2, time, excited):
        return named
    t1, t2, time = _number(t1), _number(t2), _number(time)
    if not (t1 > 0 and t2 > 0 and time >= 0):
        raise InputError("relaxation times are positive", got=(t1, t2, time))
    if t2 > 2 * t1:
        raise InputError("t2 cannot exceed 2 t1", got=f"t1={t1}, t2={t2}")
    # amplitude damping leaves exp(-t / 2 t1) of the coherence; pure dephasing supplies the rest
    damping = amplitude_damping(1 - np.exp(-time / t1), excited)
    rest = phase_damping(1 - np.exp(-2 * time * (1 / t2 - 1 / (2 * t1))))
    assert isinstance(damping, Channel) and isinstance(rest, Channel)
    return kraus([b @ a for a in damping.kraus for b in rest.kraus], "thermal relaxation")
