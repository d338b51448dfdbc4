"""Meshes of shapes: points along the exact boundary, a relaxed triangular lattice inside, and their Delaunay triangulation."""

import itertools
from typing import Any

import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.science.mesh import Mesh


def _curve(shape: Any, face: Any, size: float) -> list[np.ndarray]:
    """The pieces of a face that are on the shape's boundary, each cut into steps of at most `size`; ends are exact."""
    count = max(64, int(np.ceil(8 * face.measure / size)))

    def sign(s: np.ndarray) -> np.ndarray:
        return shape.orientation(*face.at(s[:, None]))

    s = (np.arange(count) + 0.5) / count
    on = sign(s)
    cuts = []
    for i in np.flatnonzero(on[1:] != on[:-1]):
        low, high = s[i], s[i + 1]
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if sign(np.array([middle]))[0] == on[i] else (low, middle)
        cuts.append((low + high) / 2)
    edges = [0.0, *cuts, 1.0]
    out = []
    for a, b in itertools.pairwise(edges):
        if sign(np.array([(a + b) / 2]))[0] == 0:
            continue
        steps = max(1 if face.trimmed is not None else 6, int(np.ceil((b - a) * face.measure / size - 1e-9)))
        out.append(face.at(np.linspace(a, b, steps + 1)[:, None])[0])
    return out


def triangulate(shape: Any, size: float) -> Mesh:
    """A mesh of a shape in one or two dimensions, edges about `size` long.

    Raises:
        UnsupportedError: three dimensions.
        InputError: too coarse to follow the boundary.
    """
    if shape.dim == 3:
        raise UnsupportedError(
            "shapes in 3-D are not meshed here", got=repr(shape), remedy="method='pinn', or a mesh file of gmsh"
        )
    if shape.dim == 1:
        raise UnsupportedError("intervals are meshed as they are", remedy="Interval(a, b)")
    pieces = [(face.name, p) for face in shape.faces for p in _curve(shape, face, size)]
    if not pieces:
        raise InputError("the shape has no boundary: it is empty", got=repr(shape))
    tolerance = 1e-6 * size
    points = np.concatenate([p for _, p in pieces])
    # ends of neighbouring pieces are one point
    cell = np.round(points / (100 * tolerance)).astype(np.int64)
    fixed = _merge(points, cell, 10 * tolerance)
    low, high = shape.bounds
    row = size * np.sqrt(3) / 2
    ys = np.arange(low[1] + row / 2, high[1], row)
    lattice = np.concatenate(
        [np.stack([np.arange(low[0] + (j % 2 + 0.5) * size / 2, high[0], size), np.full(1, y).repeat(
            len(np.arange(low[0] + (j % 2 + 0.5) * size / 2, high[0], size)))], 1) for j, y in enumerate(ys)]
    )  # fmt: skip
    from scipy.spatial import Delaunay, KDTree

    near = KDTree(fixed).query(lattice)[0]
    free = lattice[shape.contains(lattice) & (near > 0.65 * size) & (shape.distance(lattice) < -0.45 * size)]
    for sweep in range(6):
        every = np.concatenate([fixed, free])
        cells = _inside(shape, every, Delaunay(every).simplices, size)
        if sweep == 5:
            break
        total, weight = np.zeros_like(every), np.zeros(len(every))
        corners = every[cells]
        area = np.abs(_area(corners))
        centre = corners.mean(axis=1)
        for k in range(3):
            np.add.at(total, cells[:, k], centre * area[:, None])
            np.add.at(weight, cells[:, k], area)
        move = total[len(fixed) :] / np.maximum(weight[len(fixed) :, None], 1e-300)
        good = (weight[len(fixed) :] > 0) & (shape.distance(move) < -0.3 * size)
        free = np.where(good[:, None], move, free)
    used = np.unique(cells)
    number = np.full(len(every), -1)
    number[used] = np.arange(len(used))
    cells = number[cells]
    flip = _area(every[used][cells]) < 0
    cells[flip] = cells[flip][:, ::-1]
    mesh = Mesh(every[used], cells, "triangle", {}, source=repr(shape))
    mesh.facet_groups.update(_parts(shape, mesh, pieces, size))  # type: ignore[attr-defined]
    return mesh


def _merge(points: np.ndarray, cell: np.ndarray, radius: float) -> np.ndarray:
    from scipy.spatial import KDTree

    keep = np.ones(len(points), bool)
    for i, j in sorted(KDTree(points).query_pairs(radius)):
        if keep[i]:
            keep[j] = False
    return points[keep]


def _area(corners: np.ndarray) -> np.ndarray:
    a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    return (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]) / 2


def _inside(shape: Any, points: np.ndarray, cells: np.ndarray, size: float) -> np.ndarray:
    """Triangles of the Delaunay triangulation that belong to the shape."""
    corners = points[cells]
    return cells[shape.contains(corners.mean(axis=1)) & (np.abs(_area(corners)) > 1e-6 * size**2)]


def _parts(shape: Any, mesh: Mesh, pieces: Any, size: float) -> dict[str, np.ndarray]:
    """Facet groups: an exterior edge belongs to the part that both of its ends lie on."""
    from scipy.spatial import KDTree

    exterior = np.asarray(mesh.exterior)
    ends = mesh.points[mesh.facets[exterior]]
    groups: dict[str, np.ndarray] = {}
    found = np.zeros(len(exterior), int)
    for name in dict.fromkeys(n for n, _ in pieces):
        on = np.zeros(len(exterior), bool)
        for other, p in pieces:
            if other == name:
                gap, nearest = KDTree(p).query(ends)
                at = np.asarray(nearest)
                step = np.abs(at[:, 0] - at[:, 1])
                closed = np.linalg.norm(p[0] - p[-1]) < 1e-9 * size
                neighbours = (step == 1) | (closed & (step >= len(p) - 2))
                on |= (gap < 1e-4 * size).all(axis=1) & neighbours
        groups[name] = exterior[on]
        found += on
    if not (found >= 1).all():
        raise InputError(
            f"{int((found == 0).sum())} edges of the mesh are not on the boundary: it is too coarse",
            got=f"size={size:.3g}",
            remedy="a smaller size",
        )
    for name, members in shape.groups.items():
        groups[name] = np.unique(np.concatenate([groups[m] for m in members if m in groups]))
    return groups
