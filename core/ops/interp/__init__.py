"""Interpolation of gridded fields at arbitrary points: linear and cubic, one to three axes (or more)."""

from sciax.core.ops.interp._axis import OUTSIDE as OUTSIDE
from sciax.core.ops.interp._cubic import METHODS as METHODS
from sciax.core.ops.interp._cubic import interp_cubic as interp_cubic
from sciax.core.ops.interp._cubic import spline_slopes as spline_slopes
from sciax.core.ops.interp._linear import interp_linear as interp_linear
