"""Every gate of the table against its matrix written out, on any target order, with controls, in both back ends."""

import jax
import numpy as np
import pytest
import scipy.linalg as sl

from sciax.core.errors import InputError, UnsupportedError
from sciax.quantum import Circuit, expectation, pauli, statevector, symbol, unitary

_PAULI = {
    "I": np.eye(2, dtype=complex),
    "X": np.array([[0, 1], [1, 0]], complex),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]).astype(complex),
}
A, B, C = 0.7, -1.3, 2.1
i = 1j
X, Y, Z = (_PAULI[k] for k in "XYZ")


def rot(*pairs):
    return sl.expm(-0.5j * sum(a * p for a, p in pairs))


def pair(block, corner=1.0):
    """4x4 with `block` on (|01>, |10>); index = 2 * second + first."""
    m = np.eye(4, dtype=complex)
    m[1:3, 1:3] = block
    m[3, 3] = corner
    return m


def u3(t, p, l):
    c, s = np.cos(t / 2), np.sin(t / 2)
    return np.array([[c, -np.exp(i * l) * s], [np.exp(i * p) * s, np.exp(i * (p + l)) * c]])


def two(first, second):
    return np.kron(_PAULI[second], _PAULI[first])


CASES = {
    "id": ((), np.eye(2)),
    "x": ((), X),
    "y": ((), Y),
    "z": ((), Z),
    "h": ((), (X + Z) / np.sqrt(2)),
    "s": ((), np.diag([1, i])),
    "sdg": ((), np.diag([1, -i])),
    "t": ((), np.diag([1, np.exp(i * np.pi / 4)])),
    "tdg": ((), np.diag([1, np.exp(-i * np.pi / 4)])),
    "sx": ((), sl.sqrtm(X)),
    "sxdg": ((), np.linalg.inv(sl.sqrtm(X))),
    "rx": ((A,), rot((A, X))),
    "ry": ((A,), rot((A, Y))),
    "rz": ((A,), rot((A, Z))),
    "p": ((A,), np.diag([1, np.exp(i * A)])),
    "u2": ((A, B), u3(np.pi / 2, A, B)),
    "u3": ((A, B, C), u3(A, B, C)),
    "rn": ((A, B, C), rot((A, X), (B, Y), (C, Z))),
    "swap": ((), pair([[0, 1], [1, 0]])),
    "iswap": ((), pair([[0, i], [i, 0]])),
    "iswapdg": ((), pair([[0, -i], [-i, 0]])),
    "swapalpha": ((A,), sl.expm(i * np.pi * A / 2 * (np.eye(4) - pair([[0, 1], [1, 0]])))),
    "fsim": ((A, B), pair([[np.cos(A), -i * np.sin(A)], [-i * np.sin(A), np.cos(A)]], np.exp(-i * B))),
    "givens": ((A,), pair([[np.cos(A), -np.sin(A)], [np.sin(A), np.cos(A)]])),
    **{f"r{a}{b}".lower(): ((A,), sl.expm(-0.5j * A * two(a, b))) for a in "XYZ" for b in "XYZ" if a <= b},
}


