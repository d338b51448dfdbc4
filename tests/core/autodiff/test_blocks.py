"""Sums in blocks: value and derivatives of the plain sum, whatever the number of points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.autodiff import sum_in_blocks
from sciax.core.errors import InputError, ShapeError

pytestmark = pytest.mark.usefixtures("x64")


def energy(params, data):
    """An integer, and a weight for each point, ride along."""
    h = jnp.tanh(params["a"] @ data["x"] + params["b"][:, None])
    return jnp.sum(data["w"] * jnp.sum(h ** params["n"], axis=0))


def given(points):
    keys = jax.random.split(jax.random.key(points), 4)
    params = {"a": jax.random.normal(keys[0], (5, 2)), "b": jax.random.normal(keys[1], (5,)), "n": 3}
    return params, {
        "x": jax.random.normal(keys[2], (2, points)),
        "w": jax.random.uniform(keys[3], (points,)),
        "none": None,
    }


@pytest.mark.parametrize("points", [1, 7, 64, 101])
def test_value_gradient_and_curvature_are_those_of_the_sum(points):
    params, data = given(points)

    def blocked(a, w):
        return jnp.exp(-sum_in_blocks(energy, {**params, "a": a}, {**data, "w": w}, block=16))

    def plain(a, w):
        return jnp.exp(-energy({**params, "a": a}, {**data, "w": w}))

    at = params["a"], data["w"]
    np.testing.assert_allclose(jax.jit(blocked)(*at), plain(*at), rtol=1e-13)
    for argument in (0, 1):
        ours, expected = (jax.jit(jax.grad(f, argument))(*at) for f in (blocked, plain))
        np.testing.assert_allclose(ours, expected, rtol=1e-11, atol=1e-13)
    bend = [jax.jvp(jax.grad(lambda a, f=f: f(a, at[1])), (at[0],), (jnp.cos(at[0]),))[1] for f in (blocked, plain)]
    np.testing.assert_allclose(bend[0], bend[1], rtol=1e-10, atol=1e-13)


def test_no_array_as_long_as_the_points_is_kept_for_the_gradient():
    params, data = given(4096)
    step = jax.jit(jax.grad(lambda a: sum_in_blocks(energy, {**params, "a": a}, data, block=64)))
    plain = jax.jit(jax.grad(lambda a: energy({**params, "a": a}, data)))
    ours, theirs = (f.lower(params["a"]).compile().memory_analysis().temp_size_in_bytes for f in (step, plain))
    assert ours < theirs / 4


@pytest.mark.parametrize(
    ("data", "block", "error"),
    [
        ({"x": jnp.ones((2, 4)), "w": jnp.ones(3)}, 2, ShapeError),
        ({"x": jnp.ones(4)}, 0, InputError),
        ({}, 2, ShapeError),
    ],
)
def test_refusals(data, block, error):
    with pytest.raises(error):
        sum_in_blocks(energy, {}, data, block=block)
