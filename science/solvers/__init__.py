"""Methods that solve a problem; `solve` chooses one by name."""

from sciax.science.solvers._base import METHODS as METHODS
from sciax.science.solvers._base import Method as Method
from sciax.science.solvers._base import solve as solve
from sciax.science.solvers._eigen import Eigenmodes as Eigenmodes
from sciax.science.solvers._eigen import eigenmodes as eigenmodes
from sciax.science.solvers._solution import Comparison as Comparison
from sciax.science.solvers._solution import Solution as Solution
from sciax.science.solvers._solution import compare as compare
