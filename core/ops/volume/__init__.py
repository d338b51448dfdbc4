"""Finite-volume kernels: values at faces from cell averages, and numerical fluxes between two states."""

from sciax.core.ops.volume._euler import euler_flux as euler_flux
from sciax.core.ops.volume._reconstruct import LIMITERS as LIMITERS
from sciax.core.ops.volume._reconstruct import limited as limited
from sciax.core.ops.volume._reconstruct import weno5 as weno5
from sciax.core.ops.volume._shallow import shallow_flux as shallow_flux
