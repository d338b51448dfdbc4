"""GDS II layouts: polygons in as shapes, designs and shapes out as polygons (extra `elec`, gdstk)."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sciax.core.errors import FileFormatError, InputError, MissingFileError, did_you_mean, optional_import
from sciax.elec._checks import positive
from sciax.elec._shapes import Polygon, Shape


def read_gds(
    path: str | Path, cell: str | None = None, layers: Sequence[tuple[int, int]] | None = None
) -> dict[tuple[int, int], list[np.ndarray]]:
    """Polygons of a layout, references and arrays resolved, paths turned into their outlines.

    Args:
        cell: name; None: the only cell that no other refers to.
        layers: (layer, datatype) pairs to keep; None: all.

    Returns:
        {(layer, datatype): [vertices (n, 2) in metres, ...]}.

    Raises:
        MissingFileError, FileFormatError: no file, or not a GDS II one. InputError: unknown cell or layer, or several top cells.
        MissingDependencyError: gdstk is not installed.
    """
    gdstk = optional_import("gdstk", "elec")
    path = Path(path)
    if not path.is_file():
        raise MissingFileError("no such GDS file", got=str(path))
    if path.read_bytes()[2:4] != b"\x00\x02":  # every GDS II stream begins with a HEADER record
        raise FileFormatError(f"{path.name} is not a GDS II file", expected="a stream that begins with a HEADER record")
    try:
        library = gdstk.read_gds(str(path))
    except Exception as error:  # gdstk raises plain errors of several kinds
        raise FileFormatError(f"{path.name} cannot be read as GDS II", got=str(error)) from error
    cells = {c.name: c for c in library.cells}
    if cell is None:
        top = [c.name for c in library.top_level()]
        if len(top) != 1:
            raise InputError(
                f"{path.name} has {len(top)} top cells", got=top, remedy="name one: read_gds(path, cell=...)"
            )
        cell = top[0]
    if cell not in cells:
        raise InputError(f"{path.name} has no cell {cell!r}", remedy=did_you_mean(str(cell), cells))
    out: dict[tuple[int, int], list[np.ndarray]] = {}
    for p in cells[cell].get_polygons():
        out.setdefault((p.layer, p.datatype), []).append(np.asarray(p.points, float) * library.unit)
    if layers is not None:
        wanted = [(int(a), int(b)) for a, b in layers]
        missing = [k for k in wanted if k not in out]
        if missing:
            raise InputError(f"{path.name}: no polygons on layer {missing[0]}", expected=sorted(out))
        out = {k: out[k] for k in wanted}
    return out


def gds_shape(
    path: str | Path,
    layer: tuple[int, int],
    z: tuple[float, float] = (-np.inf, np.inf),
    *,
    cell: str | None = None,
    center: tuple[float, float] | None = None,
) -> Shape:
    """One layer of a layout as a shape: the union of its polygons as prisms between z bounds (m).

    Touching and overlapping polygons are merged first, so that no seam is left between them.

    Args:
        center: where the middle of the layer's bounding box goes (m); None: as it lies.

    Raises:
        As `read_gds`; InputError: a merged outline with a hole (cut it in the layout, or subtract two shapes).
    """
    gdstk = optional_import("gdstk", "elec")
    found = read_gds(path, cell, [layer])[layer]
    unit = 1e-6
    merged = gdstk.boolean([p / unit for p in found], [], "or", precision=1e-6)
    outlines = [np.asarray(p.points, float) * unit for p in merged]
    if center is not None:
        every = np.concatenate(outlines)
        outlines = [o + np.asarray(center) - 0.5 * (every.min(0) + every.max(0)) for o in outlines]
    shape: Shape = Polygon(_open(outlines[0]), z)
    for o in outlines[1:]:
        shape = shape | Polygon(_open(o), z)
    return shape


def _open(vertices: np.ndarray) -> np.ndarray:
    """Without repeated neighbours, which would be edges of no length."""
    keep = np.any(np.abs(vertices - np.roll(vertices, 1, axis=0)) > 1e-15, axis=1)
    return vertices[keep]


def outlines(density: Any, pixel: float, *, level: float = 0.5, smooth: bool = True) -> list[Any]:
    """Polygons (gdstk, in um) around where a density exceeds `level`, centred on the origin; holes are cut by seams.

    Args:
        density: (nx, ny), pixel-centred. pixel: side (m).
        smooth: the level line of the density, linear between pixel centres, closed at the border; False: the pixels' edges
            (what a file of pixels says exactly).
    """
    gdstk = optional_import("gdstk", "elec")
    density = np.asarray(density, float)
    if density.ndim != 2 or not np.all(np.isfinite(density)):
        raise InputError("outlines take a finite 2-D density", got=density.shape)
    positive(pixel, "pixel")
    step = pixel * 1e6
    nx, ny = density.shape
    if not smooth:
        boxes = []
        for i, row in enumerate(density > level):  # one rectangle a run of solid pixels
            ends = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
            for a, b in zip(ends[::2], ends[1::2]):
                low = ((i - nx / 2) * step, (a - ny / 2) * step)
                boxes.append(gdstk.rectangle(low, ((i + 1 - nx / 2) * step, (b - ny / 2) * step)))
        return gdstk.boolean(boxes, [], "or", precision=1e-4 * step) if boxes else []
    from contourpy import contour_generator

    # the border pixel goes on for half a pixel to the edge, then nothing: the line closes along the edge
    x, y = (
        np.concatenate([[-n / 2 - 1e-6, -n / 2], np.arange(n) + 0.5 - n / 2, [n / 2, n / 2 + 1e-6]]) * step
        for n in (nx, ny)
    )
    field = np.pad(np.pad(density, 1, mode="edge"), 1, constant_values=min(level - 1.0, float(density.min()) - 1.0))
    filled: Any = contour_generator(x, y, field.T, fill_type="OuterOffset").filled(level, np.inf)
    out = []
    for points, cuts in zip(*filled):
        rings = [gdstk.Polygon(points[a:b][:-1]) for a, b in itertools.pairwise(cuts)]
        out += gdstk.boolean(rings[0], rings[1:], "not", precision=1e-6 * step) if len(rings) > 1 else rings
    return out


def write_gds(
    path: str | Path,
    content: Any,
    *,
    pixel: float | None = None,
    layer: tuple[int, int] = (1, 0),
    cell: str = "design",
    smooth: bool = True,
) -> Path:
    """Write a design or polygons.

    Args:
        content: a density (nx, ny) with `pixel`, or a list of vertices (n, 2) in metres.
        pixel: side of a pixel (m).
        layer: (layer, datatype), each 0 to 65535.
        smooth: of a density, see `outlines`.

    Returns:
        The path. Units are um with a database unit of 1 pm, so that vertices come back to 1e-12 m.

    Raises:
        InputError: nothing to write (a density without solid pixels), or a density without `pixel`.
    """
    gdstk = optional_import("gdstk", "elec")
    path = Path(path)
    if not all(isinstance(v, int) and 0 <= v < 65536 for v in layer):
        raise InputError("layer and datatype", got=layer, expected="two integers from 0 to 65535")
    if isinstance(content, list | tuple):
        polygons = [gdstk.Polygon(np.asarray(p, float) * 1e6) for p in content]
    elif pixel is None:
        raise InputError("a density needs the side of its pixels", remedy="write_gds(path, density, pixel=...)")
    else:
        polygons = outlines(content, pixel, smooth=smooth)
    if not polygons:
        raise InputError("nothing to write: no pixel of the density is solid")
    library = gdstk.Library(unit=1e-6, precision=1e-12)
    target = library.new_cell(cell)
    for p in polygons:
        p.layer, p.datatype = layer
        target.add(p)
    library.write_gds(str(path), max_points=4000)
    return path
