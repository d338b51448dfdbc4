"""A forecast from file to verification: open, check, regrid, roll forward, write, score."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr

from sciax.core import default_float
from sciax.core.errors import InputError, did_you_mean, optional_import
from sciax.datasets.gridded import open_gridded
from sciax.earth._grid import is_global
from sciax.earth._regrid import Regrid
from sciax.earth._rollout import Ensemble, fingerprint, load_restart, roll, save_restart, start
from sciax.earth._stores import store_at
from sciax.earth.data import Channel, Layout, canonicalise, channels_of, stack, time_step, unstack
from sciax.earth.models import (
    Climatology,
    ClimatologyFields,
    Coords,
    DampedPersistence,
    Model,
    ModelConfig,
    Persistence,
    calendar_of,
)

BASELINES: dict[str, type[ModelConfig]] = {
    "persistence": Persistence,
    "damped_persistence": DampedPersistence,
    "climatology": Climatology,
}


@dataclass
class Forecast:
    """A forecast pipeline.

    Attributes:
        source: analyses: a path (NetCDF, Zarr, GRIB), several, or a dataset in any layout `canonicalise` understands.
        model: a model config, or a built model.
        regrid: stage before the model, on source and truth alike.
        steps: how many steps of `step_hours` (by default the source's time step, 6 where it has none).
        members: ensemble size; a source with members gives its own, else `ensemble` makes them.
        start: initial time (default: the first of the source; with training data, the last of those).
        channels: fields to forecast ("z@500"); default: what the model is bound to, else all.
        training: past analyses for what is fitted; default: the source up to `start`.
    """

    source: Any
    model: ModelConfig | Model
    regrid: Regrid | None = None
    steps: int = 8
    members: int = 1
    step_hours: float | None = None
    start: Any = None
    channels: Sequence[str | Channel] | None = None
    training: Any = None
    ensemble: Ensemble = field(default_factory=Ensemble)
    units: dict[str, str] | None = None
    seed: int = 0

    layout: Layout | None = field(default=None, init=False, repr=False)
    result: xr.Dataset | None = field(default=None, init=False, repr=False)
    _channels: tuple[Channel, ...] = field(default=(), init=False, repr=False)
    _data: xr.Dataset | None = field(default=None, init=False, repr=False)
    _built: dict[str, Model] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("steps", "members"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1", got=getattr(self, name))
        if self.step_hours is not None and self.step_hours <= 0:
            raise InputError("step_hours must be positive", got=self.step_hours)

    # -- stages ---------------------------------------------------------------------------------------------------------

    def data(self) -> xr.Dataset:
        """The source in canonical form, regridded, with the channels of the forecast only."""
        if self._data is None:
            canonical, self.layout = self._canonical(self.source)
            self._data = self._prepare(canonical)
        return self._data

    def _canonical(self, source) -> tuple[xr.Dataset, Layout]:
        ds = source if isinstance(source, xr.Dataset | xr.DataArray) else open_gridded(source)
        ds, layout = canonicalise(ds, units=self.units)
        if "time" not in ds.dims and "time" in ds.coords:
            ds = ds.expand_dims("time")
        if "time" not in ds.dims:
            raise InputError(
                "the source has no time", got=dict(ds.sizes), remedy="add a time coordinate to the analyses"
            )
        return ds, layout

    def _prepare(self, ds: xr.Dataset) -> xr.Dataset:
        from sciax.earth.data import check_fields

        wanted = self.channels or (self.model.channels if isinstance(self.model, ModelConfig) else None)
        if wanted is None and isinstance(self.model, Model):
            wanted = self.model.input_coords().channels
        channels = tuple(Channel.parse(c) for c in wanted) if wanted else channels_of(ds)
        check_fields(ds, channels, allow_missing_values=True)
        self._channels = channels
        ds = unstack(stack(ds, channels), channels).assign_attrs(ds.attrs)
        return self.regrid(ds) if self.regrid is not None else ds

    def prepare(self, source) -> xr.Dataset:
        """Other data (truth, training) through the same stages as the source."""
        return self._prepare(self._canonical(source)[0])

    def initial_time(self):
        """The time the forecast starts from."""
        times = self.data()["time"].values
        if self.start is None:
            training = self._training() if self.training is not None else None
            if training is not None:
                last = training["time"].values[-1]
                later = times[times >= last]
                return later[0] if later.size else times[0]
            return times[0]
        # A string, a datetime or a cftime date: xarray's own matching.
        try:
            chosen = np.atleast_1d(self.data()["time"].sel(time=self.start).values)
        except KeyError as error:
            raise InputError(
                f"the start {self.start} is not among the times of the source",
                expected=f"{len(times)} times from {str(times[0])[:19]} to {str(times[-1])[:19]}",
            ) from error
        return chosen[-1] if isinstance(self.start, str) and len(chosen) > 1 else chosen[0]

    def coords(self) -> Coords:
        """Channels, grid and step of the forecast."""
        ds = self.data()
        hours = self.step_hours
        if hours is None:
            hours = time_step(ds) if ds.sizes["time"] > 1 else 6.0
        return Coords.of(ds, self._channels, hours)

    def _training(self) -> xr.Dataset | None:
        if self.training is not None:
            return self.prepare(self.training)
        ds = self.data()
        past = ds.isel(time=np.flatnonzero(ds["time"].values <= self.initial_time()))
        return past if past.sizes["time"] >= 4 else None

    def built(self, name: str | None = None) -> Model:
        """The model of the forecast, or a baseline by name, built for this grid and fitted to the training data."""
        key = name or "model"
        if key not in self._built:
            if name is not None and name not in BASELINES:
                raise InputError(f"unknown baseline {name!r}", remedy=did_you_mean(name, BASELINES))
            config = self.model if name is None else BASELINES[name]()
            model = config if isinstance(config, Model) else config.build(self.coords(), self._training())
            model.input_coords().check(
                self.data().isel(time=[self._index()]), allow_missing_values=model.takes_missing_values
            )
            fitted = self._climatology_of(model)
            if fitted is not None:
                fitted.refuse_leakage(self.valid_times()[0])
            self._built[key] = model
        return self._built[key]

    def _index(self, back: int = 0) -> int:
        times = self.data()["time"].values
        index = int(np.flatnonzero(times == self.initial_time())[0]) - back
        if index < 0:
            raise InputError("a lagged ensemble needs analyses before the start", got=f"{index + back} of {back} steps")
        return index

    def leads(self) -> np.ndarray:
        step = round(self.coords().step_hours * 3600)
        return (np.arange(1, self.steps + 1) * np.timedelta64(step, "s")).astype("timedelta64[ns]")

    def valid_times(self, back: int = 0) -> np.ndarray:
        """Valid times of the steps, from `back` steps before the start."""
        begin = self.data()["time"].values[self._index(back)]
        seconds = round(self.coords().step_hours * 3600)
        if isinstance(begin, np.datetime64):
            return begin + (np.arange(1, self.steps + back + 1) * np.timedelta64(seconds, "s")).astype(
                "timedelta64[ns]"
            )
        return np.array([begin + timedelta(seconds=seconds * k) for k in range(1, self.steps + back + 1)], dtype=object)

    def initial_fields(self, back: int = 0) -> np.ndarray:
        """(member, channel, lat, lon) at the start, perturbed where members are to be made."""
        ds = self.data()
        array = stack(ds.isel(time=self._index(back)), self.coords().channels)
        if array.dtype.itemsize > 4 or array.dtype.kind != "f":
            array = array.astype(default_float())  # float64 data stay so only where 64-bit arrays are on
        if "member" in array.dims:
            have = array.sizes["member"]
            if self.members > have:
                raise InputError(
                    "more members asked for than the source has", got=self.members, expected=f"at most {have}"
                )
            return array.transpose("member", "channel", "lat", "lon").values[: self.members]
        fields = array.transpose("channel", "lat", "lon").values
        if self.members == 1 or self.ensemble.kind == "lagged":
            return fields[None]
        return self.ensemble.perturb(fields, self.members, self.seed, is_global(ds["lon"].values))

    # -- running --------------------------------------------------------------------------------------------------------

    def run(self, path: str | Path | None = None, *, chunk: int = 8, resume: bool = True, progress=None) -> xr.Dataset:
        """Run the forecast.

        Args:
            path: where to write: a Zarr store (".zarr") or a NetCDF file (".nc"), written chunk by chunk while the forecast runs,
                so that memory does not grow with `steps`, and continued where it stopped if interrupted. None keeps the result in
                memory.
            chunk: steps in one compiled call.
            progress: called with the number of steps done.

        Returns:
            CF dataset with dims (init_time, lead_time, member, level, lat, lon); opened lazily where there is a path.
        """
        store = None if path is None else store_at(path)
        model = self.built()
        lagged = self.ensemble.kind == "lagged" and "member" not in self.data().dims
        begun = [self._begin(model, back) for back in range(self.members if lagged else 1)]
        fields = np.concatenate([f for f, _ in begun])
        state = tuple(s for _, s in begun)
        whens = calendar_of(self.valid_times()).astype(fields.dtype)
        done = 0
        mark = fingerprint(
            model=model.name,
            start=self.initial_time(),
            steps=self.steps,
            coords=self.coords(),
            members=len(fields),
            ensemble=self.ensemble,
            seed=self.seed,
        )
        if store is not None:
            found = load_restart(store.restart, state, mark) if resume and store.restart.exists() else None
            if found is not None:
                state, done = found
            else:
                store.create(self._dataset(np.zeros((self.steps, *fields.shape), fields.dtype), lazy=True))
        known = np.isfinite(fields)
        pieces = []
        size = min(chunk, max(len(whens) - done, 1))
        # One strand for each start: lagged members differ in nothing but how far they have already come.
        for strands in zip(*(roll(model, s, whens[done:], size) for s in state)):
            out = np.concatenate([o for _, o, _ in strands], axis=1)
            first = done + strands[0][0]
            last = first + len(out)
            lost = (~np.isfinite(out) & known).reshape(len(out), -1).any(axis=1)
            if lost.any():
                raise InputError(
                    f"{model.name} gave values that are not finite at step {first + int(np.argmax(lost)) + 1}",
                    remedy="a shorter time step, more damping, or better scaled inputs",
                )
            if store is None:
                pieces.append(out)
            else:
                store.write(self._dataset(out, first), first, last)
                save_restart(store.restart, tuple(after for *_, after in strands), last, mark)
            if progress is not None:
                progress(last)
        self.result = store.finish() if store is not None else self._dataset(np.concatenate(pieces))
        return self.result

    def _begin(self, model: Model, back: int) -> tuple[np.ndarray, Any]:
        """The analysis `back` steps before the start, and the model's state that has come from it to the start."""
        fields = self.initial_fields(back)
        before = calendar_of(self.data()["time"].values[[self._index(back)]])[0]
        state = start(model, jnp.asarray(fields), jnp.asarray(before, fields.dtype))
        if back == 0:
            return fields, state
        whens = calendar_of(self.valid_times(back)[:back]).astype(fields.dtype)
        return fields, [after for *_, after in roll(model, state, whens, 1)][-1]

    def _dataset(self, values: np.ndarray, first: int = 0, lazy: bool = False) -> xr.Dataset:
        """CF dataset of (step, member, channel, lat, lon) values."""
        c, n = self.coords(), len(values)
        if lazy:
            dask = optional_import("dask.array", "earth")
            values = dask.zeros(values.shape, dtype=values.dtype, chunks=(1, *values.shape[1:]))
        array = xr.DataArray(
            values,
            dims=("lead_time", "member", "channel", "lat", "lon"),
            coords={
                "lead_time": self.leads()[first : first + n],
                "member": np.arange(values.shape[1]),
                "channel": [str(x) for x in c.channels],
                "lat": self.data()["lat"],
                "lon": self.data()["lon"],
            },
        )
        ds = unstack(array, c.channels).expand_dims(init_time=[self.initial_time()])
        ds = ds.assign_coords(valid_time=(("init_time", "lead_time"), self.valid_times()[None, first : first + n]))
        ds["valid_time"].attrs = {"standard_name": "time", "long_name": "valid time"}
        ds["init_time"].attrs = {"standard_name": "forecast_reference_time"}
        ds["lead_time"].attrs = {"standard_name": "forecast_period"}
        ds.attrs = {"Conventions": "CF-1.11", "title": f"forecast by {self.built().name}", "source": "sciax.earth"}
        if self.built().takes_missing_values:
            ds.attrs["comment"] = "values missing in the analysis are missing in the forecast"
        return ds

    # -- judging --------------------------------------------------------------------------------------------------------

    def verify(
        self, truth: Any = None, baselines: Sequence[str] = ("persistence",), regions: Sequence[str] | None = None
    ):
        """Scores of the forecast and of baselines started from the same analysis.

        Args:
            truth: analyses at the valid times, in any layout (default: the source itself).
            baselines: among "persistence", "damped_persistence", "climatology"; the last two need training data.
            regions: of "globe", "nh", "sh", "tropics"; default all for global grids, the whole domain otherwise.

        Returns:
            `Scores`.
        """
        from sciax.earth.verify._scorecard import score_models

        result = self.run() if self.result is None else self.result
        reference = self.data() if truth is None else self.prepare(truth)
        results = {self.built().name: result}
        for name in baselines:
            if name == self.built().name:
                continue
            results[name] = self._baseline(name)
        fitted = [self._climatology_of(m) for m in (self._built.get("climatology"), self.built())]
        climatology = next((c for c in fitted if c is not None), None)
        return score_models(results, reference, self.coords(), climatology=climatology, regions=regions)

    @staticmethod
    def _climatology_of(model: Model | None) -> ClimatologyFields | None:
        """What a model was fitted to, where it has a climatology."""
        fitted = getattr(model, "climatology", getattr(model, "fields", None))
        return fitted if isinstance(fitted, ClimatologyFields) else None

    def _baseline(self, name: str) -> xr.Dataset:
        model = self.built(name)
        if self.ensemble.kind == "lagged" or "member" not in self.data().dims:
            fields = self.initial_fields()[:1]
        else:
            fields = self.initial_fields()
        begin = calendar_of(self.data()["time"].values[[self._index()]])[0]
        state = start(model, jnp.asarray(fields), jnp.asarray(begin, fields.dtype))
        whens = calendar_of(self.valid_times()).astype(fields.dtype)
        out = [x for _, x, _ in roll(model, state, whens, self.steps)]
        return self._dataset(np.concatenate(out))
