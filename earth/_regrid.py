"""Regridding of canonical datasets: bilinear, nearest, first-order conservative, spectral."""

from dataclasses import dataclass
from typing import Literal

import equinox as eqx
import numpy as np
import xarray as xr

from sciax.core.errors import InputError, did_you_mean
from sciax.core.ops import regrid as ops
from sciax.core.ops.sphere import SphereGrid, analysis, sphere_tables, synthesis, truncate
from sciax.earth._grid import across_greenwich, cell_edges, is_global, sphere_grid_of

METHODS = ("bilinear", "conservative", "nearest", "spectral")


@dataclass(frozen=True)
class Regrid:
    """A regridding stage.

    Attributes:
        method: "bilinear" for smooth fields, "conservative" for fluxes and to coarser grids, "nearest" for classes and
            masks, "spectral" between global grids (exact for what the truncation holds).
        lat, lon: target coordinates in degrees (any order of latitude; the result ascends), or
        grid: a SphereGrid in their place.
        min_fraction: target cells with a smaller valid fraction become missing (bilinear and nearest ask for all of it).
        truncation: for "spectral"; by default the highest that both grids resolve.
    """

    method: Literal["bilinear", "conservative", "nearest", "spectral"] = "bilinear"
    lat: tuple[float, ...] | None = None
    lon: tuple[float, ...] | None = None
    grid: SphereGrid | None = None
    min_fraction: float = 0.5
    truncation: int | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(
                f"unknown regridding method {self.method!r}", remedy=did_you_mean(str(self.method), METHODS)
            )
        if (self.grid is None) == (self.lat is None or self.lon is None):
            raise InputError(
                "give either grid= or both lat= and lon=", got=f"grid={self.grid}, lat, lon: {self.lat is not None}"
            )
        if not 0.0 < self.min_fraction <= 1.0:
            raise InputError("min_fraction must be in (0, 1]", got=self.min_fraction)

    @property
    def target(self) -> tuple[np.ndarray, np.ndarray]:
        """Ascending latitudes and longitudes of the result."""
        if self.grid is not None:
            return self.grid.latitude, self.grid.longitude
        return np.sort(np.asarray(self.lat, dtype=np.float64)), np.sort(np.asarray(self.lon, dtype=np.float64) % 360.0)

    def __call__(self, ds: xr.Dataset) -> xr.Dataset:
        """Regrid every field of a canonical dataset that has lat and lon.

        Raises:
            InputError: a target outside the source; for "spectral", grids that are not global, or missing values.
        """
        for d in ("lat", "lon"):
            if d not in ds.dims or (np.diff(ds[d].values) <= 0).any():
                raise InputError(f"{d} is missing or not ascending", remedy="canonicalise() the data first")
        lat, lon = self.target
        out = {}
        for name, da in ds.data_vars.items():
            if not {"lat", "lon"} <= set(da.dims):
                out[name] = da
                continue
            moved = da.transpose(..., "lat", "lon")
            values = self._apply(moved.values, ds["lat"].values, ds["lon"].values)
            dims = moved.dims
            coords = {k: v for k, v in moved.coords.items() if "lat" not in v.dims and "lon" not in v.dims}
            fresh = xr.DataArray(values, dims=dims, coords=coords, attrs=da.attrs)
            fresh = fresh.assign_coords(lat=("lat", lat, ds["lat"].attrs), lon=("lon", lon, ds["lon"].attrs))
            out[name] = fresh.transpose(*da.dims)
        return xr.Dataset(out, attrs=ds.attrs)

    def _apply(self, values: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        values = values if values.dtype.kind == "f" else values.astype(np.float32)
        if self.method == "spectral":
            return self._spectral(values, lat, lon)
        a, b, poles = self.weights(lat, lon)
        a, b = a.astype(values.dtype), b.astype(values.dtype)
        if poles:
            values = _numpy_poles(values)
        valid = np.isfinite(values)
        if valid.all():
            return _apply_separable(values, a, b)
        mean, fraction = (np.asarray(x) for x in _apply_masked(values, valid, a, b))
        least = self.min_fraction if self.method == "conservative" else 1.0
        return np.where(fraction >= least - 1e-5, mean, np.nan).astype(values.dtype)

    def weights(self, lat: np.ndarray, lon: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """(latitude weights, longitude weights, whether rows at the poles are to be added first)."""
        lat, lon = np.asarray(lat, dtype=np.float64), np.asarray(lon, dtype=np.float64)
        to_lat, to_lon = self.target
        period, to_period = (360.0 if is_global(x) else None for x in (lon, to_lon))
        # regions may lie across Greenwich: their columns are put side by side here and back in their places at the end
        order, lon = across_greenwich(lon) if period is None else (np.arange(lon.size), lon)
        to_order, to_lon = across_greenwich(to_lon) if to_period is None else (np.arange(to_lon.size), to_lon)
        if period is None:
            to_lon = to_lon + 360.0 * np.round((lon[[0, -1]].mean() - to_lon[[0, -1]].mean()) / 360.0)

        def back(columns: np.ndarray) -> np.ndarray:
            placed = np.empty_like(columns)
            placed[np.ix_(to_order, order)] = columns
            return placed

        if self.method == "conservative":
            edges, to_edges = cell_edges(lat), cell_edges(to_lat)
            lon_edges = _lon_edges(lon, period)
            target_edges = _lon_edges(to_lon, to_period)
            s, t = np.sin(np.radians(edges)), np.sin(np.radians(to_edges))
            columns = ops.conservative_weights(lon_edges, target_edges, period)
            return ops.conservative_weights(s, t), back(columns), False
        make = ops.linear_weights if self.method == "bilinear" else ops.nearest_weights
        poles = (
            self.method == "bilinear"
            and period is not None
            and _reaches_poles(lat)
            and (to_lat[0] < lat[0] or to_lat[-1] > lat[-1])
        )
        rows = np.concatenate([[-90.0], lat, [90.0]]) if poles else lat
        if self.method == "nearest" and _reaches_poles(lat):
            to_lat = np.clip(to_lat, lat[0], lat[-1])
        return make(rows, to_lat), back(make(lon, to_lon, period)), poles

    def _spectral(self, values: np.ndarray, lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
        import jax.numpy as jnp

        if not np.isfinite(values).all():
            raise InputError("spectral regridding needs fields without missing values", remedy="method='conservative'")
        source, target = sphere_grid_of(lat, lon), self.grid or sphere_grid_of(*self.target)
        limits = [min(g.max_degree - 1, (g.nlon - 1) // 2) for g in (source, target)]
        truncation = min(limits) if self.truncation is None else self.truncation
        dtype = jnp.asarray(values[:0]).dtype
        into, back = (sphere_tables(g, truncation, dtype) for g in (source, target))
        return np.asarray(_through_coefficients(jnp.asarray(values), into, back))


@eqx.filter_jit
def _through_coefficients(values, into, back):
    return synthesis(truncate(analysis(values, into), into), back)


def _apply_separable(values, a, b):
    """Two NumPy products in the order that costs less: a jitted call per grid would compile for each new shape."""
    rows, columns = a.shape[0] / a.shape[1], b.shape[0] / b.shape[1]
    if rows <= columns:
        return np.matmul(np.matmul(a, values), b.T)
    return np.matmul(a, np.matmul(values, b.T))


def _apply_masked(values, valid, a, b):
    fraction = _apply_separable(valid.astype(values.dtype), a, b)
    total = _apply_separable(np.where(valid, values, 0), a, b)
    some = fraction > 1e-6
    return np.where(some, total / np.where(some, fraction, 1), 0), fraction


def _numpy_poles(values: np.ndarray) -> np.ndarray:
    ends = [np.broadcast_to(values[..., k, :].mean(-1, keepdims=True), values[..., k, :].shape) for k in (0, -1)]
    return np.concatenate([ends[0][..., None, :], values, ends[1][..., None, :]], axis=-2)


def _reaches_poles(lat: np.ndarray) -> bool:
    step = lat[1] - lat[0]
    return bool(lat[0] - 1.01 * step <= -90.0 and lat[-1] + 1.01 * step >= 90.0)


def _lon_edges(lon: np.ndarray, period: float | None) -> np.ndarray:
    if lon.size < 2:
        raise InputError("conservative regridding needs at least two longitudes", got=lon.size)
    if period is None:
        middle = (lon[1:] + lon[:-1]) / 2
        return np.concatenate([[2 * lon[0] - middle[0]], middle, [2 * lon[-1] - middle[-1]]])
    middle = np.concatenate([[(lon[-1] - period + lon[0]) / 2], (lon[1:] + lon[:-1]) / 2])
    return np.concatenate([middle, [middle[0] + period]])
