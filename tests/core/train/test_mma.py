"""Moving asymptotes: Svanberg's own problems with their published optima, multipliers, infeasible starts, bad input."""

import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.core.train.minimize._mma import mma, mma_start, mma_update

INERTIA = np.array([61.0, 37.0, 19.0, 7.0, 1.0])


def cantilever(x):
    """Svanberg 1987, section 5.1: weight of a beam of five boxes whose tip may sink by no more than one unit."""
    values = np.array([0.0624 * x.sum(), np.sum(INERTIA / x**3) - 1.0])
    return values, np.stack([np.full(5, 0.0624), -3 * INERTIA / x**4])


def spheres(x):
    """Svanberg's three-variable example: nearest point to the origin in the lens of two balls of radius 3."""
    a, b = np.array([5.0, 2.0, 1.0]), np.array([3.0, 4.0, 3.0])
    values = np.array([x @ x, (x - a) @ (x - a) - 9.0, (x - b) @ (x - b) - 9.0])
    return values, np.stack([2 * x, 2 * (x - a), 2 * (x - b)])


@pytest.mark.parametrize("conservative", [False, True])
def test_cantilever_reaches_the_published_optimum(conservative):
    r = mma(cantilever, np.full(5, 5.0), 1.0, 10.0, iterations=60, conservative=conservative, tolerance=1e-9)
    np.testing.assert_allclose(r.x, [6.016, 5.309, 4.494, 3.502, 2.153], atol=1e-3)  # Svanberg 1987, table I
    assert r.value == pytest.approx(1.340, abs=5e-4) and r.violation < 1e-6
    # stationarity with the multiplier of the last subproblem
    _, slopes = cantilever(r.x)
    np.testing.assert_allclose(slopes[0] + r.multipliers @ slopes[1:], 0.0, atol=1e-5)


@pytest.mark.parametrize("conservative", [False, True])
def test_two_constraints_active_at_once(conservative):
    r = mma(spheres, [4.0, 3.0, 2.0], 0.0, 5.0, iterations=60, conservative=conservative, tolerance=1e-9)
    np.testing.assert_allclose(r.x, [2.0175, 1.7800, 1.2377], atol=1e-3)
    values, slopes = spheres(r.x)
    np.testing.assert_allclose(values[1:], 0.0, atol=1e-5)
    np.testing.assert_allclose(slopes[0] + r.multipliers @ slopes[1:], 0.0, atol=1e-4)


def test_bounds_only_and_an_infeasible_start():
    target = np.random.default_rng(0).uniform(-0.5, 1.5, 30)

    def bowl(x):
        return np.array([np.sum((x - target) ** 2)]), 2 * (x - target)[None]

    r = mma(bowl, np.full(30, 0.5), 0.0, 1.0, iterations=60, conservative=True)
    np.testing.assert_allclose(r.x, np.clip(target, 0, 1), atol=1e-3)
    assert np.all(np.diff(r.history[:, 0]) <= 1e-6)  # the conservative form never goes up without constraints
    r = mma(spheres, [0.0, 0.0, 0.0], 0.0, 5.0, iterations=60)
    assert r.history[0, 1] > 1 and r.violation < 1e-6
    np.testing.assert_allclose(r.x, [2.0175, 1.7800, 1.2377], atol=1e-3)


def test_constraints_that_exclude_each_other_share_the_violation():
    """The sum of what is violated is least, 0.4, anywhere between the two."""

    def apart(x):
        return np.array([0.0, x[0] - 0.2, 0.6 - x[0]]), np.array([[0.0], [1.0], [-1.0]])

    r = mma(apart, [0.9], 0.0, 1.0, iterations=60)
    assert 0.19 < r.x[0] < 0.61 and r.violation < 0.41


def test_going_on_from_a_state_is_the_same_run():
    whole = mma(cantilever, np.full(5, 5.0), 1.0, 10.0, iterations=12)
    half = mma(cantilever, np.full(5, 5.0), 1.0, 10.0, iterations=6)
    rest = mma(cantilever, None, 1.0, 10.0, iterations=6, state=half.state)
    np.testing.assert_array_equal(rest.state.x, whole.state.x)
    values, slopes = cantilever(np.full(5, 5.0))
    state, dual, near = mma_update(mma_start(np.full(5, 5.0), 1), values, slopes, np.full(5, 1.0), np.full(5, 10.0))
    np.testing.assert_allclose(near(np.full(5, 5.0)), values, rtol=1e-12)  # the replacement agrees where it was made
    assert dual.shape == (1,) and state.iteration == 1


def test_bad_input():
    with pytest.raises(InputError, match="outside its bounds"):
        mma(cantilever, np.full(5, 11.0), 1.0, 10.0)
    with pytest.raises(InputError, match="finite bounds"):
        mma(cantilever, np.full(5, 5.0), 1.0, np.inf)
    with pytest.raises(InputError, match="iterations"):
        mma(cantilever, np.full(5, 5.0), 1.0, 10.0, iterations=0)
    with pytest.raises(ShapeError):
        mma(lambda x: (np.zeros(2), np.zeros((3, 5))), np.full(5, 5.0), 1.0, 10.0)
    with pytest.raises(ConvergenceError, match="not finite"):
        mma(lambda x: (np.array([np.nan]), np.zeros((1, 5))), np.full(5, 5.0), 1.0, 10.0)
