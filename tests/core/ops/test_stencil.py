"""Finite differences: published weights, observed order, exactness on polynomials, errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core import x64
from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.stencil import difference, difference_stretched, fornberg_weights, halo, laplacian, stencil_offsets


def test_published_weights() -> None:
    # Fornberg 1988, tables 1 (centred) and 3 (one-sided)
    np.testing.assert_allclose(fornberg_weights(range(-2, 3), 0, 4)[1], np.array([1, -8, 0, 8, -1]) / 12, atol=1e-15)
    np.testing.assert_allclose(fornberg_weights(range(-2, 3), 0, 4)[4], [1, -4, 6, -4, 1], atol=1e-13)
    want = np.array([2, -27, 270, -490, 270, -27, 2]) / 180
    np.testing.assert_allclose(fornberg_weights(range(-3, 4), 0, 2)[2], want, atol=1e-14)
    eighth = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / 5040
    np.testing.assert_allclose(fornberg_weights(range(-4, 5), 0, 2)[2], eighth, atol=1e-14)
    np.testing.assert_allclose(fornberg_weights(range(5), 0, 1)[1], np.array([-25, 48, -36, 16, -3]) / 12, atol=1e-14)
    np.testing.assert_allclose(fornberg_weights(range(4), 0, 2)[2], [2, -5, 4, -1], atol=1e-14)
    # interpolation half-way (order 0) and the staggered first derivative
    np.testing.assert_allclose(
        fornberg_weights([-1.5, -0.5, 0.5, 1.5], 0, 1)[0], np.array([-1, 9, 9, -1]) / 16, atol=1e-15
    )
    np.testing.assert_allclose(
        fornberg_weights([-1.5, -0.5, 0.5, 1.5], 0, 1)[1], np.array([1, -27, 27, -1]) / 24, atol=1e-15
    )


def test_weights_are_exact_on_polynomials() -> None:
    rng = np.random.default_rng(0)
    nodes, at = rng.uniform(-1, 1, 8), 0.3
    weights = fornberg_weights(nodes, at, 7)
    for degree in range(8):
        p = np.polynomial.Polynomial(rng.standard_normal(degree + 1))
        for order in range(8):
            scale = np.abs(weights[order]).sum()
            assert abs(weights[order] @ p(nodes) - (p.deriv(order)(at) if order else p(at))) < 1e-13 * scale


@pytest.mark.parametrize("boundary", ["periodic", "one-sided", "ghost"])
@pytest.mark.parametrize(
    ("order", "accuracy", "side"),
    [(1, 2, "centred"), (2, 4, "centred"), (3, 2, "centred"), (1, 3, "forward"), (2, 2, "backward")],
)
def test_observed_order(boundary: str, order: int, accuracy: int, side: str) -> None:
    turns = [np.sin, np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v)]
    errors = []
    sizes = (128, 256)
    with x64():
        for n in sizes:
            h = 2 * np.pi / n
            left, right = halo(order, accuracy, side) if boundary == "ghost" else (0, 0)
            x = np.arange(-left, n + right) * h
            got = difference(np.sin(x + 0.4), h, order=order, accuracy=accuracy, side=side, boundary=boundary)
            errors.append(np.abs(np.asarray(got) - turns[order % 4](np.arange(n) * h + 0.4)).max())
    observed = np.log2(errors[0] / errors[1])
    assert observed == pytest.approx(accuracy, abs=0.15)
    assert errors[1] < 2 * (2 * np.pi / sizes[1]) ** accuracy


def test_stretched_grid_observed_order_and_polynomials() -> None:
    errors = []
    with x64():
        for n in (40, 80):
            s = np.linspace(0, 1, n)
            x = s + 0.2 * np.sin(2 * np.pi * s) / (2 * np.pi)
            got = difference_stretched(np.exp(x), grid=x, accuracy=4)
            errors.append(np.abs(np.asarray(got) - np.exp(x)).max())
        assert np.log2(errors[0] / errors[1]) == pytest.approx(4, abs=0.2)
        assert errors[1] < 1e-6
        x = np.sort(np.random.default_rng(3).uniform(0, 1, 12))
        np.testing.assert_allclose(difference_stretched(x**4 - x, grid=x, order=2, accuracy=4), 12 * x**2, atol=1e-6)
        # periodic: a wave on an irregular grid
        x = (np.arange(120) + 0.2 * np.sin(np.arange(120))) / 120
        got = difference_stretched(np.sin(2 * np.pi * x), grid=x, accuracy=4, boundary="periodic", period=1.0)
        np.testing.assert_allclose(got, 2 * np.pi * np.cos(2 * np.pi * x), atol=2e-4)


def test_laplacian_of_three_dimensions() -> None:
    n = 32
    with x64():
        x, y, z = np.meshgrid(*(np.arange(n) * 2 * np.pi / n for _ in range(3)), indexing="ij")
        u = np.sin(x) * np.cos(2 * y) + np.sin(z)
        got = laplacian(u, 2 * np.pi / n, accuracy=6)
    np.testing.assert_allclose(got, -5 * np.sin(x) * np.cos(2 * y) - np.sin(z), atol=5e-4)


def test_float32_does_not_overflow_in_powers_of_the_spacing() -> None:
    u = jnp.asarray(np.arange(12) ** 2, jnp.float32) * 1e-30
    got = difference(u, 1e-15, order=2)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, 2.0, rtol=1e-4)


def test_spacing_can_be_learned() -> None:
    with x64():
        u = np.sin(np.arange(9.0))
        slope = jax.grad(lambda h: difference(u, h, order=2).sum())(jnp.asarray(0.5))
        np.testing.assert_allclose(slope, -2 / 0.5 * float(difference(u, 0.5, order=2).sum()), rtol=1e-12)


def test_halo_and_offsets() -> None:
    assert list(stencil_offsets(1, 4)) == [-2, -1, 0, 1, 2] == list(stencil_offsets(1, 3))
    assert list(stencil_offsets(2, 1, "forward")) == [0, 1, 2]
    assert halo(1, 2, "backward") == (2, 0)


def test_errors() -> None:
    u = jnp.zeros(6)
    for call, error in (
        (lambda: difference(u, 0.1, boundary="periodc"), InputError),
        (lambda: difference(u, 0.1, side="left"), InputError),
        (lambda: difference(u, 0.1, order=0), InputError),
        (lambda: difference(u, 0.1, accuracy=0), InputError),
        (lambda: difference(u, -0.1), InputError),
        (lambda: difference(u, 0.1, axis=1), ShapeError),
        (lambda: difference(u, 0.1, order=4, accuracy=4), ShapeError),
        (lambda: difference(jnp.zeros(6, int), 0.1), DTypeError),
        (lambda: difference_stretched(u, grid=np.zeros(6)), InputError),
        (lambda: difference_stretched(u, grid=np.arange(5.0)), ShapeError),
        (lambda: difference_stretched(u, grid=np.arange(6.0), boundary="periodic"), InputError),
        (lambda: difference_stretched(u, grid=np.arange(6.0), boundary="periodic", period=4.0), InputError),
        (lambda: jax.jit(lambda x: difference_stretched(u, grid=x))(jnp.arange(6.0)), InputError),
        (lambda: laplacian(jnp.zeros((6, 6)), jnp.ones(3)), ShapeError),
        (lambda: fornberg_weights([0.0, 0.0], 0, 1), InputError),
        (lambda: fornberg_weights([0.0, 1.0], 0, 2), InputError),
    ):
        with pytest.raises(error):
            call()
