"""`read_mesh`: a mesh somebody else made, with its named groups, mended where that is safe and refused where it is not."""

import contextlib
import io
import warnings
from pathlib import Path

import numpy as np

from sciax.core.errors import FileFormatError, InputError, MissingFileError, UnsupportedError, did_you_mean
from sciax.science.mesh._cells import CELLS, FORMS, mirrored
from sciax.science.mesh._mesh import Mesh
from sciax.science.mesh._msh4 import is_msh4, read_msh4
from sciax.science.mesh._raw import Block, Raw
from sciax.science.mesh._surface_files import read_obj, read_off, read_stl
from sciax.science.mesh._vtu import read_appended_vtu

_OWN = {".stl": read_stl, ".obj": read_obj, ".off": read_off}
_FAKE_SETS = ("gmsh:bounding_entities",)


def read_mesh(path, *, dim: int | None = None, split: bool = False, merge: bool = True) -> Mesh:
    """Read a mesh file: Gmsh 2.2 and 4.1, VTU, VTK, XDMF, Abaqus, STL, OBJ, OFF and what else meshio knows.

    Cells of the highest dimension in the file make the mesh; lower ones become named groups of facets. Inverted cells are
    turned, points that coincide are merged and points without a cell dropped (`point_map` keeps track), planar meshes lose
    their constant coordinate. `notes` of the result says what was done.

    Args:
        path: the file.
        dim: dimension the cells must have.
        split: cut quadrilaterals into triangles, so that a mix of both can be read.
        merge: merge coinciding points (a crack or an interface with doubled points needs False).

    Raises:
        MissingFileError: no such file, with the nearest name beside it.
        FileFormatError: the file is not what its name says, or damaged.
        UnsupportedError: a mix of cell kinds, or a kind without a solver.
        InputError: wrong dimension, degenerate cells.
    """
    path = Path(path)
    if not path.is_file():
        beside = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        near = did_you_mean(path.name, beside[:50]) if beside else "the folder is empty or missing"
        raise MissingFileError(f"no mesh file at {path}", got=str(path), remedy=near)
    raw = _OWN[path.suffix.lower()](path) if path.suffix.lower() in _OWN else _meshio(path)
    return _mesh(raw, path.name, dim, split, merge)


def _meshio(path: Path) -> Raw:
    import meshio

    said = io.StringIO()
    try:
        # meshio prints its complaints and, for some files, ends the process.
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = meshio.read(path)
    except (Exception, SystemExit) as error:
        if path.suffix.lower() == ".vtu":
            return read_appended_vtu(path)
        if path.suffix.lower() == ".msh" and is_msh4(path):
            return read_msh4(path)
        cause = str(error) if isinstance(error, Exception) and str(error) else " ".join(said.getvalue().split())
        known = ", ".join(sorted(meshio.extension_to_filetypes))
        raise FileFormatError(
            f"{path.name} cannot be read as a mesh",
            got=f"{type(error).__name__}: {cause[:300]}",
            remedy=f"formats: {known}",
        ) from error
    names = {(int(tag), int(d)): name for name, (tag, d) in found.field_data.items()} if found.field_data else {}
    blocks, notes = [], []
    for index, cells in enumerate(found.cells):
        data = {key: np.asarray(values[index]) for key, values in found.cell_data.items()}
        groups: dict[str, np.ndarray] = {}
        for name, sets in found.cell_sets.items():  # MSH 4.1, Abaqus, XDMF
            rows = sets[index]
            if name not in _FAKE_SETS and rows is not None and len(rows):
                groups[name] = np.asarray(rows, dtype=np.int64)
        tags = data.pop("gmsh:physical", None)
        if tags is not None:  # MSH 2.2 knows groups by number, and their names only in a table
            for tag in np.unique(tags):
                name = names.get((int(tag), FORMS_DIM.get(cells.type, -1)))
                if tag and name is None and not groups:
                    name = f"physical{int(tag)}"
                if name and name not in groups:
                    groups[name] = np.flatnonzero(tags == tag)
        data.pop("gmsh:geometrical", None)
        blocks.append(Block(cells.type, np.asarray(cells.data, dtype=np.int64), groups, data))
    points = np.asarray(found.points, dtype=np.float64)
    return Raw(points, blocks, {k: np.asarray(v) for k, v in found.point_data.items()}, notes)


FORMS_DIM = {name: CELLS[kind].dim for name, (kind, _) in FORMS.items()}


