"""Spherical-harmonic transforms: exactness, adjoints, grids, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, PrecisionError, ShapeError
from sciax.core.ops import sphere
from sciax.core.ops.sphere import SphereGrid, sphere_tables

# One compiled program a shape instead of dozens of small ones.
synthesis, analysis = jax.jit(sphere.synthesis), jax.jit(sphere.analysis)
vector_synthesis, vector_analysis = jax.jit(sphere.vector_synthesis), jax.jit(sphere.vector_analysis)

KINDS = ("gauss", "equiangular", "equiangular_poles")


def random_coefficients(tables, lead=(), seed=0, top=False):
    rng = np.random.default_rng(seed)
    c = np.triu(
        rng.standard_normal((*lead, *tables.spectral_shape)) + 1j * rng.standard_normal((*lead, *tables.spectral_shape))
    )
    c[..., 0, :] = c[..., 0, :].real
    if not top:
        c[..., -1] = 0
    return c


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nlat, nlon, truncation", [(64, 128, 42), (19, 36, 15)])
def test_round_trip_is_exact(x64, kind, nlat, nlon, truncation):
    tables = sphere_tables(SphereGrid(kind, nlat, nlon), truncation)
    c = random_coefficients(tables, (2,), top=True)
    back = analysis(synthesis(jnp.asarray(c), tables), tables)
    assert np.abs(back - c).max() < 1e-13


def test_round_trip_t170(x64):
    tables = sphere_tables(SphereGrid("gauss", 256, 512), 170)
    c = random_coefficients(tables)
    back = jax.jit(lambda c, t: analysis(synthesis(c, t), t))(jnp.asarray(c), tables)
    assert np.abs(back - c).max() < 1e-12


def test_round_trip_float32():
    tables = sphere_tables(SphereGrid("gauss", 64, 128), 42)
    c = random_coefficients(tables).astype(np.complex64)
    back = analysis(synthesis(jnp.asarray(c), tables), tables)
    assert back.dtype == jnp.complex64
    assert np.linalg.norm(back - c) / np.linalg.norm(c) < 5e-7


@pytest.mark.parametrize("kind", KINDS)
def test_degree_up_to_the_grid_limit(x64, kind):
    """A grid with poles resolves nlat - 2, not half of it."""
    grid = SphereGrid(kind, 17, 36)
    tables = sphere_tables(grid, grid.max_degree, spare=0)
    c = random_coefficients(tables, top=True)
    back = analysis(synthesis(jnp.asarray(c), tables), tables)
    assert grid.max_degree >= 15
    assert np.abs(back - c).max() < 1e-13


def test_values_match_scipy(x64):
    from scipy.special import sph_harm_y

    grid = SphereGrid("gauss", 24, 48)
    tables = sphere_tables(grid, 15)
    theta, phi = np.radians(90 - grid.latitude), np.radians(grid.longitude)
    for m, l in ((0, 0), (0, 7), (3, 10), (15, 15), (1, 1)):
        c = np.zeros(tables.spectral_shape, complex)
        c[m, l] = 1 - (0.5j if m else 0)
        want = (-1) ** m * np.sqrt(4 * np.pi) * sph_harm_y(l, m, theta[:, None], phi) * c[m, l]
        want = want.real * (2 if m else 1)
        np.testing.assert_allclose(synthesis(jnp.asarray(c), tables), want, atol=5e-14)


def test_mean_and_variance(x64):
    tables = sphere_tables(SphereGrid("gauss", 32, 64), 20)
    c = random_coefficients(tables)
    field = np.asarray(synthesis(jnp.asarray(c), tables))
    weights = tables.grid.weights[:, None] / 2 / 64
    np.testing.assert_allclose((field * weights).sum(), c[0, 0].real, atol=1e-13)
    power = np.abs(c) ** 2
    np.testing.assert_allclose((field**2 * weights).sum(), power[0].sum() + 2 * power[1:].sum(), rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_integrate_polynomials(kind):
    grid = SphereGrid(kind, 21, 4)
    x, w = grid.sin_latitude, grid.weights
    for degree in range(0, grid.max_degree, 2):
        np.testing.assert_allclose(w @ x**degree, 2 / (degree + 1), atol=1e-14)
    assert abs(w.sum() - 2) < 1e-14
    assert (np.diff(grid.latitude) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_adjoint(x64, kind):
    """<A x, y> = <x, A^T y> for both transforms, as JAX transposes them."""
    tables = sphere_tables(SphereGrid(kind, 16, 32), 10)
    c = jnp.asarray(random_coefficients(tables, top=True))
    rng = np.random.default_rng(1)
    y = jnp.asarray(rng.standard_normal((16, 32)))

    def real_dot(a, b):
        return jnp.sum(a.real * b.real) + jnp.sum(a.imag * b.imag)

    _, pull = jax.vjp(lambda c: synthesis(c, tables), c)
    (back,) = pull(y)
    # JAX's cotangents of complex inputs are conjugated
    left, right = jnp.vdot(synthesis(c, tables), y), real_dot(c, back.conj())
    assert abs(left - right) < 1e-12 * abs(left) + 1e-12
    _, pull = jax.vjp(lambda f: analysis(f, tables), y)
    (field,) = pull(c.conj())
    left, right = real_dot(analysis(y, tables), c), jnp.vdot(field, y)
    assert abs(left - right) < 1e-12 * abs(left) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_vector_round_trip_and_poles(x64, kind):
    tables = sphere_tables(SphereGrid(kind, 33, 64), 20)
    vorticity, divergence = random_coefficients(tables, seed=1), random_coefficients(tables, seed=2)
    vorticity[0, 0] = divergence[0, 0] = 0
    u, v = vector_synthesis(jnp.asarray(vorticity), jnp.asarray(divergence), tables, 3.0)
    assert np.isfinite(u).all() and np.isfinite(v).all()
    back = vector_analysis(u, v, tables, 3.0)
    assert np.abs(back[0] - vorticity).max() < 1e-12
    assert np.abs(back[1] - divergence).max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_solid_rotation(x64, kind):
    """u = a W cos(lat) has vorticity 2 W sin(lat) and no divergence, whatever the axis; poles included."""
    grid = SphereGrid(kind, 17, 32)
    tables = sphere_tables(grid, 10)
    lat, lon = np.radians(grid.latitude)[:, None], np.radians(grid.longitude)
    alpha, rate, radius = 0.7, 1.3, 2.0
    u = radius * rate * (np.cos(lat) * np.cos(alpha) + np.sin(lat) * np.cos(lon) * np.sin(alpha))
    v = -radius * rate * np.sin(lon) * np.sin(alpha) + 0 * lat
    vorticity, divergence = vector_analysis(jnp.asarray(u), jnp.asarray(v), tables, radius)
    want = 2 * rate * (np.sin(lat) * np.cos(alpha) - np.cos(lat) * np.cos(lon) * np.sin(alpha))
    np.testing.assert_allclose(synthesis(vorticity, tables), want, atol=1e-12)
    assert np.abs(divergence).max() < 1e-13
    u2, v2 = vector_synthesis(vorticity, divergence, tables, radius)
    np.testing.assert_allclose(u2, u, atol=1e-12)
    np.testing.assert_allclose(v2, v, atol=1e-12)


def test_laplacian_and_slope(x64):
    tables = sphere_tables(SphereGrid("gauss", 16, 32), 8)
    mu = tables.grid.sin_latitude[:, None] + np.zeros(32)
    c = analysis(jnp.asarray(mu**3), tables)
    slope = synthesis(sphere.cos_d_dlat(c, tables), tables)
    np.testing.assert_allclose(slope, 3 * mu**2 * (1 - mu**2), atol=1e-14)
    lap = synthesis(sphere.laplacian(c, tables, 2.0), tables)
    np.testing.assert_allclose(lap, (6 * mu - 12 * mu**3) / 4, atol=1e-13)
    np.testing.assert_allclose(sphere.inverse_laplacian(sphere.laplacian(c, tables, 2.0), tables, 2.0), c, atol=1e-15)


def test_tables_are_arguments_not_constants(x64):
    """A program that took the tables as constants would spend seconds folding them."""
    tables = sphere_tables(SphereGrid("gauss", 32, 64), 20)
    c = jnp.zeros(tables.spectral_shape, complex)
    closed = jax.make_jaxpr(lambda c, t: sphere.analysis(sphere.synthesis(c, t), t))(c, tables)
    assert sum(np.size(x) for x in closed.consts) < 100


def test_refusals(x64):
    grid = SphereGrid("gauss", 16, 32)
    tables = sphere_tables(grid, 10)
    with pytest.raises(ShapeError, match="latitude before longitude"):
        sphere.analysis(jnp.zeros((32, 16)), tables)
    with pytest.raises(DTypeError, match="complex"):
        sphere.synthesis(jnp.zeros(tables.spectral_shape), tables)
    with pytest.raises(DTypeError, match="real"):
        sphere.analysis(jnp.zeros((16, 32), complex), tables)
    with pytest.raises(InputError, match="too few latitudes"):
        sphere_tables(grid, 16)
    with pytest.raises(InputError, match="too few longitudes"):
        sphere_tables(SphereGrid("gauss", 16, 20), 12)
    with pytest.raises(InputError, match="spare"):
        sphere.vector_analysis(jnp.zeros((16, 32)), jnp.zeros((16, 32)), sphere_tables(grid, 10, spare=0))
    with pytest.raises(InputError, match="gauss"):
        SphereGrid("gaus", 16, 32)  # type: ignore[arg-type]


def test_float64_tables_need_x64():
    with pytest.raises(PrecisionError, match="x64"):
        sphere_tables(SphereGrid("gauss", 8, 16), 4, np.float64)
