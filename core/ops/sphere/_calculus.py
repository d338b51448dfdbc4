"""Derivatives on the sphere in spectral space, and the vector transforms built on them.

A vector field is carried by its vorticity and divergence. With psi, chi their inverse Laplacians (stream function, velocity
potential), u cos(lat) = (d_lon chi - cos d_lat psi) / a and v cos(lat) = (d_lon psi + cos d_lat chi) / a.
cos(lat) d/dlat raises and lowers the degree by one; the spare degree of the tables holds what it raises.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from sciax.core.errors import InputError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.sphere._grids import SphereGrid
from sciax.core.ops.sphere._tables import SphereTables, sphere_tables
from sciax.core.ops.sphere._transform import (
    _check_coefficients,
    _check_field,
    _dense,
    _random_coefficients,
    analysis_with,
    synthesis_with,
)


def laplacian(c: Complex[Array, "*batch m l"], tables: SphereTables, radius: float = 1.0):
    """-l (l + 1) / a^2 times the coefficients."""
    l = tables.degree.astype(c.real.dtype)
    return c * (-l * (l + 1) / radius**2)


def inverse_laplacian(c: Complex[Array, "*batch m l"], tables: SphereTables, radius: float = 1.0):
    """Zero-mean solution of laplacian(x) = c (the mean of c is dropped)."""
    l = tables.degree.astype(c.real.dtype)
    return c * jnp.where(l > 0, -(radius**2) / jnp.where(l > 0, l * (l + 1), 1), 0)


def d_dlon(c: Complex[Array, "*batch m l"], tables: SphereTables):
    """i m c."""
    m = tables.order.astype(c.real.dtype)[:, None]
    return (1j * m).astype(c.dtype) * c


def cos_d_dlat(c: Complex[Array, "*batch m l"], tables: SphereTables):
    """Coefficients of cos(lat) df/dlat; exact when the top degree of c is empty."""
    real = c.real.dtype
    l, eps = tables.degree.astype(real), tables.epsilon.astype(real)
    # (1 - mu^2) dP_l/dmu = (l + 1) eps_l P_{l-1} - l eps_{l+1} P_{l+1}
    down = ((l + 1) * eps * c)[..., 1:]
    up = (l * c)[..., :-1] * eps[:, 1:]
    pad = [(0, 0)] * (c.ndim - 1)
    return jnp.pad(down, [*pad, (0, 1)]) - jnp.pad(up, [*pad, (1, 0)])


def cos_d_dlat_weak(c: Complex[Array, "*batch m l"], tables: SphereTables):
    """Coefficients of (1/cos) d/dlat (cos^2 g) from those of g = c: the adjoint rule, by parts (top degree is inexact)."""
    real = c.real.dtype
    l, eps = tables.degree.astype(real), tables.epsilon.astype(real)
    # -integral of g (1 - mu^2) dP_l/dmu = l eps_{l+1} g_{l+1} - (l + 1) eps_l g_{l-1}
    above = c[..., 1:] * (l * 1.0)[:, :-1] * eps[:, 1:]
    below = c[..., :-1] * ((l + 1) * eps)[:, 1:]
    pad = [(0, 0)] * (c.ndim - 1)
    return jnp.pad(above, [*pad, (0, 1)]) - jnp.pad(below, [*pad, (1, 0)])


def truncate(c: Complex[Array, "*batch m l"], tables: SphereTables):
    """Empty the spare degree."""
    return c if tables.lmax == tables.truncation else c.at[..., -1].set(0)


def _need_spare(tables: SphereTables, who: str) -> None:
    if tables.lmax == tables.truncation:
        raise InputError(
            f"{who} needs tables with a spare degree",
            got=f"lmax = {tables.lmax} = truncation",
            remedy="sphere_tables(grid, truncation, spare=1)",
        )


def wind_over_radius(vorticity, divergence, tables: SphereTables):
    """Coefficients of (u cos(lat), v cos(lat)) / a."""
    psi, chi = inverse_laplacian(vorticity, tables), inverse_laplacian(divergence, tables)
    return d_dlon(chi, tables) - cos_d_dlat(psi, tables), d_dlon(psi, tables) + cos_d_dlat(chi, tables)


def _synthesis_flops(vorticity, divergence, tables, radius=1.0) -> float:
    from sciax.core.ops.sphere._transform import _transform_flops

    return 2 * _transform_flops(vorticity, tables)


def _dense_wind(tables: SphereTables):
    """(u, v)[m, l, lat, lon] of a unit stream function, by finite-difference-free differentiation of SciPy's harmonics."""
    from scipy.special import sph_harm_y

    grid, mmax, lmax = tables.grid, tables.truncation, tables.lmax
    theta, phi = np.arccos(grid.sin_latitude), np.radians(grid.longitude)
    east = np.zeros((mmax + 1, lmax + 1, grid.nlat, grid.nlon), dtype=complex)
    north = np.zeros_like(east)
    y = _dense(mmax, lmax, grid)
    sine = np.sin(theta)[:, None]
    for m in range(mmax + 1):
        for l in range(m, lmax + 1):
            _, slope = sph_harm_y(l, m, theta[:, None], phi[None, :], diff_n=1)
            east[m, l] = 1j * m * y[m, l] / sine  # d_lon / cos
            north[m, l] = -((-1) ** m) * np.sqrt(4 * np.pi) * slope[..., 0]  # d_lat = -d_theta
    return east, north


