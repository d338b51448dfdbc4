"""Barotropic vorticity equation on the sphere, spectral in space, Runge-Kutta 4 in time."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Complex

from sciax.core.errors import InputError
from sciax.core.ops.sphere import (
    SphereGrid,
    SphereTables,
    curl_divergence,
    sphere_tables,
    synthesis,
    truncate,
)
from sciax.core.ops.sphere._calculus import cos_d_dlat, d_dlon
from sciax.core.ops.sphere._transform import analysis
from sciax.earth._grid import EARTH_RADIUS, EARTH_ROTATION


class BarotropicVorticity(eqx.Module):
    """d/dt (laplacian(psi) - k psi / a^2) = -div((zeta + f) v) on a rotating sphere.

    zeta = laplacian(psi) is the vorticity of the flow v = k x grad(psi), f = 2 Omega sin(lat). The Helmholtz term k (equal to
    (a f0)^2 / (g H) for an equivalent depth H, about 5.2 for f0 at 45 degrees and H = 8 km, scaled to long waves) keeps the
    planetary waves from retrograding too fast; 0 gives the plain equation. Damping is (l(l+1) / N(N+1))^order / tau.

    A pytree: tables, helmholtz and damping are leaves, so gradients flow to the parameters.

    Source: Charney, Fjortoft and von Neumann (1950); Helmholtz term: Cressman (1958).
    """

    tables: SphereTables
    helmholtz: Array | float
    damping_rate: Array | float
    radius: float = eqx.field(static=True)
    rotation: float = eqx.field(static=True)
    order: int = eqx.field(static=True)

    def __init__(
        self,
        truncation: int = 42,
        *,
        helmholtz: float = 0.0,
        damping_hours: float | None = 6.0,
        order: int = 4,
        radius: float = EARTH_RADIUS,
        rotation: float = EARTH_ROTATION,
        dtype=None,
        grid: SphereGrid | None = None,
    ):
        """
        Args:
            truncation: triangular; the Gauss grid is chosen for alias-free products unless given.
            damping_hours: e-folding time of the smallest scale; None for none.
            order: power of the Laplacian in the damping (4 is "del 8").
        """
        if helmholtz < 0 or (damping_hours is not None and damping_hours <= 0):
            raise InputError("helmholtz must be >= 0 and damping_hours > 0", got=(helmholtz, damping_hours))
        self.tables = sphere_tables(grid or gauss_grid(truncation), truncation, dtype)
        real = self.tables.degree.dtype
        self.helmholtz = jnp.asarray(helmholtz, real)
        self.damping_rate = jnp.asarray(0.0 if damping_hours is None else 1 / (3600.0 * damping_hours), real)
        self.radius, self.rotation, self.order = float(radius), float(rotation), int(order)

    def tendency(self, psi: Complex[Array, "*batch m l"]) -> Complex[Array, "*batch m l"]:
        """Time derivative of the stream function's coefficients, without damping."""
        t, a = self.tables, self.radius
        l = t.degree.astype(psi.real.dtype)
        scaled = psi / a
        spectral = jnp.stack([psi * (-l * (l + 1) / a**2), -cos_d_dlat(scaled, t), d_dlon(scaled, t)])
        zeta, u, v = synthesis(spectral, t)  # winds times cos(lat)
        sine, cosine = t.sin_latitude[:, None].astype(u.dtype), t.cos_latitude[:, None].astype(u.dtype)
        flux = (zeta + 2 * self.rotation * sine) / (a * cosine**2)
        cu, cv = analysis(jnp.stack([flux * u, flux * v]), t)
        _, divergence = curl_divergence(cu, cv, t)
        denominator = l * (l + 1) + jnp.asarray(self.helmholtz, u.dtype)
        inverse = jnp.where(l > 0, a**2 / jnp.where(l > 0, denominator, 1), 0)
        return truncate(divergence * inverse, t)

    def step(self, psi: Complex[Array, "*batch m l"], dt: float) -> Complex[Array, "*batch m l"]:
        """One Runge-Kutta 4 step of `dt` seconds, then implicit damping."""
        # One traced tendency for the four stages: a quarter of the graph to compile.
        weights = jnp.asarray([1 / 6, 1 / 3, 1 / 3, 1 / 6], psi.real.dtype)
        shifts = jnp.asarray([0.5, 0.5, 1.0, 0.0], psi.real.dtype)

        def stage(carry, coefficients):
            at, total = carry
            weight, shift = coefficients
            slope = dt * self.tendency(at)
            return (psi + shift * slope, total + weight * slope), None

        (_, total), _ = jax.lax.scan(stage, (psi, jnp.zeros_like(psi)), (weights, shifts))
        l = self.tables.degree.astype(psi.real.dtype)
        n = self.tables.truncation
        scale = (l * (l + 1) / max(n * (n + 1), 1)) ** self.order
        return (psi + total) / (1 + dt * jnp.asarray(self.damping_rate, psi.real.dtype) * scale)

    def advance(self, psi, dt: float, steps: int):
        """`steps` steps, checkpointed one by one for the backward pass."""

        def body(state, _):
            return self.step(state, dt), None

        return jax.lax.scan(jax.checkpoint(body), psi, None, length=steps)[0]


def gauss_grid(truncation: int) -> SphereGrid:
    """The usual Gauss grid for quadratic products at a triangular truncation: T21 32 x 64, T42 64 x 128, T85 128 x 256, ..."""
    need = 3 * truncation + 1
    nlon = next(n for n in range(need, 2 * need + 8) if n % 4 == 0 and _smooth(n))
    return SphereGrid("gauss", nlon // 2, nlon)


def _smooth(n: int) -> bool:
    for p in (2, 3, 5):
        while n % p == 0:
            n //= p
    return n == 1
