"""Derivatives against closed forms, finite differences and each other; implicit solutions; hooks; bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.autodiff import (
    BFLOAT16,
    HOST,
    IDENTITY,
    GradientError,
    SparseJacobian,
    argmin,
    check_gradients,
    custom_rule,
    directional,
    fixed_point,
    grad,
    hessian,
    hvp,
    implicit,
    jacobian,
    jacobian_pattern,
    jvp,
    laplacian,
    measure_laplacian,
    root,
    saved_tensors,
    value_and_grad,
    vjp,
)
from sciax.core.autodiff.pytest_plugin import check_gradients_fixture  # noqa: F401 (a fixture)
from sciax.core.errors import ConvergenceError, DTypeError, InputError, ShapeError


def test_pinned_values():
    """d4 tanh at 0.7, d3 sin at 0.7 = -cos 0.7, the Hessian of sum tanh^2 (the values MindSpore 2.10 gives as well)."""
    assert directional(jnp.tanh, 0.7, 1.0, 4) == pytest.approx(2.7749832, rel=1e-5)
    assert directional(jnp.sin, 0.7, 1.0, 3) == pytest.approx(-0.7648422, rel=1e-6)
    h = hessian(lambda x: jnp.sum(jnp.tanh(x) ** 2))(jnp.array([0.3, 0.4]))
    np.testing.assert_allclose(h, np.diag([1.364306, 0.970151]), atol=2e-6)


def test_complex_convention():
    assert grad(lambda z: jnp.abs(z) ** 2)(jnp.complex64(1 + 2j)) == pytest.approx(2 - 4j)
    assert grad(lambda z: (z * jnp.conj(z)).real)(jnp.complex64(1 + 2j)) == pytest.approx(2 - 4j)


def test_order_four_in_float64(x64):
    x = jnp.float64(0.7)
    t = np.tanh(0.7)
    exact = (1 - t**2) * (16 * t - 24 * t**3)  # d4 tanh = 8 t s (2 - 3 t^2), s = 1 - t^2
    for method in ("nested", "taylor"):
        assert float(directional(jnp.tanh, x, jnp.float64(1.0), 4, method=method)) == pytest.approx(exact, rel=1e-12)


def test_jacobians_and_products():
    m = jnp.arange(12.0).reshape(3, 4)

    def f(x):
        return jnp.sin(m @ x)

    x = jnp.linspace(0.0, 1.0, 4)
    exact = np.cos(m @ x)[:, None] * np.asarray(m)
    for method in ("auto", "forward", "reverse"):
        np.testing.assert_allclose(jacobian(f, method=method)(x), exact, rtol=2e-5)
    np.testing.assert_allclose(jvp(f, (x,), (jnp.ones(4),))[1], exact.sum(1), rtol=2e-5)
    np.testing.assert_allclose(vjp(f, x)[1](jnp.ones(3))[0], exact.sum(0), rtol=2e-5)

    def g(x):
        return jnp.sum(jnp.cos(x) * x[::-1])

    np.testing.assert_allclose(hvp(g, x, x + 1), hessian(g)(x) @ (x + 1), rtol=1e-5)
    value, (a, b) = value_and_grad(lambda a, b: a * b**2, (0, 1))(2.0, 3.0)
    assert (value, a, b) == (18.0, 9.0, 12.0)
    assert grad(lambda a: (a**2, "aux"), has_aux=True)(3.0) == (6.0, "aux")


@pytest.mark.parametrize("method", ["auto", "forward", "forward_over_reverse", "hessian"])
def test_laplacian(method, x64):
    def f(x, k):
        return jnp.exp(-k * jnp.sum(x**2)) + jnp.prod(x)

    x = jnp.array([0.3, -0.2, 0.5])
    r2, k = float(jnp.sum(x**2)), 0.7
    exact = (4 * k * k * r2 - 2 * k * 3) * np.exp(-k * r2)
    assert float(laplacian(f, method=method)(x, k)) == pytest.approx(exact, rel=1e-12)
    assert laplacian(lambda x: jnp.sum(x), method=method)(jnp.zeros(0)) == 0


def test_measure_returns_the_fastest():
    timing = measure_laplacian(lambda p, x: jnp.tanh(p @ x).sum(), jnp.ones((8, 3)), jnp.ones((4, 3)), repeats=1)
    assert (
        timing.seconds[timing.best] == min(timing.seconds.values())
        and len(timing.seconds) == 3
        and timing.best in str(timing)
    )


def stencil(u):
    left, right = jnp.roll(u, 1), jnp.roll(u, -1)
    return left - 2 * u + right + u**2


def test_sparse_jacobian_by_colouring(x64):
    x = jnp.asarray(np.random.default_rng(0).normal(size=60))
    sparse = SparseJacobian(stencil, x)
    assert sparse.colors <= 4 and sparse.pattern.nnz == 180
    np.testing.assert_allclose(sparse(x * 2).toarray(), jax.jacfwd(stencil)(x * 2), atol=1e-12)
    np.testing.assert_allclose(jax.jit(sparse.values)(x), sparse(x).data, atol=1e-14)
    # One dense row: by columns every column needs its own colour, by rows two are enough.
    arrow = SparseJacobian(lambda u: jnp.concatenate([u[1:] * u[1:], jnp.sum(u**2)[None]]), x)
    assert arrow.mode == "reverse" and arrow.colors == 2
    with pytest.raises(InputError, match="misses entries"):
        SparseJacobian(stencil, x, pattern=np.eye(60))
    with pytest.raises(ShapeError):
        SparseJacobian(stencil, x, pattern=np.eye(59))
    assert jacobian_pattern(lambda u: u[:2], x).nnz == 2


def cubic(x, a):
    return x**3 + a * x - 2.0


def test_root_derivatives_of_both_modes_and_second_order(x64):
    def solve(a):
        return root(cubic, jnp.float64(1.0), a).value

    a = jnp.float64(1.5)
    x = float(solve(a))
    first = -x / (3 * x**2 + 1.5)
    assert float(grad(solve)(a)) == pytest.approx(first, rel=1e-12)
    assert float(jvp(solve, (a,), (1.0,))[1]) == pytest.approx(first, rel=1e-12)
    g = 3 * x**2 + 1.5  # x' = -x/g, so x'' = -x'/g + x g'/g^2 with g' = 6 x x' + 1
    assert float(grad(grad(solve))(a)) == pytest.approx(-first / g + x * (6 * x * first + 1) / g**2, rel=1e-11)
    solution = root(cubic, jnp.float64(1.0), a)
    assert solution.converged and solution.residual < 1e-13 and solution.steps < 10
    assert float(jax.jit(grad(solve))(a)) == pytest.approx(first, rel=1e-12)


def test_root_of_a_system_as_a_tree(x64):
    def residual(z, t):
        return {"p": z["p"] + z["q"] ** 2 - t, "q": z["q"] - z["p"]}

    out = root(residual, {"p": jnp.float64(1.0), "q": jnp.float64(1.0)}, jnp.float64(6.0))
    assert float(out.value["p"]) == pytest.approx(2.0)
    derivative = grad(lambda t: root(residual, {"p": jnp.float64(1.0), "q": jnp.float64(1.0)}, t).value["q"])(
        jnp.float64(6.0)
    )
    assert float(derivative) == pytest.approx(1 / 5)


def test_fixed_point_and_argmin(x64):
    a = jnp.array([0.3, 0.6])
    g = jacobian(lambda a: fixed_point(lambda x, a: 0.5 * jnp.cos(x) + a, jnp.zeros(2), a).value)(a)
    x = fixed_point(lambda x, a: 0.5 * jnp.cos(x) + a, jnp.zeros(2), a).value
    np.testing.assert_allclose(g, np.diag(1 / (1 + 0.5 * np.sin(x))), rtol=1e-10, atol=1e-12)
    m = jnp.array([[3.0, 1.0], [1.0, 2.0]])

    def objective(x, b):
        return 0.5 * x @ m @ x - b @ x + 0.1 * jnp.sum(x**4)

    found = argmin(objective, jnp.zeros(2), a)
    np.testing.assert_allclose(jax.grad(objective)(found.value, a), 0, atol=1e-12)
    h = jax.hessian(objective)(found.value, a)
    np.testing.assert_allclose(
        jacobian(lambda b: argmin(objective, jnp.zeros(2), b).value)(a), np.linalg.inv(h), rtol=1e-9
    )


def test_implicit_behind_any_solver(x64):
    import lineax as lx

    a = jnp.float64(2.0)
    for solver in (None, lx.GMRES(rtol=1e-12, atol=1e-12)):
        d = grad(lambda t, s=solver: implicit(lambda x, t: x**2 - t, jnp.sqrt(jax.lax.stop_gradient(t)), t, solver=s))(
            a
        )
        assert float(d) == pytest.approx(0.5 / np.sqrt(2.0), rel=1e-9)


def test_unconverged_is_an_error():
    with pytest.raises(ConvergenceError, match="residual"):
        root(lambda x: x**2 + 1.0, 1.0)
    for start in (np.inf, np.nan):
        with pytest.raises(ConvergenceError):
            root(lambda x: x - 1.5, start)
    out = root(lambda x: x**2 + 1.0, 1.0, throw=False)
    assert not out.converged and out.residual >= 1.0
    with pytest.raises(ConvergenceError):
        fixed_point(lambda x: 2 * x, 1.0, max_steps=20)
    with pytest.raises(Exception, match="did not converge"):
        jax.block_until_ready(jax.jit(lambda x: root(lambda y: y**2 + 1.0, x).value)(1.0))


def layer(x, w):
    return jnp.sum(jnp.sin(jnp.tanh(x @ w)) @ w.T)


def test_saved_tensor_hooks_eager_and_compiled():
    x = jax.random.normal(jax.random.key(0), (32, 16))
    w = jax.random.normal(jax.random.key(1), (16, 16)) * 0.2
    plain = jax.grad(layer, 1)(x, w)
    for transform in (lambda f: f, jax.jit):
        assert np.array_equal(
            transform(jax.grad(saved_tensors(*IDENTITY)(layer), 1))(x, w), transform(jax.grad(layer, 1))(x, w)
        )
        np.testing.assert_array_equal(
            transform(jax.grad(saved_tensors(*HOST)(layer), 1))(x, w), transform(jax.grad(layer, 1))(x, w)
        )
        rounded = transform(jax.grad(saved_tensors(*BFLOAT16)(layer), 1))(x, w)
        error = float(jnp.abs(rounded - plain).max() / jnp.abs(plain).max())
        assert 0 < error < 1e-2
    text = str(jax.make_jaxpr(jax.grad(saved_tensors(*BFLOAT16)(layer), 1))(x, w))
    assert "bf16[32,16]" in text


def test_saved_tensor_hooks_count_and_close_over():
    counts = [0, 0]

    def pack(v):
        counts[0] += 1
        return v

    def unpack(v):
        counts[1] += 1
        return v

    def outer(w):
        return saved_tensors(pack, unpack)(lambda x: jnp.sum(jnp.tanh(x * w)))(jnp.ones(3))

    assert float(jax.grad(outer)(0.5)) == pytest.approx(3 * (1 - np.tanh(0.5) ** 2), rel=1e-6)
    assert counts[0] == counts[1] > 0
    with pytest.raises(ShapeError, match="another shape"):
        jax.grad(saved_tensors(lambda v: v, lambda v: v.ravel()[:1])(layer), 1)(jnp.ones((4, 3)), jnp.ones((3, 3)))


def test_check_gradients_finds_wrong_rules(check_gradients):
    def right(x):
        return jnp.sin(x) * x

    report = check_gradients(right, jnp.linspace(0.1, 2.0, 5), order=3)
    assert report.worst < 1e-4 and set(report.errors) == {(n, m) for n in (1, 2, 3) for m in ("forward", "reverse")}
    check_gradients(right, jnp.linspace(0.1, 2.0, 5), method="complex", rtol=1e-13)
    check_gradients(lambda z: jnp.abs(z) ** 2 * z, jnp.array([1 + 2j, -0.5j + 1]))
    check_gradients(lambda t: {"a": t["x"] @ t["y"]}, {"x": jnp.ones((2, 3)), "y": jnp.arange(3.0)}, order=2)

    @jax.custom_jvp
    def wrong(x):
        return x**2

    wrong.defjvp(lambda p, t: (p[0] ** 2, 2.001 * p[0] * t[0]))
    with pytest.raises(GradientError, match="order 1, forward"):
        check_gradients(wrong, jnp.array([1.0, 2.0]))

    @jax.custom_jvp
    def wrong_twice(x):
        return x**3

    wrong_twice.defjvp(lambda p, t: (p[0] ** 3, 3 * jax.lax.stop_gradient(p[0]) ** 2 * t[0]))
    check_gradients(wrong_twice, jnp.array([1.0]))
    with pytest.raises(GradientError, match="order 2"):
        check_gradients(wrong_twice, jnp.array([1.0]), order=2)
    with pytest.raises(GradientError):
        check_gradients(lambda x: jnp.sqrt(x - x), jnp.array([1.0]))


def test_custom_rules_are_checked_when_registered(x64):
    f = custom_rule(jnp.square, jvp=lambda p, t: (p[0] ** 2, 2 * p[0] * t[0]), check_at=(jnp.array([1.0, -2.0]),))
    assert float(jax.grad(f)(3.0)) == 6.0
    good = custom_rule(
        jnp.square, fwd=lambda x: (x**2, x), bwd=lambda x, ct: (2 * x * ct,), check_at=(jnp.array([1.0, -2.0]),)
    )
    assert float(jax.grad(good)(3.0)) == 6.0
    with pytest.raises(GradientError, match="reverse"):
        custom_rule(
            jnp.square, fwd=lambda x: (x**2, x), bwd=lambda x, ct: (x * ct,), check_at=(jnp.array([1.0, -2.0]),)
        )
    with pytest.raises(InputError):
        custom_rule(jnp.square, check_at=(1.0,))


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda: grad(jnp.sin)(jnp.ones(3)), ShapeError),
        (lambda: grad(jnp.sin)(3), DTypeError),
        (lambda: grad(jnp.sin)("x"), DTypeError),
        (lambda: grad(lambda z: z)(1j), DTypeError),
        (lambda: grad(lambda x: (x, x))(1.0), ShapeError),
        (lambda: grad(jnp.sin, 2)(1.0), InputError),
        (lambda: grad(7), InputError),
        (lambda: jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(1),)), ShapeError),
        (lambda: jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(3), 1.0)), ShapeError),
        (lambda: vjp(jnp.sin, jnp.ones(3))[1](jnp.ones(1)), ShapeError),
        (lambda: vjp(jnp.sin, jnp.arange(3)), DTypeError),
        (lambda: hvp(jnp.sum, jnp.ones(3), jnp.ones(4)), ShapeError),
        (lambda: hessian(jnp.sin)(jnp.ones(2)), ShapeError),
        (lambda: directional(jnp.sin, 1.0, 1.0, -1), InputError),
        (lambda: directional(jnp.sin, 1.0, 1.0, 2, method="jet"), InputError),
        (lambda: jacobian(jnp.sin, method="both"), InputError),
        (lambda: laplacian(jnp.sum)(jnp.ones((2, 2))), ShapeError),
        (lambda: laplacian(jnp.sin)(jnp.ones(2)), ShapeError),
        (lambda: laplacian(jnp.sum, method="folx"), InputError),
        (lambda: root(lambda x: jnp.concatenate([x, x]), jnp.ones(2)), ShapeError),
        (lambda: root(jnp.sin, 1), DTypeError),
        (lambda: fixed_point(lambda x: x[:1], jnp.ones(2)), ShapeError),
        (lambda: argmin(jnp.sin, jnp.ones(2)), ShapeError),
        (lambda: check_gradients(jnp.sin, 1), InputError),
        (lambda: check_gradients(jnp.sin, 1.0, order=4), InputError),
        (lambda: saved_tensors(1, 2), InputError),
        (lambda: SparseJacobian(jnp.sum, jnp.ones(3)), ShapeError),
    ],
)  # fmt: skip
def test_bad_input(call, error):
    with pytest.raises(error):
        call()
