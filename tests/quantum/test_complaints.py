"""What users of other simulators have reported, where no other test has it; docs/accuracy/quantum.md lists all of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.quantum import Circuit, expectation, hardware_efficient, pauli, probabilities, statevector, tfim, unitary

pytestmark = pytest.mark.usefixtures("x64")


def test_probabilities_of_all_qubits_have_a_gradient():
    """Silently zero elsewhere."""
    circuit = Circuit(2).ry("a", 0).cx(0, 1).rx("b", 1)
    at = np.array([0.4, 1.1])
    slopes = jax.jacobian(lambda p: probabilities(circuit, p))(at)
    h = 1e-6
    for k, step in enumerate(np.eye(2) * h):
        wanted = (np.asarray(probabilities(circuit, at + step)) - np.asarray(probabilities(circuit, at - step))) / (
            2 * h
        )
        np.testing.assert_allclose(slopes[:, k], wanted, atol=1e-9)
    assert np.abs(slopes).max() > 0.1


@pytest.mark.parametrize("backend", ["auto", "xla"])
def test_a_fused_chain_on_one_qubit_is_the_product_of_its_matrices(backend):
    """A simulator's fusion of ry rz sx rz sx rz was wrong."""
    angles = np.pi * np.array([-0.5, 0.25, 0.75, 0.5])
    chain = Circuit(1).ry(angles[0], 0).rz(angles[1], 0).sx(0).rz(angles[2], 0).sx(0).rz(angles[3], 0)
    single = [Circuit(1).ry(angles[0], 0), *(Circuit(1).rz(a, 0) for a in angles[1:])]
    y, first, second, third = (np.asarray(unitary(c)) for c in single)
    half = np.asarray(unitary(Circuit(1).sx(0)))
    wanted = third @ half @ second @ half @ first @ y
    np.testing.assert_allclose(statevector(chain, backend=backend), wanted[:, 0], atol=1e-14)


def test_a_deep_circuit_needs_no_recursion():
    circuit = Circuit(1)
    for k in range(3000):
        circuit = circuit + Circuit(1).rx("a" if k % 2 else 0.001, 0)
    assert abs(expectation(circuit, pauli("Z0"), [0.002]) - np.cos(1500 * 0.003)) < 1e-10


def test_no_state_is_left_behind():
    """An energy does not depend on what was run before it."""
    circuit, h = hardware_efficient(3, 2), tfim(3)
    p = np.random.default_rng(0).uniform(0, 3, 12)
    first = jax.value_and_grad(lambda v: expectation(circuit, h, v))(p)
    statevector(circuit, p)
    second = jax.value_and_grad(lambda v: expectation(circuit, h, v))(p)
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])


def test_every_parameter_set_of_a_compiled_batch_is_used():
    circuit = Circuit(1).rx("a", 0)
    sets = jnp.asarray([[0.1], [0.7], [2.0]])
    got = jax.jit(jax.vmap(lambda p: expectation(circuit, pauli("Z0"), p)))(sets)
    np.testing.assert_allclose(got, np.cos(sets[:, 0]), atol=1e-14)


def test_an_encoder_and_an_ansatz_that_share_a_name_share_a_parameter_or_are_renamed():
    encoder, ansatz = Circuit(1).rx("a", 0), Circuit(1).ry("a", 0)
    assert (encoder + ansatz).names == ("a",)
    both = encoder + ansatz.rename(lambda name: f"w_{name}")
    assert both.names == ("a", "w_a")
    with pytest.raises(InputError):
        expectation(both, pauli("Z0"), [0.1])
