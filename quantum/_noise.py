"""Noise channels, by their Kraus matrices: rho -> sum_k K_k rho K_k^dagger."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.quantum._gate import Matrix

_PAULIS = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]], complex)


@dataclass(frozen=True)
class Channel:
    """A trace-preserving map of `num_qubits` qubits. Its strengths are constants of the circuit's structure.

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


def _probability(value: float, what: str) -> float:
    if not 0 <= value <= 1:
        raise InputError(f"{what} is a probability", got=value, expected="0..1")
    return float(value)


def pauli_channel(px: float, py: float, pz: float) -> Channel:
    """X, Y, Z with probabilities px, py, pz.

    Raises:
        InputError: not probabilities.
    """
    rest = _probability(1 - sum(_probability(p, "an error rate") for p in (px, py, pz)), "the rate of no error")
    return kraus([np.sqrt(p) * m for p, m in zip((rest, px, py, pz), _PAULIS)], "pauli")


def bit_flip(p: float) -> Channel:
    """X with probability p."""
    return pauli_channel(p, 0, 0)


def phase_flip(p: float) -> Channel:
    """Z with probability p."""
    return pauli_channel(0, 0, p)


def bit_phase_flip(p: float) -> Channel:
    """Y with probability p."""
    return pauli_channel(0, p, 0)


def depolarising(p: float, num_qubits: int = 1) -> Channel:
    """One of the 4^n - 1 Pauli errors, each equally likely, with total probability p: <Z> of |0> becomes 1 - 4p/3 (n = 1)."""
    _probability(p, "the error rate")
    count = 4**num_qubits
    operators = []
    for k, letters in enumerate(product(range(4), repeat=num_qubits)):
        matrix = np.eye(1)
        for letter in letters:
            matrix = np.kron(_PAULIS[letter], matrix)
        operators.append(np.sqrt(1 - p if k == 0 else p / (count - 1)) * matrix)
    return kraus(operators, "depolarising")


def amplitude_damping(gamma: float, excited: float = 0.0) -> Channel:
    """Decay |1> to |0> with probability gamma, towards an equilibrium population `excited` of |1>."""
    g, e = _probability(gamma, "gamma"), _probability(excited, "the excited population")
    down = [np.diag([1, np.sqrt(1 - g)]), np.array([[0, np.sqrt(g)], [0, 0]])]
    up = [np.diag([np.sqrt(1 - g), 1]), np.array([[0, 0], [np.sqrt(g), 0]])]
    parts = [np.sqrt(1 - e) * m for m in down] + ([np.sqrt(e) * m for m in up] if e else [])
    return kraus(parts, "amplitude damping")


def phase_damping(gamma: float) -> Channel:
    """Coherences times sqrt(1 - gamma)."""
    g = _probability(gamma, "gamma")
    return kraus([np.diag([1, np.sqrt(1 - g)]), np.diag([0, np.sqrt(g)])], "phase damping")


def thermal_relaxation(t1: float, t2: float, time: float, excited: float = 0.0) -> Channel:
    """Relaxation for `time`: populations decay with t1 (any unit, the same for all), coherences with t2.

    Raises:
        InputError: t2 > 2 t1, which no channel has, or times that are not positive.
    """
    if not (t1 > 0 and t2 > 0 and time >= 0):
        raise InputError("relaxation times are positive", got=(t1, t2, time))
    if t2 > 2 * t1:
        raise InputError("t2 cannot exceed 2 t1", got=f"t1={t1}, t2={t2}")
    damping = amplitude_damping(1 - np.exp(-time / t1), excited)
    # amplitude damping leaves exp(-t / 2 t1) of the coherence; pure dephasing supplies the rest
    rest = phase_damping(1 - np.exp(-2 * time * (1 / t2 - 1 / (2 * t1))))
    return kraus([b @ a for a in damping.kraus for b in rest.kraus], "thermal relaxation")