@pytest.mark.parametrize("name", CASES)
def test_matrix_targets_and_controls(name, embed):
    angles, matrix = CASES[name]
    k = (len(matrix) - 1).bit_length()
    targets = {1: (2,), 2: (3, 1)}[k]
    circuit = Circuit(4).gate(name, targets, angles)
    np.testing.assert_allclose(unitary(circuit), embed(matrix, targets, 4), atol=1e-14)
    controlled = Circuit(5).gate(name, targets, angles, controls=0, negative=4)
    expected = embed(matrix, targets, 5, [(0, 1), (4, 0)])
    np.testing.assert_allclose(unitary(controlled), expected, atol=1e-14)
    np.testing.assert_allclose(unitary(circuit.control(0).remap([0, 1, 2, 3], 5).control(4, 0)), expected, atol=1e-14)
    np.testing.assert_allclose(unitary(controlled, backend="xla"), expected, atol=1e-14)
    np.testing.assert_allclose(unitary(controlled + controlled.inverse()), np.eye(32), atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_half_power_squares_to_the_gate(name):
    angles, matrix = CASES[name]
    k = (len(matrix) - 1).bit_length()
    circuit = Circuit(k).gate(name, tuple(range(k)), angles)
    if name in ("u2", "u3"):
        with pytest.raises(UnsupportedError):
            circuit.power(0.5)
        return
    half = unitary(circuit.power(0.5))
    np.testing.assert_allclose(half @ half, matrix, atol=1e-13)
    np.testing.assert_allclose(unitary(circuit.power(-2)), np.linalg.matrix_power(np.linalg.inv(matrix), 2), atol=1e-13)


@pytest.mark.parametrize("letters", ["XYZ", "ZIZ", "YYX", "IXI", "III", "YYY"])
def test_pauli_rotation(letters, embed, string_matrix):
    expected = embed(sl.expm(-0.5j * A * string_matrix(letters)), (0, 2, 3), 4)
    np.testing.assert_allclose(unitary(Circuit(4).rp(A, letters, (0, 2, 3))), expected, atol=1e-14)
    # identities listed or not make no difference to the gradient
    c = Circuit(4).h(0).ry(0.3, 2).rp("a", letters, (0, 2, 3))
    bare = [(p, q) for p, q in zip(letters, (0, 2, 3)) if p != "I"]
    observable = pauli("Y0 Z2") + pauli("X2")
    g = jax.grad(lambda p: expectation(c, observable, p))(np.array([0.4]))
    if bare:
        d = Circuit(4).h(0).ry(0.3, 2).rp("a", "".join(p for p, _ in bare), [q for _, q in bare])
        np.testing.assert_allclose(g, jax.grad(lambda p: expectation(d, observable, p))(np.array([0.4])), atol=1e-14)


def test_global_phase_becomes_relative_under_a_control():
    np.testing.assert_allclose(unitary(Circuit(1).gphase(A)), np.exp(i * A) * np.eye(2), atol=1e-15)
    np.testing.assert_allclose(unitary(Circuit(1).gphase(A).control(0)), np.diag([1, np.exp(i * A)]), atol=1e-15)
    # rz is p up to a phase; controlled, they differ
    assert not np.allclose(unitary(Circuit(2).rz(A, 0).control(1)), unitary(Circuit(2).p(A, 0).control(1)))
    np.testing.assert_allclose(
        unitary(Circuit(2).rz(A, 0).gphase(A / 2).control(1)), unitary(Circuit(2).p(A, 0).control(1)), atol=1e-14
    )


def test_custom_gates_of_any_size(rng_unitary, embed):
    for k, targets in ((1, (2,)), (2, (2, 0)), (3, (1, 3, 0))):
        m = rng_unitary(1 << k)
        circuit = Circuit(5).h(0).unitary(m, targets, controls=4)
        expected = embed(m, targets, 5, [(4, 1)]) @ embed((X + Z) / np.sqrt(2), (0,), 5)
        np.testing.assert_allclose(unitary(circuit), expected, atol=1e-13)
        np.testing.assert_allclose(unitary(circuit + circuit.inverse()), np.eye(32), atol=1e-13)


def test_excitation_is_the_exponential_of_the_encoded_operator():
    from sciax.quantum import FermionSum

    for up, down in (((3,), (1,)), ((0,), (2,)), ((4, 2), (0, 1)), ((1, 4), (3, 0)), ((5, 3, 1), (0, 4, 2))):
        text = " ".join([f"{p}^" for p in up] + [f"{q}" for q in down])
        t = FermionSum({text: 1.0})
        generator = (t - t.dagger()).encode(num_modes=6).matrix(6)
        np.testing.assert_allclose(unitary(Circuit(6).excitation(A, up, down)), sl.expm(A * generator), atol=1e-13)


def test_qubit_zero_is_least_significant():
    assert np.argmax(np.abs(statevector(Circuit(3).x(0)))) == 1
    assert np.argmax(np.abs(statevector(Circuit(3).x(2)))) == 4


@pytest.mark.parametrize(
    "build, words",
    [
        (lambda: Circuit(2).x(2), "out of range"),
        (lambda: Circuit(2).cx(1, 1), "used twice"),
        (lambda: Circuit(2).rx(float("nan"), 0), "not finite"),
        (lambda: Circuit(2).gate("hadamard", 0), "unknown gate"),
        (lambda: Circuit(2).gate("rx", 0), "number of parameters"),
        (lambda: Circuit(2).gate("swap", 0), "number of target"),
        (lambda: Circuit(1).unitary([[1, 0], [0, 2]], 0), "not unitary"),
        (lambda: Circuit(1).unitary(np.eye(4), 0), "does not fit"),
        (lambda: Circuit(2).rp(0.1, "XQ", (0, 1)), "one letter"),
        (lambda: Circuit(2).excitation(0.1, (0,), (0,)), "between different orbitals"),
        (lambda: Circuit(-1), "number of qubits"),
        (lambda: symbol("a") * symbol("b"), "linear"),
        (lambda: Circuit(1).rx(symbol(""), 0), "name"),
    ],
)
def test_bad_input(build, words):
    with pytest.raises(InputError, match=words):
        build()
