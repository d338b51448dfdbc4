"""Where problems live: boxes with named sides, and domains given by a mesh."""

from sciax.science.geometry._domain import Box as Box
from sciax.science.geometry._domain import BoxDomain as BoxDomain
from sciax.science.geometry._domain import Domain as Domain
from sciax.science.geometry._domain import Interval as Interval
from sciax.science.geometry._domain import MeshDomain as MeshDomain
from sciax.science.geometry._domain import Rectangle as Rectangle
from sciax.science.geometry._sampling import BoundaryPoints as BoundaryPoints
from sciax.science.geometry._sampling import sample_boundary as sample_boundary
from sciax.science.geometry._sampling import sample_interior as sample_interior
