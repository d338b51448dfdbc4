"""Finite elements."""

from sciax.science.solvers.fem._method import Fem as Fem
from sciax.science.solvers.fem._solution import FemSolution as FemSolution
