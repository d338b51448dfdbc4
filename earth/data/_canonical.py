"""One canonical form inside, and an exact way back to the user's own layout.

Canonical: dims (init_time, time, lead_time, member, level, lat, lon) in this order, those that exist; latitude ascending;
longitude ascending in [0, 360); level ascending in hPa; SI units; names of `VARIABLES`.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from sciax.core.errors import InputError
from sciax.earth.data._names import HEIGHTS, ORDER, Variable, dimension, known_units, lookup, to_canonical
from sciax.earth.data._times import check_times, lead_times


@dataclass(frozen=True)
class Column:
    """How one variable came: its name, dims, units' map and attributes."""

    name: str
    dims: tuple[str, ...]
    factor: float
    offset: float
    attrs: dict[str, Any]
    dtype: np.dtype


@dataclass(frozen=True)
class Layout:
    """The user's layout, kept by `canonicalise` so that `restore` can give it back.

    Attributes:
        dims: canonical dimension -> the user's name.
        coords: canonical dimension -> the user's coordinate variable, as it came.
        take: canonical dimension -> for each of the user's positions, its position in canonical order.
        columns: canonical variable -> how it came.
        notes: what had to be assumed (units missing from the file, for instance).
    """

    dims: dict[str, str]
    coords: dict[str, xr.DataArray]
    take: dict[str, np.ndarray]
    columns: dict[str, Column]
    others: dict[str, xr.DataArray]
    attrs: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    def restore(self, ds: xr.Dataset) -> xr.Dataset:
        """A canonical dataset in the user's names, order, units and coordinates.

        Dimensions the user's data did not have (lead times of a forecast, say) stay, in front. Variables the user's data
        did not have keep their canonical names and units. A dimension whose length changed (other times, fewer levels)
        keeps the canonical coordinate values, under the user's name.
        """
        taken = {d: i for d, i in self.take.items() if d in ds.dims and self._same(ds, d)}
        out = ds.isel({d: xr.DataArray(i, dims=d) for d, i in taken.items()})
        variables: dict[str, xr.DataArray] = {}
        for name in ds.data_vars:
            da = out[name]
            column = self.columns.get(str(name))
            if column is None:
                variables[str(name)] = da
                continue
            if column.offset or column.factor != 1:
                da = (da - column.offset) / column.factor
            da = da.astype(column.dtype) if np.issubdtype(da.dtype, np.floating) else da
            known = [dimension_of(d, self.dims) for d in column.dims]
            front = [str(d) for d in da.dims if d not in known]
            da = da.transpose(*front, *[d for d in known if d in da.dims])
            da.attrs = dict(column.attrs)
            variables[column.name] = da
        result = xr.Dataset(variables, attrs={**ds.attrs, **self.attrs})
        # Coordinates last: a renamed dimension must not meet the coordinate of its old name.
        result = result.rename({d: u for d, u in self.dims.items() if d in result.dims and d != u})
        result = result.drop_vars(
            [d for d in self.dims if d in result.coords and d not in result.dims and d != self.dims[d]]
        )
        for d, coordinate in self.coords.items():
            user = self.dims[d]
            if user in result.dims and d in taken:
                result = result.assign_coords({user: coordinate})
            elif user in result.dims:
                result[user].attrs.update(coordinate.attrs if d != "level" else {"units": "hPa"})
            elif coordinate.ndim == 0 and user not in result.coords:
                result = result.assign_coords({user: coordinate})
        fits = {
            n: o
            for n, o in self.others.items()
            if all(result.sizes.get(d) == s for d, s in o.sizes.items()) and n not in result
        }
        return result.assign_coords(fits)

    def _same(self, ds: xr.Dataset, d: str) -> bool:
        canonical = np.unique(self.take[d]).size
        return ds.sizes[d] == canonical


def dimension_of(user: str, dims: dict[str, str]) -> str:
    """The canonical name of one of the user's dimensions (itself where there is none)."""
    return next((c for c, u in dims.items() if u == user), user)


