"""Shallow water over a bed."""

from typing import Any

import jax.numpy as jnp

from sciax.core.ops.volume import shallow_flux
from sciax.core.ops.volume._shallow import water_velocity
from sciax.science.pde import Field
from sciax.science.pde._expr import as_expr
from sciax.science.solvers.fvm._law import Law


class ShallowWater(Law):
    """`dh/dt + div(h v) = 0`, `d(h v)/dt + div(h v v) + grad(g h^2 / 2) = -g h grad b`.

    Well balanced: level water stays at rest to round-off over any bed, wet or dry (surface and depth are reconstructed, the bed
    at a face is their difference, and depths are cut at the higher of the two beds there). Second order in space.

    Args:
        dim: 1 or 2. gravity: acceleration [m/s2 for SI], number or Parameter. bed: height of the bed, a function of x.

    Attributes:
        depth, velocity: fields to state conditions on.

    Source: Audusse et al., SIAM J. Sci. Comput. 25 (2004) 2050.
    """

    schemes = ("hllc", "rusanov")
    variables = ("primitive",)
    quantities = ("depth",)
    points = 1  # averages over a cell that is partly dry would not be level water over the average bed

    def __init__(self, dim: int = 1, *, gravity: Any = 9.81, bed: Any = 0.0):
        self.depth, self.velocity = Field("h"), Field("v", None if dim == 1 else dim)
        super().__init__(dim, (self.depth, self.velocity), {"gravity": as_expr(gravity)}, {"bed": as_expr(bed)})

    def primitive(self, q, c):
        return jnp.concatenate([q[:1], water_velocity(q[0], q[1:])])

    def conserved(self, w, c):
        return jnp.concatenate([w[:1], w[0] * w[1:]])

    def positive(self, q, c):
        # a dry cell is a state, and rounding may leave it a hair below zero
        return (q[0] + 1e-12 * jnp.maximum(jnp.max(q[0]), 1e-30),)

    def speed(self, w, c, direction):
        depth = jnp.maximum(w[0], 0.0)
        wet = depth > 0
        return jnp.abs(w[1 + direction]) + jnp.where(wet, jnp.sqrt(c["gravity"] * jnp.where(wet, depth, 1.0)), 0.0)

    def mirror(self, w, direction):
        return w.at[1 + direction].multiply(-1.0)

    def edges(self, rows, c, kind):
        depth, velocity, bed = rows[:1], rows[1 : self.size], rows[self.size :]
        return jnp.concatenate([depth, velocity, depth + bed])

    def from_edges(self, v, c, kind):
        return self.conserved(v[: self.size], c)

    def sound(self, v, c, kind):
        return v[0] > 0  # a dry cell shows its own bed at both ends, or water would run up below its middle

    def face(self, left, right, c, kind, scheme, direction):
        a, b = self.from_edges(left, c, kind), self.from_edges(right, c, kind)
        low, high = left[-1] - left[0], right[-1] - right[0]
        pair = shallow_flux(a, b, low, high, c["gravity"], scheme=scheme, direction=direction)
        return pair[0], pair[1]

    def inside(self, low, high, c, direction):
        rise = (high[-1] - high[0]) - (low[-1] - low[0])
        push = -0.5 * c["gravity"] * (low[0] + high[0]) * rise
        return jnp.zeros_like(low[: self.size]).at[1 + direction].set(push)
