"""Neighbour lists: which atoms (points) lie within a cutoff of each other, in any cell and periodicity."""

from sciax.core.ops.neighbours._displacements import displacements as displacements
from sciax.core.ops.neighbours._displacements import safe_norm as safe_norm
from sciax.core.ops.neighbours._half_list import HalfNeighbourList as HalfNeighbourList
from sciax.core.ops.neighbours._half_list import HalfPairs as HalfPairs
from sciax.core.ops.neighbours._lennard_jones import LENNARD_JONES_ENDS as LENNARD_JONES_ENDS
from sciax.core.ops.neighbours._lennard_jones import lennard_jones as lennard_jones
from sciax.core.ops.neighbours._lennard_jones import lennard_jones_native as lennard_jones_native
from sciax.core.ops.neighbours._lennard_jones import lennard_jones_pair as lennard_jones_pair
from sciax.core.ops.neighbours._list import NeighbourList as NeighbourList
from sciax.core.ops.neighbours._list import NeighbourOverflowError as NeighbourOverflowError
from sciax.core.ops.neighbours._list import NeighbourTable as NeighbourTable
from sciax.core.ops.neighbours._pair_forces import pair_forces as pair_forces
from sciax.core.ops.neighbours._pairs import Grid as Grid
from sciax.core.ops.neighbours._pairs import Pairs as Pairs
from sciax.core.ops.neighbours._pairs import host_pairs as host_pairs
from sciax.core.ops.neighbours._pairs import pairs as pairs
