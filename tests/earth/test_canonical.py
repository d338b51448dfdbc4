"""The canonical form: every layout leads to the same dataset and back; every problem is named."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth import canonicalise
from sciax.earth.data import Channel, channels_of, check_fields, day_of_year, stack, time_step, unstack

_spec = importlib.util.spec_from_file_location("earth_layouts", Path(__file__).with_name("conftest.py"))
layouts = importlib.util.module_from_spec(_spec)  # pyright: ignore
_spec.loader.exec_module(layouts)  # pyright: ignore


@pytest.mark.parametrize("change", layouts.LAYOUTS, ids=lambda f: f.__name__)
def test_every_layout_is_one_and_leads_back(tidy, change):
    mine = change(tidy)
    canonical, layout = canonicalise(mine)
    xr.testing.assert_allclose(canonical[["z", "t", "msl"]], tidy, rtol=1e-13)
    assert dict(canonical["level"].attrs)["units"] == "hPa"
    back = layout.restore(canonical)
    if change in (layouts.other_units, layouts.everything):
        xr.testing.assert_allclose(back, mine, rtol=1e-13)
    else:
        xr.testing.assert_identical(back.load(), mine.load())
    for name in mine.data_vars:
        assert back[name].dims == mine[name].dims
        assert back[name].attrs == mine[name].attrs


def test_laziness_is_kept(tidy):
    canonical, _ = canonicalise(layouts.everything(layouts.chunked(tidy)))
    assert all(canonical[v].chunks is not None for v in canonical.data_vars)


def test_problems_are_all_named():
    ds = xr.Dataset(
        {
            "t": (("latitude", "longitude"), np.full((4, 4), 60.0), {"units": "furlong"}),
            "u": (("latitude", "longitude"), np.full((4, 4), 1e4), {"units": "m/s"}),
            "q": (("latitude", "longitude"), np.full((4, 4), np.nan), {"units": "kg/kg"}),
        },
        coords={"latitude": [0.0, 100, 110, 120], "longitude": [0.0, 90, 90, 270]},
    )
    with pytest.raises(InputError) as caught:
        canonicalise(ds)
    text = str(caught.value)
    for part in ("furlong", "120", "duplicate values 90", "u: values", "q: every value is missing", "6 problem"):
        assert part in text, part


def test_sixty_degrees_celsius_are_refused(tidy):
    with pytest.raises(InputError, match="outside the possible"):
        canonicalise(tidy.assign(t=(tidy["t"] + 300).assign_attrs(units="K")))


def test_missing_units_are_noted_or_given(tidy):
    bare = tidy.copy()
    bare["msl"] = bare["msl"] / 100
    bare["msl"].attrs = {}
    with pytest.raises(InputError, match="outside the possible"):
        canonicalise(bare)
    canonical, _ = canonicalise(bare, units={"msl": "hPa"})
    np.testing.assert_allclose(canonical["msl"], tidy["msl"])
    bare["msl"] = bare["msl"] * 100
    assert "msl" in canonicalise(bare)[1].notes[0]


def test_ambiguous_variables_are_refused(tidy):
    both = tidy.assign(gh=(tidy["z"] / 9.80665).assign_attrs(units="m"))
    with pytest.raises(InputError, match="second variable that means 'z'"):
        canonicalise(both)


def test_statistics_of_temperature_are_not_temperature(tidy):
    ds = xr.Dataset(
        {"tasmax": ("time", np.full(3, 300.0), {"units": "K", "standard_name": "air_temperature"})},
        coords={"time": tidy["time"].values[:3]},
    )
    assert list(canonicalise(ds)[0]) == ["t2m_max"]


def test_times(tidy):
    twice = tidy.isel(time=[0, 1, 1, 2])
    with pytest.raises(InputError, match="1 duplicate time stamps"):
        canonicalise(twice)
    assert canonicalise(twice, repair_times=True)[0].sizes["time"] == 3
    with pytest.raises(InputError, match="gaps") as caught:
        time_step(tidy.isel(time=[0, 1, 4, 5]))
    assert "36 h after 2020-02-26T12" in str(caught.value)
    assert time_step(tidy) == 12.0


def test_accumulations_are_missing_at_lead_zero(tidy):
    ds = tidy[["msl"]].isel(time=0, drop=True).expand_dims(step=np.arange(3) * np.timedelta64(6, "h"))
    ds = ds.assign(tp=(ds["msl"] * 0).assign_attrs(units="m"))
    canonical, _ = canonicalise(ds)
    assert canonical["tp"].isel(lead_time=0).isnull().all()
    assert (canonical["tp"].isel(lead_time=slice(1, None)) == 0).all()


@pytest.mark.parametrize("units, factor", [("hours", 6.0), ("days", 0.25), ("minutes", 360.0)])
def test_step_units(tidy, units, factor):
    ds = tidy[["msl"]].isel(time=0, drop=True).expand_dims(step=np.arange(3) * factor)
    ds["step"].attrs["units"] = units
    canonical, _ = canonicalise(ds)
    assert (canonical["lead_time"].values == np.arange(3) * np.timedelta64(6, "h")).all()


@pytest.mark.parametrize("name", ["lead_time", "prediction_timedelta", "step"])
def test_forecast_files(tidy, name):
    """However the lead is called, "time" beside it is the start, and valid times are not confused with it."""
    ds = tidy[["msl"]].expand_dims({name: np.arange(2) * np.timedelta64(6, "h")})
    canonical, layout = canonicalise(ds)
    assert canonical["msl"].dims == ("init_time", "lead_time", "lat", "lon")
    xr.testing.assert_identical(layout.restore(canonical), ds)


@pytest.mark.parametrize("calendar", ["noleap", "360_day", "standard"])
def test_calendars(tidy, calendar):
    times = xr.date_range("2020-02-27", periods=4, freq="12h", calendar=calendar, use_cftime=True)
    ds = tidy.isel(time=slice(4)).assign_coords(time=times)
    canonical, layout = canonicalise(ds)
    assert time_step(canonical) == 12.0
    xr.testing.assert_identical(layout.restore(canonical), ds)


def test_every_date_keeps_its_number():
    days = day_of_year(
        np.array(["2019-02-28", "2019-03-01", "2020-02-29", "2020-03-01", "2020-12-31"], "datetime64[ns]")
    )
    np.testing.assert_array_equal(days, [59, 61, 60, 61, 366])


def test_check_names_everything(tidy):
    with pytest.raises(InputError) as caught:
        check_fields(
            tidy.isel(lat=slice(None, None, -1)),
            ["z@500", "z@300", "q@700", "t2m"],
            lat=tidy["lat"].values,
            lon=np.roll(tidy["lon"].values, 3),
        )
    text = str(caught.value)
    for part in (
        "missing level 300 hPa of z (there: 500, 850)",
        "q (specific_humidity) at 700",
        "t2m",
        "lat runs the other way",
        "lon starts at 0",
    ):
        assert part in text, part
    with pytest.raises(InputError, match="3 missing or infinite values in msl"):
        check_fields(tidy.assign(msl=tidy["msl"].copy(data=_holed(tidy))), ["msl"])


def _holed(tidy):
    values = tidy["msl"].values.copy()
    values[0, 0, :3] = np.nan
    return values


def test_stack_and_unstack(tidy):
    channels = channels_of(tidy)
    assert [str(c) for c in channels] == ["z@500", "z@850", "t@500", "t@850", "msl"]
    assert Channel.parse("geopotential@500") == Channel("z", 500.0)
    array = stack(tidy, channels)
    assert array.dims == ("time", "channel", "lat", "lon")
    back = unstack(array, channels)
    for name in tidy:
        np.testing.assert_array_equal(back[name], tidy[name])


def test_real_files(shared_data):
    """Real layouts: (level, lon, lat) order, packed integers, -180..180, 145 missing stamps."""
    from sciax.datasets.gridded import open_gridded

    folder = shared_data / "earth"
    for name in ("era5_tl31_19590102T00.nc", "eraint_uvz.nc", "era5_eda_z_t_20170101.nc", "nrcan_1950-2013.nc"):
        ds = open_gridded(folder / name)
        canonical, layout = canonicalise(ds)
        assert layout.restore(canonical).equals(ds), name
        if "lat" in canonical.dims:
            assert (np.diff(canonical["lat"]) > 0).all() and (np.diff(canonical["lon"]) > 0).all()
    rmm = open_gridded(folder / "RMM1.observed.interannual.1974-06.2017-07.nc")
    with pytest.raises(InputError, match="145 missing time stamps"):
        canonicalise(rmm)
    fixed, _ = canonicalise(rmm, repair_times=True)
    with pytest.raises(InputError, match="gaps"):
        time_step(fixed)
