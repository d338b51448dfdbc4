"""Noise, measurement in the middle, classical control and sampling, against closed forms and each other."""

import jax
import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.quantum import (
    Circuit,
    amplitude_damping,
    bit_flip,
    bit_phase_flip,
    counts,
    density_matrix,
    depolarising,
    expectation,
    gradient,
    hardware_efficient,
    kraus,
    pauli,
    pauli_channel,
    phase_damping,
    phase_flip,
    probabilities,
    sample,
    statevector,
    tfim,
    thermal_relaxation,
    trajectories,
)

KEY = jax.random.key(0)
CHANNELS = {
    "pauli": pauli_channel(0.1, 0.2, 0.05),
    "bit": bit_flip(0.2),
    "phase": phase_flip(0.3),
    "bit_phase": bit_phase_flip(0.1),
    "depolarising": depolarising(0.15),
    "amplitude": amplitude_damping(0.3),
    "hot": amplitude_damping(0.3, 0.2),
    "phase_damping": phase_damping(0.4),
    "thermal": thermal_relaxation(50.0, 60.0, 20.0, 0.1),
    "two": depolarising(0.2, 2),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channel_is_its_kraus_sum(name, embed):
    channel = CHANNELS[name]
    targets = (2, 0)[: channel.num_qubits]
    psi = np.random.default_rng(4).normal(size=(8, 2)) @ [1, 1j]
    psi /= np.linalg.norm(psi)
    rho = np.outer(psi, psi.conj())
    expected = sum(embed(k, targets, 3) @ rho @ embed(k, targets, 3).conj().T for k in channel.kraus)
    # not compiled: one compilation a channel is nearly all that this test would cost
    with jax.disable_jit():
        got = density_matrix(Circuit(3).channel(channel, targets), initial=psi)
    np.testing.assert_allclose(got, expected, atol=1e-14)
    assert abs(np.trace(got) - 1) < 1e-14


def test_closed_forms():
    z, x = pauli("Z0"), pauli("X0")
    for p in (0.0, 0.1, 0.75):
        assert abs(expectation(Circuit(1).channel(depolarising(p), 0), z) - (1 - 4 * p / 3)) < 1e-14
    assert abs(expectation(Circuit(1).x(0).channel(amplitude_damping(0.3), 0), z) - (0.3 - 0.7)) < 1e-14
    assert abs(expectation(Circuit(1).h(0).channel(phase_damping(0.36), 0), x) - 0.8) < 1e-14
    relaxed = Circuit(1).x(0).channel(thermal_relaxation(50.0, 60.0, 20.0), 0)
    assert abs(expectation(relaxed, z) - (1 - 2 * np.exp(-20 / 50))) < 1e-14
    coherent = Circuit(1).h(0).channel(thermal_relaxation(50.0, 60.0, 20.0), 0)
    assert abs(expectation(coherent, x) - np.exp(-20 / 60)) < 1e-14
    assert abs(expectation(Circuit(1).h(0).reset(0), z) - 1) < 1e-14


def test_pure_circuits_agree_and_gradients_pass_through_noise(rng_unitary):
    circuit = hardware_efficient(3, 1)
    p = np.random.default_rng(0).uniform(0, 3, 6)
    pure = expectation(circuit, tfim(3), p)
    assert abs(expectation(circuit, tfim(3), p, backend="density") - pure) < 1e-13
    with_matrix = circuit.unitary(rng_unitary(4), (2, 0))
    psi = statevector(with_matrix, p)
    np.testing.assert_allclose(density_matrix(with_matrix, p), np.outer(psi, psi.conj()), atol=1e-14)
    noisy = circuit.channel(amplitude_damping(0.2), 1) + circuit.channel(depolarising(0.1), 0)
    np.testing.assert_allclose(
        gradient(noisy, tfim(3), p), gradient(noisy, tfim(3), p, method="finite_difference"), atol=1e-9
    )
    np.testing.assert_allclose(
        gradient(noisy, tfim(3), p, method="parameter_shift"), gradient(noisy, tfim(3), p), atol=1e-10
    )


def test_trajectories_agree_with_the_density_matrix():
    circuit = (
        Circuit(2)
        .ry(0.8, 0)
        .cx(0, 1)
        .channel(amplitude_damping(0.4), 0)
        .h(1)
        .channel(depolarising(0.2, 2), (0, 1))
        .ry(0.3, 1)
    )
    h = pauli("Z0 Z1") + 0.5 * pauli("X1")
    mean, error = trajectories(circuit, h, shots=4000, key=KEY)
    assert abs(mean - expectation(circuit, h)) < 4 * error and error < 0.02
    bits = np.asarray(sample(circuit, shots=4000, key=KEY))
    got = np.bincount(bits @ [1, 2], minlength=4) / 4000
    np.testing.assert_allclose(got, probabilities(circuit), atol=0.035)


def test_teleportation_always_gives_the_state():
    c = Circuit(3, 2).ry(1.1, 0).rz(0.4, 0).h(1).cx(1, 2).cx(0, 1).h(0).measure(0, 0).measure(1, 1)
    c = c.when((1,), 1, Circuit(3, 2).x(2)).when((0,), 1, Circuit(3, 2).z(2))
    for letter, value in (("X", np.sin(1.1) * np.cos(0.4)), ("Y", np.sin(1.1) * np.sin(0.4)), ("Z", np.cos(1.1))):
        mean, error = trajectories(c, pauli(f"{letter}2"), shots=64, key=KEY)
        assert abs(mean - value) < 1e-12 and error < 1e-12
    # all four outcomes come
    assert len(counts(sample(c, shots=64, key=KEY))) == 4


def test_measurement_in_the_middle():
    # measured twice, the outcomes agree; a reset qubit reads 0; a condition on a register reads both bits
    c = (
        Circuit(2, 4)
        .h(0)
        .measure(0, 0)
        .measure(0, 1)
        .h(1)
        .measure(1, 2)
        .reset(1)
        .when((0, 2), 3, Circuit(2, 4).x(1))
        .measure(1, 3)
    )
    bits = np.asarray(sample(c, shots=500, key=KEY))
    assert np.all(bits[:, 0] == bits[:, 1])
    assert np.all(bits[:, 3] == (bits[:, 0] & bits[:, 2]))
    assert 150 < bits[:, 0].sum() < 350
    np.testing.assert_allclose(
        probabilities(Circuit(1, 1).h(0).measure(0).h(0), backend="density"), [0.5, 0.5], atol=1e-14
    )


def test_sampling_frequencies_and_readout():
    ghz = Circuit(3).h(0).cx(0, 1).cx(1, 2)
    got = counts(sample(ghz, shots=2000, key=KEY))
    assert set(got) == {"000", "111"} and abs(got["000"] - 1000) < 130
    ones = np.asarray(sample(Circuit(1).x(0), shots=4000, key=KEY, readout=(0.0, 0.25)))
    assert abs(ones.mean() - 0.75) < 0.03
    # printed with qubit 0 last, columns in order of the bits
    assert counts(sample(Circuit(3).x(0), shots=5, key=KEY)) == {"001": 5}
    moved = Circuit(3, 2).x(2).measure(2, 0).measure(0, 1)
    np.testing.assert_array_equal(sample(moved, shots=3, key=KEY), [[True, False]] * 3)
    np.testing.assert_allclose(probabilities(Circuit(3).x(2).h(1), qubits=(2, 1)), [0, 0.5, 0, 0.5], atol=1e-14)
    one = np.asarray(sample(Circuit(2).ry(0.7, 0).h(1), shots=50, key=KEY))
    np.testing.assert_array_equal(one, sample(Circuit(2).ry(0.7, 0).h(1), shots=50, key=KEY))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: kraus([np.eye(2), np.eye(2)]), InputError, "trace"),
        (lambda: kraus([np.eye(2), np.eye(4)]), InputError, "one size"),
        (lambda: depolarising(1.5), InputError, "probability"),
        (lambda: pauli_channel(0.5, 0.4, 0.3), InputError, "probability"),
        (lambda: thermal_relaxation(1.0, 3.0, 1.0), InputError, "2 t1"),
        (lambda: Circuit(2).channel(bit_flip(0.1), (0, 1)), InputError, "does not fit"),
        (lambda: statevector(Circuit(1).channel(bit_flip(0.1), 0)), UnsupportedError, "channel"),
        (lambda: Circuit(1).channel(bit_flip(0.1), 0).inverse(), UnsupportedError, "no inverse"),
        (lambda: Circuit(2, 1).measure(0).control(1), UnsupportedError, "cannot be controlled"),
        (lambda: sample(Circuit(1), shots=0, key=KEY), InputError, "shot"),
        (lambda: sample(Circuit(1), shots=1, key=KEY, readout=(2.0, 0)), InputError, "probabilities"),
        (lambda: Circuit(1).measure(0), InputError, "classical bit"),
        (lambda: Circuit(1, 1).when((0,), 2, Circuit(1).x(0)), InputError, "does not fit"),
        (lambda: probabilities(Circuit(2), qubits=(0, 0)), InputError, "distinct"),
        (
            lambda: density_matrix(Circuit(1, 1).measure(0).when((0,), 1, Circuit(1, 1).x(0))),
            UnsupportedError,
            "classical control",
        ),
        (
            lambda: expectation(Circuit(1, 1).measure(0).when((0,), 1, Circuit(1, 1).x(0)), pauli("Z0")),
            UnsupportedError,
            "measures|control",
        ),
        (lambda: density_matrix(Circuit(20)), InputError, "GiB"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


FAMILIES = {
    "pauli": (lambda a, b: pauli_channel(a, b, 0.05), (0.1, 0.2)),
    "depolarising": (lambda a, b: depolarising(a), (0.15, 0.0)),
    "two": (lambda a, b: depolarising(a, 2), (0.15, 0.0)),
    "amplitude": (amplitude_damping, (0.3, 0.2)),
    "phase": (lambda a, b: phase_damping(a), (0.4, 0.0)),
    "thermal": (lambda a, b: thermal_relaxation(50.0, 60.0, a, b), (20.0, 0.1)),
}


@pytest.mark.parametrize(
    "name",
    ["pauli", "thermal", *(pytest.param(k, marks=pytest.mark.slow) for k in FAMILIES if k not in ("pauli", "thermal"))],
)
def test_strengths_are_parameters(name):
    build, values = FAMILIES[name]
    targets = (1, 0)[: 2 if name == "two" else 1]
    base = Circuit(2).h(0).ry(0.7, 1).cx(0, 1).rx(0.4, 0)
    named, h = base.channel(build("a", "b"), targets), pauli("Z1") + 0.5 * pauli("X0 Y1") + 0.3 * pauli("X1")
    params = np.array(values[: len(named.names)])
    fixed = base.channel(build(*values), targets)
    with jax.disable_jit():  # compilation is nearly all that these would cost
        np.testing.assert_allclose(density_matrix(named, params), density_matrix(fixed), atol=1e-14)
        slope = gradient(named, h, params)
        np.testing.assert_allclose(slope, gradient(named, h, params, method="finite_difference"), atol=1e-9)
        # a number that JAX traces, in place of a name
        traced = jax.grad(lambda a: expectation(base.channel(build(a, values[1]), targets), h))(values[0])
        exact = expectation(fixed, h)
    assert np.abs(slope).max() > 1e-3
    np.testing.assert_allclose(traced, slope[0], atol=1e-12)
    if name in ("two", "thermal"):
        mean, error = trajectories(named, h, params, shots=2000, key=KEY)
        assert abs(mean - exact) < 5 * error


def test_strengths_at_the_edge_and_outside():
    circuit = Circuit(1).channel(depolarising("p"), 0)
    np.testing.assert_allclose(
        gradient(circuit, pauli("Z0"), [0.0]), [-4 / 3], atol=1e-12
    )  # where sqrt(p) has no derivative
    with pytest.raises(InputError, match=r"depolarising.*make no channel"):
        expectation(circuit, pauli("Z0"), [1.5])
    assert np.isnan(jax.jit(lambda p: expectation(circuit, pauli("Z0"), p))(np.array([1.5])))
    with pytest.raises(UnsupportedError, match="no rotation angle"):
        gradient(circuit, pauli("Z0"), [0.1], method="parameter_shift")


def test_random_outcomes_have_no_silent_gradient():
    damped = Circuit(1).rx("t", 0).channel(amplitude_damping(0.3), 0)
    flipped = Circuit(1).rx("t", 0).channel(bit_flip(0.3), 0)
    t, mean = np.array([0.4]), lambda c, p: trajectories(c, pauli("Z0"), p, shots=400, key=KEY)[0]
    with pytest.raises(UnsupportedError, match="no derivative"):
        jax.grad(lambda p: mean(damped, p))(t)
    with pytest.raises(UnsupportedError, match="no derivative"):
        jax.grad(lambda p: sample(flipped, p, shots=8, key=KEY).astype(float).mean())(t)
    # unitaries drawn at constant rates: each run's derivative is right
    exact = jax.grad(lambda p: expectation(flipped, pauli("Z0"), p))(t)
    assert abs(jax.grad(lambda p: mean(flipped, p))(t) - exact) < 0.1
