"""The cell kinds: reference vertices, faces, and the nodes of their quadratic forms, in VTK's order."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class CellKind:
    """A reference cell.

    Attributes:
        name: "interval", "triangle", "quad", "tet", "hex" or "vertex".
        dim: dimension.
        vertices: reference coordinates [n, dim].
        facets: local vertices of each facet, ordered so that its normal points outward.
        facet: kind of the facets.
        edges: local vertices of each edge, in the order in which VTK numbers the middle nodes.
        simplex: whether it is one.
    """

    name: str
    dim: int
    vertices: np.ndarray
    facets: np.ndarray
    facet: str
    edges: np.ndarray
    simplex: bool

    @property
    def count(self) -> int:
        return len(self.vertices)


def _kind(name, vertices, facets, facet, edges, simplex):
    vertices = np.asarray(vertices, dtype=np.float64)
    return CellKind(name, vertices.shape[1], vertices, np.asarray(facets), facet, np.asarray(edges), simplex)


CELLS: dict[str, CellKind] = {
    k.name: k
    for k in (
        _kind("vertex", np.zeros((1, 0)), np.zeros((0, 0), int), "", np.zeros((0, 2), int), True),
        _kind("interval", [[0], [1]], [[0], [1]], "vertex", [[0, 1]], True),
        _kind(
            "triangle", [[0, 0], [1, 0], [0, 1]], [[0, 1], [1, 2], [2, 0]], "interval", [[0, 1], [1, 2], [2, 0]], True
        ),
        _kind(
            "quad",
            [[0, 0], [1, 0], [1, 1], [0, 1]],
            [[0, 1], [1, 2], [2, 3], [3, 0]],
            "interval",
            [[0, 1], [1, 2], [2, 3], [3, 0]],
            False,
        ),
        _kind(
            "tet",
            [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
            [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]],
            "triangle",
            [[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]],
            True,
        ),
        _kind(
            "hex",
            [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]],
            [[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7]],
            "quad",
            [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]],
            False,
        ),
    )
}

# meshio's name of each form -> (kind, order, extra nodes beyond vertices and edge middles)
FORMS: dict[str, tuple[str, int]] = {
    "vertex": ("vertex", 1),
    "line": ("interval", 1),
    "line3": ("interval", 2),
    "triangle": ("triangle", 1),
    "triangle6": ("triangle", 2),
    "quad": ("quad", 1),
    "quad8": ("quad", 2),
    "quad9": ("quad", 2),
    "tetra": ("tet", 1),
    "tetra10": ("tet", 2),
    "hexahedron": ("hex", 1),
    "hexahedron20": ("hex", 2),
    "hexahedron27": ("hex", 2),
}
MESHIO_NAME = {("interval", 1): "line", ("triangle", 1): "triangle", ("quad", 1): "quad", ("tet", 1): "tetra",
               ("hex", 1): "hexahedron", ("vertex", 1): "vertex"}  # fmt: skip


def geometry_nodes(kind: str, count: int) -> np.ndarray:
    """Reference coordinates of the `count` nodes of a straight or quadratic cell, in VTK's order."""
    cell = CELLS[kind]
    nodes = [cell.vertices]
    if count > cell.count:
        nodes.append(cell.vertices[cell.edges].mean(axis=1))
    if kind == "quad" and count == 9:
        nodes.append(np.array([[0.5, 0.5]]))
    if kind == "hex" and count == 27:  # VTK: faces -x, +x, -y, +y, -z, +z, then the centre
        faces = [
            [0, 0.5, 0.5],
            [1, 0.5, 0.5],
            [0.5, 0, 0.5],
            [0.5, 1, 0.5],
            [0.5, 0.5, 0],
            [0.5, 0.5, 1],
            [0.5, 0.5, 0.5],
        ]
        nodes.append(np.array(faces))
    return np.concatenate(nodes)[:count]


def mirrored(kind: str, count: int) -> np.ndarray:
    """The node order that turns an inverted cell the right way round (vertices 1 and 2, or the two layers, exchanged)."""
    nodes = geometry_nodes(kind, count)
    image = nodes.copy()
    if kind == "interval":
        image = 1.0 - nodes
    elif kind in ("triangle", "tet", "quad"):
        image[:, [0, 1]] = nodes[:, [1, 0]]
    elif kind == "hex":
        image[:, 2] = 1.0 - nodes[:, 2]
    distance = np.abs(image[:, None, :] - nodes[None]).sum(axis=2)
    return distance.argmin(axis=1)