def _oracle_vector_synthesis(vorticity, divergence, tables, radius=1.0):
    east, north = _dense_wind(tables)
    double = np.where(np.arange(tables.truncation + 1) == 0, 1.0, 2.0)
    l = np.arange(tables.lmax + 1)
    inverse = np.where(l > 0, -radius / np.maximum(l * (l + 1), 1), 0.0)
    mask = np.triu(np.ones(tables.spectral_shape))
    mask[:, -1] = 0
    psi = np.asarray(vorticity) * inverse * mask * double[:, None]
    chi = np.asarray(divergence) * inverse * mask * double[:, None]

    def total(c, basis):
        return np.einsum("...ml,mlyx->...yx", c, basis).real

    return total(chi, east) - total(psi, north), total(psi, east) + total(chi, north)


def _vector_samples(rng: np.random.Generator):
    for label, grid, truncation in (
        ("ordinary", SphereGrid("gauss", 8, 16), 5),
        ("badly scaled, odd sizes", SphereGrid("equiangular", 9, 15), 5),
    ):
        tables = sphere_tables(grid, truncation)
        size = 1e-6 if "scaled" in label else 1.0
        pair = [size * _random_coefficients(rng, tables, (2,)) for _ in range(2)]
        for c in pair:
            c[..., 0, 0] = 0
            c[..., -1] = 0
        yield Sample(label, (*pair, tables), kwargs={"radius": 2.0}, fixed=(2,))


@operator(
    "sphere.vector_synthesis",
    oracle=_oracle_vector_synthesis,
    samples=_vector_samples,
    flops=_synthesis_flops,
)
def vector_synthesis(
    vorticity: Complex[Array, "*batch m l"],
    divergence: Complex[Array, "*batch m l"],
    tables: SphereTables,
    radius: float = 1.0,
) -> tuple[Float[Array, "*batch lat lon"], Float[Array, "*batch lat lon"]]:
    """Eastward and northward components of the vector field with the given vorticity and divergence.

    Means and the spare degree of the arguments are dropped: no vector field on the sphere has them.

    Args:
        radius: of the sphere, in the length unit of the result.

    Raises:
        InputError: tables without a spare degree.
        ShapeError, DTypeError: coefficients that do not fit, or are real.
    """
    _need_spare(tables, "sphere.vector_synthesis")
    vorticity, divergence = jnp.asarray(vorticity), jnp.asarray(divergence)
    for c in (vorticity, divergence):
        _check_coefficients(c, tables, "sphere.vector_synthesis")
    pair = wind_over_radius(truncate(vorticity, tables), truncate(divergence, tables), tables)
    both = jnp.stack(jnp.broadcast_arrays(*pair))
    lead = both.shape[:-2]
    flat = both.reshape(int(np.prod(lead)), *tables.spectral_shape)
    source = tables if tables.vector is None else tables.vector
    field = synthesis_with(flat, tables, source.synthesis_even, source.synthesis_odd)
    if tables.vector is None:
        field = field / tables.cos_latitude.astype(field.dtype)[:, None]
    field = radius * field.reshape(*lead, *field.shape[-2:])
    return field[0], field[1]