def _split_quads(blocks: list[Block], notes: list[str]) -> list[Block]:
    out = []
    for block in blocks:
        if block.type != "quad":
            out.append(block)
            continue
        cells = block.cells[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3)
        groups = {name: (2 * rows[:, None] + np.arange(2)).ravel() for name, rows in block.groups.items()}
        out.append(Block("triangle", cells, groups, {k: np.repeat(v, 2, axis=0) for k, v in block.data.items()}))
        notes.append(f"{len(block.cells)} quadrilaterals cut into triangles")
    return out


def _mesh(raw: Raw, source: str, dim: int | None, split: bool, merge: bool) -> Mesh:
    notes = list(raw.notes)
    blocks = [b for b in raw.blocks if len(b.cells)]
    if not blocks or len(raw.points) == 0:
        raise FileFormatError(
            f"{source} holds no cells", remedy="export the mesh again with its volume or surface cells"
        )
    unknown = sorted({b.type for b in blocks if b.type not in FORMS})
    if unknown:
        raise UnsupportedError(
            f"{source}: cells of type {', '.join(unknown)} are not supported", expected=", ".join(FORMS)
        )
    if not np.isfinite(raw.points).all():
        raise FileFormatError(
            f"{source} has points that are not finite", got=int((~np.isfinite(raw.points)).any(1).sum())
        )
    if split:
        blocks = _split_quads(blocks, notes)
    top = max(FORMS_DIM[b.type] for b in blocks)
    if dim is not None and top != dim:
        raise InputError(
            f"{source} is a mesh of {top}-dimensional cells",
            got=", ".join(f"{len(b.cells)} {b.type}" for b in blocks),
            expected=f"{dim}-dimensional cells",
            remedy="mesh the volume itself, not only its boundary" if top < dim else "use a domain of that dimension",
        )
    if top == 0:
        raise UnsupportedError(f"{source} holds only points", expected="lines, triangles, quads, tets or hexes")
    main = [b for b in blocks if FORMS_DIM[b.type] == top]
    types = sorted({b.type for b in main})
    if len(types) > 1:
        raise UnsupportedError(
            f"{source} mixes cell kinds",
            got=", ".join(f"{sum(len(b.cells) for b in main if b.type == t)} {t}" for t in types),
            expected="cells of one kind",
            remedy="read_mesh(..., split=True) cuts quads into triangles" if set(types) <= {"triangle", "quad"}
            else "mesh it again with one kind of cell",
        )  # fmt: skip
    kind, _ = FORMS[types[0]]
    cells = np.concatenate([b.cells for b in main])
    if cells.min() < 0 or cells.max() >= len(raw.points):
        raise FileFormatError(f"{source}: a cell refers to a point that is not there", got=int(cells.max()),
                              expected=f"0..{len(raw.points) - 1}")  # fmt: skip
    points, cells, lower, point_map = _clean_points(raw, cells, blocks, top, merge, notes)
    points = _drop_constant(points, top)
    cells = _orient(points, cells, kind, source, notes)
    groups, data = _cell_groups(main)
    mesh = Mesh(points, cells, kind, {}, groups, source=source)
    facet_groups = _facet_groups(mesh, lower, notes)
    if not facet_groups and (flags := _bit_packed(mesh, main)):
        facet_groups = flags
    kept = np.flatnonzero(point_map >= 0)
    back = np.zeros(len(points), dtype=np.int64)
    back[point_map[kept]] = kept
    fields = {
        name: np.asarray(values)[back] for name, values in raw.point_data.items() if len(values) == len(point_map)
    }
    return Mesh(points, cells, kind, facet_groups, groups, point_map, fields, data, tuple(notes), source, mesh.cache)


def _clean_points(raw: Raw, cells, blocks, top, merge, notes):
    points = raw.points
    identity = np.arange(len(points))
    if merge:
        from scipy.spatial import KDTree

        span = float(np.ptp(points, axis=0).max()) or 1.0
        pairs = KDTree(points).query_pairs(1e-10 * span, output_type="ndarray")
        if len(pairs):
            from scipy.sparse import coo_matrix
            from scipy.sparse.csgraph import connected_components

            graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(points),) * 2)
            _, label = connected_components(graph, directed=False)
            first = np.full(label.max() + 1, len(points))
            np.minimum.at(first, label, identity)
            identity = first[label]
            notes.append(f"{int((identity != np.arange(len(points))).sum())} points merged with one at the same place")
    cells = identity[cells]
    used = np.zeros(len(points), dtype=bool)
    used[cells] = True
    number = np.cumsum(used) - 1
    point_map = np.where(used[identity], number[identity], -1)
    unused = int((~used[identity]).sum())
    if unused:
        notes.append(f"{unused} points without a cell dropped")
    lower = [(b, point_map[b.cells]) for b in blocks if FORMS_DIM[b.type] == top - 1 and b.groups]
    return points[used], number[cells], lower, point_map


