"""Finite volumes: conservation laws (gas dynamics, shallow water, scalar laws) and ordinary problems on boxes."""

from sciax.science.solvers.fvm._exact import exact_riemann as exact_riemann
from sciax.science.solvers.fvm._gas import Euler as Euler
from sciax.science.solvers.fvm._gas import NavierStokes as NavierStokes
from sciax.science.solvers.fvm._law import Law as Law
from sciax.science.solvers.fvm._law import ScalarLaw as ScalarLaw
from sciax.science.solvers.fvm._method import Fvm as Fvm
from sciax.science.solvers.fvm._problem import Conservation as Conservation
from sciax.science.solvers.fvm._problem import NoSlip as NoSlip
from sciax.science.solvers.fvm._problem import Reflecting as Reflecting
from sciax.science.solvers.fvm._problem import Transmissive as Transmissive
from sciax.science.solvers.fvm._solution import CellSolution as CellSolution
from sciax.science.solvers.fvm._water import ShallowWater as ShallowWater
