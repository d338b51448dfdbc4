"""All ways to a gradient agree to 1e-10, in every argument that can be differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.quantum import Circuit, PauliSum, expectation, gradient, hardware_efficient, pauli, statevector, symbol, tfim
from sciax.quantum._gradient import shift_rule

H = PauliSum({"Z0 X1": 0.7, "Y2": -0.4, "X0 X2 Z3": 0.9, "Z1 Z3": 0.3, "": 0.2})


def _circuit():
    """Every parametrised kind, plain and controlled, with shared parameters and expressions."""
    a, b = symbol("a"), symbol("b")
    c = Circuit(4).h(0).h(1).ry(0.4, 2).h(3)
    c = c.rx("a", 0).ry(2 * a - b + 0.3, 1).rz("b", 2).p("c", 3).u3("d", "a", "e", 0).u2("d", -1 * b, 1)
    c = c.rxx("a", 0, 1).ryy("b", 1, 2).rzz("c", 2, 3).rxy("d", 0, 3).rxz("e", 1, 3).ryz(0.5 * a, 2, 0)
    c = (
        c.fsim("a", "b", 0, 2)
        .givens("c", 1, 3)
        .swapalpha("d", 0, 1)
        .rp("e", "XYZ", (0, 1, 2))
        .excitation("a", (0,), (3,))
    )
    c = c.excitation("b", (0, 1), (2, 3)).gphase("c").gphase("d", controls=0).rp("a", "ZZY", (3, 0, 1), controls=2)
    c = (
        c.rx("a", 1, controls=0)
        .ry("b", 2, negative=1)
        .rz("c", 3, controls=(0, 1))
        .p("d", 0, controls=3)
        .u3("e", "a", "b", 1, controls=2)
    )
    return (
        c.givens("e", 0, 1, controls=3)
        .fsim("c", "e", 2, 3, negative=0)
        .swapalpha("a", 1, 2, controls=3)
        .excitation("d", (1,), (2,), controls=0)
    )


PARAMS = np.random.default_rng(3).uniform(-1, 1, 5)


def test_all_methods_agree():
    circuit = _circuit()
    reference = gradient(circuit, H, PARAMS, method="adjoint")
    assert np.abs(reference).min() > 1e-3
    for method in ("autodiff", "parameter_shift"):
        np.testing.assert_allclose(gradient(circuit, H, PARAMS, method=method), reference, atol=1e-10, err_msg=method)
    np.testing.assert_allclose(gradient(circuit, H, PARAMS, method="adjoint", backend="xla"), reference, atol=1e-12)
    np.testing.assert_allclose(gradient(circuit, H, PARAMS, method="finite_difference"), reference, atol=1e-9)


def test_shift_rules():
    assert len(shift_rule((1.0,))) == 2 and len(shift_rule((0.5, 1.0))) == 4
    f = lambda t: 0.3 + np.sin(0.5 * t + 0.2) - 0.7 * np.cos(t - 0.4) + 0.2 * np.sin(2 * t)  # noqa: E731
    exact = 0.5 * np.cos(0.2) + 0.7 * np.sin(-0.4) + 0.4
    assert abs(sum(k * f(s) for s, k in shift_rule((0.5, 1.0, 2.0))) - exact) < 1e-13
    # a controlled rotation: cos((t - pi)/2) and friends, which two terms cannot differentiate
    c = Circuit(2).h(0).rx("t", 1, controls=0)
    g = gradient(c, pauli("X0 Z1"), [0.7], method="parameter_shift")
    np.testing.assert_allclose(g, gradient(c, pauli("X0 Z1"), [0.7]), atol=1e-12)


def test_closed_forms():
    t = jnp.array([0.3])
    c = Circuit(1).rx("t", 0)
    assert abs(expectation(c, pauli("Z0"), t) - np.cos(0.3)) < 1e-15
    assert abs(jax.grad(lambda p: expectation(c, pauli("Z0"), p))(t)[0] + np.sin(0.3)) < 1e-15
    assert abs(jax.hessian(lambda p: expectation(c, pauli("Z0"), p))(t)[0, 0] + np.cos(0.3)) < 1e-14


def test_second_order_and_forward_mode():
    circuit = _circuit()
    f = lambda p: expectation(circuit, H, p)  # noqa: E731
    g = lambda p: expectation(circuit, H, p, gradient="autodiff")  # noqa: E731
    p, v = jnp.asarray(PARAMS), jnp.asarray(PARAMS[::-1].copy())
    np.testing.assert_allclose(jax.jvp(f, (p,), (v,))[1], jax.grad(f)(p) @ v, atol=1e-12)
    hvp = jax.jit(lambda p: jax.grad(lambda q: jax.grad(f)(q) @ v)(p))(p)
    np.testing.assert_allclose(hvp, jax.jit(lambda p: jax.jvp(jax.grad(g), (p,), (v,))[1])(p), atol=1e-10)


def test_initial_state_and_hamiltonian_coefficients():
    circuit = hardware_efficient(3, 1)
    p = np.random.default_rng(0).uniform(0, 3, 6)
    rng = np.random.default_rng(1)
    psi = rng.normal(size=8) + 1j * rng.normal(size=8)
    psi /= np.linalg.norm(psi)
    h = tfim(3)

    def energy(c, state):
        observable = PauliSum.from_masks(h.x, h.z, c, num_qubits=3)
        return expectation(circuit, observable, p, initial=state / jnp.linalg.norm(state))

    c = jnp.asarray(h.coefficients.real)
    gc, gs = jax.grad(energy, (0, 1))(c, jnp.asarray(psi))
    final = statevector(circuit, p, initial=psi)
    strings = [PauliSum.from_masks([x], [z], [1.0], num_qubits=3).matrix(3) for x, z in zip(h.x, h.z)]
    np.testing.assert_allclose(gc, [np.vdot(final, s @ final).real for s in strings], atol=1e-13)
    for k in (0, 5):
        for unit in (1.0, 1j):
            d = np.zeros(8, complex)
            d[k] = 1e-5 * unit
            slope = (energy(c, jnp.asarray(psi + d)) - energy(c, jnp.asarray(psi - d))) / 2e-5
            # JAX's convention for complex gradients: dE = Re(g dz), so g is the conjugate of the steepest ascent
            np.testing.assert_allclose(slope, (gs[k] * unit).real, atol=1e-8)


def test_matrix_and_custom_gates_are_differentiated_through(rng_unitary):
    def matrix(t, u):
        c, s = jnp.cos(t), jnp.sin(t) + 0j
        block = jnp.array([[c, s], [-s, c]])
        return jnp.kron(jnp.diag(jnp.exp(1j * u * jnp.arange(2))), block)

    one = lambda t: jnp.array([[jnp.cos(t), 1j * jnp.sin(t)], [1j * jnp.sin(t), jnp.cos(t)]])  # noqa: E731
    c = (
        Circuit(3)
        .ry("a", 0)
        .custom(matrix, ("a", "b"), (2, 0))
        .unitary(rng_unitary(4), (0, 1))
        .custom(one, ("b",), 1, controls=2)
    )
    c = c.ry("b", 1) + c.inverse().rx("a", 2)
    h = PauliSum({"Z0": 1.0, "X1 Y2": 0.5})
    reference = gradient(c, h, [0.3, 0.8], method="finite_difference")
    np.testing.assert_allclose(gradient(c, h, [0.3, 0.8]), reference, atol=1e-9)
    np.testing.assert_allclose(gradient(c, h, [0.3, 0.8], method="autodiff"), reference, atol=1e-9)
    with pytest.raises(UnsupportedError, match="custom"):
        gradient(c, h, [0.3, 0.8], method="parameter_shift")


def test_vmap_and_jit_use_every_parameter_set():
    circuit = hardware_efficient(3, 1)
    batch = np.random.default_rng(0).uniform(0, 3, (4, 6))
    f = lambda p: expectation(circuit, tfim(3), p)  # noqa: E731
    together = jax.jit(jax.vmap(jax.value_and_grad(f)))(batch)
    for k in range(4):
        np.testing.assert_allclose(together[0][k], f(batch[k]), atol=1e-13)
        np.testing.assert_allclose(together[1][k], gradient(circuit, tfim(3), batch[k]), atol=1e-13)
    states = jax.vmap(lambda p: statevector(circuit, p))(batch)
    assert len({complex(s[0]) for s in states}) == 4


def test_traced_numbers_in_the_circuit():
    f = lambda t: expectation(Circuit(1).rx(t, 0), pauli("Z0"))  # noqa: E731
    assert abs(jax.grad(f)(0.3) + np.sin(0.3)) < 1e-15
    c = Circuit(1).rx(0.3, 0)  # a circuit is a pytree whose leaf is its numbers
    leaf = jax.grad(lambda circuit: expectation(circuit, pauli("Z0")))(c)
    assert abs(leaf.values[0] + np.sin(0.3)) < 1e-15


def test_a_trace_does_not_grow_with_the_number_of_gates():
    def equations(layers):
        circuit = hardware_efficient(3, layers)
        outer = jax.make_jaxpr(lambda p: expectation(circuit, tfim(3), p))(np.zeros(6 * layers))
        return sum(len(e.params["jaxpr"].eqns) if "jaxpr" in e.params else 1 for e in outer.eqns)

    assert equations(2) == equations(40)


def test_repeated_blocks_are_scanned():
    """A long repetition is a scan: the trace does not grow with it, and values and derivatives are those written out."""
    layer = hardware_efficient(3, 1).rename(lambda name: f"r_{name}")
    h, p = tfim(3), np.random.default_rng(2).uniform(0, 3, len(layer.names))

    def trace(count):
        """Equations, those inside others included."""
        circuit = Circuit(3).h(0) + layer.repeat(count)
        return str(jax.make_jaxpr(jax.grad(lambda v: expectation(circuit, h, v)))(p)).count(" = ")

    assert trace(1000) == trace(10_000) < 2 * trace(3)
    # 101 repetitions: a scan and a remainder; nested; the same with all gates in a row
    circuit = Circuit(3).h(0) + layer.repeat(101)
    row = Circuit.from_gates(3, circuit.gates, circuit.values)
    for backend in ("auto", "xla"):
        of = lambda c, backend=backend: jax.value_and_grad(lambda v: expectation(c, h, v, backend=backend))(p)  # noqa: E731
        (value, slope), (row_value, row_slope) = of(circuit), of(row)
        assert abs(value - row_value) < 1e-12
        np.testing.assert_allclose(slope, row_slope, atol=1e-10)
    nested, inverse = layer.repeat(10).repeat(20), layer.repeat(200).inverse()
    np.testing.assert_allclose(statevector(nested + inverse, p), np.eye(8)[0], atol=1e-12)


def test_a_repeated_measurement_is_still_refused():
    with pytest.raises(UnsupportedError, match="in the middle"):
        statevector(Circuit(1, 1).h(0).measure(0).repeat(2))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda c: expectation(c, pauli("Z0")), "unbound"),
        (lambda c: expectation(c, pauli("Z0"), {"a": 0.1, "x": 0.2}), "no parameter named 'x'"),
        (lambda c: expectation(c, pauli("Z0"), {"a": 0.1}), "unbound parameters"),
        (lambda c: expectation(c, pauli("Z0"), [0.1, np.nan]), "not finite: .*|not finite"),
        (lambda c: expectation(c, pauli("Z0"), [[0.1, 0.2]]), "vmap"),
        (lambda c: expectation(c, pauli("Z0"), [0.1, 0.2], backend="gpu"), "back end"),
        (lambda c: expectation(c, pauli("Z0"), [0.1, 0.2], gradient="magic"), "gradient rule"),
        (lambda c: gradient(c, pauli("Z0"), [0.1, 0.2], method="magic"), "gradient method"),
        (lambda c: statevector(c, [0.1, 0.2], initial=np.array([1, 1, 0, 0j])), "normalised"),
        (lambda c: statevector(c, [0.1, 0.2], initial=np.array([1, 0j])), "does not fit"),
        (lambda c: statevector(Circuit(40).h(0)), "GiB"),
        (lambda c: statevector(Circuit(2, 1).h(0).measure(0, 0).x(0)), "middle"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((InputError, UnsupportedError), match=words):
        call(Circuit(2).rx("a", 0).ry("b", 1))