def _drop_constant(points: np.ndarray, top: int) -> np.ndarray:
    span = np.ptp(points, axis=0)
    varying = span > 1e-12 * max(float(span.max()), 1e-300)
    return points[:, varying] if varying.sum() == top else points


def _orient(points, cells, kind, source, notes):
    cell = CELLS[kind]
    if cell.dim != points.shape[1]:
        return cells
    corners = points[cells[:, : cell.count]]
    axes = {"interval": [1], "triangle": [1, 2], "quad": [1, 3], "tet": [1, 2, 3], "hex": [1, 3, 4]}[kind]
    edges = corners[:, axes] - corners[:, :1]
    if kind == "quad":  # the diagonals' cross product is twice the signed area, whatever the corner angles
        edges = np.stack([corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]], axis=1)
    volume = np.linalg.det(edges)
    size = np.linalg.norm(edges, axis=2).max(axis=1)
    flat = np.abs(volume) <= 1e-14 * size**cell.dim
    if flat.any():
        raise InputError(
            f"{source} has degenerate cells",
            got=f"{int(flat.sum())} of {len(cells)} {kind} cells without volume, the first at {corners[flat][0].mean(axis=0)}",
            remedy="mesh it again, or collapse those cells",
        )
    wrong = volume < 0
    if wrong.any():
        cells = cells.copy()
        cells[wrong] = cells[wrong][:, mirrored(kind, cells.shape[1])]
        notes.append(f"{int(wrong.sum())} inverted cells turned")
    return cells


def _cell_groups(main: list[Block]):
    groups: dict[str, list[np.ndarray]] = {}
    start = 0
    for block in main:
        for name, rows in block.groups.items():
            groups.setdefault(name, []).append(rows + start)
        start += len(block.cells)
    shared = set.intersection(*(set(b.data) for b in main))
    data = {name: np.concatenate([b.data[name] for b in main]) for name in shared}
    return {name: np.unique(np.concatenate(parts)) for name, parts in groups.items()}, data


def _facet_groups(mesh: Mesh, lower, notes) -> dict[str, np.ndarray]:
    groups: dict[str, list[np.ndarray]] = {}
    for block, cells in lower:
        vertices = cells[:, : CELLS[FORMS[block.type][0]].count]
        for name, rows in block.groups.items():
            facets = mesh.find_facets(vertices[rows])
            lost = (facets < 0) | (vertices[rows] < 0).any(axis=1)
            if lost.any():
                notes.append(f"group {name!r}: {int(lost.sum())} facets do not belong to any cell and are left out")
            groups.setdefault(name, []).append(facets[~lost])
    return {name: np.unique(np.concatenate(parts)) for name, parts in groups.items()}


def _bit_packed(mesh: Mesh, main: list[Block]) -> dict[str, np.ndarray]:
    """Boundaries as scikit-fem stores them: cell data `skfem:b:NAME`, one bit for each facet of the cell."""
    groups, names = {}, [name for name in main[0].data if name.startswith("skfem:b:")]
    order = {"triangle": [[0, 1], [1, 2], [0, 2]], "quad": [[0, 1], [1, 2], [2, 3], [0, 3]],
             "tet": [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]}.get(mesh.kind)  # fmt: skip
    for name in names if order and mesh.dim == mesh.space else []:
        flags = np.concatenate([b.data[name] for b in main]).astype(np.int64)
        found = []
        # its facets count from the cell's vertices in ascending order for simplices
        corners = np.sort(mesh.corners, axis=1) if CELLS[mesh.kind].simplex else mesh.corners
        for bit, local in enumerate(order or []):
            found.append(mesh.find_facets(corners[(flags >> bit) & 1 == 1][:, local]))
        groups[name.removeprefix("skfem:b:")] = np.unique(np.concatenate(found))
    return groups
