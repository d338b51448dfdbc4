"""Scores of ensembles. A member that is missing at a point is left out there: counts are those of the members present."""

from typing import Literal

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.verify._deterministic import Dims, aligned, weighted_mean


def _need_members(forecast: xr.DataArray, who: str) -> None:
    if "member" not in forecast.dims:
        raise InputError(f"{who} needs a member dimension in the forecast", got=forecast.dims)


def _no_members(truth: xr.DataArray, who: str) -> None:
    if "member" in truth.dims:
        raise InputError(
            f"{who}: the truth has members of its own",
            remedy="select one, or average: truth.mean('member') (a member dimension on both sides would be paired up silently)",
        )


def crps(forecast: xr.DataArray, truth: xr.DataArray, *, fair: bool = True) -> xr.DataArray:
    """Continuous ranked probability score at every point, in the unit of the field; 0 is best.

    mean |x_i - y| - sum_ij |x_i - x_j| / (2 M (M - 1)) for the fair score (unbiased for the distribution the members are
    drawn from), M^2 in place of M (M - 1) for the score of the empirical distribution. The double sum is taken over the
    sorted members, O(M log M).

    Missing members are left out point by point; with one member left, the fair score is the absolute error (its second term
    has no estimate) and with none it is missing.

    Source: Hersbach (2000); fair form: Ferro (2014).
    """
    _need_members(forecast, "crps")
    _no_members(truth, "crps")
    f, o = aligned(forecast, truth)
    return xr.apply_ufunc(
        _crps,
        f,
        o,
        input_core_dims=[["member"], []],
        kwargs={"fair": fair},
        dask="parallelized",
        dask_gufunc_kwargs={"allow_rechunk": True},
        output_dtypes=[np.result_type(f.dtype, o.dtype)],
    )


