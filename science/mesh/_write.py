"""Writing a mesh with fields on it to the formats of other tools."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.science.mesh._cells import FORMS
from sciax.science.mesh._mesh import Mesh


def write_mesh(
    path,
    mesh: Mesh,
    point_data: Mapping[str, np.ndarray] | None = None,
    cell_data: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """Write `mesh` and data on it in the format of the file's suffix (.vtu, .vtk, .xdmf, .msh, .stl, ...), by meshio.

    Groups of cells go along as cell data `group:NAME` (0 or 1); Gmsh files get them, and facet groups, as physical groups.
    """
    import meshio

    path = Path(path)
    form = next(name for name, (kind, _) in FORMS.items() if kind == mesh.kind and _size(name) == mesh.cells.shape[1])
    points = np.zeros((len(mesh.points), 3))
    points[:, : mesh.space] = mesh.points
    if path.suffix == ".msh":
        from sciax.datasets.gmsh import write_msh

        facets = {name: mesh.facets[rows] for name, rows in mesh.facet_groups.items()}
        cells = {name: mesh.cells[rows] for name, rows in mesh.cell_groups.items()}
        return write_msh(path, points, mesh.cells, mesh.dim, facets, cells)
    data: dict[str, Any] = {name: [np.asarray(values)] for name, values in (cell_data or {}).items()}
    for name, rows in mesh.cell_groups.items():
        member = np.zeros(len(mesh.cells), dtype=np.int32)
        member[rows] = 1
        data[f"group:{name}"] = [member]
    fields: dict[str, Any] = {name: np.asarray(values) for name, values in (point_data or {}).items()}
    try:
        meshio.write(path, meshio.Mesh(points, [(form, mesh.cells)], fields, data))
    except (Exception, SystemExit) as error:
        raise InputError(f"{path.name} could not be written", got=str(error)[:200], remedy="use .vtu") from error
    return path


def _size(form: str) -> int:
    digits = "".join(ch for ch in form if ch.isdigit())
    return (
        int(digits) if digits else {"vertex": 1, "line": 2, "triangle": 3, "quad": 4, "tetra": 4, "hexahedron": 8}[form]
    )
