"""Meshes of mapped blocks: each a grid of the unit square under a smooth map, joined where their edges coincide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sciax.core.errors import InputError
from sciax.science.mesh._cells import geometry_nodes
from sciax.science.mesh._mesh import Mesh


@dataclass(frozen=True)
class Block:
    """The image of the unit square.

    Attributes:
        at: parameters [k, 2] in [0, 1] -> points [k, 2]; grading is part of the map. Its orientation must be positive.
        cells: along the first and the second parameter.
        left, right, bottom, top: boundary group of the sides s = 0, s = 1, t = 0, t = 1; None inside the domain.
    """

    at: Callable[[np.ndarray], np.ndarray]
    cells: tuple[int, int]
    left: str | None = None
    right: str | None = None
    bottom: str | None = None
    top: str | None = None


def between(first: Callable[[np.ndarray], np.ndarray], second: Callable[[np.ndarray], np.ndarray], grade=lambda t: t):
    """The map of a block from one curve (t = 0) straight to another (t = 1); `grade` places the layers between them."""

    def at(p: np.ndarray) -> np.ndarray:
        t = grade(p[:, 1])[:, None]
        return (1 - t) * first(p[:, 0]) + t * second(p[:, 0])

    return at


def block_mesh(blocks: Sequence[Block]) -> Mesh:
    """Quadrilaterals with nine nodes each, curved as the maps are, of all blocks; common edges need the same points.

    Raises:
        InputError: a block without cells, or one turned over.
    """
    points, cells, sides = [], [], []
    offset = 0
    for block in blocks:
        n, m = block.cells
        if n < 1 or m < 1:
            raise InputError("a block needs cells along both parameters", got=block.cells)
        s, t = np.linspace(0, 1, 2 * n + 1), np.linspace(0, 1, 2 * m + 1)
        grid = np.stack(np.meshgrid(s, t, indexing="ij"), -1).reshape(-1, 2)
        points.append(block.at(grid))
        number = offset + np.arange(len(grid)).reshape(2 * n + 1, 2 * m + 1)
        steps = np.rint(2 * geometry_nodes("quad", 9)).astype(int)
        i, j = (a.ravel() for a in np.meshgrid(2 * np.arange(n), 2 * np.arange(m), indexing="ij"))
        cells.append(number[i[:, None] + steps[:, 0], j[:, None] + steps[:, 1]])
        for name, row in (
            (block.left, number[0]), (block.right, number[-1]), (block.bottom, number[:, 0]), (block.top, number[:, -1])
        ):  # fmt: skip
            if name is not None:
                sides.append((name, np.stack([row[:-2:2], row[2::2]], axis=1)))
        offset += len(grid)
    every = np.concatenate(points)
    keep = _join(every)
    number = np.empty(len(every), dtype=np.int64)
    used, number[:] = np.unique(keep, return_inverse=True)
    mesh = Mesh(every[used], number[np.concatenate(cells)], "quad", source="blocks")
    corner = mesh.points[mesh.corners]
    a, b = corner[:, 2] - corner[:, 0], corner[:, 3] - corner[:, 1]
    if (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0] <= 0).any():
        raise InputError("a block is turned over or folded", remedy="exchange its two parameters")
    groups: dict[str, list[np.ndarray]] = {}
    for name, ends in sides:
        groups.setdefault(name, []).append(mesh.find_facets(number[ends]))
    mesh.facet_groups.update({k: np.unique(np.concatenate(v)) for k, v in groups.items()})  # type: ignore[attr-defined]
    return mesh


def _join(points: np.ndarray) -> np.ndarray:
    """For each point the first that coincides with it."""
    from scipy.spatial import KDTree

    scale = float(np.max(points.max(axis=0) - points.min(axis=0)))
    first = np.arange(len(points))
    pairs = KDTree(points).query_pairs(1e-10 * scale, output_type="ndarray")
    pairs.sort(axis=1)
    for i, j in pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]:
        first[j] = first[i]
    return first
