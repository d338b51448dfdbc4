"""Readers of gridded files: formats by content, several GRIB hypercubes, refusals that name the file's fault."""

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import FileFormatError, InputError, MissingFileError
from sciax.datasets.gridded import open_gridded, sniff


@pytest.fixture
def small():
    return xr.Dataset(
        {"a": (("time", "x"), np.arange(6.0).reshape(2, 3)), "b": ("x", np.ones(3))},
        coords={"time": np.array(["2000-01-01", "2000-01-02"], "datetime64[ns]"), "x": [0, 1, 2]},
    )


@pytest.mark.parametrize("version", ["NETCDF3_64BIT", "NETCDF4"])
def test_netcdf_under_any_name(tmp_path, small, version):
    path = tmp_path / "data.bin"
    small.to_netcdf(path, format=version)
    assert sniff(path) == "netcdf"
    xr.testing.assert_equal(open_gridded(path).load(), small)


@pytest.mark.parametrize("version", [2, 3])
def test_zarr(tmp_path, small, version):
    pytest.importorskip("zarr")
    path = tmp_path / "store"
    small.to_zarr(path, zarr_format=version, consolidated=False)
    assert sniff(path) == "zarr"
    xr.testing.assert_equal(open_gridded(path).load(), small)


def test_several_files(tmp_path, small):
    for k in range(2):
        small.isel(time=[k]).to_netcdf(tmp_path / f"{k}.nc")
    xr.testing.assert_equal(open_gridded([tmp_path / "1.nc", tmp_path / "0.nc"])["a"].load(), small["a"])


def test_refusals(tmp_path, small):
    with pytest.raises(MissingFileError):
        open_gridded(tmp_path / "nothing.nc")
    (tmp_path / "text.nc").write_text("no data here")
    with pytest.raises(FileFormatError, match="neither NetCDF nor GRIB"):
        open_gridded(tmp_path / "text.nc")
    with pytest.raises(FileFormatError, match="not a Zarr store"):
        open_gridded(tmp_path)
    small.to_netcdf(tmp_path / "a.nc")
    data = (tmp_path / "a.nc").read_bytes()
    (tmp_path / "cut.nc").write_bytes(data[: len(data) // 3])
    with pytest.raises(FileFormatError, match="cannot read"):
        open_gridded(tmp_path / "cut.nc")
    with pytest.raises(InputError, match="c, d"):
        open_gridded(tmp_path / "a.nc", variables=["a", "c", "d"])


def test_grib(shared_data):
    pytest.importorskip("cfgrib")
    folder = shared_data / "earth" / "grib"
    members = open_gridded(folder / "era5-levels-members.grib")
    assert dict(members.sizes) == {"number": 10, "time": 4, "isobaricInhPa": 2, "latitude": 61, "longitude": 120}
    # Two step types of one field in one file: both are kept.
    mixed = open_gridded(folder / "cfrzr_and_cprat.grib")
    assert set(mixed.data_vars) == {"cfrzr", "cpr", "cfrzr_surface_avg", "cpr_surface_avg"}
    with pytest.raises(FileFormatError, match="WrongLengthError"):
        open_gridded(folder / "era5-levels-corrupted.grib")


@pytest.mark.slow
def test_grib_with_many_kinds_of_level(shared_data):
    pytest.importorskip("cfgrib")
    folder = shared_data / "earth" / "grib"
    # 2 m, 10 m, soil, cloud and pressure fields in one file: nothing is dropped, pressure levels keep the plain names.
    gfs = open_gridded(folder / "gfs.t12z.pgrbf120.2p5deg.grib2")
    assert gfs["t"].sizes["isobaricInhPa"] == 26
    assert {"t2m", "u10", "prmsl"} <= set(gfs.data_vars)
