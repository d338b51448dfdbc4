"""Persistence, and persistence of the anomaly damped towards climatology."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.earth.data import stack, time_step
from sciax.earth.models._base import Coords, Model, ModelConfig
from sciax.earth.models._climatology import ClimatologyFields, calendar_of


class PersistenceModel(Model):
    """Forecasts the initial field."""

    name: ClassVar[str] = "persistence"
    takes_missing_values: ClassVar[bool] = True
    coords: Coords = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        return fields

    def step(self, state, when):
        return state, state


@dataclass(frozen=True)
class Persistence(ModelConfig):
    """Tomorrow as today."""

    def build(self, coords, training=None):
        return PersistenceModel(coords)


class DampedPersistenceModel(Model):
    """climatology(valid) + rho(lead) * (initial - climatology(initial))."""

    name: ClassVar[str] = "damped_persistence"
    takes_missing_values: ClassVar[bool] = True
    climatology: ClimatologyFields
    rho: Float[Array, "lead channel"]
    coords: Coords = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        return fields - self.climatology(when), jnp.zeros((), jnp.int32)

    def step(self, state, when):
        anomaly, lead = state
        last = self.rho.shape[0] - 1
        rho = self.rho[jnp.minimum(lead, last)]
        # Past the fitted leads the last one decays geometrically.
        beyond = jnp.maximum(lead - last, 0).astype(rho.dtype)
        rho = rho * jnp.abs(self.rho[last]) ** (beyond / (last + 1))
        return (anomaly, lead + 1), self.climatology(when) + rho[:, None, None] * anomaly


@dataclass(frozen=True)
class DampedPersistence(ModelConfig):
    """Damped persistence, with one regression coefficient for each lead and channel from the training period.

    Attributes:
        leads: how many leads to fit (fewer when the training data are short).
        annual: harmonics of the climatology.
        rho: a fixed coefficient in place of the fit. 1 keeps the whole anomaly and changes only the expected field (the
            diurnal cycle, say): the choice for training data of a few days, which underestimate every correlation.
    """

    leads: int = 20
    annual: int | None = None
    rho: float | None = None

    def build(self, coords, training=None):
        training = self._need_training(training)
        climatology = ClimatologyFields.fit(training, coords, self.annual)
        if self.rho is not None:
            rows = np.full((1, len(coords.channels)), self.rho)
            return DampedPersistenceModel(climatology, jnp.asarray(rows, climatology.coefficients.dtype), coords)
        anomaly = anomalies(training, coords, climatology)
        stride = round(coords.step_hours / time_step(training)) if anomaly.shape[0] > 1 else 1
        if stride < 1:
            raise InputError(
                "the training data are coarser in time than the forecast step",
                got=f"{time_step(training):g} h",
                expected=f"{coords.step_hours:g} h or a divisor",
            )
        weights = np.cos(np.radians(np.array(coords.lat)))[:, None]
        rows = []
        for lead in range(1, self.leads + 1):
            k = lead * stride
            if anomaly.shape[0] - k < 2:
                break
            a, b = anomaly[:-k], anomaly[k:]
            ok = np.isfinite(a) & np.isfinite(b)
            a, b = np.where(ok, a, 0), np.where(ok, b, 0)
            top, bottom = ((x * weights).sum((0, 2, 3)) for x in (a * b, a * a))
            rows.append(np.clip(top / np.maximum(bottom, 1e-300), 0, 1))
        if not rows:
            raise InputError(
                "too few training times for damped persistence", got=anomaly.shape[0], expected="at least 3"
            )
        return DampedPersistenceModel(climatology, jnp.asarray(np.array(rows), climatology.coefficients.dtype), coords)


def anomalies(ds: xr.Dataset, coords: Coords, climatology: ClimatologyFields) -> np.ndarray:
    """(time, channel, lat, lon) anomalies of a canonical dataset, in float64."""
    array = stack(ds, coords.channels)
    if "member" in array.dims:
        array = array.mean("member")
    array = array.transpose("time", "channel", "lat", "lon")
    mean = np.stack([np.asarray(climatology(jnp.asarray(w))) for w in calendar_of(array["time"].values)])
    return array.values.astype(np.float64) - mean
