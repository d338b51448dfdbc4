"""The forecast pipeline: layouts do not matter, baselines, ensembles, streaming, restart, leakage."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereGrid
from sciax.earth import Barotropic, Climatology, DampedPersistence, Ensemble, Forecast, Persistence, Regrid
from sciax.earth.data import canonicalise

_spec = importlib.util.spec_from_file_location("earth_layouts", Path(__file__).with_name("conftest.py"))
layouts = importlib.util.module_from_spec(_spec)  # pyright: ignore
_spec.loader.exec_module(layouts)  # pyright: ignore

MODELS = {
    "persistence": Persistence(),
    "climatology": Climatology(),
    "damped": DampedPersistence(leads=3),
    "barotropic": Barotropic(truncation=6, max_step_minutes=120),
}


def make(source, model, **options):
    channels = None if isinstance(model, Barotropic) else ("z@500", "t@850", "msl")
    return Forecast(source, model, steps=3, start=np.datetime64("2020-02-28T00"), channels=channels, **options)


@pytest.mark.parametrize("method", ["bilinear", "conservative", "nearest", "spectral"])
def test_layouts_do_not_matter_to_regridding(tidy, method, x64):
    stage = Regrid(method, grid=SphereGrid("gauss", 8, 16))
    want = stage(canonicalise(tidy)[0])
    mine = layouts.everything(layouts.chunked(tidy))
    xr.testing.assert_allclose(stage(canonicalise(mine)[0])[["z", "t", "msl"]], want, rtol=1e-12)


def test_persistence_scores_itself(tidy):
    fc = make(tidy, Persistence())
    scores = fc.verify(baselines=["persistence"])
    assert list(scores.data["model"].values) == ["persistence"]
    assert "persistence" in scores.table()
    e = tidy["z"].sel(level=500).isel(time=5) - tidy["z"].sel(level=500).isel(time=4)
    from sciax.earth._grid import weights_of

    want = float(np.sqrt((e**2).weighted(weights_of(tidy)).mean()))
    assert abs(scores.value("rmse", "persistence", 12, "z@500", "globe") / want - 1) < 1e-5
    with pytest.raises(InputError, match="lead"):
        scores.value("rmse", "persistence", 13)


def test_forecast_dataset_is_cf_and_goes_back(tidy, tmp_path):
    fc = make(layouts.everything(tidy), Persistence())
    ds = fc.run(tmp_path / "out.nc")
    assert ds["z"].dims == ("init_time", "lead_time", "member", "level", "lat", "lon")
    assert ds["valid_time"].values[0, 0] == np.datetime64("2020-02-28T12")
    back = fc.layout.restore(ds)
    assert {"gh", "temperature", "msl"} <= set(back.data_vars)
    assert back["gh"].attrs["units"] == "gpm" and "longitude" in back.dims
    np.testing.assert_array_equal(back["latitude"], tidy["lat"][::-1])
    # our own output is an input like any other
    again, _ = canonicalise(xr.open_dataset(tmp_path / "out.nc", decode_timedelta=True))
    np.testing.assert_allclose(again["z"], ds["z"])


def test_everything_wrong_is_named(tidy):
    fc = Forecast(tidy.drop_vars("msl"), Persistence(), channels=("q@700", "msl", "z@300"))
    with pytest.raises(InputError, match="3 problem") as caught:
        fc.run()
    for part in ("q (specific_humidity) at 700", "msl", "300 hPa of z"):
        assert part in str(caught.value)
    with pytest.raises(InputError, match="not among the times"):
        Forecast(tidy, Persistence(), start="1999-01-01").run()
    with pytest.raises(InputError, match="longitudes do not cover"):
        Forecast(tidy.isel(lon=slice(3, 12)), Barotropic(), channels=("z@500",)).run()
    with pytest.raises(InputError, match="did you mean 'persistence'"):
        make(tidy, Persistence()).verify(baselines=["persistance"])
    with pytest.raises(InputError, match="fitted to past data"):
        Forecast(tidy, Climatology(), steps=2).run()
    with pytest.raises(InputError, match="missing or infinite values in z@500"):
        holed = tidy.copy(deep=True)
        holed["z"].values[:, 0, 3, 4] = np.nan
        make(holed, MODELS["barotropic"]).run()


def test_leakage_is_refused(tidy):
    with pytest.raises(InputError, match="fitted to the time that is to be verified"):
        make(tidy, Climatology(), training=tidy).run()
    make(tidy, Climatology(), training=tidy.isel(time=slice(4))).run()


def test_no_truth_at_the_valid_times(tidy):
    fc = make(tidy, Persistence())
    assert fc.verify(truth=tidy.isel(time=slice(0, 6))).notes
    with pytest.raises(InputError, match="no valid time"):
        fc.verify(truth=tidy.isel(time=slice(0, 3)))


def test_ensembles(tidy):
    fc = make(tidy, Persistence(), members=5, ensemble=Ensemble("perturbed", amplitude=0.1))
    ds = fc.run()
    z = ds["z"].isel(init_time=0, lead_time=0, level=0).values
    np.testing.assert_allclose((z[1] + z[2]) / 2, z[0], rtol=1e-6)  # opposite pairs about the control
    ratio = (z[1] - z[0]).std() / z[0].std()
    assert abs(ratio - 0.1) < 1e-3
    scores = fc.verify().data
    assert {"crps", "spread", "spread_skill"} <= set(scores)
    lagged = make(tidy, Barotropic(truncation=6, max_step_minutes=120), members=2, ensemble=Ensemble("lagged"))
    ds = lagged.run()
    older = Forecast(
        tidy, Barotropic(truncation=6, max_step_minutes=120), steps=4, start=np.datetime64("2020-02-27T12")
    ).run()
    np.testing.assert_allclose(ds["z"].isel(member=1, lead_time=0), older["z"].isel(member=0, lead_time=1), rtol=1e-6)
    with pytest.raises(InputError, match="before the start"):
        Forecast(tidy, Persistence(), members=3, ensemble=Ensemble("lagged"), channels=("msl",)).run()


@pytest.mark.parametrize("name", ["persistence", "climatology", "damped"])
def test_missing_over_land(tidy, name):
    """What is missing in the analyses is missing in the forecast, and changes nothing elsewhere nor in the scores there."""
    land = (tidy["lon"] > 100) & (tidy["lon"] < 160) & (tidy["lat"] > 20)
    model = DampedPersistence(rho=0.7) if name == "damped" else MODELS[name]  # a fit to the sea alone is another fit
    sea = make(tidy.where(~land), model, members=3)
    got, want = sea.run(), make(tidy, model, members=3, ensemble=Ensemble(amplitude=0.0)).run()
    assert got["msl"].where(land, 0.0).isnull().sum() == land.sum() * got["msl"].isel(lat=0, lon=0).size
    x, y = (ds["msl"].isel(member=0).where(~land) for ds in (got, want))
    np.testing.assert_allclose(x, y, rtol=1e-6)
    assert np.isfinite(sea.verify(baselines=["persistence", "climatology"]).data["rmse"]).all()


@pytest.mark.parametrize("suffix", [".zarr", ".nc"])
def test_lagged_ensembles_stream_and_restart(tidy, tmp_path, suffix):
    pytest.importorskip("zarr")
    forecast = lambda: make(tidy, MODELS["damped"], members=3, ensemble=Ensemble("lagged"))  # noqa: E731

    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        forecast().run(tmp_path / f"a{suffix}", chunk=2, progress=interrupt)
    seen = []
    got = forecast().run(tmp_path / f"a{suffix}", chunk=2, progress=seen.append)
    assert seen == [3]
    want = forecast().run()
    for n in want.data_vars:
        np.testing.assert_allclose(got[n], want[n], rtol=1e-6)
        assert got[n].dims == want[n].dims


def test_streaming_and_restart(tidy, tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("dask")

    def forecast():
        return Forecast(tidy, Barotropic(truncation=6, max_step_minutes=120), steps=6, start=tidy["time"].values[2])

    want = forecast().run()
    store = tmp_path / "fc.zarr"

    class Stop(Exception):
        pass

    def interrupt(done):
        if done >= 4:
            raise Stop

    with pytest.raises(Stop):
        forecast().run(store, chunk=2, progress=interrupt)
    seen = []
    got = forecast().run(store, chunk=2, progress=seen.append)
    assert seen == [6]  # only what was missing
    xr.testing.assert_allclose(got.load()[["z"]], want[["z"]])
    # settings that differ start afresh
    seen.clear()
    Forecast(tidy, Barotropic(truncation=6, max_step_minutes=120), steps=6, start=tidy["time"].values[1]).run(
        store, chunk=3, progress=seen.append
    )
    assert seen == [3, 6]
    shutil.rmtree(store)


def test_noleap_calendar(tidy):
    times = xr.date_range("2020-02-27", periods=8, freq="12h", calendar="noleap", use_cftime=True)
    fc = Forecast(
        tidy.assign_coords(time=times), DampedPersistence(leads=2), steps=2, start=times[4], channels=("msl",)
    )
    scores = fc.verify(baselines=["persistence", "climatology"])
    assert np.isfinite(scores.data["rmse"]).all()
    assert str(fc.valid_times()[0])[:10] == "2020-03-01"  # noleap: no 29 February


def test_sample_data_forecast():
    pytest.importorskip("hvsampledata")
    from sciax.earth import samples

    ds, note = samples.load("sample")
    assert "Real analyses" in note
    fc = Forecast(ds, DampedPersistence(rho=1.0), steps=6, start="2014-02-27T06")
    scores = fc.verify(baselines=["persistence", "climatology"])
    assert scores.value("rmse", "damped_persistence", 12) < 0.85 * scores.value("rmse", "persistence", 12)
    # persistence over all pairs: 2.62 K at 6 h, 3.57 K at 24 h
    x = ds["t"]
    w = np.cos(np.radians(ds["lat"]))
    for lag, value in ((1, 2.62), (4, 3.57)):
        e = x.values[lag:] - x.values[:-lag]
        assert abs(np.sqrt((e**2 * w.values[:, None]).mean() / w.values.mean()) - value) < 0.15


def test_jobs(tmp_path):
    from sciax.core.jobs import run_job

    pytest.importorskip("hvsampledata")
    record = run_job("earth.forecast", {"steps": 2}, out=tmp_path / "a")
    assert record is not None
    assert (tmp_path / "a").exists()


def test_series_job(tmp_path):
    """The generated oscillation, linear: near the best possible error, and the leads without skill are named."""
    from sciax.core.jobs import run_job

    settings = {"random": 0, "leads": (1, 60), "lags": (0, 1), "means": (10,)}
    outcome = run_job("earth.series", settings, out=tmp_path / "a").outcome
    assert 0.97 * 0.25 < outcome["value"] < 1.08 * 0.25 and outcome["value"] < outcome["reference"]
    log = next((tmp_path / "a").rglob("log.txt")).read_text()
    assert "No skill over the best baseline at lead(s) 60" in log
