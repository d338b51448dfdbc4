"""Regridding weights: conservation, exactness, wrap-around, refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops import regrid

LON = np.arange(24) * 15.0


def test_linear_is_exact_for_linear_and_closes_the_circle():
    weights = regrid.linear_weights(LON, np.array([352.5, 0.0, 359.0, -7.5]), 360.0)
    values = np.where(LON > 180, LON - 360, LON)  # linear through 0
    np.testing.assert_allclose(weights @ values, [-7.5, 0.0, -1.0, -7.5], atol=1e-12)
    assert np.allclose(weights.sum(1), 1)


def test_conservative_keeps_the_integral():
    rng = np.random.default_rng(0)
    s, t = np.sin(np.radians(np.linspace(-90, 90, 37))), np.sin(np.radians(np.linspace(-90, 90, 11)))
    a = regrid.conservative_weights(s, t)
    lon_edges, to_edges = np.arange(25) * 15.0 - 7.5, np.arange(8) * 360 / 7 - 100.0
    b = regrid.conservative_weights(lon_edges, to_edges, 360.0)
    f = rng.standard_normal((36, 24)) + 5
    g = np.einsum("ai,ij,bj->ab", a, f, b)
    before = np.einsum("i,ij,j->", np.diff(s), f, np.diff(lon_edges))
    after = np.einsum("a,ab,b->", np.diff(t), g, np.diff(to_edges))
    assert abs(after / before - 1) < 1e-13


def test_shift_equivariance():
    edges = np.arange(25) * 15.0
    to = np.arange(9) * 45.0
    b = regrid.conservative_weights(edges, to, 360.0)
    shifted = regrid.conservative_weights(edges, to + 45.0, 360.0)
    np.testing.assert_allclose(np.roll(b, -1, axis=0), shifted, atol=1e-15)


def test_masked_values_never_leak(x64):
    rng = np.random.default_rng(1)
    a = regrid.conservative_weights(np.linspace(-1, 1, 9), np.linspace(-1, 1, 4))
    b = regrid.conservative_weights(np.arange(13) * 30.0, np.arange(6) * 72.0, 360.0)
    f, valid = rng.standard_normal((8, 12)) + 280, rng.random((8, 12)) > 0.3
    dirty = np.where(valid, f, np.nan)
    mean, fraction = regrid.masked(jnp.asarray(dirty), jnp.asarray(valid), jnp.asarray(a), jnp.asarray(b))
    other, _ = regrid.masked(jnp.asarray(np.where(valid, f, 1e30)), jnp.asarray(valid), jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_array_equal(mean, other)
    # mean times fraction conserves the integral over the valid part
    before, after = np.where(valid, f, 0).mean(), np.asarray(mean * fraction).mean()
    assert abs(after / before - 1) < 1e-12
    assert np.asarray(mean)[np.asarray(fraction) > 0].min() >= f[valid].min() - 1e-9


def test_nearest_and_poles():
    weights = regrid.nearest_weights(np.array([0.0, 10.0, 20.0]), np.array([4.0, 6.0, 20.0, 24.0]))
    np.testing.assert_array_equal(weights.argmax(1), [0, 1, 2, 2])
    field = jnp.arange(6.0).reshape(2, 3)
    with_poles = regrid.with_poles(field)
    np.testing.assert_allclose(with_poles[0], 1.0)
    np.testing.assert_allclose(with_poles[-1], 4.0)


def test_refusals():
    with pytest.raises(InputError, match="ascending"):
        regrid.linear_weights(np.array([10.0, 0.0]), np.array([5.0]))
    with pytest.raises(InputError, match="outside"):
        regrid.linear_weights(np.array([0.0, 10.0]), np.array([11.0]))
    with pytest.raises(InputError, match="no source cell"):
        regrid.conservative_weights(np.array([0.0, 1.0]), np.array([0.0, 1.0, 2.0]))
    with pytest.raises(ShapeError, match="latitude before longitude"):
        regrid.separable(jnp.zeros((3, 2)), jnp.eye(2), jnp.eye(3))
    with pytest.raises(DTypeError, match="real"):
        regrid.masked(jnp.zeros((2, 3), complex), jnp.ones((2, 3), bool), jnp.eye(2), jnp.eye(3))
