"""Potentials: pair potentials and equivariant networks, with energies, forces and stress."""

from sciax.chem.potentials._lj import LennardJones as LennardJones
