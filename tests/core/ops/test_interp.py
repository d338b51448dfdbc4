"""Interpolation: SciPy in three dimensions, observed order, policies outside, errors at run time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, RegularGridInterpolator

from sciax.core import x64
from sciax.core.errors import DTypeError, InputError, ShapeError, UnsupportedError
from sciax.core.ops.interp import METHODS, interp_cubic, interp_linear, spline_slopes


def test_linear_in_three_dimensions_is_scipys() -> None:
    rng = np.random.default_rng(0)
    axes = (np.linspace(0, 1, 5), np.sort(rng.uniform(0, 1, 6)), np.linspace(-2, 3, 4))
    values, points = rng.standard_normal((5, 6, 4)), rng.uniform(0, 1, (50, 3))
    points[:, 1] = rng.uniform(axes[1][0], axes[1][-1], 50)
    with x64():
        got = jax.jit(lambda v, p: interp_linear(v, p, axes=axes, outside="clip"))(values, points)
    np.testing.assert_allclose(got, RegularGridInterpolator(axes, values)(points), atol=1e-14)


@pytest.mark.parametrize("method", ["not-a-knot", "natural", "clamped"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_splines_are_scipys(method: str, n: int) -> None:
    rng = np.random.default_rng(n)
    x, y = np.cumsum(rng.uniform(0.5, 2, n)), rng.standard_normal(n)
    points = np.linspace(x[0], x[-1], 17)
    with x64():
        got = interp_cubic(y, points[:, None], axes=(x,), method=method)
    np.testing.assert_allclose(got, CubicSpline(x, y, bc_type=method)(points), atol=1e-13)


def test_periodic_spline_is_scipys() -> None:
    rng = np.random.default_rng(1)
    x, y = np.cumsum(rng.uniform(0.5, 2, 7)), rng.standard_normal(7)
    period = x[-1] - x[0] + 0.8
    spline = CubicSpline(np.append(x, x[0] + period), np.append(y, y[0]), bc_type="periodic")
    points = rng.uniform(-30, 30, 40)
    with x64():
        got = interp_cubic(y, points[:, None], axes=(x,), outside="periodic", period=period)
    np.testing.assert_allclose(got, spline(points), atol=1e-11)


def test_three_dimensional_cubic_reproduces_cubics() -> None:
    axes = tuple(np.linspace(0, 1, n) ** p for n, p in ((5, 1), (6, 2), (4, 1)))
    cubic = lambda x, y, z: (x**3 - x) * (2 * y**3 + y**2) * (z**3 + 1)  # noqa: E731
    points = np.random.default_rng(2).uniform(0, 1, (20, 3))
    with x64():
        values = cubic(*np.meshgrid(*axes, indexing="ij"))
        call = jax.jit(lambda p: interp_cubic(values, p, axes=axes, outside="clip"))
        np.testing.assert_allclose(call(points), cubic(*points.T), atol=1e-13)
        slope = jax.jit(jax.grad(lambda p: interp_cubic(values, p, axes=axes, outside="clip")))(
            jnp.asarray([0.3, 0.4, 0.6])
        )
    np.testing.assert_allclose(slope[0], (3 * 0.09 - 1) * (2 * 0.064 + 0.16) * (0.216 + 1), atol=1e-12)


@pytest.mark.parametrize(("method", "order"), [("linear", 2), ("not-a-knot", 4), ("catmull-rom", 3)])
def test_observed_order(method: str, order: int) -> None:
    errors = []
    points = np.linspace(0.5, 2.5, 400)[:, None]
    with x64():
        for n in (33, 65):
            x = np.linspace(0, 3, n)
            options = {} if method == "linear" else {"method": method}
            call = interp_linear if method == "linear" else interp_cubic
            errors.append(
                np.abs(np.asarray(call(np.sin(2 * x), points, axes=(x,), **options)) - np.sin(2 * points[:, 0])).max()
            )
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.25)


def test_catmull_rom_is_the_convolution_of_keys() -> None:
    y = np.random.default_rng(3).standard_normal(8)
    x = np.arange(8.0)

    def kernel(s: np.ndarray) -> np.ndarray:  # Keys 1981, a = -1/2
        s = np.abs(s)
        near, far = 1.5 * s**3 - 2.5 * s**2 + 1, -0.5 * s**3 + 2.5 * s**2 - 4 * s + 2
        return np.where(s < 1, near, np.where(s < 2, far, 0))

    ghosts = np.concatenate([[3 * y[0] - 3 * y[1] + y[2]], y, [3 * y[-1] - 3 * y[-2] + y[-3]]])
    points = np.linspace(0, 7, 41)
    want = kernel(np.subtract.outer(points, np.arange(-1.0, 9.0))) @ ghosts
    with x64():
        np.testing.assert_allclose(interp_cubic(y, points[:, None], axes=(x,), method="catmull-rom"), want, atol=1e-13)
        np.testing.assert_allclose(spline_slopes(x, "catmull-rom")[3] @ y, (y[4] - y[2]) / 2, atol=1e-14)


def test_policies_outside() -> None:
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 10.0, 40.0])
    out = jnp.asarray([[-0.5], [0.5], [2.5]])
    call = lambda policy, **more: interp_linear(y, out, axes=(x,), outside=policy, **more).tolist()  # noqa: E731
    assert call("clip") == [0.0, 5.0, 40.0]
    assert call("fill", fill=-1.0) == [-1.0, 5.0, -1.0]
    assert call("extrapolate") == [-5.0, 5.0, 55.0]
    assert call("periodic", period=3.0) == [20.0, 5.0, 20.0]
    gradient = jax.grad(lambda p: interp_linear(y, p, axes=(x,), outside="fill", fill=-1.0).sum())(out)
    assert gradient.tolist() == [[0.0], [10.0], [0.0]]
    # longitudes: a degree west of the first meridian
    lon = np.arange(0.0, 360.0, 90.0)
    assert interp_linear(lon, jnp.asarray([[-45.0]]), axes=(lon,), outside="periodic", period=360.0).tolist() == [135.0]


def test_a_point_outside_is_an_error_at_once_or_when_the_program_runs() -> None:
    x, y = np.linspace(0, 1, 5), np.arange(5.0)
    bad = jnp.asarray([[0.5], [1.5]])
    for call in (interp_linear, interp_cubic):
        with pytest.raises(InputError, match=r"point \(1,\)"):
            call(y, bad, axes=(x,))
        with pytest.raises(Exception, match="a point lies outside the grid"):
            jax.block_until_ready(jax.jit(lambda p, call=call: call(y, p, axes=(x,)))(bad))
        with pytest.raises(InputError):
            call(y, bad * jnp.nan, axes=(x,))
    inside = jax.jit(lambda p: interp_linear(y, p, axes=(x,)))(bad / 2)
    assert inside.tolist() == [1.0, 3.0]


def test_nodes_are_hit_exactly_in_float32() -> None:
    x = np.linspace(0, 1, 11)
    y = np.random.default_rng(4).standard_normal(11).astype(np.float32)
    points = x.astype(np.float32)[:, None]
    for method in METHODS:
        got = interp_cubic(y, points, axes=(x,), method=method, outside="clip")
        assert got.dtype == jnp.float32
        np.testing.assert_allclose(got, y, atol=2e-6)
    assert interp_linear(y, points, axes=(x**2,), outside="clip").dtype == jnp.float32


def test_errors() -> None:
    x, y, p = np.linspace(0, 1, 5), jnp.zeros(5), jnp.zeros((3, 1))
    for call, error in (
        (lambda: interp_linear(y, p, axes=(x,), outside="wrap"), InputError),
        (lambda: interp_linear(y, p, axes=(x,), outside=("clip", "clip")), InputError),
        (lambda: interp_linear(y, p, axes=(x,), outside="fill"), InputError),
        (lambda: interp_linear(y, p, axes=(x,), outside="periodic"), InputError),
        (lambda: interp_linear(y, p, axes=(x[::-1],)), InputError),
        (lambda: interp_linear(y, p, axes=x), InputError),
        (lambda: interp_linear(y, p, axes=(x[:4],)), ShapeError),
        (lambda: interp_linear(y, p[:, 0], axes=(x, x)), ShapeError),
        (lambda: interp_linear(y[:1], p, axes=(x[:1],)), ShapeError),
        (lambda: interp_linear(jnp.zeros(5, int), p, axes=(x,)), DTypeError),
        (lambda: interp_linear(y, p * 1j, axes=(x,)), DTypeError),
        (lambda: interp_cubic(y, p, axes=(x,), method="akima"), InputError),
        (lambda: interp_cubic(jnp.zeros(3000), p, axes=(np.arange(3000.0),)), UnsupportedError),
    ):
        with pytest.raises(error):
            call()
    assert interp_cubic(jnp.ones(3000), p, axes=(np.arange(3000.0),), method="catmull-rom").tolist() == [1, 1, 1]
