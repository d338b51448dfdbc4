"""Shallow water and the linear inverse model as forecast models."""

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth import Forecast, LinearInverse, Persistence, ShallowWaterFlow
from sciax.earth.dynamics import ShallowWater, gauss_grid, williamson2, williamson6


def flow(case, truncation=10, hours=6, count=5):
    grid = gauss_grid(truncation)
    fields = case(grid.latitude, grid.longitude)
    time = np.datetime64("2020-01-01", "ns") + np.arange(count) * np.timedelta64(hours, "h")
    units = {"u": "m s-1", "v": "m s-1", "h": "m"}
    data = {
        n: (("time", "lat", "lon"), np.repeat(np.asarray(fields[n], np.float64)[None], count, 0), {"units": units[n]})
        for n in units
    }
    return xr.Dataset(data, coords={"time": time, "lat": grid.latitude, "lon": grid.longitude})


def test_shallow_water_is_its_core(x64):
    ds = flow(williamson6)
    model = ShallowWaterFlow(truncation=10, level=None, damping_hours=None)
    out = Forecast(ds, model, steps=2).run()
    core = ShallowWater(10, damping_hours=None)
    first = ds.isel(time=0)
    state = core.advance(core.state(first["u"].values, first["v"].values, first["h"].values), 1200.0, 36)
    want = core.fields(state)
    base = core.fields(core.state(first["u"].values, first["v"].values, first["h"].values))
    for n in ("u", "v", "h"):
        change = out[n].isel(init_time=0, lead_time=1, member=0).values - first[n].values
        np.testing.assert_allclose(change, want[n] - base[n], atol=1e-8)
    assert np.abs(change).max() > 1  # the wave moves


def test_a_steady_state_stays(x64):
    ds = flow(williamson2)
    out = Forecast(ds, ShallowWaterFlow(10, level=None, damping_hours=None), steps=4).run()
    for n, limit in (("u", 1e-9), ("h", 1e-7)):
        assert np.abs(out[n].values - ds[n].values[0]).max() < limit
    with pytest.raises(InputError, match="in this order"):
        Forecast(ds, ShallowWaterFlow(10, level=None), channels=("h", "u", "v"), steps=1).run()
    poles = ds.interp(lat=np.linspace(-90, 90, 17), kwargs={"fill_value": "extrapolate"})
    with pytest.raises(InputError, match="poles"):
        Forecast(poles, ShallowWaterFlow(10, level=None), steps=1).run()


@pytest.fixture(scope="module")
def turning():
    """Three patterns that turn at their own speeds, on a pressure level: a linear system without noise."""
    lat, lon = np.linspace(-85, 85, 18), np.arange(0, 360, 15.0)
    phi, lam, day = np.radians(lat)[:, None], np.radians(lon), np.arange(120)[:, None, None]
    z = np.full((120, 18, 24), 54000.0)
    for a, m, w in ((900, 1, 0.21), (500, 2, 0.53), (300, 3, 0.8)):
        z += a * np.cos(phi) ** m * np.cos(m * lam - w * day)
    time = np.datetime64("2019-01-01", "ns") + np.arange(120) * np.timedelta64(1, "D")
    attrs = {"units": "m2 s-2", "standard_name": "geopotential"}
    data = {"z": (("time", "level", "lat", "lon"), z[:, None], attrs)}
    return xr.Dataset(
        data, coords={"time": time, "level": ("level", [500.0], {"units": "hPa"}), "lat": lat, "lon": lon}
    )


def test_linear_inverse_forecasts_a_linear_system(turning, x64):
    fc = Forecast(
        turning, LinearInverse(modes=6, annual=0, ridge=1e-9, limit=1.0), steps=10, start=turning["time"].values[100]
    )
    scores = fc.verify(baselines=["persistence", "damped_persistence", "climatology"])
    for day in (1, 5, 10):
        best = min(scores.value("rmse", n, 24 * day) for n in ("persistence", "damped_persistence", "climatology"))
        # the training mean of waves cut off in mid-turn is not their mean: that error stays
        assert scores.value("rmse", "linear_inverse", 24 * day) < 0.15 * best
    with pytest.raises(InputError, match="too short"):
        Forecast(
            turning.isel(time=slice(6)), LinearInverse(), step_hours=96, steps=1, start=turning["time"].values[5]
        ).run()


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_streaming_gives_what_memory_gives(suffix, turning, tmp_path):
    pytest.importorskip("zarr")
    fc = lambda: Forecast(turning, Persistence(), steps=5, start=turning["time"].values[100])  # noqa: E731
    path = tmp_path / f"a{suffix}"

    def stop(done):
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fc().run(path, chunk=2, progress=stop)
    seen = []
    got, want = fc().run(path, chunk=2, progress=seen.append), fc().run()
    assert seen == [5]  # only what was missing
    np.testing.assert_array_equal(got["z"], want["z"])
    assert got["z"].dims == want["z"].dims and got["z"].attrs["units"] == "m2 s-2"
    np.testing.assert_array_equal(got["valid_time"], want["valid_time"])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]  # nothing is left lying about
    with pytest.raises(InputError, match="output is"):
        fc().run(tmp_path / "a.grib")
