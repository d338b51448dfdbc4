"""Opening gridded files, whatever their format: NetCDF 3 and 4, Zarr 2 and 3, GRIB 1 and 2.

The format is taken from the content, not from the file's name. Nothing is renamed or converted here: that is the business of
the domain (see `sciax.earth.canonicalise`).
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from sciax.core.errors import FileFormatError, InputError, MissingFileError, optional_import

FORMATS = ("grib", "netcdf", "zarr")


def sniff(path: str | Path) -> str:
    """ "netcdf", "zarr" or "grib", from the first bytes (or, for a directory, its metadata files).

    Raises:
        MissingFileError: nothing there.
        FileFormatError: none of the formats.
    """
    path = Path(path)
    if not path.exists():
        raise MissingFileError(f"no file or directory {str(path)!r}", remedy="check the path")
    if path.is_dir():
        if any((path / name).exists() for name in ("zarr.json", ".zgroup", ".zmetadata")):
            return "zarr"
        raise FileFormatError(f"the directory {str(path)!r} is not a Zarr store", expected="zarr.json or .zgroup in it")
    with path.open("rb") as stream:
        head = stream.read(512)
    if head[:3] == b"CDF" or head[:8] == b"\x89HDF\r\n\x1a\n":
        return "netcdf"
    if b"GRIB" in head:
        return "grib"
    raise FileFormatError(
        f"{str(path)!r} is neither NetCDF nor GRIB",
        got=f"first bytes {head[:8]!r}",
        expected="NetCDF 3/4 (HDF5), GRIB 1/2, or a Zarr directory",
    )


def open_gridded(
    path: str | Path | Sequence[str | Path],
    *,
    chunks: Any = None,
    variables: Sequence[str] | None = None,
) -> xr.Dataset:
    """Open a file, a Zarr store or several files as one dataset, lazily.

    Args:
        path: one path, or several that are merged by their coordinates (they may not disagree).
        chunks: passed on to dask; None reads on access without dask.
        variables: keep only these, by the names in the file.

    Raises:
        MissingFileError, FileFormatError: nothing there, or not readable as what it is.
        InputError: variables that are not in the file, all of them named.
    """
    if isinstance(path, str | Path):
        ds = _open_one(Path(path), chunks)
    else:
        parts = [_open_one(Path(p), chunks) for p in path]
        if not parts:
            raise InputError("no files to open")
        try:
            merged: Any = xr.combine_by_coords(
                parts, combine_attrs="drop_conflicts", join="outer", compat="no_conflicts", data_vars="all"
            )
        except ValueError as error:
            raise FileFormatError(
                "the files do not fit together",
                got=str(error),
                remedy="open them one by one and compare the coordinates",
            ) from error
        ds = merged
    if variables is not None:
        missing = [name for name in variables if name not in ds]
        if missing:
            raise InputError(
                f"variables not in the file: {', '.join(missing)}",
                expected=f"some of: {', '.join(map(str, ds.data_vars))}",
            )
        ds = ds[list(variables)]
    return ds


def _open_one(path: Path, chunks: Any) -> xr.Dataset:
    kind = sniff(path)
    if kind == "grib":
        return _open_grib(path, chunks)
    if kind == "zarr":
        optional_import("zarr", "earth")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*consolidated.*")
            return xr.open_dataset(
                path, engine="zarr" if kind == "zarr" else None, chunks=chunks, decode_timedelta=True
            )
    except (OSError, ValueError, KeyError) as error:
        raise FileFormatError(f"cannot read {str(path)!r} as {kind}", got=f"{type(error).__name__}: {error}") from error


def _open_grib(path: Path, chunks: Any) -> xr.Dataset:
    """All messages of a GRIB file in one dataset.

    A file that mixes level types (2 m, 10 m, pressure) or step ranges holds several hypercubes. They are opened one by one;
    scalar coordinates of single levels, which would collide, move into the variable's attributes.
    """
    cfgrib = optional_import("cfgrib", "earth")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            # No index file beside the data: the folder may be read-only, and a stale index reads wrong fields.
            cubes = cfgrib.open_datasets(str(path), backend_kwargs={"indexpath": "", "errors": "raise"})
    except Exception as error:  # cfgrib and eccodes raise a dozen unrelated types on a broken message
        raise FileFormatError(f"cannot read {str(path)!r} as GRIB", got=f"{type(error).__name__}: {error}") from error
    if not cubes:
        raise FileFormatError(f"{str(path)!r} holds no GRIB message that can be read")
    # Pressure levels first: where a name exists on several kinds of level, they keep the plain one.
    cubes.sort(key=lambda cube: 0 if "isobaricInhPa" in cube.dims else 1)
    merged = xr.Dataset(attrs=dict(cubes[0].attrs))
    clashes: list[str] = []
    for cube in cubes:
        for name in [n for n in cube.coords if cube[n].ndim == 0 and n not in ("time", "step", "valid_time")]:
            level = cube[name].values.item()
            cube = cube.drop_vars(name)
            for variable in cube.data_vars:
                cube[variable].attrs[f"GRIB_scalar_{name}"] = level
        for name, variable in cube.data_vars.items():
            label = str(name)
            if label in merged:
                label = f"{name}_{variable.attrs.get('GRIB_typeOfLevel', 'other')}_{variable.attrs.get('GRIB_stepType', '')}"
            try:
                merged = merged.merge(variable.rename(label).to_dataset(), join="outer", compat="no_conflicts")
            except (ValueError, xr.MergeError) as error:
                clashes.append(f"{label}: {str(error).splitlines()[0]}")
    if clashes:
        raise FileFormatError(
            f"{str(path)!r} holds fields that do not share coordinates",
            got="; ".join(clashes),
            remedy="split the file by step or level type (grib_copy -w ...) and open the parts one by one",
        )
    return merged if chunks is None else merged.chunk(chunks)
