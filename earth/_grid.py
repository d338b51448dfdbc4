"""Latitude-longitude grids: recognition, cell edges and areas."""

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereGrid

EARTH_RADIUS = 6.371e6  # m, mean radius
EARTH_ROTATION = 7.292e-5  # rad s-1


def cell_edges(lat: np.ndarray, *, to_poles: bool | None = None) -> np.ndarray:
    """Edges between latitudes (degrees): midpoints, and at the ends half a step beyond, never past a pole.

    Args:
        lat: ascending or descending.
        to_poles: stretch the outer cells to the poles (global grids); by default when they reach within one step of them.
    """
    lat = np.asarray(lat, dtype=np.float64)
    if lat.size < 2:
        raise InputError("cell edges need at least two latitudes", got=lat.size)
    sign = 1.0 if lat[-1] > lat[0] else -1.0
    up = lat * sign
    inner = (up[1:] + up[:-1]) / 2
    first, last = up[0] - (up[1] - up[0]) / 2, up[-1] + (up[-1] - up[-2]) / 2
    step = up[1] - up[0]
    if to_poles or (to_poles is None and up[0] - step < -90.0 and up[-1] + step > 90.0):
        first, last = -90.0, 90.0
    return sign * np.concatenate([[max(first, -90.0)], inner, [min(last, 90.0)]])


def area_weights(lat: np.ndarray) -> np.ndarray:
    """Area of each latitude band, normalised to mean 1 over the bands: differences of sin at the cell edges.

    Poles on the grid get their half cells. (A cos(lat) weight gives them exactly zero.)
    """
    edges = cell_edges(lat)
    weights = np.abs(np.diff(np.sin(np.radians(edges))))
    return weights / weights.mean()


def weights_of(ds: xr.Dataset | xr.DataArray, kind: str = "area") -> xr.DataArray:
    """Latitude weights of a canonical dataset: "area" (cell areas, the default), "cos" or "none".

    Raises:
        InputError: unknown kind, or no latitude.
    """
    if "lat" not in ds.coords:
        raise InputError("no latitude coordinate", remedy="canonicalise() the data first")
    lat = np.asarray(ds["lat"].values, dtype=np.float64)
    if kind == "none" or lat.size == 1:
        values = np.ones(lat.size)
    elif kind == "area":
        values = area_weights(lat)
    elif kind == "cos":
        values = np.cos(np.radians(lat))
        values = values / values.mean()
    else:
        raise InputError(f"unknown latitude weights {kind!r}", expected="'area', 'cos' or 'none'")
    return xr.DataArray(values, dims="lat", coords={"lat": ds["lat"]})


def sphere_grid_of(lat: np.ndarray, lon: np.ndarray) -> SphereGrid:
    """The transform grid that ascending latitudes and longitudes from 0 belong to.

    Raises:
        InputError: not a global Gauss or equiangular grid.
    """
    lat, lon = np.asarray(lat, dtype=float), np.asarray(lon, dtype=float)
    nlon = lon.size
    if not np.allclose(lon, np.arange(nlon) * 360.0 / nlon, atol=1e-3):
        raise InputError(
            "the longitudes do not cover the globe evenly from 0",
            got=f"{nlon} values from {lon[0]:g} to {lon[-1]:g}",
            expected=f"0 to {360 - 360 / nlon:g} in steps of {360 / nlon:g}",
            remedy="canonicalise() rolls longitudes to 0..360; regrid regional or shifted data",
        )
    for kind in ("equiangular_poles", "equiangular", "gauss"):
        if lat.size < 3:
            continue
        grid = SphereGrid(kind, lat.size, nlon)
        if np.allclose(grid.latitude, lat, atol=2e-3):
            return grid
    raise InputError(
        "the latitudes are neither Gaussian nor equally spaced over the globe",
        got=f"{lat.size} values from {lat[0]:g} to {lat[-1]:g}",
        remedy="regrid to a Gauss grid first",
    )


def is_global(lon: np.ndarray) -> bool:
    """Whether longitudes (ascending, degrees) go all the way round."""
    lon = np.asarray(lon, dtype=float)
    if lon.size < 3:
        return False
    gaps = np.diff(lon)
    step = np.median(gaps)
    # a region across Greenwich ends one step short of its beginning too, with a gap in between
    return bool(abs(lon[-1] + step - lon[0] - 360.0) < 0.51 * step and gaps.max() < 1.51 * step)


def across_greenwich(lon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Longitudes of a region in the order in which they lie side by side, the largest gap outside: (order, ascending degrees).

    0, 2, 356, 358 become -4, -2, 0, 2.
    """
    lon = np.asarray(lon, dtype=np.float64)
    if lon.size < 2:
        return np.arange(lon.size), lon
    gaps = np.diff(lon, append=lon[0] + 360.0)
    start = (int(np.argmax(gaps)) + 1) % lon.size
    order = np.roll(np.arange(lon.size), -start)
    turned = lon[order]
    return order, np.where(np.arange(lon.size) < (lon.size - start) % lon.size, turned - 360.0, turned)
