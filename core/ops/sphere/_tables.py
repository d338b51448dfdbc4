"""Associated Legendre tables for the transforms, built once in extended precision and passed to them as arguments.

Normalisation: the mean over the sphere of |P_lm(sin lat) e^{i m lon}|^2 is one, without the Condon-Shortley sign. The
coefficient (0, 0) of a field is then its mean, and its variance is sum over l >= 1 of |c_l0|^2 + 2 sum_m |c_lm|^2.
Orthonormal coefficients (Edmonds without sign) are sqrt(4 pi) times these.
"""

from functools import lru_cache
from itertools import pairwise

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.core.ops.sphere._grids import SphereGrid, _nodes, gauss_nodes, trig_interpolation
from sciax.core.precision import require_dtype


class SphereTables(eqx.Module):
    """What the transforms of one grid and truncation need. A pytree: hand it to jitted functions as an argument.

    The degree offset j = l - m decides the parity in latitude, so each table exists for even and for odd j on half the
    latitudes, and is cut in blocks of m to follow the triangle.
    """

    synthesis_even: tuple[Float[Array, "m j k"], ...]
    synthesis_odd: tuple[Float[Array, "m j k"], ...]
    analysis_even: tuple[Float[Array, "m k j"], ...]
    analysis_odd: tuple[Float[Array, "m k j"], ...]
    # Off Gauss grids the division of vectors by cos(lat) needs tables of its own; None on Gauss grids.
    vector: "SphereTables | None"
    degree: Float[Array, "m l"]
    order: Float[Array, " m"]
    epsilon: Float[Array, "m l"]
    sin_latitude: Float[Array, " lat"]
    cos_latitude: Float[Array, " lat"]
    weights: Float[Array, " lat"]
    grid: SphereGrid = eqx.field(static=True)
    truncation: int = eqx.field(static=True)
    lmax: int = eqx.field(static=True)
    blocks: tuple[tuple[int, int], ...] = eqx.field(static=True)

    @property
    def spectral_shape(self) -> tuple[int, int]:
        """(orders 0..truncation, degrees 0..lmax) of the coefficient arrays."""
        return self.truncation + 1, self.lmax + 1


def legendre(mu: np.ndarray, cosine: np.ndarray, mmax: int, lmax: int) -> np.ndarray:
    """P[m, l, lat] of the normalisation above, by upward recursion in l in long double.

    The sectoral seeds span a factor cos(lat)^m; the exponent range of the x87 long double covers every degree a table of
    reasonable size can have, and where long double is double the seeds that underflow belong to values below 1e-200.
    """
    mu, cosine = mu.astype(np.longdouble), cosine.astype(np.longdouble)
    table = np.zeros((mmax + 1, lmax + 1, mu.size), dtype=np.longdouble)
    seed = np.ones_like(mu)
    for order in range(mmax + 1):
        if order:
            seed = seed * np.sqrt(np.longdouble(2 * order + 1) / (2 * order)) * cosine
        table[order, order] = seed
    eps = _epsilon(mmax, lmax + 1)
    for l in range(1, lmax + 1):
        top = min(l - 1, mmax) + 1  # orders for which degree l is above the sectoral one
        below = table[:top, l - 2] * eps[:top, l - 1, None] if l >= 2 else 0
        table[:top, l] = (mu * table[:top, l - 1] - below) / eps[:top, l, None]
    return table


def _epsilon(mmax: int, lmax: int) -> np.ndarray:
    """sqrt((l^2 - m^2) / (4 l^2 - 1)), zero below the diagonal: mu P_l = eps_{l+1} P_{l+1} + eps_l P_{l-1}."""
    m = np.arange(mmax + 1, dtype=np.longdouble)[:, None]
    l = np.arange(lmax + 1, dtype=np.longdouble)[None, :]
    return np.sqrt(np.maximum(l * l - m * m, 0) / np.maximum(4 * l * l - 1, 1))


def sphere_tables(grid: SphereGrid, truncation: int, dtype=None, *, spare: int = 1) -> SphereTables:
    """Tables for triangular truncation `truncation` on `grid`.

    Args:
        truncation: highest order m, and highest degree l of prognostic fields.
        dtype: of the tables; default float64 where 64-bit arrays are on, else float32. They are built in extended
            precision and rounded once.
        spare: extra degrees stored (1 for vector calculus, where multiplication by sin(lat) raises the degree by one).

    Raises:
        InputError: a truncation the grid does not resolve.
        PrecisionError: float64 asked for with x64 off.
    """
    from sciax.core.precision import default_float

    lmax = truncation + spare
    if truncation < 0 or spare not in (0, 1):
        raise InputError("truncation must be >= 0 and spare 0 or 1", got=(truncation, spare))
    if lmax > grid.max_degree:
        raise InputError(
            f"the grid has too few latitudes for truncation {truncation}",
            got=f"{grid.kind} with {grid.nlat} latitudes, exact to degree {grid.max_degree}",
            expected=f"degree {lmax} (truncation + {spare})",
            remedy=f"truncation <= {grid.max_degree - spare}, or more latitudes",
        )
    if 2 * truncation >= grid.nlon:
        raise InputError(
            f"the grid has too few longitudes for truncation {truncation}",
            got=grid.nlon,
            expected=f"at least {2 * truncation + 1}",
        )
    wanted = require_dtype(default_float() if dtype is None else dtype, "sphere_tables")
    return _cast(_host_tables(grid, truncation, spare), wanted)


