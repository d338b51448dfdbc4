"""Shapes bounded by triangles: STL and other surface files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import finite, positive, vector
from sciax.elec._shapes import Box3, Shape, norm


@dataclass(frozen=True, eq=False)
class Surface(Shape):
    """The inside of a closed surface of triangles.

    Distance is the exact one to the nearest triangle; inside is where the solid angles of the triangles add up to more than
    half a turn (winding number > 1/2), which stands small cracks and does not depend on the triangles' order. Triangles are
    scanned one by one: memory does not grow with them, time does.

    Attributes:
        triangles: (n, 3, 3) corners (m), outward orientation.

    Raises:
        ShapeError: not (n >= 4, 3, 3). InputError: a surface that is not closed, or turned inside out.

    Source of the solid angle: A. Van Oosterom, J. Strackee, IEEE Trans. Biomed. Eng. 30 (1983) 125.
    """

    triangles: Any

    def __post_init__(self) -> None:
        shape = np.shape(self.triangles)
        if len(shape) != 3 or shape[1:] != (3, 3) or shape[0] < 4:
            raise ShapeError("a closed surface is (n >= 4, 3, 3)", got=shape)
        finite(self.triangles, "triangles")
        if hasattr(self.triangles, "aval") and not isinstance(self.triangles, np.ndarray):
            return
        t = np.asarray(self.triangles, float)
        area = 0.5 * np.cross(t[:, 1] - t[:, 0], t[:, 2] - t[:, 0])
        total = np.linalg.norm(area, axis=1).sum()
        if np.linalg.norm(area.sum(0)) > 1e-3 * total:  # area vectors of a closed surface add up to nothing
            raise InputError(
                "the surface is not closed",
                got=f"its area vectors add up to {np.linalg.norm(area.sum(0)) / total:.2g} of its area",
                expected="0",
                remedy="repair the mesh: triangles are missing or turned",
            )
        middle = t.mean((0, 1))
        if np.sum(area * (t.mean(1) - middle)) <= 0:
            raise InputError("the surface is turned inside out", remedy="exchange two corners of every triangle")

    def distance(self, x, y, z):
        t = jnp.asarray(self.triangles, x.dtype)
        p = (x, y, z)
        dot = lambda a, b: sum(u * v for u, v in zip(a, b))  # noqa: E731
        cross = lambda a, b: tuple(a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3))  # noqa: E731
        minus = lambda a, b: tuple(u - v for u, v in zip(a, b))  # noqa: E731

        def add(carry, corners):
            nearest, turn = carry
            a, b, c = (tuple(row) for row in corners)
            pa, pb, pc = minus(p, a), minus(p, b), minus(p, c)
            # squared distance: to the plane where its foot lies inside, else to the nearest edge
            n = cross(minus(b, a), minus(c, a))
            inside, edge = True, jnp.inf
            for w, q, r in ((pa, a, b), (pb, b, c), (pc, c, a)):
                e = minus(r, q)
                s = jnp.clip(dot(w, e) / jnp.maximum(dot(e, e), jnp.finfo(x.dtype).tiny), 0.0, 1.0)
                edge = jnp.minimum(edge, sum((wi - s * ei) ** 2 for wi, ei in zip(w, e)))
                inside = inside & (dot(cross(e, w), n) >= 0)
            length2 = jnp.maximum(dot(n, n), jnp.finfo(x.dtype).tiny)
            nearest = jnp.minimum(nearest, jnp.where(inside, dot(pa, n) ** 2 / length2, edge))
            la, lb, lc = (norm(*v) for v in (pa, pb, pc))
            below = la * lb * lc + dot(pa, pb) * lc + dot(pb, pc) * la + dot(pc, pa) * lb
            above = -dot(pa, cross(pb, pc))
            return (nearest, turn + 2 * jnp.arctan2(lax.stop_gradient(above), lax.stop_gradient(below))), None

        # In units of the surface's size: cubes of SI lengths of optical parts underflow float32.
        size = 1.0 / jnp.max(jnp.abs(t - t[0, 0]))
        origin = t[0, 0]
        p = tuple((v - o) * size for v, o in zip(p, origin))
        full = jnp.broadcast_shapes(x.shape, y.shape, z.shape)
        start = (jnp.full(full, jnp.inf, x.dtype), jnp.zeros(full, x.dtype))
        (squared, turn), _ = lax.scan(add, start, (t - origin) * size)
        length = jnp.where(squared > 0, jnp.sqrt(jnp.where(squared > 0, squared, 1.0)), 0.0) / size
        return jnp.where(turn > 2 * np.pi, -length, length)

    def bounds(self) -> Box3:
        t = np.asarray(self.triangles, float).reshape(-1, 3)
        return tuple((float(a), float(b)) for a, b in zip(t.min(0), t.max(0)))  # type: ignore[return-value]


def read_surface(path: str | Path, unit: float = 1.0, center: Any = None) -> Surface:
    """A closed surface from an STL, OBJ, OFF or other mesh file of triangles.

    Args:
        unit: length of the file's unit (m): 1e-3 for mm.
        center: where the middle of its bounding box goes (m); None: as it lies.

    Raises:
        MissingFileError, FileFormatError: no file, or not one of triangles. InputError: not closed.
    """
    from sciax.core.errors import FileFormatError
    from sciax.science.mesh import read_mesh

    positive(unit, "unit")
    mesh = read_mesh(path)
    cells = np.asarray(mesh.cells)
    if cells.shape[-1] != 3:
        raise FileFormatError(f"{Path(path).name} holds no triangles", got=f"cells of {cells.shape[-1]} corners")
    triangles = np.asarray(mesh.points, float)[cells] * unit
    if center is not None:
        every = triangles.reshape(-1, 3)
        triangles = triangles + np.asarray(vector(center, "center")) - 0.5 * (every.min(0) + every.max(0))
    return Surface(triangles)
