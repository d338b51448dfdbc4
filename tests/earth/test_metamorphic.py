"""What a file looks like must not matter: every model and every score, on the same data in every layout.

Flipped latitudes, rolled longitudes, reordered levels, pascals, other units, transposed and chunked arrays, shuffled times
and float32 coordinates give the same forecast and the same scores to round-off.
"""

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray as xr

from sciax.core.ops.sphere import SphereGrid
from sciax.earth import (
    Barotropic,
    Climatology,
    DampedPersistence,
    Ensemble,
    Forecast,
    LinearInverse,
    Persistence,
    ShallowWaterFlow,
    verify,
)
from sciax.earth.data import stack
from sciax.earth.models import AFNO, SFNO, make_emulator

GRID = SphereGrid("gauss", 16, 32)
TIMES = np.datetime64("2020-02-26T00", "ns") + np.arange(12) * np.timedelta64(6, "h")
START = TIMES[8]


def waves(rng, count, amplitude):
    """Smooth random fields (count, lat, lon): planetary waves that move."""
    lat, lon = np.radians(GRID.latitude)[:, None], np.radians(GRID.longitude)
    out = np.zeros((count, GRID.nlat, GRID.nlon))
    for m in range(4):
        a, b, speed = rng.standard_normal(3)
        angle = m * lon + 0.2 * speed * np.arange(count)[:, None, None]
        out += amplitude * np.cos(lat) ** m * (np.sin(lat) + 0.5) * (a * np.cos(angle) + b * np.sin(angle))
    return out


@pytest.fixture(scope="module")
def weather():
    """Wind and geopotential at two levels, and pressure: twelve six-hourly analyses in a tidy layout, float64."""
    rng = np.random.default_rng(11)
    n = len(TIMES)
    level = lambda base, size: np.stack([x + waves(rng, n, size) for x in base], axis=1)  # noqa: E731
    dims = ("time", "level", "lat", "lon")
    return xr.Dataset(
        {
            "u": (dims, level((12.0, 6.0), 4.0), {"units": "m s-1", "standard_name": "eastward_wind"}),
            "v": (dims, level((0.0, 0.0), 4.0), {"units": "m s-1", "standard_name": "northward_wind"}),
            "z": (dims, level((54000.0, 14000.0), 400.0), {"units": "m2 s-2", "standard_name": "geopotential"}),
            "msl": (("time", "lat", "lon"), 101000 + waves(rng, n, 500.0), {"units": "Pa"}),
        },
        coords={
            "time": TIMES,
            "level": ("level", [500.0, 850.0], {"units": "hPa"}),
            "lat": GRID.latitude,
            "lon": GRID.longitude,
        },
    )


def other_units(ds):
    out = ds.assign(gh=(ds["z"] / 9.80665).assign_attrs(units="gpm")).drop_vars("z")
    out["msl"] = (ds["msl"] / 100).assign_attrs(units="hPa")
    return out


LAYOUTS: dict[str, Callable] = {
    "flip": lambda ds: ds.isel(lat=slice(None, None, -1)),
    "roll": lambda ds: ds.roll(lon=13, roll_coords=True),
    "west": lambda ds: ds.assign_coords(lon=(ds["lon"] + 180) % 360 - 180).sortby("lon"),
    "levels": lambda ds: ds.isel(level=slice(None, None, -1)),
    "pascal": lambda ds: ds.assign_coords(level=("level", ds["level"].values * 100, {"units": "Pa"})),
    "units": other_units,
    "transpose": lambda ds: ds.transpose("lon", "level", "time", "lat"),
    "chunk": lambda ds: ds.chunk(time=5, lat=9, lon=21, level=1),
    "times": lambda ds: ds.isel(time=np.random.default_rng(0).permutation(ds.sizes["time"])),
}


def emulator(network, ds, channels):
    coords = Forecast(ds, Persistence(), channels=channels).coords()
    return make_emulator(network, stack(ds, coords.channels).values[None], coords)


# -- every model ------------------------------------------------------------------------------------------------------------

MIXED = ("z@500", "u@850", "msl")
FLOW = ("u@500", "v@500", "z@500")
SFNO_OF = {"truncation": 10, "channels": 6, "depth": 1}
AFNO_OF = {"patch": 4, "channels": 8, "depth": 1, "blocks": 2}
MODELS: dict[str, tuple[tuple[str, ...], Callable]] = {
    "persistence": (MIXED, lambda _: Persistence()),
    "damped persistence": (MIXED, lambda _: DampedPersistence(leads=3)),
    "climatology": (MIXED, lambda _: Climatology()),
    "linear inverse": (MIXED, lambda _: LinearInverse(modes=3)),
    "barotropic": (("z@500",), lambda _: Barotropic(truncation=9, max_step_minutes=180)),
    "shallow water": (FLOW, lambda _: ShallowWaterFlow(truncation=9, max_step_minutes=60)),
    "sfno": (MIXED, lambda ds: emulator(SFNO(3, 3, GRID, key=jax.random.key(0), **SFNO_OF), ds, MIXED)),
    "afno": (MIXED, lambda ds: emulator(AFNO(3, 3, (16, 32), key=jax.random.key(0), **AFNO_OF), ds, MIXED)),
}


