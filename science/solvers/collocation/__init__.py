"""Finite differences and spectral methods on tensor grids."""

from sciax.science.solvers.collocation._method import Collocation as Collocation
from sciax.science.solvers.collocation._method import Fdm as Fdm
from sciax.science.solvers.collocation._method import Spectral as Spectral
from sciax.science.solvers.collocation._solution import GridSolution as GridSolution
