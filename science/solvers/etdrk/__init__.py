"""Exponential time differencing in Fourier space for problems on periodic boxes."""

from sciax.science.solvers.etdrk._method import Etdrk as Etdrk
from sciax.science.solvers.etdrk._solution import FourierSolution as FourierSolution
from sciax.science.solvers.etdrk._steps import etdrk_coefficients as etdrk_coefficients
from sciax.science.solvers.etdrk._steps import etdrk_march as etdrk_march
