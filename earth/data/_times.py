"""Time axes: datetime64 and cftime calendars, missing and duplicate stamps, lead times in any unit."""

import numpy as np
import xarray as xr

from sciax.core.errors import InputError

_UNITS = {
    "hours": "h",
    "hour": "h",
    "h": "h",
    "hr": "h",
    "minutes": "m",
    "minute": "m",
    "min": "m",
    "days": "D",
    "day": "D",
    "seconds": "s",
    "s": "s",
}
_NANOSECONDS = {"s": 1e9, "m": 60e9, "h": 3600e9, "D": 86400e9}


def check_times(ds: xr.Dataset, d: str, repair: bool, problems: list[str]) -> tuple[xr.Dataset, np.ndarray]:
    """Sorted time axis without missing or duplicate stamps, or one line for each problem.

    Returns the dataset and, for every stamp as it came, its position in the sorted axis (dropped ones take their twin's).
    """
    values = ds[d].values
    missing = np.array([v is None or v != v for v in values]) if values.dtype == object else np.isnat(values)
    if missing.any() and not repair:
        problems.append(f"{d}: {int(missing.sum())} missing time stamps (NaT)")
    kept = np.flatnonzero(~missing)
    order = kept[np.argsort(values[kept], kind="stable")]
    sorted_values = values[order]
    again = np.zeros(order.size, dtype=bool)
    if order.size > 1:
        again[1:] = sorted_values[1:] == sorted_values[:-1]
    if again.any() and not repair:
        first = [str(v)[:19] for v in sorted_values[again][:3]]
        problems.append(f"{d}: {int(again.sum())} duplicate time stamps, the first {', '.join(first)}")
    position = np.zeros(values.size, dtype=np.int64)
    position[order] = np.cumsum(~again) - 1
    return ds.isel({d: order[~again]}), position


def lead_times(ds: xr.Dataset, problems: list[str]) -> xr.Dataset:
    """Lead times as timedelta64[ns], from timedeltas or numbers with units."""
    lead = ds["lead_time"]
    if lead.dtype.kind == "m":
        return ds.assign_coords(lead_time=(lead.dims, lead.values.astype("timedelta64[ns]"), lead.attrs))
    units = str(lead.attrs.get("units", "")).lower()
    if units not in _UNITS:
        problems.append(
            f"lead_time: numbers with units {units!r}; expected a timedelta or units among {', '.join(sorted(_UNITS))}"
        )
        return ds
    scale = _NANOSECONDS[_UNITS[units]]
    ns = np.round(np.asarray(lead.values, dtype=np.float64) * scale).astype("timedelta64[ns]")
    attrs = {k: v for k, v in lead.attrs.items() if k != "units"}
    return ds.assign_coords(lead_time=(lead.dims, ns, attrs))


def hours(delta) -> np.ndarray:
    """Timedeltas (NumPy or datetime) as float hours."""
    array = np.asarray(delta)
    if array.dtype == object:
        return np.array([x.total_seconds() / 3600 for x in array.ravel()]).reshape(array.shape)
    return array.astype("timedelta64[ns]").astype(np.int64) / 3.6e12


def time_step(ds: xr.Dataset, d: str = "time") -> float:
    """The uniform step of a time axis, in hours.

    Raises:
        InputError: fewer than two times, or gaps; the error names the first gap.
    """
    if d not in ds.dims or ds.sizes[d] < 2:
        raise InputError(f"the {d} axis has no step", got=f"{ds.sizes.get(d, 0)} times", expected="at least 2")
    steps = hours(np.diff(ds[d].values))
    usual = float(np.median(steps))
    odd = np.flatnonzero(np.abs(steps - usual) > 1e-6 * abs(usual))
    if odd.size:
        first = int(odd[0])
        raise InputError(
            f"the {d} axis has gaps: {odd.size} step(s) differ from the usual {usual:g} h",
            got=f"{steps[first]:g} h after {str(ds[d].values[first])[:19]}",
            remedy="select a stretch without gaps, or fill the missing times",
        )
    return usual


def day_of_year(times) -> np.ndarray:
    """Day of year in a 366-day numbering in which every date keeps its number, leap year or not.

    1 March is 61 in all years, so that 29 February (60) is a day of its own and no later date shifts by one. Works for every
    calendar; in a 360-day calendar dates are numbered as they fall.
    """
    stamps = xr.DataArray(np.asarray(times), dims="t")
    month, day = stamps.dt.month.values, stamps.dt.day.values
    before = np.cumsum([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30])
    return before[month - 1] + np.minimum(day, 31)
