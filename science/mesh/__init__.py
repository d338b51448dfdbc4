"""Meshes: reading, making and writing them."""

from sciax.science.mesh._blocks import Block as Block
from sciax.science.mesh._blocks import between as between
from sciax.science.mesh._blocks import block_mesh as block_mesh
from sciax.science.mesh._cells import CELLS as CELLS
from sciax.science.mesh._cells import CellKind as CellKind
from sciax.science.mesh._generate import SIDES as SIDES
from sciax.science.mesh._generate import box_mesh as box_mesh
from sciax.science.mesh._mesh import Mesh as Mesh
from sciax.science.mesh._read import read_mesh as read_mesh
from sciax.science.mesh._write import write_mesh as write_mesh
