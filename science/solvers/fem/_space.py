"""`Space`: a Lagrange space on a mesh (or on some of its facets): numbering, shape functions and geometry at quadrature points."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
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
    relabel: np.ndarray | None = None

    def periodic(self, axes: tuple[int, ...]) -> "Numbering":
        """The numbering in which the nodes of opposite sides along these axes are one.

        Raises:
            InputError: a mesh whose opposite sides do not match.
        """
        key = ("periodic", self.order, axes)
        if key not in self.mesh.cache:
            self.mesh.cache[key] = self._joined(axes)
        return self.mesh.cache[key]

    def _joined(self, axes: tuple[int, ...]) -> "Numbering":
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components
        from scipy.spatial import KDTree

        low, high = self.mesh.points.min(axis=0), self.mesh.points.max(axis=0)
        near = 1e-8 * float(np.max(high - low))
        pairs = []
        for axis in axes:
            first, second = (np.flatnonzero(np.abs(self.points[:, axis] - end[axis]) < near) for end in (low, high))
            shifted = self.points[second].copy()
            shifted[:, axis] = low[axis]
            gap, match = KDTree(self.points[first]).query(shifted)
            if len(first) != len(second) or gap.max(initial=0.0) > near:
                raise InputError(
                    f"{self.mesh.source}: the two sides along axis {axis} do not match",
                    got=f"{len(first)} and {len(second)} nodes, {int((gap > near).sum())} without a partner",
                    remedy="a mesh whose opposite sides have the same nodes",
                )
            pairs.append(np.stack([first[match], second], axis=1))
        joined = np.concatenate(pairs)
        graph = coo_matrix((np.ones(len(joined)), (joined[:, 0], joined[:, 1])), shape=(self.count, self.count))
        count, label = connected_components(graph, directed=False)
        order = np.unique(label, return_index=True)[1]  # numbered by first appearance: vertices stay in front
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(order, kind="stable")] = np.arange(count)
        relabel = rank[label]
        return Numbering(self.mesh, self.order, relabel[self.cells], count, self._keys, relabel)

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
        if self.relabel is not None:
            return self.relabel[Numbering.of(self.mesh, self.order).facets(facets)]
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
        kind, points, weights: reference kind and quadrature rule.
    """

    mesh: Mesh
    kind: str
    points: np.ndarray
    x: np.ndarray
    measure: np.ndarray
    cell: np.ndarray
    weights: np.ndarray
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
        with np.errstate(all="ignore"):  # flat cells divide by zero: they are refused below
            det, inverse = _inverse(jacobian)
        if (det <= 0).any():
            bad = np.flatnonzero((det <= 0).any(axis=0))
            raise InputError(
                f"{mesh.source}: {len(bad)} cells are degenerate or folded (their map has a zero or negative volume element)",
                got=f"the first at {mesh.centres[bad[0]]}",
                remedy="untangle the mesh, or read it with straight cells",
            )
        return Patch(mesh, mesh.kind, points, x, weights[:, None] * det, np.arange(len(mesh.cells)), weights, inverse)

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
                mesh,
                kind,
                points,
                x,
                np.ones((1, len(facets))),
                mesh.facet_cells[facets, 0],
                weights,
                None,
                normal,
                facets,
            )
        tangent = np.einsum("qna,ndm->daqm", slope, at)
        if mesh.dim == 2:
            outward = np.stack([tangent[1, 0], -tangent[0, 0]])
        else:
            outward = np.cross(tangent[:, 0], tangent[:, 1], axis=0)
        size = np.linalg.norm(outward, axis=0)
        return Patch(
            mesh,
            kind,
            points,
            x,
            weights[:, None] * size,
            mesh.facet_cells[facets, 0],
            weights,
            None,
            outward / size,
            facets,
        )

    def moved(self, points: Any) -> dict[str, Any]:
        """Positions, measures and inverse maps (facets: normals) with the mesh's points elsewhere, as JAX functions of them.

        Args:
            points: [n, dim], a JAX array.
        """
        mesh = self.mesh
        on_cells = self.facets is None
        nodes_of = mesh.cells if on_cells else _facet_nodes(mesh, self.facets)  # type: ignore[arg-type]
        shape, slope = (
            jnp.asarray(t, points.dtype) for t in tabulate_geometry(self.kind, nodes_of.shape[1], self.points)
        )
        at = points[nodes_of]
        x = jnp.einsum("qn,mnd->dqm", shape, at)
        if mesh.dim == 1 and not on_cells:
            assert self.normal is not None
            return {"x": x, "measure": jnp.ones_like(x[0]), "normal": jnp.asarray(self.normal, points.dtype)}
        jacobian = jnp.einsum("qna,mnd->daqm", slope, at)
        weights = jnp.asarray(self.weights, points.dtype)[:, None]
        if on_cells:
            det, inverse = _inverse(jacobian, jnp)
            return {"x": x, "measure": weights * det, "inverse": inverse}
        if mesh.dim == 2:
            outward = jnp.stack([jacobian[1, 0], -jacobian[0, 0]])
        else:
            outward = jnp.cross(jacobian[:, 0], jacobian[:, 1], axis=0)
        size = jnp.sqrt(jnp.sum(outward**2, axis=0))
        return {"x": x, "measure": weights * size, "normal": outward / size}

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


def _inverse(j: Any, xp: Any = np) -> tuple[Any, Any]:
    """Determinant and inverse of [dim, dim, q, m] matrices, in closed form."""
    dim = j.shape[0]
    if dim == 1:
        return j[0, 0], 1.0 / j
    if dim == 2:
        det = j[0, 0] * j[1, 1] - j[0, 1] * j[1, 0]
        return det, xp.stack([xp.stack([j[1, 1], -j[0, 1]]), xp.stack([-j[1, 0], j[0, 0]])]) / det
    cofactor = xp.stack([xp.cross(j[:, a], j[:, b], axis=0) for a, b in ((1, 2), (2, 0), (0, 1))])
    det = (j[:, 0] * cofactor[0]).sum(axis=0)
    return det, cofactor / det
