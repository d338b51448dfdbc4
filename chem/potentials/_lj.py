"""Pair potentials of the distance with analytic forces: Lennard-Jones with four ways of ending at the cutoff."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciax.core.errors import InputError, did_you_mean
from sciax.core.ops.neighbours import NeighbourList, NeighbourTable, pair_forces

ENDS = ("truncate", "shift", "force-shift", "smooth")


class LennardJones(eqx.Module):
    """u(r) = 4ε[(σ/r)¹² - (σ/r)⁶] for r < cutoff.

    Attributes:
        epsilon, sigma: depth and diameter, in any units.
        cutoff: in units of length, 2.5 σ is usual.
        end: what happens at the cutoff. "truncate": u jumps. "shift": u - u(cutoff), continuous (LAMMPS `pair_modify shift
            yes`). "force-shift": the force is continuous too. "smooth": times 1 - 10x³ + 15x⁴ - 6x⁵ in
            x = (r² - onset²)/(cutoff² - onset²), twice continuously differentiable; the only one whose total energy is
            conserved to the order of the integrator.
        onset: where "smooth" begins; 0.8 cutoff by default.

    Source: J. E. Lennard-Jones, Proc. Phys. Soc. 43, 461 (1931).
    """

    epsilon: float = eqx.field(static=True, default=1.0)
    sigma: float = eqx.field(static=True, default=1.0)
    cutoff: float = eqx.field(static=True, default=2.5)
    end: str = eqx.field(static=True, default="shift")
    onset: float | None = eqx.field(static=True, default=None)

    def __check_init__(self) -> None:
        if self.end not in ENDS:
            raise InputError(f"unknown end of a pair potential {self.end!r}", remedy=did_you_mean(self.end, ENDS))
        if not (self.cutoff > 0 and self.sigma > 0):
            raise InputError("cutoff and sigma are lengths", got=(self.cutoff, self.sigma), expected="> 0")
        if self.onset is not None and not 0 < self.onset < self.cutoff:
            raise InputError(
                "the onset of smoothing lies outside the cutoff", got=self.onset, expected=f"0..{self.cutoff}"
            )

    def phi(self, r2: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """(u, u'(r)/r) from r²; zero from the cutoff on."""
        rc2 = self.cutoff**2
        inside = r2 < rc2
        s2 = self.sigma**2 / r2
        s6 = s2 * s2 * s2
        u = 4 * self.epsilon * s6 * (s6 - 1)
        g = -48 * self.epsilon * s6 * (s6 - 0.5) / r2
        c6 = (self.sigma / self.cutoff) ** 6
        u_c, f_c = 4 * self.epsilon * c6 * (c6 - 1), -48 * self.epsilon * c6 * (c6 - 0.5) / self.cutoff
        if self.end == "shift":
            u = u - u_c
        elif self.end == "force-shift":
            r = jnp.sqrt(r2)
            u, g = u - u_c - (r - self.cutoff) * f_c, g - f_c / r
        elif self.end == "smooth":
            on2 = (0.8 * self.cutoff if self.onset is None else self.onset) ** 2
            x = jnp.clip((r2 - on2) / (rc2 - on2), 0, 1)
            switch = 1 + x * x * x * (-10 + x * (15 - 6 * x))
            slope = -30 * (x * (1 - x)) ** 2 * (2 / (rc2 - on2))  # (d switch/dr)/r
            u, g = u * switch, g * switch + u * slope
        return jnp.where(inside, u, 0), jnp.where(inside, g, 0)

    def prepare(self, neighbours: NeighbourList, cell: Float[Array, "3 3"]) -> NeighbourTable:
        """What `evaluate` needs of a list; once for each rebuild."""
        return neighbours.table(cell)

    def evaluate(
        self,
        positions: Float[Array, "atoms 3"],
        cell: Float[Array, "3 3"],
        neighbours: NeighbourList,
        prepared: NeighbourTable,
    ) -> tuple[Float[Array, " atoms"], Float[Array, "atoms 3"], Float[Array, "3 3"]]:
        """Per-atom energies, forces, and dE/d(strain)."""
        return pair_forces(positions, prepared.offsets, prepared.others, phi=self.phi)
