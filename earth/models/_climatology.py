"""Climatology: the expected field of a day of the year and an hour, fitted to a training period only."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.core.precision import default_float
from sciax.earth.data import day_of_year, stack
from sciax.earth.models._base import Coords, Model, ModelConfig


def calendar_of(times) -> np.ndarray:
    """(n, 2): day of year in 1..366 (29 February is 60 in every year) and hour of day."""
    stamps = xr.DataArray(np.atleast_1d(np.asarray(times)), dims="t")
    hour = stamps.dt.hour.values + stamps.dt.minute.values / 60
    return np.stack([day_of_year(stamps.values), hour], axis=-1).astype(float)


def harmonics(day, count: int):
    """1, cos, sin, cos 2, ... of the annual phase; works on NumPy and JAX arrays."""
    xp = jnp if isinstance(day, jnp.ndarray) else np
    phase = 2 * np.pi * (day - 1) / 366
    columns = [xp.ones_like(phase)]
    for k in range(1, count + 1):
        columns += [xp.cos(k * phase), xp.sin(k * phase)]
    return xp.stack(columns, axis=-1)


class ClimatologyFields(eqx.Module):
    """mean(day, hour) = sum_k c_k harmonic_k(day) + offset(hour).

    Attributes:
        coefficients: (2 K + 1, channel, lat, lon).
        offsets: (hours, channel, lat, lon), the diurnal cycle.
        period: first and last time it was fitted to.
    """

    coefficients: Float[Array, "k channel lat lon"]
    offsets: Float[Array, "hours channel lat lon"]
    hours: Float[Array, " hours"]
    period: tuple[str, str] = eqx.field(static=True)

    @classmethod
    def fit(cls, training: xr.Dataset, coords: Coords, annual: int | None = None) -> "ClimatologyFields":
        """Least squares on the training period, missing values left out.

        Args:
            annual: annual harmonics; by default 3 when the data cover most of a year, else 0.

        Raises:
            InputError: fewer than two times.
        """
        array = stack(training, coords.channels)
        if "member" in array.dims:
            array = array.mean("member")
        if "time" not in array.dims or array.sizes["time"] < 2:
            raise InputError("a climatology needs at least two times", got=dict(array.sizes))
        array = array.transpose("time", "channel", "lat", "lon")
        when = calendar_of(array["time"].values)
        covered = np.unique(when[:, 0]).size
        count = (3 if covered > 250 else 0) if annual is None else annual
        basis = harmonics(when[:, 0], count)
        values = array.values.reshape(len(when), -1).astype(np.float64)
        finite = np.isfinite(values)
        if finite.all():
            c = np.linalg.lstsq(basis, values, rcond=None)[0]
        else:
            c = np.zeros((basis.shape[1], values.shape[1]))
            for j in np.flatnonzero(finite.any(axis=0)):
                c[:, j] = np.linalg.lstsq(basis[finite[:, j]], values[finite[:, j], j], rcond=None)[0]
            c[:, ~finite.any(axis=0)] = np.nan
        rest = values - basis @ c
        hours = np.unique(when[:, 1])
        at = [(when[:, 1] == h)[:, None] & np.isfinite(rest) for h in hours]
        with np.errstate(invalid="ignore"):  # 0 / 0 where a point never has a value at that hour
            offsets = np.stack([np.where(rows, rest, 0).sum(axis=0) / rows.sum(axis=0) for rows in at])
        shape = array.shape[1:]
        dtype = np.dtype(array.dtype) if array.dtype.itemsize < 8 else default_float()
        first, last = array["time"].values[[0, -1]]
        return cls(
            jnp.asarray(c.reshape(-1, *shape), dtype),
            jnp.asarray(offsets.reshape(-1, *shape), dtype),
            jnp.asarray(hours, dtype),
            (str(first), str(last)),
        )

    def __call__(self, when: Float[Array, " 2"]) -> Float[Array, "channel lat lon"]:
        count = (self.coefficients.shape[0] - 1) // 2
        basis = harmonics(jnp.asarray(when[0], self.coefficients.dtype), count)
        nearest = jnp.argmin(jnp.abs((self.hours - when[1] + 12) % 24 - 12))
        return jnp.tensordot(basis, self.coefficients, 1) + self.offsets[nearest]

    def refuse_leakage(self, first_valid) -> None:
        """Raise if the fit saw the time that is to be forecast.

        Raises:
            InputError: the training period reaches into the verification.
        """
        if str(first_valid) <= self.period[1]:
            raise InputError(
                "the climatology was fitted to the time that is to be verified",
                got=f"training {self.period[0][:19]} to {self.period[1][:19]}, first valid time {str(first_valid)[:19]}",
                remedy="end the training data before the forecast starts",
            )


class ClimatologyModel(Model):
    """Forecasts the climatology of the valid day and hour."""

    name: ClassVar[str] = "climatology"
    takes_missing_values: ClassVar[bool] = True
    fields: ClimatologyFields
    coords: Coords = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        return jnp.zeros(fields.shape[:1], fields.dtype)

    def step(self, state, when):
        mean = self.fields(when)
        return state, jnp.broadcast_to(mean, (state.shape[0], *mean.shape))


@dataclass(frozen=True)
class Climatology(ModelConfig):
    """Climatology of the training period.

    Attributes:
        annual: annual harmonics; None decides by the length of the training data.
    """

    annual: int | None = None

    def build(self, coords, training=None):
        return ClimatologyModel(ClimatologyFields.fit(self._need_training(training), coords, self.annual), coords)
