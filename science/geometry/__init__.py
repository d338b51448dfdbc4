"""Where problems live: boxes with named sides, and domains given by a mesh."""

from sciax.science.geometry._domain import Box as Box
from sciax.science.geometry._domain import BoxDomain as BoxDomain
from sciax.science.geometry._domain import Domain as Domain
from sciax.science.geometry._domain import Interval as Interval
from sciax.science.geometry._domain import MeshDomain as MeshDomain
from sciax.science.geometry._domain import Rectangle as Rectangle
from sciax.science.geometry._primitives import Cylinder as Cylinder
from sciax.science.geometry._primitives import Disk as Disk
from sciax.science.geometry._primitives import Ellipse as Ellipse
from sciax.science.geometry._primitives import Polygon as Polygon
from sciax.science.geometry._primitives import Sphere as Sphere
from sciax.science.geometry._primitives import Torus as Torus
from sciax.science.geometry._sampling import BoundaryPoints as BoundaryPoints
from sciax.science.geometry._sampling import sample_boundary as sample_boundary
from sciax.science.geometry._sampling import sample_interior as sample_interior
from sciax.science.geometry._shape import Shape as Shape
from sciax.science.geometry._shape import as_shape as as_shape
