"""Trained series models on real data with chronological splits, against honest baselines; and where there is no skill."""

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.datasets.gridded import open_gridded
from sciax.earth import canonicalise, verify
from sciax.earth.models import Postprocessor, SeriesModel, series_baselines, squared_errors


def series_of(ds, names):
    return ds[names].drop_vars("region", errors="ignore").to_dataarray("variable").transpose("time", "variable")


def oscillation(n=4000, seed=0):
    """A damped, noisy two-dimensional rotation with a seasonal cycle: its best forecast is known."""
    rng = np.random.default_rng(seed)
    turn, keep = 2 * np.pi / 45, 0.97
    step = keep * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    x = np.zeros((n, 2))
    for k in range(1, n):
        x[k] = step @ x[k - 1] + 0.25 * rng.standard_normal(2)
    time = np.datetime64("1990-01-01", "ns") + np.arange(n) * np.timedelta64(1, "D")
    season = 3 * np.cos(2 * np.pi * np.arange(n) / 365.25)[:, None]
    return xr.DataArray(x + season, dims=("time", "variable"), coords={"time": time, "variable": ["a", "b"]}), step


def test_known_process():
    series, _ = oscillation()
    until = series["time"].values[2999]
    model = SeriesModel((1, 5), random=0, lags=(0, 1), means=(10,), seasonal=1, modulated=1)
    fitted = model.fit(series, until)
    errors = squared_errors(fitted.predict(series), series, until)
    # the best possible: the sum of the noise since the start
    for k, lead in enumerate((1, 5)):
        best = 0.25 * np.sqrt(sum(0.97 ** (2 * j) for j in range(lead)))
        got = np.sqrt(errors.isel(lead=k).mean().item())
        assert 0.97 * best < got < 1.08 * best
    baselines = series_baselines(series, (5,), until)
    for name in ("persistence", "climatology", "damped_persistence"):
        worse = np.sqrt(squared_errors(baselines[name], series, until).mean().item())
        assert np.sqrt(errors.isel(lead=1).mean().item()) < worse


def test_the_future_is_not_seen():
    """Changing the data after the training period changes no fitted number."""
    series, _ = oscillation(1500)
    until = series["time"].values[999]
    model = SeriesModel((2,), random=50, means=(10,), ridges=(10.0,), lengths=(8.0,))
    other = series.copy()
    other[1000:] = other[1000:] * -3 + 7
    a, b = model.fit(series, until), model.fit(other, until)
    np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(a.climatology, b.climatology)
    # a forecast uses nothing after its start
    p, q = a.predict(series), a.predict(other)
    np.testing.assert_array_equal(p[:, :1000], q[:, :1000])


def test_refusals():
    series, _ = oscillation(600)
    model = SeriesModel((1,), random=0)
    with pytest.raises(InputError, match="gaps"):
        model.fit(series.isel(time=np.r_[0:300, 310:600]), series["time"].values[-1])
    with pytest.raises(InputError, match="too few training"):
        model.fit(series, series["time"].values[200])
    with pytest.raises(InputError, match="missing"):
        model.fit(series.where(series["time"] > series["time"].values[100]), series["time"].values[-1])


def test_rmm(shared_data):
    """MJO index RMM1, trained on 1979-2004, tested on 2005-2017: at most 0.60, 0.83, 0.93 at days 5, 10, 15."""
    ds, _ = canonicalise(
        open_gridded(shared_data / "earth" / "RMM1.observed.interannual.1974-06.2017-07.nc"), repair_times=True
    )
    series = series_of(ds.sel(time=slice("1979-01-01", None)), ["rmm1", "rmm2"])
    fitted = SeriesModel((5, 10, 15), random=1500, lengths=(8.0,), ridges=(3.0, 30.0)).fit(series, "2004-12-31")
    rmse = np.sqrt(squared_errors(fitted.predict(series), series, "2004-12-31").sel(variable="rmm1").mean("time"))
    assert (rmse.values <= [0.60, 0.83, 0.93]).all(), rmse.values
    base = series_baselines(series, (5, 10, 15), "2004-12-31")
    for name in base:
        worse = np.sqrt(squared_errors(base[name], series, "2004-12-31").sel(variable="rmm1").mean("time"))
        assert (rmse < worse).all()


def test_germany(shared_data):
    """T2m of Germany: skill at one day, none at ten, and the test says so."""
    series = series_of(open_gridded(shared_data / "earth" / "Observations_Germany.nc"), ["gh_500", "t2m"])
    fitted = SeriesModel((1,), random=1500, lags=(0, 1, 2), means=(10,), lengths=(3.0,), ridges=(3.0, 10.0)).fit(
        series, "2012-12-31"
    )
    errors = squared_errors(fitted.predict(series), series, "2012-12-31").sel(variable="t2m")
    assert np.sqrt(errors.mean().item()) <= 1.45
    far = SeriesModel((10,), random=0).fit(series, "2012-12-31")
    errors = squared_errors(far.predict(series), series, "2012-12-31").sel(variable="t2m").isel(lead=0)
    base = series_baselines(series, (10,), "2012-12-31")
    best = squared_errors(base["damped_persistence"], series, "2012-12-31").sel(variable="t2m").isel(lead=0)
    difference = verify.block_bootstrap(errors.values, best.values, block=20)
    assert not (difference.high < 0)  # no skill over damped persistence


def test_geos_postprocessing(shared_data):
    """The hybrid beats GEOS and the autoregression at every lead to 20 days (block bootstrap 95 %), and is calibrated."""
    folder = shared_data / "earth"
    ds, _ = canonicalise(open_gridded(folder / "RMM1.observed.interannual.1974-06.2017-07.nc"), repair_times=True)
    series = series_of(ds.sel(time=slice("1979-01-01", None)), ["rmm1", "rmm2"])
    leads = 20
    fitted = SeriesModel(tuple(range(1, leads + 1)), random=300, lengths=(8.0,), ridges=(10.0,)).fit(
        series, "1998-12-31"
    )
    geos = (
        open_gridded(folder / "GMAO-GEOS-V2p1.RMM1.nc")["RMM1"]
        .isel(L=slice(leads))
        .rename(S="start", M="member", L="lead")
    )
    at = series["time"].get_index("time").get_indexer(geos["start"].values)
    assert (at > 0).all()
    # day 1 of GEOS is the day of the start; statistics know the day before
    statistical = fitted.predict(series).sel(variable="rmm1").values[:, at - 1].T
    truth = series.values[at[:, None] + np.arange(leads), 0]
    wrap = {"start": geos["start"]}
    got = Postprocessor().cross_validate(
        geos,
        xr.DataArray(statistical, dims=("start", "lead"), coords=wrap),
        xr.DataArray(series.values[at - 1], dims=("start", "predictor"), coords=wrap),
        xr.DataArray(truth, dims=("start", "lead"), coords=wrap),
    )
    square = (got.mean("member").values - truth) ** 2
    for other in (geos.transpose("start", "lead", "member").mean("member").values, statistical):
        difference = verify.block_bootstrap(square, (other - truth) ** 2, block=12, samples=500)
        assert (difference.high < 0).all()
    target = xr.DataArray(truth, dims=("start", "lead"), coords={"start": geos["start"], "lead": geos["lead"]})
    ratio = verify.spread_skill_ratio(got, target, over=("start",), weights="none")
    assert (np.abs(ratio - 1) < 0.1).all(), ratio.values
    raw = verify.spread_skill_ratio(geos, target, over=("start",), weights="none")
    assert (raw < 0.75).all()
    mine, theirs = (verify.crps(x, target).mean("start") for x in (got, geos))
    assert (mine < theirs).all()
