"""`Space`: a Lagrange space on a mesh (or on some of its facets): numbering, shape functions and geometry at quadrature points."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sciax.core.errors import InputError
from sciax.science.mesh import CELLS, Mesh
from sciax.science.mesh._mesh import vertex_keys
from sciax.science.solvers.fem._element import lattice, nodes, tabulate, tabulate_geometry
from sciax.science.solvers.fem._quadrature import quadrature


@dataclass(frozen=True, eq=False)
class Numbering:
    """Unknowns of a continuous Lagrange space of some order on a mesh.

    A node is named by the vertices around it and their weights, hashed to 64 bits; vertices keep their own numbers.

    Attributes:
        cells: [m, n] unknown of each local node.
        count: number of unknowns.
    """

    mesh: Mesh
    order: int
    cells: np.ndarray
    count: int
    _keys: np.ndarray

    @staticmethod
    def of(mesh: Mesh, order: int) -> "Numbering":
        found = mesh.cache.get(("numbering", order))
        if found is None:
            found = mesh.cache[("numbering", order)] = Numbering._make(mesh, order)
        return found

    @staticmethod
    def _make(mesh: Mesh, order: int) -> "Numbering":
        if order < 1:
            raise InputError("the order of an element is at least 1", got=order)
        weights = lattice(mesh.kind, order)
        vertices = mesh.shape.count
        corner = np.full(
            int(mesh.cells.max()) + 1, -1, dtype=np.int64
        )  # quadratic meshes: middle nodes are no unknowns
        used = np.unique(mesh.corners)
        corner[used] = np.arange(len(used))
        inner = weights[vertices:]
        if not len(inner):
            return Numbering(mesh, order, corner[mesh.corners], len(used), np.zeros(0, np.uint64))
        keys = _hash(mesh, mesh.corners, inner)
        distinct, inverse = np.unique(keys, return_inverse=True)
        cells = np.concatenate([corner[mesh.corners], len(used) + inverse.reshape(keys.shape)], axis=1)
        return Numbering(mesh, order, cells, len(used) + len(distinct), distinct)

    def facets(self, facets: np.ndarray) -> np.ndarray:
        """[k, n] unknowns of each local node of the given facets."""
        kind = self.mesh.shape.facet
        vertices = self.mesh.facets[facets]
        used = np.unique(self.mesh.corners)
        corner = np.searchsorted(used, vertices)
        if kind == "vertex":
            return corner
        weights = lattice(kind, self.order)[CELLS[kind].count :]
        if not len(weights):
            return corner
        # a facet of a quad or hex has lower total weight than a cell: the missing factor is `order` per dimension
        scale = 1 if self.mesh.shape.simplex else self.order ** (self.mesh.dim - CELLS[kind].dim)
        keys = _hash(self.mesh, vertices, weights * scale)
        return np.concatenate([corner, len(used) + np.searchsorted(self._keys, keys)], axis=1)

    @cached_property
    def points(self) -> np.ndarray:
        """[count, dim] positions of the unknowns."""
        at = nodes(self.mesh.kind, self.order)
        shape, _ = tabulate_geometry(self.mesh.kind, self.mesh.cells.shape[1], at)
        out = np.empty((self.count, self.mesh.space))
        out[self.cells] = np.einsum("qn,mnd->mqd", shape, self.mesh.points[self.mesh.cells])
        return out

    @cached_property
    def vertex_unknowns(self) -> np.ndarray:
        """Unknown of each mesh point; -1 for the middle nodes of quadratic cells."""
        out = np.full(len(self.mesh.points), -1, dtype=np.int64)
        out[self.mesh.corners] = self.cells[:, : self.mesh.shape.count]
        return out


def _hash(mesh: Mesh, vertices: np.ndarray, weights: np.ndarray) -> np.ndarray:
    keys = vertex_keys(len(mesh.points))[vertices]
    with np.errstate(over="ignore"):
        return keys @ weights.T.astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Patch:
    """Where integrals are taken: all cells, or some facets, with geometry at the quadrature points.

    Attributes:
        x: [dim, q, m] positions.
        inverse: [dim, dim, q or 1, m] d xi / d x (cells only).
        measure: [q, m] weight times volume element.
        normal: [dim, q, m] outward unit normal (facets only).
        cell: [m] the cell each belongs to.
        kind, points: reference kind and quadrature points.
    """

    mesh: Mesh
    kind: str
    points: np.ndarray
    x: np.ndarray
    measure: np.ndarray
    cell: np.ndarray
    inverse: np.ndarray | None = None
    normal: np.ndarray | None = None
    facets: np.ndarray | None = None

    @staticmethod
    def cells(mesh: Mesh, degree: int) -> "Patch":
        points, weights = quadrature(mesh.kind, degree)
        shape, slope = tabulate_geometry(mesh.kind, mesh.cells.shape[1], points)
        affine = mesh.shape.simplex and mesh.cells.shape[1] == mesh.shape.count
        at = np.ascontiguousarray(mesh.points[mesh.cells].transpose(1, 2, 0))  # node, dim, cell
        x = np.einsum("qn,ndm->dqm", shape, at, optimize=True)
        jacobian = np.einsum("qna,ndm->daqm", slope[:1] if affine else slope, at, optimize=True)
        det, inverse = _inverse(jacobian)
        if (det <= 0).any():
            bad = np.flatnonzero((det <= 0).any(axis=0))
            raise InputError(
                f"{mesh.source}: {len(bad)} cells are folded (their map has a negative volume element)",
                got=f"the first at {mesh.centres[bad[0]]}",
                remedy="untangle the mesh, or read it with straight cells",
            )
        return Patch(mesh, mesh.kind, points, x, weights[:, None] * det, np.arange(len(mesh.cells)), inverse)

    @staticmethod
    def on_facets(mesh: Mesh, facets: np.ndarray, degree: int) -> "Patch":
        kind = mesh.shape.facet
        points, weights = quadrature(kind, degree)
        nodes_of = _facet_nodes(mesh, facets)
        shape, slope = tabulate_geometry(kind, nodes_of.shape[1], points)
        at = mesh.points[nodes_of].transpose(1, 2, 0)
        x = np.einsum("qn,ndm->dqm", shape, at)
        if mesh.dim == 1:
            other = mesh.centres[mesh.facet_cells[facets, 0]].T
            normal = np.sign(x - other[:, None, :])
            return Patch(
                mesh, kind, points, x, np.ones((1, len(facets))), mesh.facet_cells[facets, 0], None, normal, facets
            )
        tangent = np.einsum("qna,ndm->daqm", slope, at)
        if mesh.dim == 2:
            outward = np.stack([tangent[1, 0], -tangent[0, 0]])
        else:
            outward = np.cross(tangent[:, 0], tangent[:, 1], axis=0)
        size = np.linalg.norm(outward, axis=0)
        return Patch(
            mesh, kind, points, x, weights[:, None] * size, mesh.facet_cells[facets, 0], None, outward / size, facets
        )

    def basis(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        """Values [q, n] and reference gradients [q, n, dim] of the Lagrange basis."""
        return tabulate(self.kind, order, self.points)

    def unknowns(self, order: int) -> np.ndarray:
        """[m, n] unknowns of the Lagrange space of that order."""
        numbering = Numbering.of(self.mesh, order)
        return numbering.cells if self.facets is None else numbering.facets(self.facets)


def _facet_nodes(mesh: Mesh, facets: np.ndarray) -> np.ndarray:
    """Geometry nodes of facets, with their middle nodes on quadratic meshes, vertices in the facet's own order."""
    vertices = mesh.facets[facets]
    kind = mesh.shape.facet
    if mesh.cells.shape[1] == mesh.shape.count or kind == "vertex":
        return vertices
    cells = mesh.cells[mesh.facet_cells[facets, 0]]
    middles = []
    for a, b in CELLS[kind].edges:
        found = np.full(len(facets), -1, dtype=np.int64)
        for k, (c, d) in enumerate(mesh.shape.edges):
            same = ((cells[:, c] == vertices[:, a]) & (cells[:, d] == vertices[:, b])) | (
                (cells[:, d] == vertices[:, a]) & (cells[:, c] == vertices[:, b])
            )
            found[same] = cells[same, mesh.shape.count + k]
        middles.append(found)
    return np.concatenate([vertices, np.stack(middles, axis=1)], axis=1)


def _inverse(j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Determinant and inverse of [dim, dim, q, m] matrices, in closed form."""
    dim = j.shape[0]
    if dim == 1:
        return j[0, 0], 1.0 / j
    if dim == 2:
        det = j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0]
        return det, np.array([[j[1, 1], -j[0, 1]], [-j[1, 0], j[0, 0]]]) / det
    cofactor = np.array([np.cross(j[:, 1], j[:, 2], axis=0), np.cross(j[:, 2], j[:, 0], axis=0),
                         np.cross(j[:, 0], j[:, 1], axis=0)])  # fmt: skip
    det = (j[:, 0] * cofactor[0]).sum(axis=0)
    return det, cofactor / det
