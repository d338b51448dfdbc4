"""A perforated angle bracket: the mesh that the first job runs on, made by the generator here.

Five square blocks of 40 mm in an L, each with a hole; a hole is a regular polygon, so that refining changes the mesh and not
the shape. `bracket_file()` is the stored Gmsh 4.1 file of `bracket()` with its defaults.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sciax.core.errors import InputError
from sciax.datasets.gmsh import write_msh

BLOCK = 0.040
"""Edge of a block, m."""
HOLE = 0.28
"""Radius of a hole, in blocks."""
SIDES = 32
"""Sides of a hole's polygon."""
BLOCKS = ((0, 0), (1, 0), (2, 0), (0, 1), (0, 2))
"""Places of the blocks; the first three are the foot, the last two the arm."""


@dataclass(frozen=True)
class BracketMesh:
    """Arrays of the bracket.

    Attributes:
        points: [n, 2], m.
        cells: [m, 3].
        facets: "hole0".."hole4" (one a block, in the order of `BLOCKS`) and "outer" -> [k, 2].
        groups: "foot", "arm" -> [k, 3].
    """

    points: np.ndarray
    cells: np.ndarray
    facets: dict[str, np.ndarray]
    groups: dict[str, np.ndarray]


def _ring(steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Matching points around the hole's polygon and the block's edge, `steps` a side of the polygon."""
    t = np.arange(SIDES * steps) / steps
    corner = np.floor(t).astype(int)
    part = (t - corner)[:, None]

    def along(vertices):
        return (1 - part) * vertices[corner] + part * vertices[(corner + 1) % SIDES]

    angle = 2 * np.pi * np.arange(SIDES) / SIDES + np.pi / 4
    circle = 0.5 + HOLE * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    side = np.arange(SIDES // 4) / (SIDES // 4)
    edge = [
        np.stack(p, axis=1)
        for p in ((1 - side, 1 + 0 * side), (0 * side, 1 - side), (side, 0 * side), (1 + 0 * side, side))
    ]
    return along(circle), along(np.concatenate(edge))


def bracket(refine: int = 1, layers: int = 4) -> BracketMesh:
    """Generate the mesh.

    Args:
        refine: steps along each side of a hole's polygon; the number of cells grows with its square.
        layers: rings of cells between a hole and its block's edge, for `refine=1`.
    """
    if refine < 1 or layers < 1:
        raise InputError("refine and layers are at least 1", got=(refine, layers))
    inner, outer = _ring(refine)
    around, rings = len(inner), layers * refine
    depth = (np.arange(rings + 1) / rings)[:, None, None] ** 1.25  # finer at the hole, where the gradient is
    block = (1 - depth) * inner + depth * outer
    i, j = np.meshgrid(np.arange(rings), np.arange(around), indexing="ij")
    a, b = i * around + j, i * around + (j + 1) % around
    c, d = a + around, b + around
    cells = np.stack([np.stack([a, c, d], axis=-1), np.stack([a, d, b], axis=-1)], axis=2).reshape(-1, 3)
    ring = np.stack([np.arange(around), (np.arange(around) + 1) % around], axis=1)
    points, all_cells, facets, groups, edges = [], [], {}, {"foot": [], "arm": []}, []
    for number, place in enumerate(BLOCKS):
        shift = number * block.shape[0] * around
        points.append(block.reshape(-1, 2) + np.array(place))
        all_cells.append(cells + shift)
        groups["foot" if number < 3 else "arm"].append(cells + shift)
        facets[f"hole{number}"] = ring + shift
        edges.append(ring + rings * around + shift)
    every = np.concatenate(points)
    _, first, inverse = np.unique(np.rint(every * 1e9).astype(np.int64), axis=0, return_index=True, return_inverse=True)
    inverse = inverse.reshape(-1)
    edge = np.sort(inverse[np.concatenate(edges)], axis=1)
    lines, times = np.unique(edge, axis=0, return_counts=True)
    return BracketMesh(
        every[first] * BLOCK,
        inverse[np.concatenate(all_cells)],
        {**{name: inverse[rows] for name, rows in facets.items()}, "outer": lines[times == 1]},
        {name: inverse[np.concatenate(rows)] for name, rows in groups.items()},
    )


def write_bracket(path, refine: int = 1, layers: int = 4) -> Path:
    """Write the generated mesh as Gmsh 4.1."""
    mesh = bracket(refine, layers)
    return write_msh(path, mesh.points, mesh.cells, 2, mesh.facets, mesh.groups)


def bracket_file() -> Path:
    """The stored mesh, `datasets/data/bracket.msh`."""
    return Path(__file__).parent / "data" / "bracket.msh"
