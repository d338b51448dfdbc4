"""Qubit 0 is the least significant bit; what leaves for, or comes from, the other convention says so."""

import jax
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError
from sciax.quantum import Circuit, counts, probabilities, reorder, sample, statevector, unitary
from sciax.quantum.qasm import from_qasm, read_qasm, to_qasm

CIRCUIT = Circuit(3).h(0).cx(0, 2).ry(0.4, 1).rzz(0.7, 1, 2)


def _reversed_index(n):
    return np.array([int(f"{k:0{n}b}"[::-1], 2) for k in range(1 << n)])


def test_reordering_states_and_matrices():
    index = _reversed_index(3)
    psi, u = np.asarray(statevector(CIRCUIT)), np.asarray(unitary(CIRCUIT))
    np.testing.assert_array_equal(reorder(psi, order="big"), psi[index])
    np.testing.assert_array_equal(reorder(u, order="big"), u[np.ix_(index, index)])
    np.testing.assert_array_equal(reorder(reorder(u, order="big"), order="big"), u)
    np.testing.assert_array_equal(reorder(psi, order="little"), psi)
    # |q0 q1 q2> = |100> is the fifth basis state for those who read from the left
    assert int(np.argmax(reorder(probabilities(Circuit(3).x(0)), order="big"))) == 4


def test_printed_outcomes():
    bits = sample(Circuit(3).x(0), shots=3, key=jax.random.key(0))
    assert counts(bits) == {"001": 3} and counts(bits, order="big") == {"100": 3}


def test_programs_in_the_other_order(tmp_path):
    text = to_qasm(CIRCUIT, order="big")
    index = _reversed_index(3)
    u = np.asarray(unitary(CIRCUIT))
    np.testing.assert_allclose(unitary(from_qasm(text, order="big")), u, atol=1e-13)
    np.testing.assert_allclose(unitary(from_qasm(text)), u[np.ix_(index, index)], atol=1e-13)
    (tmp_path / "a.qasm").write_text(to_qasm(Circuit(2).x(0)))
    assert read_qasm(tmp_path / "a.qasm", order="big").gates[0].targets == (1,)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: reorder(np.ones(4), order="msb"), InputError, "little"),
        (lambda: counts(np.zeros((1, 1), bool), order="up"), InputError, "unknown order"),
        (lambda: to_qasm(CIRCUIT, order=None), InputError, "unknown order"),
        (lambda: from_qasm("OPENQASM 2.0;", order="x"), InputError, "unknown order"),
        (lambda: reorder(np.ones(3), order="big"), ShapeError, "qubits"),
        (lambda: reorder(np.ones((2, 4)), order="big"), ShapeError, "qubits"),
        # rounding would send a gate to another qubit, silently
        (lambda: Circuit(2).x(0.5), InputError, "whole number"),
        (lambda: Circuit(2).cx(0.7, 1), InputError, "whole number"),
        (lambda: Circuit(2).measure([0, True]), InputError, "whole number"),
        (lambda: Circuit(2).x("1"), InputError, "whole number"),
        (lambda: Circuit(2).custom(lambda t: np.eye(4), ("a",), 0), InputError, r"\(4, 4\)"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_several_qubits_are_reset():
    values = probabilities(Circuit(3).x(0).x(1).x(2).reset((0, 2)))
    np.testing.assert_allclose(values, np.eye(8)[0b010], atol=1e-14)
