"""Minimisers of sums of squares, and L-BFGS, on problems with known answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from sciax.core.errors import InputError, PrecisionError
from sciax.core.train.minimize import DenseJacobian, lbfgs, levenberg_marquardt, natural_gradient

pytestmark = pytest.mark.usefixtures("x64")
SQUARES = {
    "lm": levenberg_marquardt,
    "lm, qr": lambda *a, **k: levenberg_marquardt(*a, solver="qr", **k),
    "lm, scaled": lambda *a, **k: levenberg_marquardt(*a, scaled=True, **k),
    "natural": natural_gradient,
}


def rosenbrock(params, data):
    x = params["x"]
    return jnp.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def straight(params, data):
    """Linear: A x - b."""
    matrix, right = data
    return matrix @ params["x"] - right


@pytest.mark.parametrize("name", SQUARES)
def test_rosenbrock_to_rounding(name):
    result = SQUARES[name](rosenbrock, {"x": jnp.array([-1.2, 1.0])}, iterations=60)
    np.testing.assert_allclose(result.params["x"], 1.0, atol=1e-9)
    taken = int(result.taken)
    history = np.asarray(result.history)[:taken]
    assert (np.diff(history) <= 0).all() and history[-1] < 1e-18
    assert np.isnan(np.asarray(result.history)[taken:]).all()


@pytest.mark.parametrize("name", SQUARES)
def test_linear_least_squares(name):
    """Against LAPACK; overdetermined, and with noise, so that the minimum is not zero."""
    rng = np.random.default_rng(0)
    matrix, right = rng.normal(size=(40, 12)), rng.normal(size=40)
    want, (least,), *_ = np.linalg.lstsq(matrix, right, rcond=None)
    options = {"damping": 1e-12} if name == "natural" else {}
    result = SQUARES[name](straight, {"x": jnp.zeros(12)}, (matrix, right), iterations=30, **options)
    np.testing.assert_allclose(result.params["x"], want, atol=1e-8)
    assert float(result.value) == pytest.approx(least, rel=1e-12)


def test_levenberg_against_scipy_on_a_decay():
    """The classical fit of two exponentials (Osborne 1972 in kind), started far away."""
    t = jnp.linspace(0, 4, 60)
    truth = np.array([1.0, 0.4, 2.0, 3.0])

    def model(x):
        return x[0] * jnp.exp(-x[1] * t) + x[2] * jnp.exp(-x[3] * t)

    noisy = model(truth) + 1e-2 * np.random.default_rng(1).normal(size=60)
    start = np.array([0.5, 1.0, 0.5, 6.0])
    result = levenberg_marquardt(lambda p, d: model(p["x"]) - d, {"x": jnp.asarray(start)}, noisy, iterations=80)
    peer = scipy.optimize.least_squares(
        lambda x: np.asarray(model(x) - noisy), start, method="lm", xtol=1e-14, ftol=1e-14
    )
    np.testing.assert_allclose(result.params["x"], peer.x, rtol=1e-6)
    assert float(result.value) <= 2 * peer.cost * (1 + 1e-10)


def test_geodesic_acceleration_shortens_a_curved_valley():
    """r = (x - sin(20 y) / 4, y): the correction is what turns the corner (iterations to 1e-16 at least a fifth fewer)."""

    def bent(params, data):
        x, y = params["x"]
        return jnp.stack([100 * (y - x**2), 1 - x, 3 * (y - x**3)])

    def needed(geodesic):
        result = levenberg_marquardt(bent, {"x": jnp.array([-2.0, 3.0])}, iterations=200, geodesic=geodesic)
        history = np.asarray(result.history)
        assert np.nanmin(history) < 1e-16
        return int(np.argmax(history < 1e-16))

    assert needed(True) < 0.8 * needed(False)


def test_qr_keeps_the_digits_that_normal_equations_lose():
    """Läuchli's matrix: J'J is singular in float64, J is not."""
    e = 1e-9
    matrix = np.vstack([np.ones(3), e * np.eye(3)])
    want = np.array([1.0, -2.0, 1.5])
    data = (matrix, matrix @ want)
    far = {
        solver: np.abs(
            levenberg_marquardt(
                straight, {"x": jnp.zeros(3)}, data, iterations=60, solver=solver, damping=1e-10
            ).params["x"]
            - want
        ).max()
        for solver in ("qr", "cholesky")
    }
    assert far["qr"] < 1e-5 < 1e-2 < far["cholesky"]


def test_goes_on_with_new_data_and_the_same_damping():
    t = jnp.linspace(0, 1, 30)

    def residual(p, amplitude):
        return p["a"] * jnp.exp(p["b"] * t) - amplitude * jnp.exp(-2 * t)

    first = levenberg_marquardt(residual, {"a": jnp.ones(()), "b": jnp.zeros(())}, 1.0, iterations=20)
    again = levenberg_marquardt(residual, first.params, 3.0, iterations=20, state=first.state)
    np.testing.assert_allclose([again.params["a"], again.params["b"]], [3.0, -2.0], rtol=1e-9)
    assert int(again.state.iterations) == int(first.taken) + int(again.taken)


def test_a_jacobian_of_ones_own_is_used():
    calls = []

    def jacobian(params, data):
        calls.append(1)
        return DenseJacobian(rosenbrock)(params, data)

    result = levenberg_marquardt(rosenbrock, {"x": jnp.array([-1.2, 1.0])}, iterations=60, jacobian=jacobian)
    assert calls and float(result.value) < 1e-18


def test_natural_gradient_with_fewer_residuals_than_parameters():
    """The m x m form gives the step of the n x n form."""
    rng = np.random.default_rng(2)
    matrix, right = rng.normal(size=(5, 9)), rng.normal(size=5)
    start = {"x": jnp.asarray(rng.normal(size=9))}
    short = natural_gradient(straight, start, (matrix, right), iterations=1, damping=0.1)
    lam = 0.1 * np.sum((matrix @ start["x"] - right) ** 2)
    step = np.linalg.solve(matrix.T @ matrix + lam * np.eye(9), matrix.T @ (matrix @ start["x"] - right))
    moved = start["x"] - short.params["x"]
    np.testing.assert_allclose(moved / np.linalg.norm(moved), step / np.linalg.norm(step), rtol=1e-9)


def test_natural_gradient_does_not_see_the_parametrisation():
    """In the metric of the outputs, one step is the same for x and for y = S x."""
    rng = np.random.default_rng(3)
    s, t = np.diag([0.05, 1.0, 20.0]), jnp.linspace(0, 1, 20)
    features = jnp.stack([jnp.ones_like(t), t, t**2], 1)

    def outputs(p, data):
        return jnp.sinh(features @ data @ p["x"])

    def residual(p, data):
        return outputs(p, data) ** 3 - 1.0 - t

    x = rng.uniform(0.3, 0.6, 3)
    a, b = (
        natural_gradient(residual, {"x": jnp.asarray(start)}, jnp.asarray(scale), iterations=1, damping=0.0,
                         metric=DenseJacobian(outputs)).params["x"]
        for scale, start in ((np.eye(3), x), (s, np.linalg.solve(s, x)))
    )  # fmt: skip
    np.testing.assert_allclose(s @ b, a, rtol=1e-6)
    assert np.abs(a - x).max() > 1e-2


def test_lbfgs_on_many_parameters():
    """Quadratic with known minimum and 500 parameters; goes on from a state."""
    curvature = jnp.linspace(1.0, 100.0, 500)

    def f(p, centre):
        return 0.5 * jnp.sum(curvature * (p["x"] - centre) ** 2)

    first = lbfgs(f, {"x": jnp.zeros(500)}, 1.0, iterations=120)
    assert float(first.value) < 1e-12
    again = lbfgs(f, first.params, 2.0, iterations=120, state=first.state)
    np.testing.assert_allclose(again.params["x"], 2.0, atol=1e-5)
    assert np.all(np.diff(np.asarray(first.history)[: int(first.taken)]) <= 0)


def test_lbfgs_rosenbrock():
    def f(p, data):
        return jnp.sum(rosenbrock(p, data) ** 2)

    result = lbfgs(f, {"x": jnp.array([-1.2, 1.0])}, iterations=100)
    np.testing.assert_allclose(result.params["x"], 1.0, atol=1e-7)


@pytest.mark.parametrize("method", [levenberg_marquardt, natural_gradient])
def test_bad_input(method):
    start = {"x": jnp.array([-1.2, 1.0])}
    with pytest.raises(PrecisionError, match="float64"):
        method(rosenbrock, {"x": jnp.zeros(2, jnp.float32)})
    with pytest.raises(InputError, match="not finite"):
        method(lambda p, d: p["x"] / 0.0, start)
    with pytest.raises(InputError, match="at most 1 "):
        method(rosenbrock, start, max_parameters=1)


def test_bad_options():
    start = {"x": jnp.array([-1.2, 1.0])}
    with pytest.raises(InputError, match="did you mean 'qr'"):
        levenberg_marquardt(rosenbrock, start, solver="qrr")
    with pytest.raises(InputError, match="momentum"):
        natural_gradient(rosenbrock, start, momentum=1.0)
    with pytest.raises(InputError, match="memory"):
        lbfgs(lambda p, d: jnp.sum(p["x"] ** 2), start, memory=0)
    assert jax.config.read("jax_enable_x64")
