"""`Mesh`: points, cells of one kind, and named groups of cells and facets."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from sciax.core.errors import InputError, did_you_mean
from sciax.science.mesh._cells import CELLS, CellKind


def vertex_keys(count: int) -> np.ndarray:
    """A random 64-bit key for each point: the sum over a facet's vertices names the facet, whatever their order."""
    return np.random.default_rng(0x5C1A).integers(0, 2**63, size=count, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Mesh:
    """A conforming mesh of one cell kind.

    Attributes:
        points: [n, space], metres or whatever the user's unit of length is.
        cells: [m, nodes] node numbers, VTK order; quadratic cells carry their edge (and inner) nodes.
        kind: "interval", "triangle", "quad", "tet" or "hex".
        facet_groups: name -> numbers of facets (rows of `facets`).
        cell_groups: name -> numbers of cells.
        point_map: [points of the file] -> point here, -1 for a point that no cell uses.
        point_data, cell_data: arrays the file carried.
        notes: what the reader mended.
        source: where it came from.
    """

    points: Float[np.ndarray, "n space"]
    cells: Int[np.ndarray, "m nodes"]
    kind: str
    facet_groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    cell_groups: Mapping[str, np.ndarray] = field(default_factory=dict)
    point_map: np.ndarray | None = None
    point_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    cell_data: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: str = "generated"
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        groups = ", ".join([*self.facet_groups, *(f"{name} (cells)" for name in self.cell_groups)])
        return f"Mesh({len(self.cells)} {self.kind} cells, {len(self.points)} points, groups: {groups or 'none'})"

    @property
    def shape(self) -> CellKind:
        return CELLS[self.kind]

    @property
    def dim(self) -> int:
        """Dimension of the cells."""
        return self.shape.dim

    @property
    def space(self) -> int:
        """Dimension of the points."""
        return self.points.shape[1]

    @property
    def corners(self) -> np.ndarray:
        """Vertices of each cell, without the nodes of quadratic cells."""
        return self.cells[:, : self.shape.count]

    @cached_property
    def _facet_table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        local = self.shape.facets
        every = self.corners[:, local].reshape(-1, local.shape[1])
        keys = vertex_keys(len(self.points))[every].sum(axis=1, dtype=np.uint64)
        sorted_keys, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        owner = np.full((len(first), 2), -1, dtype=np.int64)
        owner[:, 0] = first // len(local)
        other = np.ones(len(every), dtype=bool)
        other[first] = False
        where = np.flatnonzero(other)
        owner[inverse[where], 1] = where // len(local)
        self.cache["facet_keys"] = sorted_keys
        return every[first], owner, inverse.reshape(-1, len(local))

    @property
    def facets(self) -> Int[np.ndarray, "facets vertices"]:
        """Vertices of each facet, once, its normal outward from its first cell."""
        return self._facet_table[0]

    @property
    def facet_cells(self) -> Int[np.ndarray, "facets 2"]:
        """The cells on either side; -1 beyond the boundary."""
        return self._facet_table[1]

    @property
    def cell_facets(self) -> Int[np.ndarray, "m local"]:
        return self._facet_table[2]

    @cached_property
    def exterior(self) -> Int[np.ndarray, " boundary"]:
        """Numbers of the facets on the boundary."""
        return np.flatnonzero(self.facet_cells[:, 1] < 0)

    def find_facets(self, vertices: np.ndarray) -> np.ndarray:
        """Numbers of facets given by their vertices [k, nv]; -1 where the mesh has no such facet."""
        if len(vertices) == 0:
            return np.zeros(0, dtype=np.int64)
        table = self._facet_table  # fills the cache
        known = self.cache["facet_keys"]
        keys = vertex_keys(len(self.points))[vertices].sum(axis=1, dtype=np.uint64)
        at = np.clip(np.searchsorted(known, keys), 0, len(table[0]) - 1)
        return np.where(known[at] == keys, at, -1)

    @cached_property
    def facet_centres(self) -> Float[np.ndarray, "facets space"]:
        return self.points[self.facets].mean(axis=1)

    @cached_property
    def centres(self) -> Float[np.ndarray, "m space"]:
        return self.points[self.corners].mean(axis=1)

    @cached_property
    def volumes(self) -> Float[np.ndarray, " m"]:
        """Length, area or volume of each cell from its straight-sided vertices (quads and hexes: exact for planar faces)."""
        p = self.points[self.corners]
        if self.kind == "interval":
            return np.linalg.norm(p[:, 1] - p[:, 0], axis=1)
        if self.kind == "triangle":
            return _triangle(p[:, 0], p[:, 1], p[:, 2])
        if self.kind == "quad":
            return _triangle(p[:, 0], p[:, 1], p[:, 2]) + _triangle(p[:, 0], p[:, 2], p[:, 3])
        if self.kind == "tet":
            return np.linalg.det(p[:, 1:] - p[:, :1]) / 6.0
        tets = [(0, 1, 3, 4), (1, 2, 3, 6), (4, 6, 5, 1), (4, 7, 6, 3), (1, 6, 3, 4)]
        parts = [np.abs(np.linalg.det(p[:, list(t[1:])] - p[:, [t[0]]])) for t in tets]
        return np.sum(parts, axis=0) / 6.0

    @property
    def volume(self) -> float:
        return float(self.volumes.sum())

    @property
    def enclosed(self) -> float:
        """Volume inside a closed surface of triangles (divergence theorem); meaningless for an open one."""
        p = self.points[self.corners]
        if self.kind != "triangle" or self.space != 3:
            raise InputError(
                "only a surface of triangles in space encloses a volume", got=f"{self.kind} in {self.space}-D"
            )
        return float(np.einsum("ni,ni->n", p[:, 0], np.cross(p[:, 1], p[:, 2])).sum() / 6.0)

    @cached_property
    def sizes(self) -> Float[np.ndarray, " m"]:
        """Longest edge of each cell."""
        p = self.points[self.corners]
        return np.max([np.linalg.norm(p[:, a] - p[:, b], axis=1) for a, b in self.shape.edges], axis=0)

    @cached_property
    def components(self) -> Int[np.ndarray, " m"]:
        """Number of the connected part each cell belongs to (parts connect through facets)."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        pairs = self.facet_cells[self.facet_cells[:, 1] >= 0]
        graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(self.cells),) * 2)
        return connected_components(graph, directed=False)[1]

    def boundary(self, name: str) -> Int[np.ndarray, " k"]:
        """Facets of a named group; "boundary" is every exterior facet.

        Raises:
            InputError: no such group, with the nearest name.
        """
        if name in self.facet_groups:
            return np.asarray(self.facet_groups[name])
        if name == "boundary":
            return self.exterior
        if name in self.cell_groups:
            raise InputError(
                f"{name!r} is a group of cells, not of boundary facets",
                remedy=f"groups of facets: {', '.join(self.facet_groups) or 'none'}, and 'boundary' for all of it",
            )
        raise InputError(
            f"the mesh has no boundary group {name!r}", remedy=did_you_mean(name, [*self.facet_groups, "boundary"])
        )

    def region(self, name: str) -> Int[np.ndarray, " k"]:
        """Cells of a named group.

        Raises:
            InputError: no such group, with the nearest name.
        """
        if name not in self.cell_groups:
            raise InputError(f"the mesh has no group of cells {name!r}", remedy=did_you_mean(name, self.cell_groups))
        return np.asarray(self.cell_groups[name])

    def with_boundaries(self, **predicates) -> "Mesh":
        """The mesh with boundary groups added: each a function of the facet centres [k, space] that gives booleans."""
        groups = dict(self.facet_groups)
        for name, inside in predicates.items():
            groups[name] = self.exterior[np.asarray(inside(self.facet_centres[self.exterior]), dtype=bool)]
        return replace(self, facet_groups=groups, cache={})


def _triangle(a, b, c):
    u, v = b - a, c - a
    if a.shape[1] == 2:
        return 0.5 * np.abs(u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
    return 0.5 * np.linalg.norm(np.cross(u, v), axis=1)
