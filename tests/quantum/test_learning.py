"""Layers, kernels, time evolution and drawings."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm

from sciax.core.errors import InputError, ShapeError
from sciax.quantum import (
    Circuit,
    PauliSum,
    QuantumLayer,
    draw,
    evolve,
    expectation,
    hardware_efficient,
    kernel_matrix,
    pauli,
    statevector,
    tfim,
    trotter,
    unitary,
)


def _encoder(n):
    c = Circuit(n)
    for q in range(n):
        c = c.ry(f"x{q}", q)
    return c.as_encoder()


def test_batch_of_a_thousand_samples():
    # the published sum over the batch, and per-sample gradients that are not shared
    rng = np.random.default_rng(0)
    data, theta = rng.uniform(0, 6, (1000, 6)), rng.uniform(0, 6, 36)
    layer = QuantumLayer(_encoder(6) + hardware_efficient(6, 3), [pauli("Z0")], key=jax.random.key(0))
    layer = eqx.tree_at(lambda m: m.weights, layer, jnp.asarray(theta))
    values, grads = jax.jit(jax.vmap(jax.value_and_grad(lambda x: layer(x)[0])))(data)
    assert abs(values.sum() - 23.65096) < 1e-4
    step = np.eye(6)[2] * 1e-5
    slope = (layer(jnp.asarray(data[17] + step))[0] - layer(jnp.asarray(data[17] - step))[0]) / 2e-5
    assert abs(grads[17, 2] - slope) < 1e-8


def test_layer_trains_inside_a_network():
    class Net(eqx.Module):
        first: eqx.nn.Linear
        quantum: QuantumLayer
        last: eqx.nn.Linear

        def __call__(self, x):
            return self.last(self.quantum(jnp.tanh(self.first(x))))[0]

    keys = jax.random.split(jax.random.key(1), 3)
    quantum = QuantumLayer(_encoder(2) + hardware_efficient(2, 1), [pauli("Z0"), pauli("X1")], key=keys[1])
    net = Net(eqx.nn.Linear(2, 2, key=keys[0]), quantum, eqx.nn.Linear(2, 1, key=keys[2]))
    x = jax.random.normal(jax.random.key(2), (16, 2))
    y = jnp.sign(x[:, 0] * x[:, 1])
    loss = lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2)  # noqa: E731
    value, g = eqx.filter_value_and_grad(loss)(net)
    smaller = eqx.apply_updates(net, jax.tree.map(lambda v: -0.05 * v, g))
    assert loss(smaller) < value
    assert g.quantum.weights.shape == (4,) and np.abs(g.quantum.weights).max() > 0


def test_kernel():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 3, (5, 2))
    k = np.asarray(kernel_matrix(_encoder(2), x))
    exact = np.prod(np.cos((x[:, None] - x[None]) / 2) ** 2, axis=-1)  # product states of RY
    np.testing.assert_allclose(k, exact, atol=1e-13)
    np.testing.assert_allclose(kernel_matrix(_encoder(2), x[:2], x[2:]), exact[:2, 2:], atol=1e-13)


def test_exact_evolution():
    h = tfim(4) + PauliSum({"Y0 Z2": 0.3, "": 0.7})
    psi = np.asarray(statevector(Circuit(4).h(0).ry(0.3, 1).cx(0, 3)))
    for time in (0.0, 0.9, -2.5, 30.0):
        np.testing.assert_allclose(evolve(h, time, psi), expm(-1j * time * h.matrix(4)) @ psi, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_trotter_order(order):
    h, time = tfim(3) + 0.4, 0.8
    exact = expm(-1j * time * h.matrix(3))
    errors = [np.abs(np.asarray(unitary(trotter(h, time, k, order=order))) - exact).max() for k in (4, 8)]
    assert abs(np.log2(errors[0] / errors[1]) - order) < 0.12
    assert errors[1] < {1: 0.1, 2: 5e-3, 4: 2e-5}[order]


def test_trotter_in_a_symbol_has_the_derivative_of_the_energy():
    circuit = Circuit(3).h(0).ry(0.4, 1) + trotter(tfim(3), "t", 20)
    h = pauli("Z0 X2")
    slope = jax.grad(lambda p: expectation(circuit, h, p))(np.array([0.5]))[0]
    d = 1e-5
    fd = (expectation(circuit, h, [0.5 + d]) - expectation(circuit, h, [0.5 - d])) / (2 * d)
    assert abs(slope - fd) < 1e-8


def test_repeat_is_one_block():
    layer = Circuit(2).rx("a", 0).cx(0, 1)
    many = layer.repeat(50)
    assert len(many.structure.ops) == 1 and len(many) == 100 and many.names == ("a",)
    np.testing.assert_allclose(
        unitary(many.bind({"a": 0.1})), np.linalg.matrix_power(unitary(layer.bind({"a": 0.1})), 50), atol=1e-12
    )
    fresh = layer.repeat(3, fresh=True)
    assert fresh.names == ("a_0", "a_1", "a_2")
    p = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(
        statevector(fresh, p),
        statevector(layer.rename({"a": "a0"}) + layer.rename({"a": "a1"}) + layer.rename({"a": "a2"}), p),
        atol=1e-14,
    )
    np.testing.assert_allclose(
        unitary((fresh + fresh.inverse()).bind(dict(zip(fresh.names, p)))), np.eye(4), atol=1e-13
    )


def test_circuit_algebra():
    a = Circuit(2).rx("a", 0).ry(0.3, 1)
    b = Circuit(3).cx(1, 2).rz("b", 2).rx("a", 0)
    both = a + b
    assert both.num_qubits == 3 and both.names == ("a", "b") and both.depth == 3
    assert hash(both.structure) == hash((a + b).structure) and both == a + b
    assert (Circuit(1).rx(0.1, 0).structure) == (Circuit(1).rx(0.2, 0).structure)
    assert _encoder(1).encoder_names == ("x0",) and _encoder(1).as_ansatz().encoder_names == ()
    with pytest.raises(InputError, match="encoder"):
        _encoder(1) + Circuit(1).rx("x0", 0)
    with pytest.raises(InputError, match="same name"):
        both.rename({"a": "b"})
    with pytest.raises(InputError, match="did you mean 'a'"):
        a.bind({"aa": 1.0})
    with pytest.raises(InputError, match="twice"):
        a.control(0)
    with pytest.raises(InputError, match="no image"):
        b.remap({0: 1})
    bound = both.bind({"a": 0.2})
    np.testing.assert_allclose(statevector(bound, [0.4]), statevector(both, {"a": 0.2, "b": 0.4}), atol=1e-15)
    moved = b.remap({0: 3, 1: 0, 2: 1}, 4)
    assert [g.qubits for g in moved.gates] == [(1, 0), (1,), (3,)]


def test_drawings():
    c = (
        Circuit(3, 1)
        .h(0)
        .cx(0, 2)
        .rx("θ", 1)
        .rzz(np.pi / 4, 0, 1)
        .x(1, controls=0, negative=2)
        .swap(0, 2)
        .barrier()
        .measure(1, 0)
    )
    shown = str(c)
    lines = shown.splitlines()
    assert len(lines) == 5 and lines[0].startswith("q0: ") and len({len(w) for w in lines[::2]}) == 1
    for mark in ("[H]", "●", "⊕", "┼", "[Rx(θ)]", "π/4", "○", "░", "[M→c0]"):
        assert mark in shown, mark
    figure = draw(c)
    assert len(figure.axes[0].patches) > 5
    assert str(Circuit(0)) == ""


def test_bad_input():
    key = jax.random.key(0)
    with pytest.raises(InputError, match="encoder"):
        QuantumLayer(hardware_efficient(2, 1), [pauli("Z0")], key=key)
    layer = QuantumLayer(_encoder(2) + hardware_efficient(2, 1), [pauli("Z0")], key=key)
    with pytest.raises(ShapeError, match="vmap"):
        layer(jnp.zeros((3, 2)))
    with pytest.raises(ShapeError):
        kernel_matrix(_encoder(2), np.zeros((3, 1)))
    with pytest.raises(InputError, match="order"):
        trotter(tfim(2), 1.0, 1, order=3)
    with pytest.raises(InputError, match="finite"):
        evolve(tfim(2), float("inf"), np.array([1, 0, 0, 0j]))


def test_single_precision(narrow):
    circuit = hardware_efficient(4, 2)
    p = np.random.default_rng(0).uniform(0, 6, 16).astype(np.float32)
    psi = statevector(circuit, p)
    assert psi.dtype == np.complex64
    value, g = jax.value_and_grad(lambda v: expectation(circuit, tfim(4), v))(jnp.asarray(p))
    assert value.dtype == g.dtype == np.float32
    # a large angle keeps its digits: it is reduced in float64 before it becomes float32
    assert abs(expectation(Circuit(1).rx(1e7 + 0.5, 0), pauli("Z0")) - np.cos(1e7 + 0.5)) < 1e-5