def together(*names):
    def change(ds):
        for name in names:
            ds = LAYOUTS[name](ds)
        return ds

    return change


# Two layouts in which everything differs at once find what any one of them would; which one it was, the slow study says.
TOGETHER = (
    together("flip", "west", "levels", "units", "transpose"),
    together("roll", "pascal", "times", "chunk"),
)


def forecast_of(ds, name, weather):
    channels, config = MODELS[name]
    model = config(weather)
    return Forecast(ds, model, channels=channels, steps=2, members=3, start=START, ensemble=Ensemble(amplitude=0.01))


def same_forecast(got, want):
    for n in want.data_vars:
        np.testing.assert_allclose(got[n], want[n], atol=1e-9 * float(np.abs(want[n]).max()))


@pytest.mark.parametrize("name", MODELS)
def test_forecasts(name, weather, x64):
    """Every model's ensemble forecast."""
    pytest.importorskip("dask")
    want = forecast_of(weather, name, weather).run()
    for change in TOGETHER:
        same_forecast(forecast_of(change(weather), name, weather).run(), want)


def test_score_card(weather, x64):
    """The source is its own truth, so that both are in the layout."""
    pytest.importorskip("dask")
    baselines = ["climatology", "damped_persistence"]
    want = forecast_of(weather, "persistence", weather).verify(baselines=baselines, regions=["nh"]).data
    assert np.isfinite(want["rmse"]).all() and {"acc", "crps", "spread_skill"} <= set(want)
    for change in TOGETHER:
        got = forecast_of(change(weather), "persistence", weather).verify(baselines=baselines, regions=["nh"]).data
        xr.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_one_change_at_a_time(name, weather, x64):
    """Forecast and score card of every model, in every layout."""
    fc = forecast_of(weather, name, weather)
    want, scores = fc.run(), fc.verify(baselines=["climatology"], regions=["nh"]).data
    for change in LAYOUTS.values():
        fc = forecast_of(change(weather), name, weather)
        same_forecast(fc.run(), want)
        got = fc.verify(baselines=["climatology"], regions=["nh"]).data
        xr.testing.assert_allclose(got, scores, rtol=1e-7, atol=1e-9)


# -- every score ------------------------------------------------------------------------------------------------------------

FACTOR = 9.80665


@pytest.fixture(scope="module")
def pair():
    """An ensemble, its truth, a climatology and a mask, with missing members, missing truth and ties."""
    rng = np.random.default_rng(5)
    at = {"lat": GRID.latitude, "lon": GRID.longitude, "level": [500.0, 850.0], "time": TIMES[:6]}

    def field(*dims):
        sizes = {d: len(v) for d, v in at.items()} | {"member": 4}
        values = np.round(2 * rng.standard_normal([sizes[d] for d in dims])) / 2  # halves: members and truth tie
        return xr.DataArray(values, dims=dims, coords={d: at[d] for d in dims if d in at})

    f, o = field("time", "member", "level", "lat", "lon"), field("time", "level", "lat", "lon")
    f = f.where(rng.random(f.shape) > 0.1)
    o = o.where(rng.random(o.shape) > 0.05)
    mask = field("lat", "lon") > -0.5
    return {"f": f, "o": o, "c": field("level", "lat", "lon") / 4, "mask": mask}


def single(score):
    """A score of one forecast: the first member, and its complete version for what cannot leave points out."""
    return lambda f, o, c, mask, unit: score(f.isel(member=0, drop=True), o, c, mask, unit)