def canonicalise(
    ds: xr.Dataset | xr.DataArray,
    *,
    units: dict[str, str] | None = None,
    repair_times: bool = False,
    check_values: bool = True,
) -> tuple[xr.Dataset, Layout]:
    """Bring a dataset to the canonical form.

    Args:
        ds: as read; lazily loaded data stay lazy (only the range check, where `check_values` is on and the data are in
            memory, reads values).
        units: units of variables whose file does not say, by the user's names.
        repair_times: drop missing and duplicate time stamps instead of refusing them.
        check_values: refuse values that are impossible for the quantity (60 C at 500 hPa comes from a wrong unit).

    Returns:
        The dataset and the layout that leads back: `layout.restore(canonical)` equals `ds`.

    Raises:
        InputError: with one line for every problem found: unknown units, unordered or duplicate coordinates, latitudes
            outside -90..90, values out of range.
    """
    if isinstance(ds, xr.DataArray):
        ds = ds.to_dataset(name=ds.name or "unnamed")
    problems: list[str] = []
    notes: list[str] = []
    attrs = dict(ds.attrs)
    renames, dims = _rename_dimensions(ds, problems)
    coords = {c: ds[u] for c, u in dims.items() if u in ds.coords}
    keep = {u for u in dims.values()}
    others = {str(n): ds[n] for n in ds.coords if n not in keep}
    columns: dict[str, Column] = {}
    out = ds.drop_vars(list(others)).rename(renames)
    take: dict[str, np.ndarray] = {}
    for d in ("lat", "lon", "level"):
        if d in out.dims and d in out.coords:
            out = _order(out, d, take, problems, notes)
    for d in ("init_time", "time"):
        if d in out.dims and d in out.coords:
            out, take[d] = check_times(out, d, repair_times, problems)
    if "lead_time" in out.coords:
        out = lead_times(out, problems)
        if "lead_time" in out.dims:
            order = np.argsort(out["lead_time"].values)
            take["lead_time"] = np.argsort(order)
            out = out.isel(lead_time=order)
    if "member" in out.dims:
        take["member"] = np.arange(out.sizes["member"])
    variables: dict[str, xr.DataArray] = {}
    taken = {known.name for n in out.data_vars if (known := lookup(str(n)))}
    for name in out.data_vars:
        meaning = lookup(str(name)) or _by_standard_name(out, str(name), taken)
        if meaning is not None and meaning.name in variables:
            problems.append(
                f"{name}: a second variable that means {meaning.name!r}, beside {columns[meaning.name].name!r}"
            )
            continue
        args = (units or {}, problems, notes, check_values)
        da, column, label = _variable(str(name), out[name], ds[name], meaning, *args)
        variables[label] = da
        columns[label] = column
    if problems:
        raise InputError(
            f"the dataset cannot be brought to the canonical form: {len(problems)} problem(s)",
            got="".join(f"\n    - {p}" for p in problems),
            remedy="correct the file, or pass units= / repair_times=True / check_values=False where that is what you mean",
        )
    result = xr.Dataset(variables, attrs=attrs)
    _coordinate_attributes(result)
    return result, Layout(dims, coords, take, columns, others, attrs, tuple(notes))


