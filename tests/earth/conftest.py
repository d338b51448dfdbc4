"""Small synthetic analyses, in a tidy canonical layout, for the earth tests."""

import numpy as np
import pytest
import xarray as xr


@pytest.fixture(scope="session")
def tidy() -> xr.Dataset:
    """Eight 12-hourly analyses of z and t on two levels and msl, 13 x 24 global grid with poles; smooth, float64."""
    rng = np.random.default_rng(7)
    lat, lon = np.linspace(-90, 90, 13), np.arange(24) * 15.0
    phi, lam = np.radians(lat)[:, None], np.radians(lon)
    time = np.datetime64("2020-02-26T00", "ns") + np.arange(8) * np.timedelta64(12, "h")
    z = np.zeros((8, 2, 13, 24))
    for m in range(1, 4):
        for k in range(2):
            a, b = rng.standard_normal(2)
            angle = m * lam + 0.3 * m * np.arange(8)[:, None, None]
            z[:, k] += 600 * np.cos(phi) ** m * np.sin(phi) * (a * np.cos(angle) + b * np.sin(angle))
    z += np.array([54000.0, 14000.0])[:, None, None] - 3000 * np.sin(phi) ** 2
    t = 250 + z / 5000 + rng.standard_normal((8, 1, 1, 1))
    msl = 101000 + z[:, 1] / 10
    return xr.Dataset(
        {
            "z": (("time", "level", "lat", "lon"), z, {"units": "m2 s-2", "standard_name": "geopotential"}),
            "t": (("time", "level", "lat", "lon"), t, {"units": "K", "standard_name": "air_temperature"}),
            "msl": (
                ("time", "lat", "lon"),
                msl,
                {"units": "Pa", "standard_name": "air_pressure_at_mean_sea_level"},
            ),
        },
        coords={"time": time, "level": ("level", [500.0, 850.0], {"units": "hPa"}), "lat": lat, "lon": lon},
    )


def reversed_latitude(ds):
    return ds.isel(lat=slice(None, None, -1))


def western_longitude(ds):
    return ds.assign_coords(lon=(ds["lon"] + 180) % 360 - 180).sortby("lon")


def reordered_levels(ds):
    return ds.isel(level=slice(None, None, -1))


def pascal_levels(ds):
    return ds.assign_coords(level=("level", ds["level"].values * 100, {"units": "Pa"}))


def other_units(ds):
    out = ds.copy()
    out["gh"] = (ds["z"] / 9.80665).assign_attrs(units="gpm")
    out["t"] = (ds["t"] - 273.15).assign_attrs(units="degC")
    out["msl"] = (ds["msl"] / 100).assign_attrs(units="hPa")
    return out.drop_vars("z")


def transposed(ds):
    return ds.transpose("lon", "level", "time", "lat")


def renamed(ds):
    names = {"lat": "latitude", "lon": "longitude", "level": "isobaricInhPa", "z": "geopotential", "t": "temperature"}
    return ds.rename({a: b for a, b in names.items() if a in ds.variables})


def shuffled_times(ds):
    return ds.isel(time=[3, 0, 7, 1, 6, 2, 5, 4])


def repeated_meridian(ds):
    last = ds.isel(lon=[0]).assign_coords(lon=[360.0])
    return xr.concat([ds, last], dim="lon", data_vars="minimal")


def chunked(ds):
    pytest.importorskip("dask")
    return ds.chunk(time=3, lat=5)


def everything(ds):
    return renamed(transposed(other_units(pascal_levels(reordered_levels(western_longitude(reversed_latitude(ds)))))))


LAYOUTS = (
    reversed_latitude,
    western_longitude,
    reordered_levels,
    pascal_levels,
    other_units,
    transposed,
    renamed,
    shuffled_times,
    repeated_meridian,
    chunked,
    everything,
)
