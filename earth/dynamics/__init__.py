"""Fluid dynamics on the rotating sphere, built on core.ops.sphere."""

from sciax.earth.dynamics._balance import geopotential_from_streamfunction as geopotential_from_streamfunction
from sciax.earth.dynamics._balance import streamfunction_from_geopotential as streamfunction_from_geopotential
from sciax.earth.dynamics._barotropic import BarotropicVorticity as BarotropicVorticity
from sciax.earth.dynamics._barotropic import gauss_grid as gauss_grid
from sciax.earth.dynamics._cases import galewsky as galewsky
from sciax.earth.dynamics._cases import rossby_haurwitz_speed as rossby_haurwitz_speed
from sciax.earth.dynamics._cases import rossby_haurwitz_streamfunction as rossby_haurwitz_streamfunction
from sciax.earth.dynamics._cases import williamson2 as williamson2
from sciax.earth.dynamics._cases import williamson5 as williamson5
from sciax.earth.dynamics._cases import williamson6 as williamson6
from sciax.earth.dynamics._imex import sil3 as sil3
from sciax.earth.dynamics._shallow_water import ShallowWater as ShallowWater
from sciax.earth.dynamics._shallow_water import ShallowWaterState as ShallowWaterState