def _crps(x: np.ndarray, y: np.ndarray, fair: bool) -> np.ndarray:
    members = x.shape[-1]
    # Member axis in front: every pass below then runs along contiguous memory.
    x = np.ascontiguousarray(np.moveaxis(x, -1, 0))
    present = np.isfinite(x)
    if present.all():
        skill = np.zeros(np.broadcast_shapes(x.shape[1:], y.shape), np.result_type(x, y))
        for row in x:
            skill += np.abs(row - y)
        x.sort(axis=0)
        pairs = np.zeros(x.shape[1:], x.dtype)
        for k in range(members):
            pairs += x.dtype.type(2 * k + 1 - members) * x[k]
        if members > 1:
            pairs /= members * (members - 1) if fair else members * members
        return np.where(np.isfinite(y), skill / members - pairs, np.nan)
    count = present.sum(axis=0)
    skill = np.where(present, np.abs(np.where(present, x, 0) - y), 0).sum(axis=0)
    ordered = np.sort(np.where(present, x, np.inf), axis=0)  # missing ones sort behind the present
    rank = np.arange(members).reshape(-1, *[1] * (x.ndim - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = np.where(rank < count, (2 * rank + 1 - count) * np.where(rank < count, ordered, 0), 0).sum(axis=0)
        norm = count * (count - 1) if fair else count * count
        out = skill / count - np.where(count > 1, pairs / np.where(norm > 0, norm, 1), 0)
    return np.where((count > 0) & np.isfinite(y), out, np.nan)


def variance(forecast: xr.DataArray) -> xr.DataArray:
    """Unbiased variance over the members present at each point; missing where fewer than two are."""
    _need_members(forecast, "variance")
    count = forecast.notnull().sum("member")
    total = ((forecast - forecast.mean("member")) ** 2).sum("member")
    return (total / (count - 1).where(count > 1)).astype(forecast.dtype)


def spread(forecast: xr.DataArray, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Root of the mean variance (not the mean of the standard deviations)."""
    return weighted_mean(variance(forecast), over, weights, mask) ** 0.5


def spread_skill_ratio(forecast, truth, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """sqrt((M + 1) / M) * spread / RMSE of the ensemble mean: 1 for members and truth from one distribution.

    The factor is taken point by point, with the number of members present there.

    Source: Fortin et al. (2014).
    """
    _no_members(truth, "spread_skill_ratio")
    f, o = aligned(forecast, truth)
    count = f.notnull().sum("member")
    inflated = variance(f) * (count + 1) / count.where(count > 0)
    error = (f.mean("member") - o) ** 2
    both = inflated.notnull() & error.notnull()
    top = weighted_mean(inflated.where(both), over, weights, mask)
    return (top / weighted_mean(error.where(both), over, weights, mask)) ** 0.5


def rank_histogram(forecast, truth, over: Dims | None = None) -> xr.DataArray:
    """How often the truth falls in each of the M + 1 gaps of the sorted members.

    A truth equal to k members lies in k + 1 gaps at once and counts 1 / (k + 1) in each: the expectation of breaking ties at
    random (Hamill and Colucci 1998), which depends neither on a seed nor on the order of the points. Points with a missing
    member or truth are left out. `over` None counts everything.
    """
    _need_members(forecast, "rank_histogram")
    _no_members(truth, "rank_histogram")
    f, o = aligned(forecast, truth)
    members = f.sizes["member"]
    below, ties = (f < o).sum("member"), (f == o).sum("member")
    share = (1 / (ties + 1)).where(f.notnull().all("member") & o.notnull(), 0.0)
    counted = list(share.dims) if over is None else [d for d in over if d in share.dims]
    counts = [share.where((below <= r) & (r <= below + ties), 0.0).sum(counted) for r in range(members + 1)]
    return xr.concat(counts, dim="rank").assign_coords(rank=np.arange(members + 1))


def exceedance(forecast: xr.DataArray, threshold: float) -> xr.DataArray:
    """Fraction of the members present that exceed a threshold."""
    _need_members(forecast, "exceedance")
    ok = forecast.notnull()
    return ((forecast > threshold) & ok).sum("member") / ok.sum("member").where(ok.any("member"))


def brier(
    forecast, truth, threshold: float, over: Dims = ("lat", "lon"), weights="area", *, fair: bool = False
) -> xr.DataArray:
    """Mean squared error of the probability of exceeding a threshold.

    Args:
        fair: subtract p (1 - p) / (M - 1), the expected excess of a finite ensemble.
    """
    _no_members(truth, "brier")
    f, o = aligned(forecast, truth)
    p = exceedance(f, threshold)
    event = (o > threshold).where(o.notnull())
    score = (p - event) ** 2
    if fair:
        count = f.notnull().sum("member")
        score = score - p * (1 - p) / (count - 1).where(count > 1)
    return weighted_mean(score, over, weights)


def reliability(
    forecast, truth, threshold: float, bins: int = 10, weights: Literal["area", "cos", "none"] = "area"
) -> xr.Dataset:
    """Reliability diagram: mean forecast probability, observed frequency and weight in each probability bin."""
    _no_members(truth, "reliability")
    f, o = aligned(forecast, truth)
    p = exceedance(f, threshold)
    event = (o > threshold).astype(float).where(o.notnull())
    both = (p.notnull() & event.notnull()).values
    from sciax.earth._grid import weights_of

    w = (
        weights_of(p, weights).broadcast_like(p).transpose(*p.dims).values[both]
        if "lat" in p.coords
        else np.ones(int(both.sum()))
    )
    probability, happened = p.values[both], event.transpose(*p.dims).values[both]
    index = np.clip((probability * bins).astype(int), 0, bins - 1)
    total = np.bincount(index, w, bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(index, w * probability, bins) / total
        frequency = np.bincount(index, w * happened, bins) / total
    centre = (np.arange(bins) + 0.5) / bins
    return xr.Dataset(
        {"forecast": ("bin", mean), "observed": ("bin", frequency), "weight": ("bin", total)}, coords={"bin": centre}
    )
