"""Minimisers on functions with known minima, beside SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from sciax.core import x64
from sciax.core.errors import InputError, PrecisionError
from sciax.core.train.minimize import ssbroyden, strong_wolfe


def rosenbrock(params, data):
    x = params["x"]
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def quadratic(params, scale):
    x = params["x"]
    return 0.5 * jnp.sum(jnp.linspace(1, 1e4, x.size) * (x - scale) ** 2)


@pytest.mark.parametrize("n", [2, 10])
def test_rosenbrock_to_rounding(x64, n):
    start = {"x": jnp.where(jnp.arange(n) % 2 == 0, -1.2, 1.0)}
    result = ssbroyden(rosenbrock, start, iterations=300)
    np.testing.assert_allclose(result.params["x"], 1.0, atol=1e-8)
    assert result.value < 1e-18
    if n > 2:
        return  # there SciPy ends in the other minimum
    # Not many more iterations than SciPy's BFGS needs to the same value.
    both = jax.jit(jax.value_and_grad(lambda x: rosenbrock({"x": x}, None)))
    values = []

    def counted(x):
        value, gradient = both(jnp.asarray(x))
        return float(value), np.asarray(gradient)

    peer = scipy.optimize.minimize(
        counted, start["x"], jac=True, method="BFGS", tol=1e-10, callback=lambda x: values.append(counted(x)[0])
    )
    assert np.searchsorted(-np.asarray(result.history), -1e-12) < 1.5 * np.searchsorted(-np.asarray(values), -1e-12)
    assert peer.fun < 1e-12


def test_history_decreases_and_the_count_is_right(x64):
    result = ssbroyden(rosenbrock, {"x": jnp.array([-1.2, 1.0])}, iterations=15)
    history = np.asarray(result.history)
    assert int(result.taken) == 15 and np.isfinite(history).all() and (np.diff(history) <= 0).all()
    assert 15 < int(result.evaluations) < 60


def test_goes_on_with_new_data_and_the_same_matrix(x64):
    start = {"x": jnp.zeros(30)}
    first = ssbroyden(quadratic, start, jnp.asarray(1.0), iterations=200)
    np.testing.assert_allclose(first.params["x"], 1.0, atol=1e-7)
    again = ssbroyden(quadratic, start, jnp.asarray(2.0), iterations=8, state=first.state)
    cold = ssbroyden(quadratic, start, jnp.asarray(2.0), iterations=8)
    assert again.value < 1e-3 * cold.value


def test_a_flat_place_stalls_and_says_so(x64):
    result = ssbroyden(lambda params, data: jnp.sum(params["x"] * 0), {"x": jnp.ones(3)}, iterations=50)
    assert bool(result.stalled) and int(result.taken) <= 3


def test_line_search_conditions_hold(x64):
    def f(x):
        return jnp.sum((x - 3) ** 4) + jnp.sin(5 * x[0])

    both = jax.value_and_grad(f)
    x = jnp.array([0.0, 10.0])
    value, gradient = both(x)
    p = -gradient
    for first in (1e-6, 1.0, 1e3):
        found = strong_wolfe(both, x, p, value, gradient, jnp.asarray(first))
        assert bool(found.ok)
        a = float(found.point.step)
        assert found.point.value <= value + 1e-4 * a * (gradient @ p)
        assert abs(found.point.slope) <= 0.9 * abs(gradient @ p)
        np.testing.assert_allclose(found.point.value, f(x + a * p))


def test_the_search_turns_back_where_the_objective_is_not_defined(x64):
    def f(x):
        return jnp.sum(x - jnp.log(x))

    both = jax.value_and_grad(f)
    x = jnp.array([5.0])
    value, gradient = both(x)
    found = strong_wolfe(both, x, -gradient, value, gradient, jnp.asarray(100.0))
    assert bool(found.ok) and np.isfinite(float(found.point.value)) and found.point.value < value


def test_refusals():
    with pytest.raises(PrecisionError, match="float64"):
        ssbroyden(rosenbrock, {"x": jnp.zeros(2, jnp.float32)})
    with x64():
        with pytest.raises(InputError, match="dense matrix"):
            ssbroyden(rosenbrock, {"x": jnp.zeros(6000)})
        with pytest.raises(InputError, match="inexact"):
            ssbroyden(rosenbrock, {"x": jnp.zeros(2, int)})
        with pytest.raises(InputError, match="not finite"):
            ssbroyden(lambda p, data: jnp.log(p["x"][0]), {"x": -jnp.ones(2)})
