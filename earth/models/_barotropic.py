"""Forecasts of geopotential in the middle troposphere with the barotropic vorticity equation."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereTables, analysis, sphere_tables, synthesis, truncate
from sciax.earth._grid import EARTH_RADIUS, EARTH_ROTATION, sphere_grid_of
from sciax.earth.data import GRAVITY, Channel
from sciax.earth.dynamics import (
    BarotropicVorticity,
    geopotential_from_streamfunction,
    streamfunction_from_geopotential,
)
from sciax.earth.models._base import Coords, Model, ModelConfig


def helmholtz_from_depth(depth: float = 8000.0, latitude: float = 45.0) -> float:
    """(a f0)^2 / (g H): the Helmholtz term of a fluid of equivalent depth H (m), with f0 at `latitude`."""
    f0 = 2 * EARTH_ROTATION * np.sin(np.radians(latitude))
    return float((EARTH_RADIUS * f0) ** 2 / (GRAVITY * depth))


class BarotropicModel(Model):
    """The analysed geopotential plus the change that the barotropic equation predicts.

    The flow is the linear-balance stream function of the geopotential. Only the predicted change is added to the analysis, so
    that what the truncation and the balance leave out is not lost. Near the equator, where geopotential says little about the
    flow, the change is tapered to nothing: the forecast is persistence there.
    """

    name: ClassVar[str] = "barotropic"
    core: BarotropicVorticity
    outer: SphereTables
    taper: Float[Array, " lat"]
    coords: Coords = eqx.field(static=True)
    substeps: int = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        n = self.core.tables.truncation
        phi = truncate(analysis(fields[:, 0], self.outer), self.outer)
        psi = streamfunction_from_geopotential(phi, n, self.core.rotation)
        return psi, psi, fields

    def step(self, state, when):
        psi, start, fields = state
        dt = 3600.0 * self.coords.step_hours / self.substeps
        psi = self.core.advance(psi, dt, self.substeps)
        change = geopotential_from_streamfunction(psi - start, self.core.tables.truncation, self.core.rotation)
        dtype = fields.dtype
        return (psi, start, fields), fields + (self.taper[:, None] * synthesis(change, self.outer))[:, None].astype(
            dtype
        )


@dataclass(frozen=True)
class Barotropic(ModelConfig):
    """Barotropic forecast of one geopotential level on a global grid.

    Attributes:
        truncation: triangular truncation of the dynamics.
        helmholtz: Helmholtz term; by default that of an equivalent depth of 8 km at 45 degrees.
        level: pressure level (hPa), near the level of non-divergence.
        max_step_minutes: longest time step.
        damping_hours: e-folding time of the smallest scale.
        tropics: latitude (degrees) within which the predicted change is tapered; 0 for no taper.
    """

    truncation: int = 42
    helmholtz: float | None = None
    level: float = 500.0
    max_step_minutes: float = 30.0
    damping_hours: float | None = 6.0
    tropics: float = 20.0

    @property
    def channels(self):
        return (f"z@{self.level:g}",)

    def build(self, coords, training=None):
        if coords.channels != (Channel("z", self.level),):
            raise InputError(
                "the barotropic model forecasts one geopotential level",
                got=", ".join(map(str, coords.channels)),
                expected=f"z@{self.level:g}",
            )
        grid = sphere_grid_of(np.array(coords.lat), np.array(coords.lon))
        truncation = min(self.truncation, grid.max_degree - 1, (grid.nlon - 1) // 2)
        k = helmholtz_from_depth() if self.helmholtz is None else self.helmholtz
        core = BarotropicVorticity(truncation, helmholtz=k, damping_hours=self.damping_hours)
        outer = sphere_tables(grid, truncation, core.tables.degree.dtype)
        substeps = int(np.ceil(60 * coords.step_hours / self.max_step_minutes))
        lat = np.array(coords.lat)
        taper = 1 - np.exp(-((lat / self.tropics) ** 4)) if self.tropics > 0 else np.ones(lat.size)
        return BarotropicModel(core, outer, jnp.asarray(taper, core.tables.degree.dtype), coords, substeps)
