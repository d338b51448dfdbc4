"""Shallow-water equations on the sphere: vorticity, divergence and geopotential, semi-implicit gravity waves."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from sciax.core.errors import InputError
from sciax.core.ops.sphere import (
    SphereGrid,
    SphereTables,
    analysis,
    curl_divergence,
    sphere_tables,
    synthesis,
    truncate,
    vector_analysis,
    vector_synthesis,
    wind_over_radius,
)
from sciax.earth.dynamics._barotropic import gauss_grid
from sciax.earth.dynamics._cases import GRAVITY, RADIUS, ROTATION
from sciax.earth.dynamics._imex import sil3


class ShallowWaterState(NamedTuple):
    """Spectral coefficients: relative vorticity and divergence (s-1), geopotential g h of the fluid's depth (m2 s-2), tracers."""

    vorticity: Complex[Array, "*batch m l"]
    divergence: Complex[Array, "*batch m l"]
    geopotential: Complex[Array, "*batch m l"]
    tracers: Complex[Array, "tracer *batch m l"]


class ShallowWater(eqx.Module):
    """dzeta/dt = -div((zeta + f) v); ddelta/dt = curl((zeta + f) v) - lap(Phi + Phi_s + |v|^2 / 2); dPhi/dt = -div(Phi v).

    Tracers obey dc/dt = -div(c v) + c delta. The gravity-wave terms -lap(Phi) and -Phi_0 delta are implicit (SIL3), diffusion
    is implicit after the step and leaves the global mean alone. Mass is exact: the mean of a divergence is a structural zero.

    A pytree: orography, Coriolis field and diffusion rates are leaves that gradients flow to.

    Source: Bourke (1972), Hack and Jakob (1992); time stepping Whitaker and Kar (2013).
    """

    tables: SphereTables
    coriolis: Float[Array, "lat lon"]
    orography: Complex[Array, "m l"]
    rate: Float[Array, "m l"]
    reference: Array | float
    radius: float = eqx.field(static=True)
    gravity: float = eqx.field(static=True)
    rotation: float = eqx.field(static=True)

    def __init__(
        self,
        truncation: int = 42,
        *,
        mean_depth: float = 10_000.0,
        orography: np.ndarray | None = None,
        coriolis: np.ndarray | None = None,
        damping_hours: float | None = None,
        order: int = 4,
        viscosity: float = 0.0,
        radius: float = RADIUS,
        gravity: float = GRAVITY,
        rotation: float = ROTATION,
        grid: SphereGrid | None = None,
        dtype=None,
    ):
        """
        Args:
            mean_depth: reference depth of the implicit terms (m); near the mean depth.
            orography: height of the ground (m) on the grid.
            coriolis: f on the grid (s-1); default 2 Omega sin(lat).
            damping_hours: e-folding time of the smallest scale under the Laplacian to the power `order`; None for none.
            viscosity: of a second-order diffusion besides (m2 s-1).
        """
        if mean_depth <= 0 or viscosity < 0 or (damping_hours is not None and damping_hours <= 0):
            raise InputError(
                "mean_depth and damping_hours must be positive, viscosity not negative",
                got=(mean_depth, damping_hours, viscosity),
            )
        self.tables = t = sphere_tables(grid or gauss_grid(truncation), truncation, dtype)
        if t.grid.kind == "equiangular_poles":
            raise InputError(
                "shallow water needs a grid without poles", got=t.grid.kind, expected="gauss or equiangular"
            )
        real = t.degree.dtype
        f = (
            2 * rotation * np.broadcast_to(t.grid.sin_latitude[:, None], (t.grid.nlat, 1))
            if coriolis is None
            else coriolis
        )
        self.coriolis = jnp.asarray(f, real)
        ground = np.zeros((t.grid.nlat, t.grid.nlon)) if orography is None else np.asarray(orography)
        self.orography = truncate(analysis(jnp.asarray(gravity * ground, real), t), t)
        l = np.arange(t.lmax + 1, dtype=float)
        scale = l * (l + 1) / (truncation * (truncation + 1))
        rate = viscosity * l * (l + 1) / radius**2
        if damping_hours is not None:
            rate = rate + scale**order / (3600 * damping_hours)
        self.rate = jnp.asarray(np.broadcast_to(rate, t.spectral_shape), real)
        self.reference = jnp.asarray(gravity * mean_depth, real)
        self.radius, self.gravity, self.rotation = float(radius), float(gravity), float(rotation)

    # -- states ---------------------------------------------------------------------------------------------------------

    @eqx.filter_jit
    def state(self, u, v, height, tracers=None) -> ShallowWaterState:
        """State from wind (m s-1), depth of the fluid (m) and tracers (tracer, ..., lat, lon) on the grid."""
        t = self.tables
        u, v, height = (jnp.asarray(x, t.degree.dtype) for x in (u, v, height))
        vorticity, divergence = vector_analysis(u, v, t, self.radius)
        phi = truncate(analysis(self.gravity * height, t), t)
        shape = (0, *phi.shape)
        c = (
            jnp.zeros(shape, phi.dtype)
            if tracers is None
            else truncate(analysis(jnp.asarray(tracers, height.dtype), t), t)
        )
        return ShallowWaterState(vorticity, divergence, phi, c)

    @eqx.filter_jit
    def fields(self, state: ShallowWaterState) -> dict[str, Array]:
        """u, v (m s-1), depth (m), vorticity (s-1) and tracers on the grid."""
        t = self.tables
        u, v = vector_synthesis(state.vorticity, state.divergence, t, self.radius)
        phi, zeta = synthesis(jnp.stack([state.geopotential, state.vorticity]), t)
        out = {"u": u, "v": v, "h": phi / self.gravity, "vorticity": zeta}
        return out | ({"tracers": synthesis(state.tracers, t)} if state.tracers.shape[0] else {})

    # -- time -----------------------------------------------------------------------------------------------------------

    def explicit(self, state: ShallowWaterState) -> ShallowWaterState:
        """Everything but the linear gravity-wave terms."""
        t, a = self.tables, self.radius
        zeta, delta, phi, tracers = state
        big_u, big_v = wind_over_radius(zeta, delta, t)  # (u, v) cos(lat) / a
        n = tracers.shape[0]
        spectral = [big_u, big_v, zeta, phi, *tracers] + ([delta] if n else [])
        values = synthesis(jnp.stack(spectral), t)
        u, v, vorticity, depth = values[:4]
        over = 1 / t.cos_latitude.astype(u.dtype)[:, None] ** 2
        u_over, v_over = u * over, v * over
        absolute = vorticity + self.coriolis
        excess = depth - self.reference
        energy = (a * a / 2) * (u * u_over + v * v_over)
        carried = jnp.stack([absolute, excess, *values[4 : 4 + n]])
        products = [carried * u_over, carried * v_over, energy[None]]
        if n:
            products.append(values[4 : 4 + n] * values[4 + n])
        c = analysis(jnp.concatenate(products), t)
        k = 2 + n
        curl, divergence = curl_divergence(c[:k], c[k : 2 * k], t)
        l = t.degree.astype(u.dtype)
        lap = l * (l + 1) / a**2
        d_delta = curl[0] + lap * truncate(c[2 * k] + self.orography.astype(c.dtype), t)
        d_tracers = truncate(c[2 * k + 1 :], t) - divergence[2:] if n else jnp.zeros_like(tracers)
        return ShallowWaterState(-divergence[0], d_delta, -divergence[1], d_tracers)

    def implicit(self, state: ShallowWaterState) -> ShallowWaterState:
        """-lap(Phi) in the divergence, -Phi_0 delta in the geopotential."""
        lap = self._wave()
        return ShallowWaterState(
            jnp.zeros_like(state.vorticity),
            lap * state.geopotential,
            -self.reference * state.divergence,
            jnp.zeros_like(state.tracers),
        )

    def solve(self, right: ShallowWaterState, h) -> ShallowWaterState:
        """(1 - h implicit)^-1, wavenumber by wavenumber."""
        lap = self._wave()
        delta = (right.divergence + h * lap * right.geopotential) / (1 + h * h * lap * self.reference)
        return right._replace(divergence=delta, geopotential=right.geopotential - h * self.reference * delta)

    def _wave(self):
        l = self.tables.degree
        return l * (l + 1) / self.radius**2

    def step(self, state: ShallowWaterState, dt: float) -> ShallowWaterState:
        """One step of `dt` seconds."""
        new = sil3(self.explicit, self.implicit, self.solve, state, dt)
        factor = 1 / (1 + dt * self.rate)
        # The mean depth has rate 0; tracers diffuse like the flow.
        return jax.tree.map(lambda x: x * factor, new)

    def advance(self, state: ShallowWaterState, dt: float, steps: int) -> ShallowWaterState:
        """`steps` steps, checkpointed one by one for the backward pass."""

        def body(carry, _):
            return self.step(carry, dt), None

        return jax.lax.scan(jax.checkpoint(body), state, None, length=steps)[0]

    # -- invariants -----------------------------------------------------------------------------------------------------

    @eqx.filter_jit
    def invariants(self, state: ShallowWaterState) -> dict[str, Array]:
        """Global means: depth (m), energy (m3 s-2), potential enstrophy (m-1 s-2)."""
        t = self.tables
        f = self.fields(state)
        ground = synthesis(self.orography, t) / self.gravity
        w = (t.weights / 2)[:, None] / t.grid.nlon
        energy = f["h"] * (f["u"] ** 2 + f["v"] ** 2) / 2 + self.gravity * f["h"] * (f["h"] / 2 + ground)
        enstrophy = (f["vorticity"] + self.coriolis) ** 2 / (2 * f["h"])
        return {
            "depth": state.geopotential[..., 0, 0].real / self.gravity,
            "energy": (w * energy).sum((-2, -1)),
            "enstrophy": (w * enstrophy).sum((-2, -1)),
        }
