"""Scores of events in space: contingency tables and the fractions skill score."""

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth._grid import is_global
from sciax.earth.verify._deterministic import Dims, aligned, weighted_mean


def contingency(
    forecast, truth, threshold: float, over: Dims = ("lat", "lon"), weights="area", mask=None
) -> xr.Dataset:
    """Area fractions of hits, false alarms, misses and correct negatives of exceeding a threshold (`>=`)."""
    f, o = aligned(forecast, truth)
    ok = f.notnull() & o.notnull()
    a, b = f >= threshold, o >= threshold
    cells = {"hits": a & b, "false_alarms": a & ~b, "misses": ~a & b, "correct_negatives": ~a & ~b}
    return xr.Dataset({n: weighted_mean(c.astype(float).where(ok), over, weights, mask) for n, c in cells.items()})


def csi(table: xr.Dataset) -> xr.DataArray:
    """Critical success index hits / (hits + misses + false alarms); missing where no event is forecast or happens."""
    bottom = table["hits"] + table["misses"] + table["false_alarms"]
    return table["hits"] / bottom.where(bottom > 0)


def ets(table: xr.Dataset) -> xr.DataArray:
    """Equitable threat score: CSI with the hits expected by chance taken out."""
    total = table["hits"] + table["misses"] + table["false_alarms"] + table["correct_negatives"]
    chance = (table["hits"] + table["misses"]) * (table["hits"] + table["false_alarms"]) / total
    bottom = table["hits"] + table["misses"] + table["false_alarms"] - chance
    return (table["hits"] - chance) / bottom.where(abs(bottom) > 1e-15)


def pod(table: xr.Dataset) -> xr.DataArray:
    """Probability of detection hits / (hits + misses)."""
    bottom = table["hits"] + table["misses"]
    return table["hits"] / bottom.where(bottom > 0)


def far(table: xr.Dataset) -> xr.DataArray:
    """False alarm ratio false alarms / (hits + false alarms)."""
    bottom = table["hits"] + table["false_alarms"]
    return table["false_alarms"] / bottom.where(bottom > 0)


def fss(forecast, truth, threshold: float, window: int, *, periodic: bool | None = None) -> xr.DataArray:
    """Fractions skill score in a square window of `window` grid points (odd).

    1 - mean (p_f - p_o)^2 / (mean p_f^2 + mean p_o^2), p the fraction of the window at or above the threshold. At the edges
    only the points inside the domain count (`periodic`: longitudes wrap, by default where they go round the globe). With no
    event in either field the score is 1: there is nothing to miss. Missing points count neither as event nor as area.

    Source: Roberts and Lean (2008).

    Raises:
        InputError: a window that is even or larger than the domain.
    """
    # Windows hold neighbours: both grids must run in order, whatever order they came in.
    f, o = (x.sortby([d for d in ("lat", "lon") if d in x.coords]) for x in aligned(forecast, truth))
    if window < 1 or window % 2 == 0 or window > min(f.sizes["lat"], f.sizes["lon"]):
        raise InputError(
            "the window must be odd and fit the domain",
            got=window,
            expected=f"1 to {min(f.sizes['lat'], f.sizes['lon'])}",
        )
    wrap = "lon" in f.coords and is_global(f["lon"].values) if periodic is None else periodic
    ok = (f.notnull() & o.notnull()).transpose(..., "lat", "lon")
    a = ((f >= threshold) & ok).transpose(..., "lat", "lon")
    b = ((o >= threshold) & ok).transpose(..., "lat", "lon")

    def score(a, b, ok):
        area = _box(ok.astype(float), window, wrap)
        some = area > 0
        area = np.where(some, area, 1)
        pf, po = _box(a.astype(float), window, wrap) / area, _box(b.astype(float), window, wrap) / area
        use = ok & some
        top = np.where(use, (pf - po) ** 2, 0).sum((-2, -1))
        bottom = np.where(use, pf**2 + po**2, 0).sum((-2, -1))
        return np.where(bottom > 0, 1 - top / np.where(bottom > 0, bottom, 1), 1.0)

    return xr.apply_ufunc(
        score,
        a,
        b,
        ok,
        input_core_dims=[["lat", "lon"]] * 3,
        dask="parallelized",
        dask_gufunc_kwargs={"allow_rechunk": True},
        output_dtypes=[float],
    )


def _box(x: np.ndarray, window: int, periodic: bool) -> np.ndarray:
    """Sums over centred windows, by cumulative sums (cost independent of the window)."""
    h = window // 2
    lead = [(0, 0)] * (x.ndim - 2)
    x = np.pad(x, [*lead, (h, h), (0, 0)])
    x = np.pad(x, [*lead, (0, 0), (h, h)], mode="wrap" if periodic else "constant")
    for axis in (-2, -1):
        c = np.cumsum(x, axis=axis)
        zero = np.zeros_like(np.take(c, [0], axis=axis))
        c = np.concatenate([zero, c], axis=axis)
        n = c.shape[axis]
        x = np.take(c, range(window, n), axis=axis) - np.take(c, range(n - window), axis=axis)
    return x