def _rename_dimensions(ds: xr.Dataset, problems: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    renames: dict[str, str] = {}
    dims: dict[str, str] = {}
    names = [str(n) for n in (*ds.dims, *(c for c in ds.coords if c not in ds.dims and ds[c].ndim == 0))]
    # In a forecast file "time" is the start when there are steps: its reference, not its validity. One step of zero is an
    # analysis.
    stepped = any(dimension(n) == "lead_time" and not _is_zero(ds, n) for n in names)
    by_name = {dimension(n) for n in names} - {None}
    for name in names:
        if dimension(name) == "lead_time" and not stepped:
            continue
        standard = ds[name].attrs.get("standard_name", "") if name in ds.coords else ""
        canonical = dimension(name)
        if canonical is None and standard in ("latitude", "longitude"):
            canonical = standard[:3]
        pressure = name in ds.coords and str(ds[name].attrs.get("units", "")) in ("hPa", "Pa", "millibars")
        if canonical is None and pressure and "level" not in by_name and name in ds.dims:
            canonical = "level"  # isobaric coordinates come under many names
        if canonical == "time" and stepped:
            if name.lower() != "time" and any(n.lower() == "time" for n in names):
                continue  # valid_time beside time and step: derived
            canonical = "init_time"
        if canonical is None or (canonical in dims):
            if canonical is not None and name in ds.dims:
                problems.append(f"{name}: a second dimension that means {canonical!r}, beside {dims[canonical]!r}")
            continue
        if canonical in ("time", "init_time") and name in ds.coords and ds[name].dtype.kind not in "MO":
            continue  # a plain counter
        dims[canonical] = name
        if name != canonical:
            renames[name] = canonical
    return renames, dims


def _is_zero(ds: xr.Dataset, name: str) -> bool:
    return (
        name in ds.coords
        and ds[name].ndim == 0
        and ds[name].dtype.kind == "m"
        and int(ds[name].values.astype("int64")) == 0
    )


def _order(ds: xr.Dataset, d: str, take: dict, problems: list[str], notes: list[str]) -> xr.Dataset:
    values = np.asarray(ds[d].values, dtype=np.float64)
    label = {"lat": "latitude", "lon": "longitude", "level": "level"}[d]
    if not np.isfinite(values).all():
        problems.append(f"{label}: {int((~np.isfinite(values)).sum())} missing values in the coordinate")
        return ds
    if d == "lat" and (np.abs(values) > 90.0 + 1e-4).any():
        problems.append(
            f"latitude: values to {values[np.abs(values).argmax()]:g}, outside -90..90 (longitudes swapped?)"
        )
        return ds
    if d == "level":
        units = str(ds[d].attrs.get("units", "")).strip()
        if units == "Pa" or (units == "" and values.max(initial=0) > 2000):
            if not units:
                notes.append("level: no units and values above 2000, taken as Pa")
            values = values / 100.0
        elif units not in ("hPa", "millibars", "mb", "mbar", "millibar", ""):
            notes.append(f"level: units {units!r} left as they are")
    wrap = None
    if d == "lon":
        if values.size and (values.max() - values.min() > 360.0 + 1e-4):
            problems.append(f"longitude: spans {values.max() - values.min():g} degrees, more than a circle")
            return ds
        values = np.where(values == 360.0, 360.0, values % 360.0)
        closes = values.size > 1 and np.isclose(ds[d].values[-1] - ds[d].values[0], 360.0, atol=1e-6)
        values = values % 360.0
        if closes:
            wrap = values.size - 1  # the first meridian repeated at the end
    kept = np.arange(values.size if wrap is None else values.size - 1)
    order = kept[np.argsort(values[kept], kind="stable")]
    steps = np.diff(values[order])
    if (steps <= 0).any():
        twice = sorted({float(v) for v in values[order][1:][steps <= 0]})
        problems.append(f"{label}: duplicate values {', '.join(f'{v:g}' for v in twice[:5])}")
        return ds
    raw = np.diff(values[kept])
    turns = (np.sign(raw[1:]) != np.sign(raw[:-1])).sum() if raw.size > 1 else 0
    if d == "lat" and turns:
        problems.append("latitude: neither ascending nor descending")
        return ds
    position = np.empty(values.size, dtype=np.int64)
    position[order] = np.arange(order.size)
    if wrap is not None:
        position[wrap] = position[0]
    take[d] = position
    return ds.isel({d: order}).assign_coords({d: (d, values[order], ds[d].attrs)})


def _by_standard_name(ds: xr.Dataset, name: str, taken: set[str]) -> Variable | None:
    """The quantity by CF standard name, where the name itself says nothing: unique in the file, and no statistic of it."""
    standard = str(ds[name].attrs.get("standard_name", ""))
    found = lookup(standard) if standard not in ("", "unknown") else None
    if found is None or found.name in taken or "cell_methods" in ds[name].attrs:
        return None
    rivals = sum(str(v.attrs.get("standard_name", "")) == standard for v in ds.data_vars.values())
    return found if rivals == 1 else None


def _variable(name, da, original, variable, units, problems, notes, check_values):
    given = units.get(name, original.attrs.get("units"))
    factor, offset, label = 1.0, 0.0, name
    attrs = dict(original.attrs)
    if variable is not None:
        label = variable.name
        if given is None:
            given = "m" if name.lower() in HEIGHTS else variable.units
            notes.append(f"{name}: no units in the file, taken as {given}")
        affine = to_canonical(variable, str(given))
        if affine is None:
            problems.append(f"{name}: units {given!r} not understood; known: {', '.join(known_units(variable))}")
        else:
            factor, offset = affine
    column = Column(name, tuple(map(str, original.dims)), factor, offset, attrs, original.dtype)
    if factor != 1.0 or offset != 0.0:
        da = (da * np.asarray(factor, da.dtype) + np.asarray(offset, da.dtype)).astype(da.dtype)
    da = da.transpose(*[d for d in ORDER if d in da.dims], ...)
    extra = [d for d in da.dims if d not in ORDER]
    da = da.transpose(*extra, *[d for d in ORDER if d in da.dims])
    if variable is not None:
        if check_values:
            _check_range(name, da, variable, problems)
        if variable.accumulated and "lead_time" in da.dims:
            # A total over no time is not a measurement of zero.
            da = da.where(da["lead_time"] > np.timedelta64(0, "ns"))
        attrs = {k: v for k, v in attrs.items() if not k.startswith("GRIB_")}
        attrs |= {"standard_name": variable.standard_name, "units": variable.units}
    da.attrs = attrs
    return da, column, label


def _check_range(name: str, da: xr.DataArray, variable: Variable, problems: list[str]) -> None:
    if da.chunks is not None or da.size == 0:
        return
    values = da.values
    if values.dtype.kind != "f":
        values = values.astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    if not finite.size:
        problems.append(f"{name}: every value is missing")
    elif np.isinf(values).any():
        problems.append(f"{name}: infinite values")
    elif low < variable.low or high > variable.high:
        problems.append(
            f"{name}: values {low:g} to {high:g} {variable.units} are outside the possible {variable.low:g} to {variable.high:g}"
            " (wrong units?)"
        )


def _coordinate_attributes(ds: xr.Dataset) -> None:
    for d, attrs in {
        "lat": {"standard_name": "latitude", "units": "degrees_north", "axis": "Y"},
        "lon": {"standard_name": "longitude", "units": "degrees_east", "axis": "X"},
        "level": {"standard_name": "air_pressure", "units": "hPa", "axis": "Z", "positive": "down"},
        "member": {"standard_name": "realization", "units": "1"},
        "init_time": {"standard_name": "forecast_reference_time"},
        "lead_time": {"standard_name": "forecast_period"},
        "time": {"standard_name": "time"},
    }.items():
        if d in ds.coords:
            kept = {k: v for k, v in ds[d].attrs.items() if k in ("long_name",)}
            ds[d].attrs = {**kept, **attrs}
