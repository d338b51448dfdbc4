"""Fluid dynamics on the rotating sphere, built on core.ops.sphere."""

from sciax.earth.dynamics._balance import geopotential_from_streamfunction as geopotential_from_streamfunction
from sciax.earth.dynamics._balance import streamfunction_from_geopotential as streamfunction_from_geopotential
from sciax.earth.dynamics._barotropic import BarotropicVorticity as BarotropicVorticity
from sciax.earth.dynamics._barotropic import gauss_grid as gauss_grid
from sciax.earth.dynamics._cases import rossby_haurwitz_speed as rossby_haurwitz_speed
from sciax.earth.dynamics._cases import rossby_haurwitz_streamfunction as rossby_haurwitz_streamfunction
