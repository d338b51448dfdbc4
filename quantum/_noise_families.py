"""Noise channels whose strengths are parameters of the circuit."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np

PAULIS = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, -1j], [1j, 0]], [[1, 0], [0, -1]]], complex)


def _pauli(px, py, pz):
    return [1 - px - py - pz, px, py, pz], [jnp.asarray(m) for m in PAULIS]


def _depolarising(p, num_qubits: int = 1):
    matrices = []
    for letters in product(range(4), repeat=num_qubits):
        m = np.eye(1)
        for letter in letters:
            m = np.kron(PAULIS[letter], m)
        matrices.append(jnp.asarray(m))
    count = len(matrices)
    return [1 - p, *[p / (count - 1)] * (count - 1)], matrices


def _diagonal(a, b):
    one = jnp.ones_like(b * a)
    return jnp.stack([jnp.stack([a * one, 0 * one]), jnp.stack([0 * one, b * one])])


def _amplitude(gamma, excited):
    keep = jnp.sqrt(1 - gamma)
    down, up = np.array([[0.0, 1], [0, 0]]), np.array([[0.0, 0], [1, 0]])
    weights = [1 - excited, (1 - excited) * gamma, excited, excited * gamma]
    return weights, [_diagonal(1.0, keep), jnp.asarray(down), _diagonal(keep, jnp.ones_like(keep)), jnp.asarray(up)]


def _phase(gamma):
    return [jnp.ones_like(gamma), gamma], [_diagonal(1.0, jnp.sqrt(1 - gamma)), jnp.asarray(np.diag([0.0, 1]))]


def _thermal(t1, t2, time, excited):
    # amplitude damping leaves exp(-t / 2 t1) of the coherence; pure dephasing supplies the rest
    w, m = _amplitude(-jnp.expm1(-time / t1), excited)
    v, k = _phase(-jnp.expm1(-2 * time * (1 / t2 - 1 / (2 * t1))))
    return [a * b for a in w for b in v], [b @ a for a in m for b in k]


FAMILIES: dict[str, Callable[..., Any]] = {
    "pauli": _pauli,
    "depolarising": _depolarising,
    "amplitude damping": _amplitude,
    "phase damping": _phase,
    "thermal relaxation": _thermal,
}
"""Weights w_k and matrices M_k of K_k = sqrt(w_k) M_k: the map is linear in w, so its derivative exists where a weight is zero."""


@dataclass(frozen=True)
class Family:
    """A channel up to its strengths; static, part of the circuit's structure."""

    name: str
    num_qubits: int


@dataclass(frozen=True, eq=False)
class NamedChannel:
    """A channel with strengths that are symbols, expressions or traced numbers; see `depolarising` and the others."""

    family: Family
    strengths: tuple[Any, ...]

    @property
    def num_qubits(self) -> int:
        return self.family.num_qubits


@dataclass(frozen=True)
class PlacedFamily:
    """A family whose strengths are angles of a lowered circuit."""

    family: Family
    slots: tuple[int, ...]

    @property
    def num_qubits(self) -> int:
        return self.family.num_qubits

    def _parts(self, angles, dtype):
        own = [angles[k] for k in self.slots]
        function = FAMILIES[self.family.name]
        if self.family.name == "depolarising":
            weights, matrices = function(*own, num_qubits=self.num_qubits)
        else:
            weights, matrices = function(*own)
        w = jnp.stack([jnp.asarray(v, own[0].dtype) for v in weights])
        # a strength outside its range makes no channel: NaN instead of a number that looks like one
        w = jnp.where(jnp.all(w >= 0), w, jnp.nan)
        return w, jnp.stack([jnp.asarray(m).astype(dtype) for m in matrices])

    def kraus_at(self, angles, dtype):
        """(K, d, d) Kraus matrices."""
        w, m = self._parts(angles, dtype)
        return jnp.sqrt(w)[:, None, None].astype(dtype) * m

    def superoperator_at(self, angles, dtype):
        """sum_k w_k M_k (x) conj(M_k)."""
        w, m = self._parts(angles, dtype)
        d = m.shape[-1]
        return jnp.einsum("k,kab,kcd->acbd", w.astype(dtype), m, jnp.conj(m)).reshape(d * d, d * d)
