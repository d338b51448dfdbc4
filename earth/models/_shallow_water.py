"""Forecasts of wind and height with the shallow-water equations."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.core.ops.sphere import SphereTables, sphere_tables, synthesis, truncate, vector_analysis, vector_synthesis
from sciax.core.ops.sphere import analysis as spectral
from sciax.earth._grid import sphere_grid_of
from sciax.earth.data import Channel
from sciax.earth.dynamics import ShallowWater, ShallowWaterState
from sciax.earth.models._base import Coords, Model, ModelConfig


class ShallowWaterModel(Model):
    """The analysed fields plus the change that the shallow-water equations predict.

    For a pressure level the fluid's depth is a mean depth plus the deviation of the height from its global mean. Only the
    change is added to the analysis, so that what the truncation leaves out is not lost.
    """

    name: ClassVar[str] = "shallow_water"
    core: ShallowWater
    outer: SphereTables
    depth: Float[Array, ""]
    coords: Coords = eqx.field(static=True)
    substeps: int = eqx.field(static=True)
    geopotential: bool = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        real = self.outer.degree.dtype
        u, v, height = (fields[:, k].astype(real) for k in range(3))
        vorticity, divergence = vector_analysis(u, v, self.outer, self.core.radius)
        phi = truncate(spectral(height if self.geopotential else self.core.gravity * height, self.outer), self.outer)
        if self.geopotential:
            phi = phi.at[..., 0, 0].set((self.core.gravity * self.depth).astype(phi.dtype))
        state = ShallowWaterState(vorticity, divergence, phi, jnp.zeros((0, *phi.shape), phi.dtype))
        return state, self._grid(state), fields

    def step(self, state, when):
        flow, start, fields = state
        dt = 3600.0 * self.coords.step_hours / self.substeps
        flow = self.core.advance(flow, dt, self.substeps)
        change = self._grid(flow) - start
        return (flow, start, fields), fields + change.astype(fields.dtype)

    def _grid(self, flow: ShallowWaterState):
        u, v = vector_synthesis(flow.vorticity, flow.divergence, self.outer, self.core.radius)
        phi = synthesis(flow.geopotential, self.outer)
        return jnp.stack([u, v, phi if self.geopotential else phi / self.core.gravity], axis=1)


@dataclass(frozen=True)
class ShallowWaterFlow(ModelConfig):
    """Shallow-water forecast of wind and geopotential of one level, or of wind u, v and depth h of a fluid, on a global grid.

    Attributes:
        truncation: triangular truncation of the dynamics, at most what the grid resolves.
        level: pressure level (hPa) of u, v and z; None for the surface fields u, v, h.
        depth: mean depth of the fluid (m); for h only the reference of the implicit terms (default 10 km); for a level the
            equivalent depth (default 8 km, as in the barotropic model).
        max_step_minutes: longest time step.
        damping_hours: e-folding time of the smallest scale.
    """

    truncation: int = 42
    level: float | None = 500.0
    depth: float | None = None
    max_step_minutes: float = 20.0
    damping_hours: float | None = 6.0

    @property
    def channels(self):
        return ("u", "v", "h") if self.level is None else tuple(f"{n}@{self.level:g}" for n in ("u", "v", "z"))

    def build(self, coords, training=None):
        wanted = tuple(Channel.parse(c) for c in self.channels)
        if coords.channels != wanted:
            raise InputError(
                "the shallow-water model forecasts wind and height of one level, in this order",
                got=", ".join(map(str, coords.channels)),
                expected=", ".join(self.channels),
            )
        grid = sphere_grid_of(np.array(coords.lat), np.array(coords.lon))
        if grid.kind == "equiangular_poles":
            raise InputError(
                "wind at the poles has no components", got="a grid with poles", remedy="Regrid(grid=gauss_grid(42))"
            )
        truncation = min(self.truncation, grid.max_degree - 1, (grid.nlon - 1) // 2)
        depth = self.depth or (10_000.0 if self.level is None else 8_000.0)
        core = ShallowWater(truncation, mean_depth=depth, damping_hours=self.damping_hours)
        outer = sphere_tables(grid, truncation, core.tables.degree.dtype)
        substeps = int(np.ceil(60 * coords.step_hours / self.max_step_minutes))
        return ShallowWaterModel(
            core, outer, jnp.asarray(depth, core.tables.degree.dtype), coords, substeps, self.level is not None
        )