def _cast(host: SphereTables, dtype: np.dtype) -> SphereTables:
    import jax

    return jax.tree.map(lambda leaf: jnp.asarray(leaf.astype(dtype)), host)


@lru_cache(maxsize=8)
def _host_tables(grid: SphereGrid, truncation: int, spare: int) -> SphereTables:
    mu, cosine, weights = _nodes(grid.kind, grid.nlat)
    mmax, lmax = truncation, truncation + spare
    blocks = _blocks(mmax)
    table = legendre(mu, cosine, mmax, lmax)
    vector = None
    if grid.kind == "gauss":
        projection = table * weights / 2
    else:
        gauss_mu, gauss_weights = gauss_nodes(grid.nlat)
        gauss_cos = np.sqrt((1 - gauss_mu) * (1 + gauss_mu))
        on_gauss = legendre(gauss_mu, gauss_cos, mmax, lmax) * gauss_weights / 2
        resample = [trig_interpolation(grid.kind, grid.nlat, np.arccos(gauss_mu), odd=odd) for odd in (False, True)]
        parity = np.arange(mmax + 1) % 2
        projection = np.stack([on_gauss[m] @ resample[parity[m]] for m in range(mmax + 1)])
        # A wind component's F_m has the other parity: it is resampled as it is, then divided by cos(lat) on Gauss nodes.
        divided = np.stack([(on_gauss[m] / gauss_cos) @ resample[1 - parity[m]] for m in range(mmax + 1)])
        vector = _pack(grid, truncation, lmax, blocks, _over_cosine(table, mu, cosine, mmax, lmax), divided, None)
    return _pack(grid, truncation, lmax, blocks, table, projection, vector)


def _over_cosine(table: np.ndarray, mu: np.ndarray, cosine: np.ndarray, mmax: int, lmax: int) -> np.ndarray:
    """P / cos(lat), with the limit at the poles: finite for m = 1 only (m = 0 never reaches it, its wind vanishes there)."""
    pole = cosine == 0
    out = table / np.where(pole, 1, cosine)
    if pole.any():
        out[:, :, pole] = 0
        if mmax >= 1:
            # P_l1 / cos -> the recursion started from sqrt(3/2) instead of sqrt(3/2) cos.
            eps = _epsilon(1, lmax + 1)[1]
            value = np.zeros((lmax + 1, int(pole.sum())), dtype=np.longdouble)
            value[1] = np.sqrt(np.longdouble(3) / 2)
            for l in range(2, lmax + 1):
                value[l] = (mu[pole] * value[l - 1] - eps[l - 1] * value[l - 2]) / eps[l]
            out[1][:, pole] = value
    return out


def _blocks(mmax: int) -> tuple[tuple[int, int], ...]:
    """Cuts of the orders: a few, since each costs a matrix product's start and saves part of the triangle."""
    count = 1 if mmax < 48 else 2 if mmax < 96 else 4
    cuts = np.linspace(0, mmax + 1, count + 1).astype(int)
    return tuple((int(a), int(b)) for a, b in pairwise(cuts))


def _pack(grid, truncation, lmax, blocks, table, projection, vector) -> SphereTables:
    """Skew (m, l) to (m, j = l - m), split by parity of j, fold onto the northern half, cut into blocks."""
    mmax, nlat = truncation, grid.nlat
    half = (nlat + 1) // 2
    north = slice(nlat - half, nlat)
    parts: dict[str, list[np.ndarray]] = {"se": [], "so": [], "ae": [], "ao": []}
    fold = np.ones(half)
    if nlat % 2:
        fold[0] = 0.5  # the equator is its own mirror image: folding counts it twice
    for first, last in blocks:
        width = lmax - first + 1
        skew = np.zeros((2, last - first, width, half))
        for m in range(first, last):
            skew[0, m - first, : lmax - m + 1] = table[m, m:, north]
            skew[1, m - first, : lmax - m + 1] = projection[m, m:, north] * fold
        for name, which, start in (("se", 0, 0), ("so", 0, 1), ("ae", 1, 0), ("ao", 1, 1)):
            piece = skew[which, :, start::2]
            parts[name].append(piece if which == 0 else piece.transpose(0, 2, 1))
    mu, cosine, weights = _nodes(grid.kind, nlat)
    l = np.arange(lmax + 1, dtype=np.float64)
    return SphereTables(
        synthesis_even=tuple(parts["se"]),  # type: ignore[arg-type]
        synthesis_odd=tuple(parts["so"]),  # type: ignore[arg-type]
        analysis_even=tuple(parts["ae"]),  # type: ignore[arg-type]
        analysis_odd=tuple(parts["ao"]),  # type: ignore[arg-type]
        vector=vector,
        degree=np.broadcast_to(l, (mmax + 1, lmax + 1)).copy(),  # type: ignore[arg-type]
        order=np.arange(mmax + 1, dtype=np.float64),  # type: ignore[arg-type]
        epsilon=_epsilon(mmax, lmax).astype(np.float64),  # type: ignore[arg-type]
        sin_latitude=mu.astype(np.float64),  # type: ignore[arg-type]
        cos_latitude=cosine.astype(np.float64),  # type: ignore[arg-type]
        weights=weights.astype(np.float64),  # type: ignore[arg-type]
        grid=grid,
        truncation=truncation,
        lmax=lmax,
        blocks=blocks,
    )
