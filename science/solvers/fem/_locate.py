"""Which cell holds a point, and where in it."""

import numpy as np

from sciax.science.mesh import Mesh
from sciax.science.solvers.fem._element import tabulate_geometry

TOLERANCE = 1e-8


def locate(mesh: Mesh, points: np.ndarray, nearest: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Cell [k] and reference coordinates [k, dim] of each point; cell -1 for a point outside every cell.

    Candidates are the cells with the nearest centres, then all cells whose bounding box holds the point. With `nearest`,
    a point outside gets the nearest of its candidates, at coordinates beyond the cell.
    """
    from scipy.spatial import KDTree

    tree = mesh.cache.get("tree")
    if tree is None:
        tree = mesh.cache["tree"] = KDTree(mesh.centres)
    many = min(len(mesh.cells), {1: 3, 2: 10, 3: 30}[mesh.dim])
    _, near = tree.query(points, k=many)
    near = near.reshape(len(points), many)
    cell = np.full(len(points), -1)
    xi = np.zeros((len(points), mesh.dim))
    best = np.full(len(points), np.inf)

    def attempt(rows, candidates):
        local = _inverse_map(mesh, candidates, points[rows])
        outside = _outside(mesh, local)
        better = outside < best[rows]
        take = rows[better]
        best[take], xi[take], cell[take] = outside[better], local[better], candidates[better]

    for column in range(many):
        rows = np.flatnonzero(best > TOLERANCE)
        if not len(rows):
            break
        attempt(rows, near[rows, column])
    corners = mesh.points[mesh.cells]
    low, high = corners.min(axis=1), corners.max(axis=1)
    margin = 1e-9 * (high - low).max()
    for row in np.flatnonzero(best > TOLERANCE):  # rare: very uneven meshes, or points outside
        inside = ((points[row] >= low - margin) & (points[row] <= high + margin)).all(axis=1)
        for candidate in np.flatnonzero(inside):
            attempt(np.array([row]), np.array([candidate]))
            if best[row] <= TOLERANCE:
                break
    if not nearest:
        cell[best > TOLERANCE] = -1
    return cell, xi


def _outside(mesh: Mesh, xi: np.ndarray) -> np.ndarray:
    low = -xi.min(axis=1)
    high = xi.sum(axis=1) - 1 if mesh.shape.simplex else xi.max(axis=1) - 1
    return np.maximum(np.maximum(low, high), 0.0)


def _inverse_map(mesh: Mesh, cells: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Reference coordinates by Newton from the centre; one step is exact for straight simplices."""
    at = mesh.points[mesh.cells[cells]]
    xi = np.tile(mesh.shape.vertices.mean(axis=0), (len(cells), 1))
    straight = mesh.shape.simplex and mesh.cells.shape[1] == mesh.shape.count
    for _ in range(1 if straight else 12):
        shape, slope = tabulate_geometry(mesh.kind, mesh.cells.shape[1], xi)
        position = np.einsum("kn,knd->kd", shape, at)
        jacobian = np.einsum("kna,knd->kda", slope, at)
        with np.errstate(all="ignore"):
            det = np.abs(np.linalg.det(jacobian))
        jacobian[~(det > 1e-300)] = np.eye(mesh.dim)
        step = np.linalg.solve(jacobian, (points - position)[..., None])[..., 0]
        xi = np.clip(xi + step, -10, 10)
        if np.abs(step).max(initial=0.0) < 1e-13:
            break
    return xi
