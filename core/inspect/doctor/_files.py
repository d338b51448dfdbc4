"""Probes of what goes to disk and comes back."""

import tempfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.inspect.doctor._probe import Measured, probe
from sciax.core.precision import x64


def netcdf_round_trip(dataset: Any) -> Any:
    """Write a dataset as NetCDF and read it back."""
    import xarray as xr

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probe.nc"
        dataset.to_netcdf(path, engine="netcdf4")
        with xr.open_dataset(path, engine="netcdf4") as found:
            return found.load()


@probe(
    "NetCDF",
    "values, coordinates, units and times of a file written and read again",
    subject=netcdf_round_trip,
    remedy="reinstall the readers: pip install --force-reinstall netcdf4 xarray",
)
def _netcdf(round_trip: Any) -> Measured:
    import xarray as xr

    values = np.random.default_rng(1).standard_normal((3, 4))
    times = np.datetime64("2026-01-01T06:00:00", "ns") + np.arange(3) * np.timedelta64(6, "h")
    coords = {"time": times, "lat": ("lat", np.linspace(-90, 90, 4), {"units": "degrees_north"})}
    given = xr.Dataset({"t": (("time", "lat"), values, {"units": "K"})}, coords=coords)
    found = round_trip(given)
    same = [found.t.attrs.get("units") == "K", found.lat.attrs.get("units") == "degrees_north"]
    hours = (found.time.values - times[0]) / np.timedelta64(1, "h")
    got = np.concatenate([found.t.values.ravel(), found.lat.values, hours, same])
    return Measured(got, np.concatenate([values.ravel(), given.lat.values, [0, 6, 12], [1, 1]]))


def export_round_trip(function: Any, *arguments: Any) -> Any:
    """Serialise a compiled function, forget it, and call what is read back."""
    from jax import export

    shapes = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arguments]
    blob = export.export(jax.jit(function))(*shapes).serialize()
    return export.deserialize(bytearray(blob)).call(*arguments)


@probe(
    "export",
    "a function serialised and read back against NumPy",
    subject=export_round_trip,
    remedy="jax.export needs flatbuffers: pip install flatbuffers",
)
def _export(round_trip: Any) -> Measured:
    rng = np.random.default_rng(2)
    a, x = rng.standard_normal((6, 6)), rng.standard_normal(6)
    with x64():
        got = round_trip(lambda a, x: jnp.tanh(a @ x), jnp.asarray(a), jnp.asarray(x))
    return Measured(got, np.tanh(a @ x), 1e-13)
