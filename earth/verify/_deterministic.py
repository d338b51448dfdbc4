"""Area-weighted scores of single forecasts. Missing values in either field take their weight out of both sums.

Every score takes canonical xarray arrays, matches them by coordinate values (never by position), works on chunked arrays
without loading them, and keeps every dimension that is not named in `over`: `over=("time",)` gives a map.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth._grid import weights_of

Dims = Sequence[str]


def aligned(forecast: xr.DataArray, truth: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Both arrays on their common coordinates; grids must be the same up to order.

    Raises:
        InputError: latitudes, longitudes or levels that are not the same set, or nothing in common.
    """
    for d in ("lat", "lon", "level", "channel"):
        if d in forecast.dims and d in truth.dims:
            a, b = forecast[d].values, truth[d].values
            if a.dtype.kind == "f" and a.shape == b.shape and np.array_equal(np.sort(a), np.sort(b)):
                continue
            if a.dtype.kind == "f" and a.shape == b.shape and np.allclose(np.sort(a), np.sort(b), atol=1e-5):
                # float32 against float64 coordinates: the same grid, spelled differently
                position = np.argsort(np.argsort(b))
                truth = truth.assign_coords({d: np.sort(a)[position]})
                continue
            if set(a.tolist()) != set(b.tolist()):
                raise InputError(
                    f"forecast and truth are on different {d} coordinates",
                    got=f"{a.size} values from {a[0]} to {a[-1]}",
                    expected=f"{b.size} values from {b[0]} to {b[-1]}",
                    remedy="regrid one of them, or select the common levels",
                )
    forecast, truth = xr.align(forecast, truth, join="inner", copy=False)
    if forecast.size == 0 or truth.size == 0:
        raise InputError("forecast and truth have no coordinate values in common", remedy="compare their times")
    return forecast, truth


def matched(other: xr.DataArray | float, values: xr.DataArray) -> xr.DataArray | float:
    """A mask, climatology or weight on the coordinates of `values`; numbers pass.

    Raises:
        InputError: another grid. (xarray's own arithmetic would silently keep the common points, if there are any.)
    """
    if not isinstance(other, xr.DataArray):
        return other
    return aligned(values, other)[1]


def weighted_mean(
    values: xr.DataArray, over: Dims, weights: str | xr.DataArray = "area", mask: xr.DataArray | None = None
):
    """Mean over dimensions, weighted by latitude where lat is one of them, over the valid values only.

    Args:
        weights: "area", "cos", "none", or an array of weights.
        mask: True where values count.
    """
    over = [d for d in over if d in values.dims]
    if not isinstance(weights, str):
        w = matched(weights, values)
    else:
        w = weights_of(values, weights) if "lat" in over and "lat" in values.coords else xr.DataArray(1.0)
    ok = values.notnull()
    if mask is not None:
        ok = ok & xr.DataArray(matched(mask, values)).astype(bool)
    w = w * ok
    total, weight = (values.where(ok, 0.0) * w).sum(over), w.sum([d for d in over if d in w.dims])
    # A dimension that neither mask nor weights carry still multiplies the count.
    for d in over:
        if d not in w.dims:
            weight = weight * values.sizes[d]
    return total / weight.where(weight > 0)


def bias(forecast, truth, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Mean of forecast minus truth."""
    f, o = aligned(forecast, truth)
    return weighted_mean(f - o, over, weights, mask)


def mae(forecast, truth, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Mean absolute error."""
    f, o = aligned(forecast, truth)
    return weighted_mean(abs(f - o), over, weights, mask)


def mse(forecast, truth, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Mean squared error."""
    f, o = aligned(forecast, truth)
    return weighted_mean((f - o) ** 2, over, weights, mask)


def rmse(forecast, truth, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Root of the mean squared error; the root comes after all means in `over`."""
    return mse(forecast, truth, over, weights, mask) ** 0.5


def acc(forecast, truth, climatology, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Anomaly correlation: of forecast minus climatology with truth minus climatology, uncentred.

    Missing where a field is the climatology to round-off: its correlation is 0 / 0.
    """
    f, o = aligned(forecast, truth)
    climatology = matched(climatology, f)
    a, b = f - climatology, o - climatology
    both = a.notnull() & b.notnull()
    a, b = a.where(both), b.where(both)
    mean = lambda x: weighted_mean(x, over, weights, mask)  # noqa: E731
    squares = [mean(a * a), mean(b * b)]
    noise = (100 * float(np.finfo(np.result_type(f.dtype, o.dtype, np.float32)).eps)) ** 2
    valid = (squares[0] > noise * mean(f.where(both) ** 2)) & (squares[1] > noise * mean(o.where(both) ** 2))
    return mean(a * b) / (squares[0] * squares[1]).where(valid) ** 0.5


def wind_vector_rmse(u, v, truth_u, truth_v, over: Dims = ("lat", "lon"), weights="area", mask=None) -> xr.DataArray:
    """Root mean square length of the vector error."""
    fu, ou = aligned(u, truth_u)
    fv, ov = aligned(v, truth_v)
    return weighted_mean((fu - ou) ** 2 + (fv - ov) ** 2, over, weights, mask) ** 0.5


def region[Labelled: (xr.Dataset, xr.DataArray)](ds: Labelled, name: str) -> Labelled:
    """A latitude band of a canonical dataset: "globe", "nh" (20-90N), "sh" (90-20S), "tropics" (20S-20N).

    Raises:
        InputError: an unknown name.
    """
    bands = {"globe": (-90, 90), "nh": (20, 90), "sh": (-90, -20), "tropics": (-20, 20)}
    if name not in bands:
        raise InputError(f"unknown region {name!r}", expected=", ".join(sorted(bands)))
    low, high = bands[name]
    lat = np.asarray(ds["lat"])
    return ds.isel(lat=np.flatnonzero((lat >= low) & (lat <= high)))


def zonal_power_spectrum(field: xr.DataArray, weights="area") -> xr.DataArray:
    """Variance by zonal wavenumber, averaged over latitude; the sum over wavenumbers >= 1 is the zonal variance."""
    n = field.sizes["lon"]

    def power(x):
        c = np.abs(np.fft.rfft(x, axis=-1, norm="forward")) ** 2
        c[..., 1:] *= 2
        if n % 2 == 0:
            c[..., -1] /= 2
        return c

    out = xr.apply_ufunc(
        power,
        field,
        input_core_dims=[["lon"]],
        output_core_dims=[["wavenumber"]],
        dask="parallelized",
        dask_gufunc_kwargs={"output_sizes": {"wavenumber": n // 2 + 1}, "allow_rechunk": True},
        output_dtypes=[field.dtype],
    ).assign_coords(wavenumber=np.arange(n // 2 + 1))
    return weighted_mean(out, ("lat",), weights)
