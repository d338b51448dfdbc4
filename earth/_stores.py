"""Files that a forecast is written to while it runs, so that memory does not grow with its length."""

from pathlib import Path

import numpy as np
import xarray as xr

from sciax.core.errors import InputError, optional_import


class ZarrStore:
    """A Zarr store; the restart file lies inside."""

    def __init__(self, path: Path):
        optional_import("zarr", "earth")
        self.path = path

    @property
    def restart(self) -> Path:
        return self.path / ".sciax_restart.npz"

    def create(self, template: xr.Dataset) -> None:
        """Make the store from lazy data: coordinates are written, values are not."""
        template.to_zarr(self.path, mode="w", compute=False)

    def write(self, piece: xr.Dataset, first: int, last: int) -> None:
        """Write the steps first..last - 1."""
        piece = piece.drop_vars([v for v in piece.coords if "lead_time" not in piece[v].dims])
        piece.to_zarr(self.path, region={"lead_time": slice(first, last)})

    def finish(self) -> xr.Dataset:
        return xr.open_zarr(self.path, decode_timedelta=True)


class NetcdfStore:
    """A NetCDF-4 file; the restart file lies beside it until the forecast is complete."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def restart(self) -> Path:
        return self.path.with_name(f".{self.path.name}.restart.npz")

    def create(self, template: xr.Dataset) -> None:
        """Make the file from lazy data. What is not yet forecast reads as missing."""
        import netCDF4

        shell = template.drop_vars(list(template.data_vars))
        shell.to_netcdf(self.path, engine="netcdf4")
        with netCDF4.Dataset(self.path, "a") as nc:
            for name, variable in template.data_vars.items():
                for d, size in variable.sizes.items():
                    if d not in nc.dimensions:
                        nc.createDimension(str(d), size)
                new = nc.createVariable(
                    str(name), variable.dtype.str[1:], tuple(map(str, variable.dims)), fill_value=np.nan
                )
                new.setncatts({k: v for k, v in variable.attrs.items() if k != "_FillValue"})
                new.coordinates = "valid_time"

    def write(self, piece: xr.Dataset, first: int, last: int) -> None:
        """Write the steps first..last - 1."""
        import netCDF4

        with netCDF4.Dataset(self.path, "a") as nc:
            for name, variable in piece.data_vars.items():
                nc[str(name)][:, first:last] = variable.values

    def finish(self) -> xr.Dataset:
        self.restart.unlink(missing_ok=True)
        return xr.open_dataset(self.path, decode_timedelta=True)


def store_at(path: str | Path) -> ZarrStore | NetcdfStore:
    """The store for a path.

    Raises:
        InputError: neither .zarr nor .nc; MissingDependencyError: Zarr is not installed.
    """
    kinds = {".zarr": ZarrStore, ".nc": NetcdfStore}
    kind = kinds.get(Path(path).suffix)
    if kind is None:
        raise InputError("output is .nc or .zarr", got=str(path))
    return kind(Path(path))
