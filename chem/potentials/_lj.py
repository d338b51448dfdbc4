"""Pair potentials of the distance with analytic forces: Lennard-Jones with four ways of ending at the cutoff."""

import equinox as eqx
from jaxtyping import Array, Float

from sciax.core.errors import InputError, did_you_mean
from sciax.core.ops.neighbours import (
    LENNARD_JONES_ENDS,
    HalfNeighbourList,
    HalfPairs,
    NeighbourList,
    NeighbourTable,
    lennard_jones_native,
    lennard_jones_pair,
    pair_forces,
)


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
        if self.end not in LENNARD_JONES_ENDS:
            raise InputError(
                f"unknown end of a pair potential {self.end!r}", remedy=did_you_mean(self.end, LENNARD_JONES_ENDS)
            )
        if not (self.cutoff > 0 and self.sigma > 0):
            raise InputError("cutoff and sigma are lengths", got=(self.cutoff, self.sigma), expected="> 0")
        if self.onset is not None and not 0 < self.onset < self.cutoff:
            raise InputError(
                "the onset of smoothing lies outside the cutoff", got=self.onset, expected=f"0..{self.cutoff}"
            )

    def phi(self, r2: Float[Array, "*n"]) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """(u, u'(r)/r) from r²; zero from the cutoff on."""
        return lennard_jones_pair(r2, **self._options)

    @property
    def _options(self) -> dict:
        onset = 0.8 * self.cutoff if self.onset is None else self.onset
        return dict(epsilon=self.epsilon, sigma=self.sigma, cutoff=self.cutoff, end=self.end, onset=onset)

    def lists(self, cell: Float[Array, "3 3"], pbc: tuple[bool, bool, bool], reach: float, atoms: int):
        """The kind of neighbour list to run dynamics with: the half list of compiled sums where it can be built."""
        return HalfNeighbourList if HalfNeighbourList.fits(cell, pbc, reach, atoms) else NeighbourList

    def prepare(
        self, neighbours: NeighbourList | HalfNeighbourList, cell: Float[Array, "3 3"]
    ) -> NeighbourTable | HalfPairs:
        """What `evaluate` needs of a list; once for each rebuild."""
        return neighbours.pairs if isinstance(neighbours, HalfNeighbourList) else neighbours.table(cell)

    def evaluate(
        self,
        positions: Float[Array, "atoms 3"],
        cell: Float[Array, "3 3"],
        neighbours: NeighbourList | HalfNeighbourList,
        prepared: NeighbourTable | HalfPairs,
    ) -> tuple[Float[Array, " atoms"], Float[Array, "atoms 3"], Float[Array, "3 3"]]:
        """Per-atom energies, forces, and dE/d(strain)."""
        if isinstance(prepared, HalfPairs):
            return lennard_jones_native(positions, cell, *prepared, **self._options)
        return pair_forces(positions, prepared.offsets, prepared.others, phi=self.phi)
