"""Structured meshes of intervals, rectangles and boxes, with their sides named."""

import itertools

import numpy as np
from numpy.typing import ArrayLike

from sciax.core.errors import InputError, did_you_mean
from sciax.science.mesh._mesh import Mesh

SIDES = {1: (("left", "right"),), 2: (("left", "right"), ("bottom", "top")),
         3: (("left", "right"), ("front", "back"), ("bottom", "top"))}  # fmt: skip
_KINDS = {1: ("interval",), 2: ("triangle", "quad"), 3: ("tet", "hex")}


def box_mesh(lower: ArrayLike, upper: ArrayLike, cells: ArrayLike, kind: str | None = None) -> Mesh:
    """A uniform mesh of a box.

    Sides are the facet groups left/right (x), bottom/top (y in 2-D, z in 3-D) and front/back (y in 3-D).

    Args:
        lower, upper: opposite corners, 1 to 3 coordinates.
        cells: boxes along each axis (one number for all); each is cut into 2 triangles or 6 tets.
        kind: "interval", "triangle", "quad", "tet" or "hex"; simplices by default.
    """
    low, high = np.atleast_1d(np.asarray(lower, float)), np.atleast_1d(np.asarray(upper, float))
    dim = len(low)
    if dim not in _KINDS or len(high) != dim or not (high > low).all():
        raise InputError("a box needs 1 to 3 coordinates and upper above lower", got=(low.tolist(), high.tolist()))
    kind = kind or _KINDS[dim][0]
    if kind not in _KINDS[dim]:
        raise InputError(f"no {kind!r} cells in {dim} dimensions", remedy=did_you_mean(kind, _KINDS[dim]))
    counts = np.broadcast_to(np.asarray(cells, dtype=np.int64), (dim,))
    if (counts < 1).any():
        raise InputError("at least one cell along each axis", got=counts.tolist())
    axes = [np.linspace(a, b, n + 1) for a, b, n in zip(low, high, counts)]
    points = np.stack([g.ravel(order="F") for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    stride = np.concatenate([[1], np.cumprod(counts[:-1] + 1)])
    corners = np.meshgrid(*[np.arange(n) for n in counts], indexing="ij")
    base = np.sum([g.ravel(order="F") * s for g, s in zip(corners, stride)], axis=0)
    if kind == "interval":
        offsets = [[0, 1]]
    elif kind == "quad":
        offsets = [[0, 1, 1 + stride[1], stride[1]]]
    elif kind == "hex":
        layer = [0, 1, 1 + stride[1], stride[1]]
        offsets = [layer + [o + stride[2] for o in layer]]
    else:  # Kuhn: a simplex for each order of the axes; odd orders are mirrored
        offsets = []
        for order in itertools.permutations(range(dim)):
            path = np.concatenate([[0], np.cumsum(stride[list(order)])]).tolist()
            even = np.linalg.det(np.eye(dim)[list(order)]) > 0
            offsets.append(path if even else [path[0], path[2], path[1], *path[3:]])
    connect = (base[:, None, None] + np.asarray(offsets)[None]).reshape(-1, len(offsets[0]))
    mesh = Mesh(points, connect, kind)
    centres, groups = mesh.facet_centres[mesh.exterior], {}
    for axis, names in enumerate(SIDES[dim]):
        for name, value in zip(names, (low[axis], high[axis])):
            near = np.abs(centres[:, axis] - value) < 1e-9 * (high[axis] - low[axis])
            groups[name] = mesh.exterior[near]
    mesh.facet_groups.update(groups)  # type: ignore[attr-defined]
    return mesh
