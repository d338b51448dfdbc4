"""Fermion operators and their encodings in qubits: Jordan-Wigner, parity, Bravyi-Kitaev.

All three are linear: the qubits hold A n modulo 2 for the occupations n and an invertible binary matrix A. Then the ladder
operators are a_p = (X^U Z^P - X^U Z^{P+F}) / 2 and its conjugate, where U is column p of A (what an occupation flips), F row p
of A^-1 (what tells the occupation) and P the sum of its rows below p (what tells the parity below p).
Sources: P. Jordan, E. Wigner 1928; J. Seeley, M. Richard, P. Love 2012.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from sciax.core.errors import InputError, did_you_mean
from sciax.quantum._pauli import PauliSum

ENCODINGS = ("jordan_wigner", "parity", "bravyi_kitaev")
Ladder = tuple[int, int]


@lru_cache(maxsize=64)
def encoding_matrix(encoding: str, modes: int) -> np.ndarray:
    """The binary matrix A of an encoding, read-only.

    Raises:
        InputError: an unknown encoding, or more than 62 modes.
    """
    if encoding not in ENCODINGS:
        raise InputError(f"unknown encoding {encoding!r}", remedy=did_you_mean(encoding, ENCODINGS))
    if not 0 <= modes <= 62:
        raise InputError("number of modes out of range", got=modes, expected="0..62")
    if encoding == "jordan_wigner":
        a = np.eye(modes, dtype=np.int64)
    elif encoding == "parity":
        a = np.tril(np.ones((modes, modes), np.int64))
    else:  # a Fenwick tree: qubit j holds the sum of the occupations j - lowbit(j + 1) + 1 .. j
        j = np.arange(modes)
        low = (j + 1) & -(j + 1)
        a = ((j[None] <= j[:, None]) & (j[None] > j[:, None] - low[:, None])).astype(np.int64)
    a.setflags(write=False)
    return a


@lru_cache(maxsize=64)
def _masks(encoding: str, modes: int):
    """(U, P, F) bit masks for every mode."""
    a = encoding_matrix(encoding, modes)
    inverse = np.rint(np.linalg.inv(a)).astype(np.int64) % 2 if modes else a
    weight = np.int64(1) << np.arange(modes, dtype=np.int64)
    flips = weight @ a if modes else np.zeros(0, np.int64)
    occupation = inverse @ weight if modes else np.zeros(0, np.int64)
    below = np.zeros(modes, np.int64)
    for p in range(1, modes):
        below[p] = below[p - 1] ^ occupation[p - 1]
    return flips, below, occupation


def encode_products(modes, daggers, coefficients, num_modes: int, encoding: str = "jordan_wigner") -> PauliSum:
    """sum_k c_k prod_j a_{modes[k, j]}^(dagger if daggers[k, j]), encoded.

    Args:
        modes: (K, length) mode numbers, leftmost factor first.
        daggers: (K, length) booleans.
        coefficients: (K,).
    """
    modes, daggers = np.asarray(modes, np.int64), np.asarray(daggers, bool)
    count, length = modes.shape
    if modes.size and (modes.min() < 0 or modes.max() >= num_modes):
        raise InputError(
            "a fermion operator acts outside its modes", got=int(modes.max()), expected=f"0..{num_modes - 1}"
        )
    flips, below, occupation = _masks(encoding, num_modes)
    # Products in the raw form c X^x Z^z: (X^a Z^b)(X^c Z^d) = (-1)^{b.c} X^{a+c} Z^{b+d}.
    x, z = np.zeros((count, 1), np.int64), np.zeros((count, 1), np.int64)
    c = np.asarray(coefficients, np.complex128).reshape(count, 1)
    for j in range(length):
        m = modes[:, j]
        fx = np.stack([flips[m], flips[m]], 1)
        fz = np.stack([below[m], below[m] ^ occupation[m]], 1)
        fc = np.stack([np.full(count, 0.5), np.where(daggers[:, j], 0.5, -0.5)], 1)
        sign = 1 - 2.0 * (np.bitwise_count(z[:, :, None] & fx[:, None]) & 1)
        c = (c[:, :, None] * fc[:, None] * sign).reshape(count, -1)
        x, z = (x[:, :, None] ^ fx[:, None]).reshape(count, -1), (z[:, :, None] ^ fz[:, None]).reshape(count, -1)
    # a string with y letters Y is i^y X^x Z^z
    c = c * np.array([1, -1j, -1, 1j])[np.bitwise_count(x & z) % 4]
    return PauliSum.from_masks(x.ravel(), z.ravel(), c.ravel(), num_qubits=num_modes)


class FermionSum:
    """sum_k c_k products of ladder operators: {"2^ 0": 0.5} is 0.5 a^dagger_2 a_0.

    Raises:
        InputError: a product that cannot be read.
    """

    def __init__(self, terms: Mapping[Any, complex] | None = None):
        self.terms: dict[tuple[Ladder, ...], complex] = {}
        for key, c in (terms or {}).items():
            product = _parse(key) if isinstance(key, str) else tuple(key)
            self.terms[product] = self.terms.get(product, 0) + c

    @property
    def num_modes(self) -> int:
        return max((m + 1 for product in self.terms for m, _ in product), default=0)

    def __add__(self, other: "FermionSum | complex") -> "FermionSum":
        other = other if isinstance(other, FermionSum) else FermionSum({(): other})
        out = FermionSum(self.terms)
        for key, c in other.terms.items():
            out.terms[key] = out.terms.get(key, 0) + c
        return out

    def __mul__(self, other: "FermionSum | complex") -> "FermionSum":
        out = FermionSum()
        if not isinstance(other, FermionSum):
            out.terms = {k: c * other for k, c in self.terms.items()}
            return out
        for a, ca in self.terms.items():
            for b, cb in other.terms.items():
                out.terms[a + b] = out.terms.get(a + b, 0) + ca * cb
        return out

    def __rmul__(self, factor: complex) -> "FermionSum":
        return self * factor

    def __sub__(self, other: "FermionSum | complex") -> "FermionSum":
        return self + (other * -1)

    def dagger(self) -> "FermionSum":
        """The Hermitian conjugate."""
        out = FermionSum()
        for product, c in self.terms.items():
            key = tuple((m, 1 - d) for m, d in reversed(product))
            out.terms[key] = out.terms.get(key, 0) + complex(c).conjugate()
        return out

    def encode(self, encoding: str = "jordan_wigner", num_modes: int | None = None) -> PauliSum:
        """As a Pauli sum.

        Raises:
            InputError: an unknown encoding, or too few modes.
        """
        n = self.num_modes if num_modes is None else num_modes
        out = PauliSum(num_qubits=n)
        encoding_matrix(encoding, n)
        for length in sorted({len(p) for p in self.terms}):
            chosen = [(p, c) for p, c in self.terms.items() if len(p) == length]
            modes = np.array([[m for m, _ in p] for p, _ in chosen]).reshape(len(chosen), length)
            daggers = np.array([[d for _, d in p] for p, _ in chosen]).reshape(len(chosen), length)
            out = out + encode_products(modes, daggers, [c for _, c in chosen], n, encoding)
        return out.simplify(0.0)


def _parse(text: str) -> tuple[Ladder, ...]:
    out = []
    for word in text.split():
        digits = word.removesuffix("^")
        if not digits.isdigit():
            raise InputError("cannot read a product of ladder operators", got=repr(text), expected='such as "2^ 0"')
        out.append((int(digits), int(word.endswith("^"))))
    return tuple(out)


def encode_occupation(occupied: list[int], num_modes: int, encoding: str = "jordan_wigner") -> int:
    """The basis state (as an index) of an occupation."""
    n = np.zeros(num_modes, np.int64)
    n[occupied] = 1
    bits = encoding_matrix(encoding, num_modes) @ n % 2
    return int(sum(int(b) << k for k, b in enumerate(bits)))
