"""Scalar spherical-harmonic transforms: FFT in longitude, folded Legendre products in latitude.

Everything is linear in the field or the coefficients, so JAX's transposition gives the exact adjoint.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex, Float

from sciax.core.errors import DTypeError, ShapeError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.sphere._grids import SphereGrid
from sciax.core.ops.sphere._tables import SphereTables, sphere_tables


def _check_coefficients(coefficients, tables: SphereTables, who: str):
    if coefficients.ndim < 2 or coefficients.shape[-2:] != tables.spectral_shape:
        raise ShapeError(
            f"{who}: coefficients do not fit the tables",
            got=coefficients.shape,
            expected=f"(..., {tables.spectral_shape[0]}, {tables.spectral_shape[1]}) for orders and degrees",
        )
    if not jnp.issubdtype(coefficients.dtype, jnp.complexfloating):
        raise DTypeError(
            f"{who} takes complex coefficients",
            got=coefficients.dtype,
            expected="complex64 or complex128",
            remedy="coefficients.astype(complex), or transform the field with sphere.analysis",
        )


def _check_field(field, tables: SphereTables, who: str):
    if field.ndim < 2 or field.shape[-2:] != (tables.grid.nlat, tables.grid.nlon):
        raise ShapeError(
            f"{who}: the field does not fit the grid",
            got=field.shape,
            expected=f"(..., {tables.grid.nlat}, {tables.grid.nlon}), latitude before longitude",
        )
    if not jnp.issubdtype(field.dtype, jnp.floating):
        raise DTypeError(
            f"{who} takes real fields",
            got=field.dtype,
            expected="float32 or float64",
            remedy="transform real and imaginary part each on their own",
        )


# One program a shape where it is called outside of one: op by op, the first call would compile thirty.
@partial(jax.jit, inline=True)
def synthesis_with(c, t: SphereTables, even, odd):
    """Coefficients (batch, m, l) to values (batch, lat, lon) with the given Legendre tables."""
    batch, orders, width = c.shape
    nlat, nlon = t.grid.nlat, t.grid.nlon
    real = c.real.dtype
    # Row m of the rectangle starts with m structural zeros. Reading the flat array with rows one element longer therefore
    # shifts row m left by m: degree l becomes offset j = l - m without a gather (what wraps round meets zeros in the table).
    flat = jnp.pad(c.reshape(batch, orders * width), ((0, 0), (0, orders)))
    skew = flat.reshape(batch, orders, width + 1)
    parts = jnp.concatenate([skew.real, skew.imag])
    north_even, north_odd = [], []
    for (first, last), p_even, p_odd in zip(t.blocks, even, odd):
        used = width - first
        for table, start, out in ((p_even, 0, north_even), (p_odd, 1, north_odd)):
            rows = parts[:, first:last, start:used:2]
            out.append(
                lax.dot_general(rows, table.astype(real), (((2,), (1,)), ((1,), (0,))), precision=lax.Precision.HIGHEST)
            )  # (m, batch * 2, k)
    ev, od = jnp.concatenate(north_even), jnp.concatenate(north_odd)
    south = (ev - od)[..., ::-1]
    fourier = jnp.concatenate([south[..., : nlat // 2], ev + od], axis=-1).transpose(1, 2, 0)
    fourier = lax.complex(fourier[:batch], fourier[batch:])
    fourier = jnp.pad(fourier, ((0, 0), (0, 0), (0, nlon // 2 + 1 - orders)))
    return jnp.fft.irfft(fourier, n=nlon, axis=-1, norm="forward")


@partial(jax.jit, inline=True)
def analysis_with(f, t: SphereTables, even, odd):
    """Values (batch, lat, lon) to coefficients (batch, m, l) with the given projection tables."""
    batch, nlat, _ = f.shape
    orders, width = t.spectral_shape
    fourier = jnp.fft.rfft(f, axis=-1, norm="forward")[..., :orders]
    parts = jnp.concatenate([fourier.real, fourier.imag]).transpose(2, 0, 1)  # (m, batch * 2, lat)
    half = (nlat + 1) // 2
    north, south = parts[..., nlat - half :], parts[..., :half][..., ::-1]
    plus, minus = north + south, north - south
    rows = []
    for (first, last), p_even, p_odd in zip(t.blocks, even, odd):
        used = width - first
        both = [
            lax.dot_general(
                folded[first:last], table.astype(f.dtype), (((2,), (1,)), ((0,), (0,))), precision=lax.Precision.HIGHEST
            )
            for folded, table in ((plus, p_even), (minus, p_odd))
        ]
        # Interleave the parities again: j = 0, 1, 2, ...
        if used % 2:
            both[1] = jnp.pad(both[1], ((0, 0), (0, 0), (0, 1)))
        block = jnp.stack(both, axis=-1).reshape(last - first, 2 * batch, used + used % 2)[..., :used]
        rows.append(jnp.pad(block, ((0, 0), (0, 0), (0, width + 1 - used))))
    skew = jnp.concatenate(rows).transpose(1, 0, 2)
    # The inverse of the shift in `synthesis_with`: rows one element shorter move row m right by m.
    flat = skew.reshape(2 * batch, orders * (width + 1))[:, : orders * width].reshape(2 * batch, orders, width)
    return lax.complex(flat[:batch], flat[batch:])


def _dense(truncation: int, lmax: int, grid: SphereGrid):
    """Y[m, l, lat, lon] from SciPy, in the normalisation of this package."""
    from scipy.special import sph_harm_y

    theta, phi = np.arccos(grid.sin_latitude), np.radians(grid.longitude)
    y = np.zeros((truncation + 1, lmax + 1, grid.nlat, grid.nlon), dtype=complex)
    for m in range(truncation + 1):
        for l in range(m, lmax + 1):
            # (-1)^m undoes the Condon-Shortley sign
            y[m, l] = (-1) ** m * np.sqrt(4 * np.pi) * sph_harm_y(l, m, theta[:, None], phi[None, :])
    return y


def _oracle_synthesis(coefficients, tables):
    y = _dense(tables.truncation, tables.lmax, tables.grid)
    double = np.where(np.arange(tables.truncation + 1) == 0, 1.0, 2.0)
    mask = np.tril(np.ones(tables.spectral_shape[::-1])).T  # l >= m
    return np.real(np.einsum("...ml,mlyx,m,ml->...yx", np.asarray(coefficients), y, double, mask))


def _oracle_analysis(field, tables):
    # Quadrature on a grid so fine that the trapezoidal rule in longitude and the node weights are exact.
    y = _dense(tables.truncation, tables.lmax, tables.grid)
    f = np.asarray(field)
    if tables.grid.kind == "gauss":
        return np.einsum("...yx,mlyx,y->...ml", f, y.conj(), tables.grid.weights) / (2 * tables.grid.nlon)
    # Off Gauss latitudes: the least-squares fit of each order's Legendre series, exact for band-limited fields.
    fourier = np.fft.fft(f, axis=-1)[..., : tables.truncation + 1] / tables.grid.nlon
    out = np.zeros((*f.shape[:-2], *tables.spectral_shape), dtype=complex)
    for m in range(tables.truncation + 1):
        basis = np.real(y[m, m:, :, 0]).T
        out[..., m, m:] = fourier[..., m] @ np.linalg.pinv(basis).T
    return out


def _random_coefficients(rng: np.random.Generator, tables: SphereTables, lead=()):
    c = rng.standard_normal((*lead, *tables.spectral_shape)) + 1j * rng.standard_normal((*lead, *tables.spectral_shape))
    c = np.triu(c)
    c[..., 0, :] = c[..., 0, :].real
    return c


def _sample_tables():
    for label, grid, truncation in (
        ("ordinary", SphereGrid("gauss", 8, 16), 5),
        ("odd sizes, poles", SphereGrid("equiangular_poles", 9, 15), 5),
        ("size one", SphereGrid("gauss", 2, 1), 0),
    ):
        yield label, sphere_tables(grid, truncation)


def _synthesis_samples(rng: np.random.Generator):
    for label, tables in _sample_tables():
        yield Sample(label, (_random_coefficients(rng, tables, (2,)), tables), fixed=(1,))
    yield Sample("badly scaled", (1e8 * _random_coefficients(rng, tables), tables), fixed=(1,))
    yield Sample("empty", (np.zeros((0, *tables.spectral_shape), complex), tables), fixed=(1,))


def _analysis_samples(rng: np.random.Generator):
    for label, tables in _sample_tables():
        yield Sample(label, (_oracle_synthesis(_random_coefficients(rng, tables, (2,)), tables), tables), fixed=(1,))
    wide = np.asfortranarray(1e8 * rng.standard_normal((2, tables.grid.nlat, tables.grid.nlon)))
    yield Sample("non-contiguous, badly scaled", (wide, tables), fixed=(1,))
    yield Sample("empty", (np.zeros((0, tables.grid.nlat, tables.grid.nlon)), tables), fixed=(1,))


def _transform_flops(array, tables: SphereTables) -> float:
    batch = float(np.prod(array.shape[:-2]))
    nlat, nlon = tables.grid.nlat, tables.grid.nlon
    pairs = sum((last - first) * (tables.lmax + 1 - first) for first, last in tables.blocks)
    return batch * (2.0 * pairs * nlat + 5.0 * nlat * nlon * np.log2(max(nlon, 2)) / 2)


@operator(
    "sphere.synthesis",
    oracle=_oracle_synthesis,
    samples=_synthesis_samples,
    flops=_transform_flops,
)
def synthesis(coefficients: Complex[Array, "*batch m l"], tables: SphereTables) -> Float[Array, "*batch lat lon"]:
    """Field values from spherical-harmonic coefficients: f(lat, lon) = sum_lm c_lm P_lm(sin lat) e^{i m lon}.

    Only m >= 0 is stored, the field being real; the imaginary part of m = 0 and entries with l < m do not count.

    Args:
        coefficients: complex, orders by degrees (`tables.spectral_shape`).
        tables: from `sphere_tables`; keep it an argument of jitted functions, not a closure.

    Raises:
        ShapeError, DTypeError: coefficients that do not fit, or are real.
    """
    coefficients = jnp.asarray(coefficients)
    _check_coefficients(coefficients, tables, "sphere.synthesis")
    lead = coefficients.shape[:-2]
    flat = coefficients.reshape(int(np.prod(lead)), *tables.spectral_shape)
    out = synthesis_with(flat, tables, tables.synthesis_even, tables.synthesis_odd)
    return out.reshape(*lead, *out.shape[-2:])


@operator(
    "sphere.analysis",
    oracle=_oracle_analysis,
    samples=_analysis_samples,
    flops=_transform_flops,
    unsupported={"complex": "fields are real; transform real and imaginary part each on their own"},
)
def analysis(field: Float[Array, "*batch lat lon"], tables: SphereTables) -> Complex[Array, "*batch m l"]:
    """Spherical-harmonic coefficients of a real field, exact for fields band-limited to the tables' degrees.

    c_lm = (1 / 4 pi) * integral of f P_lm e^{-i m lon} over the sphere; c_00 is the mean of the field.

    Raises:
        ShapeError, DTypeError: a field that does not fit the grid (latitude before longitude), or is complex.
    """
    field = jnp.asarray(field)
    _check_field(field, tables, "sphere.analysis")
    lead = field.shape[:-2]
    flat = field.reshape(int(np.prod(lead)), *field.shape[-2:])
    out = analysis_with(flat, tables, tables.analysis_even, tables.analysis_odd)
    return out.reshape(*lead, *out.shape[-2:])