def _oracle_vector_analysis(u, v, tables, radius=1.0):
    # Least squares: the coefficients whose dense synthesis reproduces the wind.
    shape = tables.spectral_shape
    index = [
        (m, l, part)
        for m in range(shape[0])
        for l in range(max(m, 1), shape[1] - 1)
        for part in ((1.0,) if m == 0 else (1.0, 1.0j))
    ]
    u, v = np.asarray(u, float), np.asarray(v, float)
    lead = u.shape[:-2]
    basis = []
    for kind in range(2):
        for m, l, part in index:
            c = np.zeros(shape, complex)
            c[m, l] = part
            pair = (c, 0 * c) if kind == 0 else (0 * c, c)
            basis.append(np.concatenate([x.ravel() for x in _oracle_vector_synthesis(*pair, tables, radius)]))
    right = np.concatenate([u.reshape(*lead, -1), v.reshape(*lead, -1)], axis=-1)
    x = right @ np.linalg.pinv(np.array(basis).T).T
    out = np.zeros((2, *lead, *shape), complex)
    for position, (m, l, part) in enumerate(index):
        out[0][..., m, l] += part * x[..., position]
        out[1][..., m, l] += part * x[..., position + len(index)]
    return out[0], out[1]


def _vector_analysis_samples(rng: np.random.Generator):
    for sample in _vector_samples(rng):
        vorticity, divergence, tables = sample.args
        u, v = _oracle_vector_synthesis(vorticity, divergence, tables, 2.0)
        yield Sample(sample.label, (u, v, tables), kwargs={"radius": 2.0}, fixed=(2,))


@operator(
    "sphere.vector_analysis",
    oracle=_oracle_vector_analysis,
    samples=_vector_analysis_samples,
    flops=lambda u, v, tables, radius=1.0: _synthesis_flops(u, v, tables),
    unsupported={"complex": "fields are real; transform real and imaginary part each on their own"},
)
def vector_analysis(
    u: Float[Array, "*batch lat lon"],
    v: Float[Array, "*batch lat lon"],
    tables: SphereTables,
    radius: float = 1.0,
) -> tuple[Complex[Array, "*batch m l"], Complex[Array, "*batch m l"]]:
    """Vorticity and divergence of a vector field given by eastward and northward components.

    The derivatives act on the harmonics, by parts, so nothing is differenced on the grid. The spare degree is returned empty.

    Raises:
        InputError: tables without a spare degree.
        ShapeError, DTypeError: fields that do not fit, or are complex.
    """
    _need_spare(tables, "sphere.vector_analysis")
    u, v = jnp.asarray(u), jnp.asarray(v)
    for field in (u, v):
        _check_field(field, tables, "sphere.vector_analysis")
    both = jnp.stack(jnp.broadcast_arrays(u, v))
    lead = both.shape[:-2]
    flat = both.reshape(int(np.prod(lead)), *both.shape[-2:])
    if tables.vector is None:
        flat = flat / tables.cos_latitude.astype(flat.dtype)[:, None]
        c = analysis_with(flat, tables, tables.analysis_even, tables.analysis_odd)
    else:
        c = analysis_with(flat, tables, tables.vector.analysis_even, tables.vector.analysis_odd)
    cu, cv = c.reshape(*lead, *c.shape[-2:]) / radius
    return curl_divergence(cu, cv, tables)


def curl_divergence(cu, cv, tables: SphereTables):
    """Vorticity and divergence from the coefficients of u / (a cos lat) and v / (a cos lat)."""
    curl = d_dlon(cv, tables) - cos_d_dlat_weak(cu, tables)
    divergence = d_dlon(cu, tables) + cos_d_dlat_weak(cv, tables)
    return truncate(curl, tables), truncate(divergence, tables)
