"""The interface of all forecast models."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.earth.data import Channel, check_fields


@dataclass(frozen=True)
class Coords:
    """What fields a model reads or writes: channels on a latitude-longitude grid, one every `step_hours`."""

    channels: tuple[Channel, ...]
    lat: tuple[float, ...]
    lon: tuple[float, ...]
    step_hours: float

    @classmethod
    def of(cls, ds: xr.Dataset, channels, step_hours: float) -> "Coords":
        lat, lon = (tuple(np.asarray(ds[d].values, dtype=float).tolist()) for d in ("lat", "lon"))
        return cls(tuple(Channel.parse(c) for c in channels), lat, lon, float(step_hours))

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.channels), len(self.lat), len(self.lon)

    def check(self, ds: xr.Dataset, **options: Any) -> None:
        """Raise an InputError that names everything in `ds` that does not fit."""
        check_fields(ds, self.channels, lat=np.array(self.lat), lon=np.array(self.lon), **options)


class Model(eqx.Module):
    """A forecast model: a pytree that turns initial fields into a state and steps it.

    `when` is the valid time of a field as [day of year in 1..366, hour of day], for models that know the calendar.
    """

    name: ClassVar[str] = "model"
    takes_missing_values: ClassVar[bool] = False
    """Whether points without a value (sea temperature over land) leave all other points as they are."""

    @abstractmethod
    def input_coords(self) -> Coords:
        """Fields that `init` takes."""

    def output_coords(self) -> Coords:
        """Fields that `step` gives."""
        return self.input_coords()

    @abstractmethod
    def init(self, fields: Float[Array, "member channel lat lon"], when: Float[Array, " 2"]) -> Any:
        """State at the initial time."""

    @abstractmethod
    def step(self, state: Any, when: Float[Array, " 2"]) -> tuple[Any, Float[Array, "member channel lat lon"]]:
        """State and fields one step on; `when` is the new valid time."""


@dataclass(frozen=True)
class ModelConfig:
    """A model that is not built yet: its settings, waiting for the grid. `build` makes the model."""

    def build(self, coords: Coords, training: xr.Dataset | None = None) -> Model:
        raise NotImplementedError

    @property
    def channels(self) -> tuple[str, ...] | None:
        """Fields the model is bound to, or None when it takes any."""
        return None

    def _need_training(self, training: xr.Dataset | None) -> xr.Dataset:
        if training is None:
            raise InputError(
                f"{type(self).__name__} is fitted to past data, and none was given",
                remedy="pass training= (fields before the forecast starts)",
            )
        return training
