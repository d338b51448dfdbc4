"""Datasets to NetCDF files that other tools open."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def write(dataset: "xr.Dataset | xr.DataArray", path: Path, source: str = "") -> None:
    """Write `dataset` to `path`, with global attributes that say what made it; complex variables as real/imaginary pairs."""
    import numpy as np
    import xarray as xr

    import sciax

    if isinstance(dataset, xr.DataArray):
        dataset = dataset.to_dataset(name=str(dataset.name or path.stem))
    split = {}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind == "c":
            for part in ("real", "imag"):
                attrs = variable.attrs | {"comment": f"{part} part of the complex variable {name}"}
                split[f"{name}_{part}"] = (variable.dims, getattr(np.asarray(variable.values), part), attrs)
            dataset = dataset.drop_vars([name])
    dataset = dataset.assign(split)
    made = {
        "Conventions": "CF-1.11",
        "source": " ".join(filter(None, ["sciax", sciax.__version__, source])),
        "history": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} written by sciax",
    }
    dataset.assign_attrs({k: v for k, v in made.items() if k not in dataset.attrs}).to_netcdf(path, engine="netcdf4")
