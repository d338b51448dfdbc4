"""Helpers of the quantum tests."""

import numpy as np
import pytest

PAULI = {
    "I": np.eye(2, dtype=complex),
    "X": np.array([[0, 1], [1, 0]], complex),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]).astype(complex),
}


def _embed(matrix, targets, n, controls=()):
    """A matrix on `targets` (first the least significant) as a 2^n matrix, by index arithmetic alone."""
    size = 1 << n
    out = np.zeros((size, size), complex)
    for column in range(size):
        if any((column >> q & 1) != v for q, v in controls):
            out[column, column] = 1
            continue
        local = sum((column >> q & 1) << k for k, q in enumerate(targets))
        rest = column & ~sum(1 << q for q in targets)
        for row in range(1 << len(targets)):
            out[rest | sum((row >> k & 1) << q for k, q in enumerate(targets)), column] += matrix[row, local]
    return out


def _string_matrix(letters):
    """Kronecker product with letters[0] on qubit 0, the least significant."""
    out = np.eye(1)
    for letter in letters:
        out = np.kron(PAULI[letter], out)
    return out


@pytest.fixture(autouse=True)
def _wide(request):
    """Quantum tests run in complex128 unless marked otherwise by asking for the fixture `narrow`."""
    if "narrow" in request.fixturenames:
        yield
        return
    from sciax.core import x64

    with x64():
        yield


@pytest.fixture
def narrow():
    """Leave 64-bit arrays off."""


@pytest.fixture(scope="session")
def embed():
    return _embed


@pytest.fixture(scope="session")
def string_matrix():
    return _string_matrix


@pytest.fixture
def rng_unitary():
    """Random unitary matrices by size."""
    rng = np.random.default_rng(5)

    def make(size):
        q, r = np.linalg.qr(rng.normal(size=(size, size)) + 1j * rng.normal(size=(size, size)))
        return q * (np.diag(r) / np.abs(np.diag(r)))

    return make
