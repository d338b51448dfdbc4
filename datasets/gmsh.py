"""Writing Gmsh's MSH 4.1 (ASCII), with named groups that may overlap."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sciax.core.errors import UnsupportedError

# (dimension, nodes) -> Gmsh's element number
_TYPES = {(1, 2): 1, (2, 3): 2, (2, 4): 3, (3, 4): 4, (3, 8): 5, (1, 3): 8, (2, 6): 9, (2, 9): 10, (3, 10): 11}


def write_msh(
    path,
    points: np.ndarray,
    cells: np.ndarray,
    dim: int,
    facets: Mapping[str, np.ndarray],
    groups: Mapping[str, np.ndarray],
) -> Path:
    """Write a mesh of one cell kind.

    Args:
        path: the file.
        points: [n, 2 or 3].
        cells: [m, nodes] in VTK's node order.
        dim: dimension of the cells. (four nodes are a quadrilateral or a tetrahedron).
        facets: group -> [k, nodes] node numbers of its facets.
        groups: group -> [k, nodes] rows of `cells`.

    Raises:
        UnsupportedError: a cell form without a Gmsh number here.
    """
    points = np.asarray(points, dtype=np.float64)
    if points.shape[1] < 3:
        points = np.concatenate([points, np.zeros((len(points), 3 - points.shape[1]))], axis=1)
    tags = {("facet", name): i for i, name in enumerate(facets, 1)}
    tags |= {("cell", name): len(tags) + i for i, name in enumerate(groups, 1)}
    lines = ["$MeshFormat", "4.1 0 8", "$EndMeshFormat", "$PhysicalNames", str(len(tags))]
    for (kind, name), tag in tags.items():
        lines.append(f'{dim if kind == "cell" else dim - 1} {tag} "{name}"')
    lines.append("$EndPhysicalNames")
    blocks = []  # (dimension, cells, tags)
    for kind, members, everything, d in (("facet", facets, None, dim - 1), ("cell", groups, cells, dim)):
        rows: dict[tuple[int, ...], set[int]] = {}
        for name, these in members.items():
            for row in np.asarray(these):
                rows.setdefault(tuple(int(v) for v in row), set()).add(tags[kind, name])
        for row in () if everything is None else everything:
            rows.setdefault(tuple(int(v) for v in row), set())
        by_set: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for row, owners in rows.items():  # one entity for each combination of groups
            by_set.setdefault(tuple(sorted(owners)), []).append(row)
        blocks += [(d, list(owners), np.array(these)) for owners, these in by_set.items()]
    counts = [0, 0, 0, 0]
    entities: list[tuple[int, int, str]] = []
    low, high = points.min(axis=0), points.max(axis=0)
    box = " ".join(f"{v:.17g}" for v in (*low, *high))
    for d, owners, _ in blocks:
        counts[d] += 1
        where = box if d else " ".join(f"{v:.17g}" for v in low)
        entities.append(
            (d, counts[d], f"{counts[d]} {where} {len(owners)} {' '.join(map(str, owners))}" + (" 0" if d else ""))
        )
    lines += ["$Entities", " ".join(map(str, counts))]
    lines += [text for _, _, text in sorted(entities, key=lambda e: e[:2])] + ["$EndEntities"]
    lines += ["$Nodes", f"1 {len(points)} 1 {len(points)}", f"{dim} 1 0 {len(points)}"]
    lines += [str(i) for i in range(1, len(points) + 1)]
    lines += [" ".join(f"{v:.17g}" for v in p) for p in points] + ["$EndNodes"]
    total = sum(len(these) for _, _, these in blocks)
    lines += ["$Elements", f"{len(blocks)} {total} 1 {total}"]
    number = 0
    for (d, _, these), (_, entity, _) in zip(blocks, entities):
        shape = (d, these.shape[1])
        if d == 0:
            code = 15
        elif shape in _TYPES:
            code = _TYPES[shape]
        else:
            raise UnsupportedError(
                f"no Gmsh element of dimension {d} with {these.shape[1]} nodes", expected=sorted(_TYPES)
            )
        if shape == (3, 10):  # Gmsh numbers the last two edges the other way round
            these = these[:, [0, 1, 2, 3, 4, 5, 6, 7, 9, 8]]
        lines.append(f"{d} {entity} {code} {len(these)}")
        for row in these:
            number += 1
            lines.append(f"{number} " + " ".join(str(v + 1) for v in row))
    lines += ["$EndElements", ""]
    path = Path(path)
    path.write_text("\n".join(lines))
    return path