# score -> (power of the unit it carries, function); thresholds lie between the halves, so that no rounding flips an event.
SCORES: dict[str, tuple[int, Callable]] = {
    "rmse": (1, single(lambda f, o, c, m, k: verify.rmse(f, o))),
    "rmse map": (1, single(lambda f, o, c, m, k: verify.rmse(f, o, over=("time",)))),
    "rmse masked": (1, single(lambda f, o, c, m, k: verify.rmse(f, o, mask=m))),
    "rmse by cosine": (1, single(lambda f, o, c, m, k: verify.rmse(f, o, weights="cos"))),
    "mae": (1, single(lambda f, o, c, m, k: verify.mae(f, o))),
    "bias": (1, single(lambda f, o, c, m, k: verify.bias(f, o))),
    "acc": (0, single(lambda f, o, c, m, k: verify.acc(f, o, c))),
    "acc masked": (0, single(lambda f, o, c, m, k: verify.acc(f, o, c, mask=m))),
    "spectrum": (2, single(lambda f, o, c, m, k: verify.zonal_power_spectrum(f.fillna(0)))),
    "wind vector rmse": (1, single(lambda f, o, c, m, k: verify.wind_vector_rmse(f, f * 0.3, o, o * 0.2))),
    "crps fair": (1, lambda f, o, c, m, k: verify.crps(f, o)),
    "crps biased": (1, lambda f, o, c, m, k: verify.weighted_mean(verify.crps(f, o, fair=False), ("lat", "lon"))),
    "variance": (2, lambda f, o, c, m, k: verify.variance(f)),
    "spread": (1, lambda f, o, c, m, k: verify.spread(f, mask=m)),
    "spread-skill": (0, lambda f, o, c, m, k: verify.spread_skill_ratio(f, o)),
    "rank histogram": (0, lambda f, o, c, m, k: verify.rank_histogram(f, o)),
    "rank histogram by level": (0, lambda f, o, c, m, k: verify.rank_histogram(f, o, over=("time", "lat", "lon"))),
    "exceedance": (0, lambda f, o, c, m, k: verify.exceedance(f, 0.25 * k)),
    "brier": (0, lambda f, o, c, m, k: verify.brier(f, o, 0.25 * k)),
    "brier fair": (0, lambda f, o, c, m, k: verify.brier(f, o, 0.25 * k, fair=True)),
    "reliability": (0, lambda f, o, c, m, k: verify.reliability(f, o, 0.25 * k, bins=4)),
    "csi": (0, single(lambda f, o, c, m, k: verify.csi(verify.contingency(f, o, 0.25 * k)))),
    "ets": (0, single(lambda f, o, c, m, k: verify.ets(verify.contingency(f, o, 0.25 * k, mask=m)))),
    "pod": (0, single(lambda f, o, c, m, k: verify.pod(verify.contingency(f, o, 0.25 * k)))),
    "far": (0, single(lambda f, o, c, m, k: verify.far(verify.contingency(f, o, 0.25 * k)))),
    "fss": (0, single(lambda f, o, c, m, k: verify.fss(f, o, 0.25 * k, 3))),
    "fss of members": (0, lambda f, o, c, m, k: verify.fss(f, o, 0.25 * k, 5)),
    "bootstrap": (1, single(lambda f, o, c, m, k: verify.block_bootstrap((f - o) ** 2, (c - o) ** 2, block=2).low)),
}
CHANGES: dict[str, Callable] = {
    **{n: LAYOUTS[n] for n in ("flip", "roll", "west", "levels", "pascal")},
    "times": lambda x: x.isel(time=[3, 0, 5, 1, 4, 2]) if "time" in x.dims else x,
    "transpose": lambda x: x.transpose(*reversed(x.dims)),
    "chunk": lambda x: x.chunk({d: max(1, x.sizes[d] // 2) for d in x.dims}),
    "members": lambda x: x.isel(member=[2, 0, 3, 1]) if "member" in x.dims else x,
}


def only_where_it_applies(change, x):
    """The change, on an array that may lack its dimension."""
    needs = {"levels": "level", "pascal": "level"}.get(change)
    return x if needs and needs not in x.dims else CHANGES[change](x)


def same(got, want, change, factor=1.0, rtol=1e-10):
    order = [d for d in want.dims if d in want.coords]
    got = got.compute()
    if change == "west" and "lon" in got.coords:
        got = got.assign_coords(lon=got["lon"] % 360)
    if change == "pascal" and "level" in got.coords:
        got = got.assign_coords(level=got["level"] / 100)
    got = got.sel({d: want[d] for d in order})
    if isinstance(want, xr.DataArray):
        got = got.transpose(*want.dims)
    xr.testing.assert_allclose(got, want * factor, rtol=rtol, atol=1e-12 if rtol < 1e-8 else 1e-7)


@pytest.mark.parametrize("name", SCORES)
def test_scores(name, pair):
    """Both sides in the layout, and the forecast alone against a tidy truth, which only coordinate values can match."""
    pytest.importorskip("dask")
    power, score = SCORES[name]
    want = score(*pair.values(), 1.0)
    for change in CHANGES:
        mine = {n: only_where_it_applies(change, x) for n, x in pair.items()}
        if change == "members" and name.split()[0] in ("rmse", "mae", "bias", "acc", "spectrum", "wind", "csi", "ets"):
            continue  # scores of the first member
        if change == "members" and name.split()[0] in ("pod", "far", "fss", "bootstrap"):
            continue
        same(score(*mine.values(), 1.0), want, change)
        if change not in ("west", "pascal"):  # those rename the values of the coordinate
            same(score(*(pair | {"f": mine["f"]}).values(), 1.0), want, change)
    narrow = {n: x.assign_coords(lat=x["lat"].astype(np.float32)) for n, x in pair.items()}
    if name != "bootstrap":  # its squared errors are xarray's own arithmetic
        got = score(*(narrow | {"o": pair["o"]}).values(), 1.0)
        same(got.assign_coords(lat=want["lat"]) if "lat" in want.coords else got, want, "float32", rtol=1e-6)
    scaled = {n: x if n == "mask" else x * FACTOR for n, x in pair.items()}
    same(score(*scaled.values(), FACTOR), want, "units", FACTOR**power)
