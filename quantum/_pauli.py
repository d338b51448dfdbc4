"""Sums of Pauli strings."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops.gates import PauliTerms

_FACTOR = re.compile(r"([IXYZ])(\d+)")
_MAX_DENSE = 10


class PauliSum:
    """sum_k c_k P_k, the strings stored as bit masks and sorted, so that the X mask groups them.

        ising = PauliSum({"Z0 Z1": -1.0, "X0": -0.5, "X1": -0.5})
        h = 0.5 * pauli("X0 Y3") + 1.0

    Supports + - * (by numbers and by sums) and is a JAX pytree whose leaf is the coefficients.

    Attributes:
        x, z: (K,) int64 masks; bit q set in x: the string has X or Y on qubit q; in z: Z or Y.
        coefficients: (K,) complex128 or, when made from traced numbers, a JAX array.
        num_qubits: smallest register that holds every string, or more.

    Raises:
        InputError: a string that cannot be read, a coefficient that is not finite.
    """

    def __init__(self, terms: Mapping[str, Any] | None = None, *, num_qubits: int = 0):
        x, z, values = [], [], []
        for text, coefficient in (terms or {}).items():
            mx, mz = parse_string(text)
            x.append(mx)
            z.append(mz)
            values.append(coefficient)
        if any(isinstance(v, jax.Array) for v in values):
            coefficients: Any = jnp.stack([jnp.asarray(v) for v in values])
        else:
            coefficients = np.array(values, np.complex128)
            if not np.all(np.isfinite(coefficients)):
                raise InputError("a coefficient of a Pauli sum is not finite")
        self._set(np.array(x, np.int64), np.array(z, np.int64), coefficients, num_qubits)

    def _set(self, x, z, coefficients, num_qubits):
        order = np.lexsort((z, x))
        same = bool(np.array_equal(order, np.arange(len(order))))
        self.x, self.z = (x, z) if same else (x[order], z[order])
        self.coefficients = coefficients if same else coefficients[order]
        widest = int(max((x | z).max(initial=0), 0)).bit_length()
        self.num_qubits = max(num_qubits, widest)

    @classmethod
    def from_masks(cls, x, z, coefficients, *, num_qubits: int = 0) -> "PauliSum":
        """From masks; equal strings are added up when the coefficients are NumPy arrays."""
        x, z = np.asarray(x, np.int64).reshape(-1), np.asarray(z, np.int64).reshape(-1)
        out = object.__new__(cls)
        if not isinstance(coefficients, jax.Array):
            coefficients = np.asarray(coefficients, np.complex128).reshape(-1)
            if x.size:
                order = np.lexsort((z, x))
                x, z, coefficients = x[order], z[order], coefficients[order]
                first = np.append(True, (x[1:] != x[:-1]) | (z[1:] != z[:-1]))
                coefficients = np.add.reduceat(coefficients, np.flatnonzero(first))
                x, z = x[first], z[first]
        out._set(x, z, coefficients, num_qubits)
        return out

    # -- algebra

    def __add__(self, other: "PauliSum | complex") -> "PauliSum":
        other = _as_sum(other)
        parts = (self.coefficients, other.coefficients)
        module = jnp if any(isinstance(p, jax.Array) for p in parts) else np
        return PauliSum.from_masks(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.z, other.z]),
            module.concatenate(parts),
            num_qubits=max(self.num_qubits, other.num_qubits),
        )

    def __mul__(self, other: "PauliSum | complex") -> "PauliSum":
        if not isinstance(other, PauliSum):
            return PauliSum.from_masks(self.x, self.z, self.coefficients * other, num_qubits=self.num_qubits)
        x1, z1, x2, z2 = self.x[:, None], self.z[:, None], other.x[None], other.z[None]
        x, z = x1 ^ x2, z1 ^ z2
        y = np.bitwise_count(x1 & z1).astype(int) + np.bitwise_count(x2 & z2) - np.bitwise_count(x & z)
        phase = np.array([1, 1j, -1, -1j])[(y + 2 * np.bitwise_count(z1 & x2)) % 4]
        c = (self.coefficients[:, None] * other.coefficients[None]) * phase
        return PauliSum.from_masks(x, z, c.reshape(-1), num_qubits=max(self.num_qubits, other.num_qubits))

    def __rmul__(self, factor: complex) -> "PauliSum":
        return self * factor

    def __radd__(self, other: complex) -> "PauliSum":
        return self + other

    def __neg__(self) -> "PauliSum":
        return self * -1.0

    def __sub__(self, other: "PauliSum | complex") -> "PauliSum":
        return self + -_as_sum(other)

    def __rsub__(self, other: complex) -> "PauliSum":
        return -self + other

    def __truediv__(self, divisor: complex) -> "PauliSum":
        return self * (1.0 / divisor)

    def dagger(self) -> "PauliSum":
        """The Hermitian conjugate."""
        module = jnp if isinstance(self.coefficients, jax.Array) else np
        return PauliSum.from_masks(self.x, self.z, module.conj(self.coefficients), num_qubits=self.num_qubits)

    def simplify(self, threshold: float = 1e-12) -> "PauliSum":
        """Without terms whose coefficient is at most `threshold` in magnitude."""
        keep = np.abs(np.asarray(self.coefficients)) > threshold
        return PauliSum.from_masks(self.x[keep], self.z[keep], self.coefficients[keep], num_qubits=self.num_qubits)

    # -- looking at it

    def __len__(self) -> int:
        return len(self.x)

    @property
    def num_groups(self) -> int:
        """Number of distinct X masks: what applying the sum costs."""
        return len(np.unique(self.x))

    @property
    def terms(self) -> dict[str, Any]:
        """Coefficient by string."""
        return {format_string(int(x), int(z)): c for x, z, c in zip(self.x, self.z, self.coefficients)}

    def __repr__(self) -> str:
        return f"PauliSum({len(self)} terms, {self.num_qubits} qubits)"

    def __str__(self) -> str:
        def number(c):
            c = complex(c)
            return f"{c.real:.10g}" if c.imag == 0 else f"({c:.10g})"

        return " + ".join(f"{number(c)} {text or 'I'}" for text, c in self.terms.items()) or "0"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PauliSum):
            return NotImplemented
        same = np.array_equal(self.x, other.x) and np.array_equal(self.z, other.z)
        return same and np.array_equal(np.asarray(self.coefficients), np.asarray(other.coefficients))

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    # -- what the simulators take

    def hermitian_terms(self, num_qubits: int) -> tuple[PauliTerms, Any]:
        """(static strings, real coefficients) on a register.

        Raises:
            InputError: not Hermitian, or wider than the register.
        """
        if self.num_qubits > num_qubits:
            raise InputError(
                "the observable acts outside the circuit", got=f"{self.num_qubits} qubits", expected=num_qubits
            )
        c = self.coefficients
        if not isinstance(c, jax.Array):
            scale = np.abs(c).max(initial=0.0)
            if np.abs(c.imag).max(initial=0.0) > 1e-10 * max(scale, 1.0):
                raise InputError("the observable is not Hermitian", got="complex coefficients", expected="real ones")
            c = c.real
        return PauliTerms.of(num_qubits, self.x, self.z), jnp.real(c) if isinstance(c, jax.Array) else c

    def matrix(self, num_qubits: int | None = None) -> np.ndarray:
        """The dense matrix, for small registers.

        Raises:
            UnsupportedError: more than 10 qubits.
        """
        n = self.num_qubits if num_qubits is None else num_qubits
        if n > _MAX_DENSE:
            raise UnsupportedError(
                f"a dense Pauli sum of {n} qubits is refused",
                expected=f"at most {_MAX_DENSE}",
                remedy="use operator() with scipy",
            )
        return np.asarray(self.operator(n) @ np.eye(1 << n, dtype=complex))

    def operator(self, num_qubits: int | None = None):
        """A scipy LinearOperator: one permuted multiply a distinct X mask."""
        from scipy.sparse.linalg import LinearOperator

        n = self.num_qubits if num_qubits is None else num_qubits
        index = np.arange(1 << n)
        c = np.asarray(self.coefficients) * np.array([1, -1j, -1, 1j])[np.bitwise_count(self.x & self.z) % 4]
        groups = []
        for x in np.unique(self.x):
            diagonal = np.zeros(1 << n, complex)
            for k in np.flatnonzero(self.x == x):
                diagonal += c[k] * (1 - 2.0 * (np.bitwise_count(index & self.z[k]) & 1))
            groups.append((index ^ x, diagonal))

        def apply(v):
            v = v.reshape(1 << n, -1)
            out = np.zeros(v.shape, complex)
            for permuted, diagonal in groups:
                out += diagonal[:, None] * v[permuted]
            return out

        adjoint = (lambda v: self.dagger().operator(n) @ v) if self.coefficients is not None else None
        return LinearOperator((1 << n, 1 << n), matvec=apply, matmat=apply, rmatvec=adjoint, dtype=complex)  # pyright: ignore

    def ground_state(self, num_qubits: int | None = None) -> tuple[float, np.ndarray]:
        """Lowest eigenvalue and eigenvector, dense or by Lanczos iteration.

        Raises:
            InputError: not Hermitian.
        """
        n = self.num_qubits if num_qubits is None else num_qubits
        self.hermitian_terms(n)
        if n <= 8:
            values, vectors = np.linalg.eigh(self.matrix(n))
            return float(values[0]), vectors[:, 0]
        from scipy.sparse.linalg import eigsh

        start = np.random.default_rng(0).normal(size=1 << n).astype(complex)
        values, vectors = eigsh(self.operator(n), k=1, which="SA", v0=start)
        return float(values[0]), vectors[:, 0]


def pauli(text: str, coefficient: Any = 1.0) -> PauliSum:
    """One string, such as "X0 Z2 Y5"; the empty string is the identity."""
    return PauliSum({text: coefficient})


def parse_string(text: str) -> tuple[int, int]:
    """Masks of a string of factors.

    Raises:
        InputError: not of the form "X0 Z2", or a qubit named twice or beyond 62.
    """
    x = z = seen = 0
    for word in text.split():
        match = _FACTOR.fullmatch(word)
        if not match:
            raise InputError("cannot read a Pauli string", got=repr(text), expected='factors such as "X0 Z2 Y5"')
        letter, q = match[1], int(match[2])
        if q > 62:
            raise InputError("a Pauli string names a qubit beyond 62", got=q)
        if seen >> q & 1:
            raise InputError("a Pauli string names a qubit twice", got=repr(text))
        seen |= 1 << q
        x |= (letter in "XY") << q
        z |= (letter in "YZ") << q
    return x, z


def format_string(x: int, z: int) -> str:
    """The string of two masks."""
    letters = " XZY"
    return " ".join(
        f"{letters[(x >> q & 1) | (z >> q & 1) << 1]}{q}" for q in range(max(x | z, 1).bit_length()) if (x | z) >> q & 1
    )


def pauli_from_list(terms: Iterable[tuple[str, complex]]) -> PauliSum:
    """From (string, coefficient) pairs; equal strings are added up."""
    pairs = [(*parse_string(t), c) for t, c in terms]
    x, z, c = (np.array(v) for v in zip(*pairs)) if pairs else (np.zeros(0), np.zeros(0), np.zeros(0))
    return PauliSum.from_masks(x.astype(np.int64), z.astype(np.int64), c)


def _as_sum(value) -> PauliSum:
    return value if isinstance(value, PauliSum) else PauliSum({"": value})


def _flatten(p: PauliSum):
    return (p.coefficients,), (p.x.tobytes(), p.z.tobytes(), p.num_qubits)


def _unflatten(static, leaves) -> PauliSum:
    out = object.__new__(PauliSum)
    out.x, out.z = (np.frombuffer(b, np.int64) for b in static[:2])
    out.num_qubits, out.coefficients = static[2], leaves[0]
    return out


jax.tree_util.register_pytree_node(PauliSum, _flatten, _unflatten)
