"""Rotations and their representations: irreps, spherical harmonics, Wigner matrices, sparse multilinear products.

Conventions are those of e3nn: real bases, components m = -l..l, polar axis y, so that l = 1 is (x, y, z). Arrays hold components
along the first axis: (component, ..., channel).
"""

from sciax.core.ops.so3._clebsch import clebsch_gordan as clebsch_gordan
from sciax.core.ops.so3._harmonics import NORMALISATIONS as NORMALISATIONS
from sciax.core.ops.so3._harmonics import spherical_harmonics as spherical_harmonics
from sciax.core.ops.so3._irreps import Irrep as Irrep
from sciax.core.ops.so3._irreps import Irreps as Irreps
from sciax.core.ops.so3._multilinear import Table as Table
from sciax.core.ops.so3._multilinear import multilinear as multilinear
from sciax.core.ops.so3._rotations import axis_angle_matrix as axis_angle_matrix
from sciax.core.ops.so3._rotations import euler_matrix as euler_matrix
from sciax.core.ops.so3._rotations import quaternion_matrix as quaternion_matrix
from sciax.core.ops.so3._rotations import random_rotation as random_rotation
from sciax.core.ops.so3._tables import Path as Path
from sciax.core.ops.so3._tables import product_paths as product_paths
from sciax.core.ops.so3._tables import product_table as product_table
from sciax.core.ops.so3._tables import symmetric_basis as symmetric_basis
from sciax.core.ops.so3._tables import symmetric_table as symmetric_table
from sciax.core.ops.so3._wigner import wigner_d as wigner_d
