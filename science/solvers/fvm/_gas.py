"""Compressible flow of an ideal gas: Euler and Navier-Stokes."""

from typing import Any

import jax.numpy as jnp

from sciax.core.errors import InputError
from sciax.core.ops.volume import euler_flux
from sciax.science.pde import Field
from sciax.science.pde._expr import as_expr
from sciax.science.solvers.fvm._law import Law


class Euler(Law):
    """Inviscid gas: `d(rho)/dt + div(rho v) = 0`, `d(rho v)/dt + div(rho v v + p) = 0`, `dE/dt + div((E + p) v) = 0`.

    `E = p / (gamma - 1) + rho |v|^2 / 2`. Units are the caller's, consistent.

    Args:
        dim: 1, 2 or 3.
        gamma: ratio of heat capacities, a number or a Parameter.

    Attributes:
        density, velocity, pressure: fields to state conditions on. The velocity is a scalar field in one dimension.
    """

    schemes = ("hllc", "roe", "rusanov")
    variables = ("primitive", "conserved", "characteristic")
    quantities = ("density", "pressure")

    def __init__(self, dim: int = 1, gamma: Any = 1.4):
        if isinstance(gamma, int | float) and not 1 < gamma < 3:
            raise InputError("the ratio of heat capacities lies between 1 and 3", got=gamma)
        self.density, self.pressure = Field("rho"), Field("p")
        self.velocity = Field("v", None if dim == 1 else dim)
        super().__init__(dim, (self.density, self.velocity, self.pressure), {"gamma": as_expr(gamma)}, {})

    def primitive(self, q, c):
        density, *momentum, energy = jnp.unstack(q)
        v = [m / density for m in momentum]
        return jnp.stack([density, *v, (c["gamma"] - 1) * (energy - 0.5 * density * sum(part * part for part in v))])

    def conserved(self, w, c):
        density, *v, pressure = jnp.unstack(w)
        energy = pressure / (c["gamma"] - 1) + 0.5 * density * sum(part * part for part in v)
        return jnp.stack([density, *(density * part for part in v), energy])

    def positive(self, q, c):
        density, *momentum, energy = jnp.unstack(q)
        kinetic = 0.5 * sum(m * m for m in momentum) / jnp.where(density > 0, density, 1.0)
        return density, (c["gamma"] - 1) * (energy - kinetic)

    def speed(self, w, c, direction):
        return jnp.abs(w[1 + direction]) + jnp.sqrt(c["gamma"] * w[-1] / w[0])

    def mirror(self, w, direction):
        return w.at[1 + direction].multiply(-1.0)

    def face(self, left, right, c, kind, scheme, direction):
        a, b = self.from_edges(left, c, kind), self.from_edges(right, c, kind)
        flux = euler_flux(a, b, c["gamma"], scheme=scheme, direction=direction)
        return flux, flux

    def project(self, a, b, c, direction):
        gamma = c["gamma"]
        density, *momentum, energy = (0.5 * (low + high) for low, high in zip(jnp.unstack(a), jnp.unstack(b)))
        v = [m / density for m in momentum]
        square = 0.5 * sum(part * part for part in v)
        p = (gamma - 1) * (energy - density * square)
        enthalpy, sound2 = (energy + p) / density, gamma * p / density
        sound, u = jnp.sqrt(sound2), v[direction]
        others = [k for k in range(self.dim) if k != direction]

        def forward(d):
            d_density, *d_momentum, d_energy = jnp.unstack(d)
            push = (gamma - 1) * (square * d_density - sum(x * y for x, y in zip(v, d_momentum)) + d_energy)
            along = sound * (d_momentum[direction] - u * d_density)
            waves = [(push - along) / (2 * sound2), d_density - push / sound2, (push + along) / (2 * sound2)]
            return waves + [d_momentum[k] - v[k] * d_density for k in others]

        def back(waves):
            slow, entropy, fast, *shear = waves
            total = slow + entropy + fast
            momentum: list[Any] = [None] * self.dim
            momentum[direction] = u * total + sound * (fast - slow)
            energy = enthalpy * (slow + fast) + u * sound * (fast - slow) + square * entropy
            for row, k in zip(shear, others):
                momentum[k] = v[k] * total + row
                energy = energy + v[k] * row
            return jnp.stack([total, *momentum, energy])

        return forward, back


class NavierStokes(Euler):
    """Euler's equations with friction and conduction, differences of second order.

    Stress `mu (grad v + grad v^T - 2/3 div v I)`, heat flux `-mu gamma / ((gamma - 1) Pr) grad(p / rho)`.

    Args:
        viscosity: mu, dynamic, a number or a Parameter. prandtl: of the gas.
    """

    ideal = False

    def __init__(self, dim: int = 2, *, viscosity: Any, gamma: Any = 1.4, prandtl: Any = 0.72):
        super().__init__(dim, gamma)
        for name, value in {"viscosity": viscosity, "prandtl": prandtl}.items():
            if isinstance(value, int | float) and not value > 0:
                raise InputError(f"the {name} is positive", got=value, remedy="Euler(dim) is the gas without friction")
            self.constants[name] = as_expr(value)

    def diffusivity(self, w, c):
        factor = jnp.maximum(4.0 / 3.0, c["gamma"] / c["prandtl"])
        return factor * c["viscosity"] / jnp.min(w[0])

    def diffusive(self, w, spacing, c, direction):
        rows = jnp.concatenate([w[1:-1], (w[-1] / w[0])[None]])  # velocity and temperature (times the gas constant)
        inner = [slice(1, -1)] * self.dim

        def shifted(axis, step):
            cut = list(inner)
            cut[axis] = slice(1 + step, rows.shape[1 + axis] - 1 + step)
            return cut

        def both(array, cut):
            """Values in the cells on either side of each face; `cut` trims the axes along the face."""
            size = array.shape[1 + direction]
            low, high = list(cut), list(cut)
            low[direction], high[direction] = slice(0, size - 1), slice(1, size)
            return array[(slice(None), *low)], array[(slice(None), *high)]

        low, high = both(rows, inner)
        slopes: list[Any] = []
        for axis in range(self.dim):
            if axis == direction:
                slopes.append((high - low) / spacing[axis])
                continue
            ahead = both(rows, shifted(axis, 1))
            behind = both(rows, shifted(axis, -1))
            slopes.append((ahead[0] + ahead[1] - behind[0] - behind[1]) / (4 * spacing[axis]))
        gradient = jnp.stack(slopes, axis=1)  # [velocity and temperature, axis, faces]
        spread = sum(gradient[k, k] for k in range(self.dim))
        stress = gradient[: self.dim, direction] + gradient[direction]
        stress = c["viscosity"] * stress.at[direction].add(-2.0 / 3.0 * spread)
        heat = c["viscosity"] * c["gamma"] / ((c["gamma"] - 1) * c["prandtl"]) * gradient[-1, direction]
        work = jnp.sum(0.5 * (low + high)[: self.dim] * stress, axis=0)
        return -jnp.concatenate([jnp.zeros_like(heat)[None], stress, (work + heat)[None]])
