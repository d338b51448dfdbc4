"""Channels: the flat list of (variable, level) fields that models see, and checks that name every one that is missing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.data._names import ORDER, VARIABLES, lookup


@dataclass(frozen=True, order=True)
class Channel:
    """One two-dimensional field: a variable, at a pressure level in hPa or at the surface (None)."""

    name: str
    level: float | None = None

    def __str__(self) -> str:
        return self.name if self.level is None else f"{self.name}@{self.level:g}"

    @classmethod
    def parse(cls, text: "str | Channel") -> "Channel":
        """ "z@500" -> Channel("z", 500.0); other spellings of the variable are understood."""
        if isinstance(text, Channel):
            return text
        name, at, level = str(text).partition("@")
        known = lookup(name)
        try:
            return cls(known.name if known else name, float(level) if at else None)
        except ValueError as error:
            raise InputError(f"cannot read the channel {text!r}", expected="name or name@level, as z@500") from error


def channels_of(ds: xr.Dataset) -> tuple[Channel, ...]:
    """All channels of a canonical dataset: by variable, levels ascending."""
    out: list[Channel] = []
    for name in ds.data_vars:
        da = ds[name]
        if "lat" not in da.dims or "lon" not in da.dims:
            continue
        if "level" in da.dims:
            out += [Channel(str(name), float(level)) for level in da["level"].values]
        elif "level" in da.coords and da["level"].ndim == 0:
            out.append(Channel(str(name), float(da["level"])))
        else:
            out.append(Channel(str(name)))
    return tuple(out)


def check_fields(
    ds: xr.Dataset,
    channels: Sequence[Channel | str],
    *,
    lat: np.ndarray | None = None,
    lon: np.ndarray | None = None,
    allow_missing_values: bool = False,
) -> None:
    """Check a canonical dataset against what a model needs, and name everything that does not fit in one error.

    Args:
        channels: needed fields.
        lat, lon: coordinates the fields must be on, where the model is bound to a grid.
        allow_missing_values: accept NaN in the fields (sea temperature over land).

    Raises:
        InputError: missing variables and levels by name, coordinates that differ, are reversed or shifted, missing values.
    """
    wanted = [Channel.parse(c) for c in channels]
    have = set(channels_of(ds))
    problems: list[str] = []
    names = {c.name for c in have}
    for c in wanted:
        if c.name not in names:
            meaning = VARIABLES[c.name].standard_name if c.name in VARIABLES else "no standard name"
            problems.append(
                f"missing variable {c.name} ({meaning})" + (f" at {c.level:g} hPa" if c.level is not None else "")
            )
        elif c not in have:
            levels = sorted(x.level for x in have if x.name == c.name and x.level is not None)
            what = f"level {c.level:g} hPa" if c.level is not None else "surface value"
            there = ", ".join(f"{x:g}" for x in levels) or "no levels"
            problems.append(f"missing {what} of {c.name} (there: {there})")
    for d, need in (("lat", lat), ("lon", lon)):
        if need is not None:
            problems += _coordinate_problem(ds, d, np.asarray(need))
    for name in {c.name for c in wanted} & names:
        da = ds[name]
        canonical = tuple(d for d in ORDER if d in da.dims)
        order = tuple(str(d) for d in da.dims if d in ORDER)
        if order != canonical:
            problems.append(f"dimensions of {name} are ({', '.join(order)}), expected ({', '.join(canonical)})")
    for c in wanted:
        if c in have and not allow_missing_values and ds[c.name].chunks is None:
            da = ds[c.name].sel(level=c.level) if "level" in ds[c.name].dims else ds[c.name]
            bad = int((~np.isfinite(da.values)).sum())
            if bad:
                problems.append(f"{bad} missing or infinite values in {c}")
    if problems:
        raise InputError(
            f"the fields do not fit the model: {len(problems)} problem(s)",
            got="".join(f"\n    - {p}" for p in problems),
            expected=", ".join(map(str, wanted)),
            remedy="canonicalise() the data first; regrid=... brings it to the model's grid",
        )


def _coordinate_problem(ds: xr.Dataset, d: str, need: np.ndarray) -> list[str]:
    if d not in ds.coords:
        return [f"missing coordinate {d}"]
    have = np.asarray(ds[d].values, dtype=float)
    if have.shape != need.shape:
        return [f"{d} has {have.size} values, expected {need.size}"]
    if np.allclose(have, need, atol=1e-4):
        return []
    if np.allclose(have[::-1], need, atol=1e-4):
        return [f"{d} runs the other way ({have[0]:g} to {have[-1]:g}, expected {need[0]:g} to {need[-1]:g})"]
    if d == "lon" and np.allclose(np.sort(have % 360), np.sort(need % 360), atol=1e-4):
        return [f"lon starts at {have[0]:g}, expected {need[0]:g} (the same meridians, shifted)"]
    worst = int(np.argmax(np.abs(have - need)))
    return [f"{d} differs: {have[worst]:g} where {need[worst]:g} is expected"]


def stack(ds: xr.Dataset, channels: Sequence[Channel]) -> xr.DataArray:
    """The channels as one array (..., channel, lat, lon)."""
    pieces = []
    for c in channels:
        da = ds[c.name]
        if "level" in da.dims:
            da = da.sel(level=c.level)
        pieces.append(da.reset_coords(drop=True))
    out = xr.concat(pieces, dim="channel", join="exact").assign_coords(channel=[str(c) for c in channels])
    return out.transpose(*[d for d in ORDER if d in out.dims and d not in ("lat", "lon")], "channel", "lat", "lon")


def unstack(array: xr.DataArray, channels: Sequence[Channel]) -> xr.Dataset:
    """The inverse of `stack`: a dataset with level dimensions and CF attributes."""
    out: dict[str, xr.DataArray] = {}
    for name in dict.fromkeys(c.name for c in channels):
        index = [i for i, c in enumerate(channels) if c.name == name]
        levels = [channels[i].level for i in index]
        piece = array.isel(channel=index).drop_vars("channel")
        if levels == [None]:
            piece = piece.isel(channel=0)
        else:
            piece = piece.rename(channel="level").assign_coords(level=np.array(levels, dtype=float))
            piece["level"].attrs = {"standard_name": "air_pressure", "units": "hPa", "axis": "Z", "positive": "down"}
            piece = piece.sortby("level")
        piece = piece.transpose(*[d for d in ORDER if d in piece.dims])
        known = VARIABLES.get(name)
        if known is not None:
            piece.attrs = {"standard_name": known.standard_name, "units": known.units}
        out[name] = piece
    return xr.Dataset(out)
