"""Regridding of labelled fields: conservation, masks, wrap-around, poles, order of dimensions, refusals."""

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereGrid
from sciax.earth import Regrid
from sciax.earth._grid import across_greenwich, area_weights, is_global

GRID = SphereGrid("gauss", 20, 40)


def dataset(values, lat, lon):
    return xr.Dataset({"sst": (("lat", "lon"), values, {"units": "K"})}, coords={"lat": lat, "lon": lon})


def smooth(lat, lon):
    phi, lam = np.radians(lat)[:, None], np.radians(lon)
    return 280 + 10 * np.sin(phi) + 3 * np.cos(phi) * np.cos(lam - 1) + np.cos(phi) ** 2 * np.sin(2 * lam)


@pytest.fixture
def source():
    lat, lon = np.linspace(-90, 90, 37), np.arange(72) * 5.0
    return dataset(smooth(lat, lon), lat, lon)


@pytest.mark.parametrize(
    "method, error", [("bilinear", 0.1), ("nearest", 0.6), ("conservative", 0.3), ("spectral", 1e-4)]
)
def test_smooth_fields(source, method, error):
    out = Regrid(method, grid=GRID)(source)["sst"]
    assert out.attrs["units"] == "K" and np.isfinite(out).all()
    assert np.abs(out - smooth(GRID.latitude, GRID.longitude)).max() < error


def test_conservative_keeps_the_mean(source):
    rough = source.copy(data={"sst": np.random.default_rng(0).random((37, 72))})
    out = Regrid("conservative", lat=tuple(np.linspace(-85, 85, 18)), lon=tuple(np.arange(36) * 10.0))(rough)["sst"]
    before = (rough["sst"].values.mean(1) * area_weights(source["lat"].values)).mean()
    after = (out.values.mean(1) * area_weights(out["lat"].values)).mean()
    assert abs(after / before - 1) < 1e-12


@pytest.mark.parametrize("method", ["bilinear", "conservative", "nearest"])
def test_land_never_leaks_into_the_sea(source, method):
    """Whatever stands under the mask, the result is that of the sea alone; a cell of mostly land is missing."""
    land = (source["lon"] > 60) & (source["lon"] < 150) & (abs(source["lat"]) < 50)
    sea = source.where(~land)
    out = Regrid(method, grid=GRID)(sea)["sst"]
    deep = (out["lon"] > 75) & (out["lon"] < 135) & (abs(out["lat"]) < 40)
    assert out.where(deep, drop=True).isnull().all()
    far = (out["lon"] < 50) | (out["lon"] > 160)
    assert out.where(far, drop=True).notnull().all()
    low, high = float(sea["sst"].min()), float(sea["sst"].max())
    assert float(out.min()) >= low - 1e-9 and float(out.max()) <= high + 1e-9


def test_wrap_around_has_no_seam(source):
    out = Regrid("bilinear", lat=tuple(source["lat"].values), lon=(357.5, 359.0, 0.0, 1.0))(source)["sst"]
    want = smooth(source["lat"].values, out["lon"].values)
    assert np.abs(out - want).max() < 0.05


def test_longitude_shift(source):
    """Rolling the source by whole target cells rolls the result."""
    stage = Regrid("conservative", lat=tuple(np.linspace(-80, 80, 9)), lon=tuple(np.arange(18) * 20.0))
    rolled = source.roll(lon=8, roll_coords=False)
    np.testing.assert_allclose(stage(rolled)["sst"], np.roll(stage(source)["sst"], 2, axis=1), rtol=1e-12)


def test_poles_of_a_grid_without_them():
    fields = dataset(smooth(GRID.latitude, GRID.longitude), GRID.latitude, GRID.longitude)
    out = Regrid("bilinear", lat=(-90.0, 0.0, 90.0), lon=tuple(np.arange(8) * 45.0))(fields)["sst"]
    assert float(out.isel(lat=0).std()) < 1e-6 and abs(float(out.isel(lat=-1, lon=0)) - 290) < 0.2


def test_vector_of_other_dimensions(source):
    cube = source.expand_dims(time=3, level=2).transpose("lon", "time", "lat", "level")
    stage = Regrid("bilinear", grid=GRID)
    out = stage(cube)["sst"]
    assert out.dims == ("lon", "time", "lat", "level")
    xr.testing.assert_allclose(out.isel(time=1, level=1).transpose("lat", "lon"), stage(source)["sst"])


def test_refusals(source):
    with pytest.raises(InputError, match="did you mean 'bilinear'"):
        Regrid("bilinar", grid=GRID)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="either grid"):
        Regrid("bilinear")
    with pytest.raises(InputError, match="outside the source"):
        Regrid("bilinear", grid=GRID)(source.isel(lat=slice(5, 20)))
    with pytest.raises(InputError, match="not ascending"):
        Regrid("bilinear", grid=GRID)(source.isel(lat=slice(None, None, -1)))
    with pytest.raises(InputError, match="without missing values"):
        Regrid("spectral", grid=GRID)(source.where(source["lat"] > 0))


@pytest.mark.parametrize("method, error", [("bilinear", 0.05), ("nearest", 0.4), ("conservative", 0.1)])
def test_a_region_across_greenwich(source, method, error):
    """As the source or as the target, in the canonical 0 to 360, where its two halves lie at both ends."""
    lat, lon = np.arange(40, 61, 2.0), np.sort(np.arange(-10, 11, 2.0) % 360)
    region = dataset(smooth(lat, lon), lat, lon)
    assert not is_global(lon)
    inside = np.arange(45, 56, 1.5), np.sort(np.arange(-6, 6.1, 1.5) % 360)
    for given in (region, source):
        out = Regrid(method, lat=tuple(inside[0]), lon=tuple(inside[1]))(given)["sst"]
        np.testing.assert_array_equal(out["lon"], inside[1])
        coarse = 1 if given is region else 8
        assert np.abs(out.values - smooth(*inside)).max() < coarse * error
    with pytest.raises(InputError, match=r"outside the source|no source cell"):
        Regrid(method, lat=(45.0, 50.0), lon=(170.0, 190.0))(region)


def test_longitudes_side_by_side():
    order, degrees = across_greenwich(np.array([0.0, 2.0, 356.0, 358.0]))
    assert order.tolist() == [2, 3, 0, 1] and degrees.tolist() == [-4.0, -2.0, 0.0, 2.0]
    assert across_greenwich(np.array([10.0, 12.0, 14.0]))[1].tolist() == [10.0, 12.0, 14.0]
