"""Regridding between latitude-longitude grids: separable weights, applied as two matrix products.

Weights are made once, in NumPy float64, and passed as arguments. Rows of a weight matrix sum to one, so a constant field stays
constant; conservative rows are overlaps divided by the target cell, so that the area integral is kept.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from sciax.core.errors import InputError, ShapeError
from sciax.core.ops._registry import Sample, operator


def linear_weights(source: np.ndarray, target: np.ndarray, period: float | None = None) -> np.ndarray:
    """Weights (target, source) of linear interpolation between ascending points.

    Args:
        period: for longitudes, 360: the last interval closes the circle.

    Raises:
        InputError: points not ascending; targets outside the source (nothing is extrapolated).
    """
    source, target = _points(source), np.asarray(target, dtype=np.float64)
    extended, index = _extend(source, period)
    at = _into(target, source[0], period)
    _inside(at, extended)
    right = np.clip(np.searchsorted(extended, at, side="right"), 1, extended.size - 1)
    span = extended[right] - extended[right - 1]
    fraction = np.clip((at - extended[right - 1]) / span, 0.0, 1.0)
    weights = np.zeros((target.size, source.size))
    rows = np.arange(target.size)
    np.add.at(weights, (rows, index[right - 1]), 1.0 - fraction)
    np.add.at(weights, (rows, index[right]), fraction)
    return weights


def nearest_weights(source: np.ndarray, target: np.ndarray, period: float | None = None) -> np.ndarray:
    """Weights of the nearest source point; halfway, the lower one.

    Targets may lie half a step outside the source.

    Raises:
        InputError: as `linear_weights`.
    """
    source, target = _points(source), np.asarray(target, dtype=np.float64)
    extended, index = _extend(source, period)
    at = _into(target, source[0], period)
    if period is None:
        step = np.diff(source)
        margin = np.array([source[0] - step[0] / 2, source[-1] + step[-1] / 2]) if step.size else source[[0, 0]]
        _inside(at, margin)
    middle = (extended[1:] + extended[:-1]) / 2
    weights = np.zeros((target.size, source.size))
    weights[np.arange(target.size), index[np.searchsorted(middle, at, side="left")]] = 1.0
    return weights


def conservative_weights(source_edges: np.ndarray, target_edges: np.ndarray, period: float | None = None) -> np.ndarray:
    """First-order conservative weights: overlap of cells over the target cell, for ascending edges.

    Use sin(latitude) of the edges for latitudes (areas), degrees with `period` = 360 for longitudes.

    Raises:
        InputError: edges not ascending; a target cell that no source cell meets.
    """
    s, t = _points(source_edges), _points(target_edges)
    shifts = (0.0,) if period is None else tuple(period * k for k in range(-2, 3))
    overlap = np.zeros((t.size - 1, s.size - 1))
    for shift in shifts:
        low = np.maximum(s[None, :-1] + shift, t[:-1, None])
        high = np.minimum(s[None, 1:] + shift, t[1:, None])
        overlap += np.maximum(high - low, 0.0)
    total = overlap.sum(axis=1, keepdims=True)
    if (total <= 0).any():
        raise InputError(
            "target cells that no source cell meets",
            got=f"{int((total <= 0).sum())} of {t.size - 1}, edges {t[0]:g} to {t[-1]:g}",
            expected=f"inside {s[0]:g} to {s[-1]:g}",
            remedy="restrict the target grid to the source's region",
        )
    return overlap / total


def _points(x) -> np.ndarray:
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or x.size < 1 or not np.isfinite(x).all() or (np.diff(x) <= 0).any():
        raise InputError(
            "grid points must be finite, one-dimensional and ascending",
            got=f"{x.size} values" + (f" from {x.flat[0]:g} to {x.flat[-1]:g}" if x.size else ""),
            remedy="sort them first (latitudes from north to south are flipped by canonicalise())",
        )
    return x


def _extend(source: np.ndarray, period: float | None) -> tuple[np.ndarray, np.ndarray]:
    if period is None:
        return source, np.arange(source.size)
    if source[-1] - source[0] >= period:
        raise InputError("periodic points span more than a period", got=source[-1] - source[0], expected=f"< {period}")
    extended = np.concatenate([[source[-1] - period], source, [source[0] + period]])
    return extended, np.concatenate([[source.size - 1], np.arange(source.size), [0]])


def _into(target: np.ndarray, start: float, period: float | None) -> np.ndarray:
    return target if period is None else start + (target - start) % period


def _inside(at: np.ndarray, points: np.ndarray) -> None:
    tolerance = 1e-9 * max(1.0, float(np.abs(points).max()))
    outside = (at < points[0] - tolerance) | (at > points[-1] + tolerance)
    if outside.any():
        raise InputError(
            "target points outside the source grid",
            got=f"{int(outside.sum())} of {at.size}, from {at.min():g} to {at.max():g}",
            expected=f"inside {points[0]:g} to {points[-1]:g}; nothing is extrapolated",
        )


def with_poles(field: Float[Array, "*batch lat lon"]) -> Float[Array, "*batch lat2 lon"]:
    """The field with a row added at either pole: the zonal mean of the row next to it (scalars only)."""
    ends = [jnp.broadcast_to(field[..., k, :].mean(-1, keepdims=True), field[..., k, :].shape) for k in (0, -1)]
    return jnp.concatenate([ends[0][..., None, :], field, ends[1][..., None, :]], axis=-2)


def _check(field, lat_weights, lon_weights, who: str):
    if field.ndim < 2 or field.shape[-2:] != (lat_weights.shape[-1], lon_weights.shape[-1]):
        raise ShapeError(
            f"{who}: the field does not fit the weights",
            got=field.shape,
            expected=f"(..., {lat_weights.shape[-1]}, {lon_weights.shape[-1]}), latitude before longitude",
        )


def _oracle_separable(field, lat_weights, lon_weights):
    return np.einsum("ai,...ij,bj->...ab", lat_weights, field, lon_weights)


def _weights_sample():
    lat = conservative_weights(
        np.sin(np.radians(np.linspace(-90, 90, 10))), np.sin(np.radians(np.linspace(-90, 90, 6)))
    )
    lon = linear_weights(np.arange(12) * 30.0, np.arange(7) * 360 / 7 - 20, 360.0)
    return lat, lon


def _separable_samples(rng: np.random.Generator):
    lat, lon = _weights_sample()
    yield Sample("ordinary", (rng.standard_normal((2, 9, 12)), lat, lon), fixed=(1, 2))
    yield Sample("size one", (rng.standard_normal((1, 1)), np.ones((1, 1)), np.ones((1, 1))), fixed=(1, 2))
    yield Sample("empty", (np.zeros((0, 9, 12)), lat, lon), fixed=(1, 2))
    yield Sample("non-contiguous", (rng.standard_normal((12, 9)).T, lat, lon), fixed=(1, 2))
    yield Sample("badly scaled", (1e12 * rng.standard_normal((9, 12)), lat, lon), fixed=(1, 2))


def _separable_flops(field, lat_weights, lon_weights, *_, **__) -> float:
    batch = float(np.prod(field.shape[:-2]))
    (a, i), (b, j) = lat_weights.shape, lon_weights.shape
    return batch * 2.0 * (a * i * j + a * j * b)


@operator(
    "regrid.separable",
    oracle=_oracle_separable,
    samples=_separable_samples,
    flops=_separable_flops,
)
def separable(
    field: Float[Array, "*batch lat lon"],
    lat_weights: Float[Array, "lat2 lat"],
    lon_weights: Float[Array, "lon2 lon"],
) -> Float[Array, "*batch lat2 lon2"]:
    """Regridded field: lat_weights @ field @ lon_weights^T on the last two axes.

    Raises:
        ShapeError: a field that does not fit the weights.
    """
    field = jnp.asarray(field)
    _check(field, lat_weights, lon_weights, "regrid.separable")
    a, b = jnp.asarray(lat_weights, field.dtype), jnp.asarray(lon_weights, field.dtype)
    return jnp.einsum("ai,...ij,bj->...ab", a, field, b, precision="highest", optimize="optimal")


def _oracle_masked(field, valid, lat_weights, lon_weights):
    kept = np.where(valid, field, 0.0)
    fraction = _oracle_separable(np.broadcast_to(valid, field.shape).astype(np.float64), lat_weights, lon_weights)
    total = _oracle_separable(kept, lat_weights, lon_weights)
    return np.where(fraction > 1e-6, total / np.where(fraction > 1e-6, fraction, 1.0), 0.0), fraction


def _masked_samples(rng: np.random.Generator):
    lat, lon = _weights_sample()
    valid = rng.random((9, 12)) > 0.4
    valid[4:7, :6] = False
    yield Sample("ordinary", (rng.standard_normal((2, 9, 12)), valid, lat, lon), fixed=(2, 3))
    yield Sample("badly scaled", (1e9 * rng.standard_normal((9, 12)), valid, lat, lon), fixed=(2, 3))
    yield Sample(
        "empty, nothing valid", (rng.standard_normal((9, 12)), np.zeros((9, 12), bool), lat, lon), fixed=(2, 3)
    )


@operator(
    "regrid.masked",
    oracle=_oracle_masked,
    samples=_masked_samples,
    flops=lambda field, valid, a, b: 2 * _separable_flops(field, a, b),
    unsupported={"complex": "a fraction of valid area is real; regrid real and imaginary part each on their own"},
)
def masked(
    field: Float[Array, "*batch lat lon"],
    valid: Bool[Array, "*#batch lat lon"],
    lat_weights: Float[Array, "lat2 lat"],
    lon_weights: Float[Array, "lon2 lon"],
) -> tuple[Float[Array, "*batch lat2 lon2"], Float[Array, "*#batch lat2 lon2"]]:
    """Mean over the valid part of every target cell, and the fraction of it that is valid.

    Values under the mask never reach the result, whatever they are (NaN too). Where nothing is valid the mean is 0 and the
    fraction 0; field * fraction is what a conservative regridding conserves.

    Raises:
        ShapeError: a field that does not fit the weights.
        DTypeError: a complex field.
    """
    from sciax.core.errors import DTypeError

    field, valid = jnp.asarray(field), jnp.asarray(valid)
    _check(field, lat_weights, lon_weights, "regrid.masked")
    if jnp.iscomplexobj(field):
        raise DTypeError(
            "regrid.masked takes real fields",
            got=field.dtype,
            remedy="regrid real and imaginary part each on their own",
        )
    fraction = separable(jnp.broadcast_to(valid, field.shape).astype(field.dtype), lat_weights, lon_weights)
    total = separable(jnp.where(valid, field, 0), lat_weights, lon_weights)
    some = fraction > 1e-6
    return jnp.where(some, total / jnp.where(some, fraction, 1), 0), fraction
