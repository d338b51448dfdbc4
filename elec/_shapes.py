"""Shapes by signed distance (negative inside), differentiable in every parameter; union, intersection, difference."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import finite, one_of, positive, vector
from sciax.elec._constants import AXES

Box3 = tuple[tuple[float, float], tuple[float, float], tuple[float, float]]


def norm(*parts):
    """Euclidean norm with a zero gradient, not NaN, at zero."""
    s = sum(p * p for p in parts)
    safe = jnp.where(s > 0, s, 1.0)
    return jnp.where(s > 0, jnp.sqrt(safe), 0.0)


class Shape:
    """Base: `distance(x, y, z)` (m) and `bounds()`; combine with |, &, -."""

    def distance(self, x, y, z):
        raise NotImplementedError

    def bounds(self) -> Box3:
        raise NotImplementedError

    def __or__(self, other: "Shape") -> "Shape":
        return Combined(self, other, "union")

    def __and__(self, other: "Shape") -> "Shape":
        return Combined(self, other, "intersection")

    def __sub__(self, other: "Shape") -> "Shape":
        return Combined(self, other, "difference")


@dataclass(frozen=True)
class Box(Shape):
    """Axis-aligned box; a size of inf along an axis makes a slab or a half space without end."""

    center: Any
    size: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector(self.center, "box center"))
        size = tuple(self.size) + (np.inf,) * (3 - len(tuple(self.size)))
        for s in size:
            if not hasattr(s, "aval") and not s > 0:
                raise InputError("box sizes must be positive", got=self.size)
        object.__setattr__(self, "size", size)

    def distance(self, x, y, z):
        q = []
        for p, c, s in zip((x, y, z), self.center, self.size):
            if not hasattr(s, "aval") and np.isinf(s):
                continue
            q.append(jnp.abs(p - c) - 0.5 * s)
        if not q:
            return jnp.broadcast_to(-jnp.ones((), x.dtype), jnp.broadcast_shapes(x.shape, y.shape, z.shape))
        outside = norm(*(jnp.maximum(v, 0.0) for v in q))
        inner = q[0]
        for v in q[1:]:
            inner = jnp.maximum(inner, v)
        return jnp.where(inner > 0, outside, inner)  # on a face the inner branch keeps its gradient

    def bounds(self) -> Box3:
        return tuple((float(c) - float(s) / 2, float(c) + float(s) / 2) for c, s in zip(self.center, self.size))  # type: ignore


@dataclass(frozen=True)
class Sphere(Shape):
    center: Any
    radius: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector(self.center, "sphere center"))
        positive(self.radius, "sphere radius")

    def distance(self, x, y, z):
        cx, cy, cz = self.center
        return norm(x - cx, y - cy, z - cz) - self.radius

    def bounds(self) -> Box3:
        r = float(self.radius)
        return tuple((float(c) - r, float(c) + r) for c in self.center)  # type: ignore[return-value]


@dataclass(frozen=True)
class Cylinder(Shape):
    """Circular cylinder along `axis`; height inf (the default) for a disc of a 2-D scene."""

    center: Any
    radius: Any
    height: Any = np.inf
    axis: str = "z"

    def __post_init__(self) -> None:
        object.__setattr__(self, "center", vector(self.center, "cylinder center"))
        positive(self.radius, "cylinder radius")
        one_of(self.axis, AXES, "axis")

    def distance(self, x, y, z):
        a = AXES.index(self.axis)
        p = [x - self.center[0], y - self.center[1], z - self.center[2]]
        along = p.pop(a)
        radial = norm(*p) - self.radius
        if not hasattr(self.height, "aval") and np.isinf(self.height):
            return radial
        end = jnp.abs(along) - 0.5 * self.height
        inner = jnp.maximum(radial, end)
        return jnp.where(inner > 0, norm(jnp.maximum(radial, 0.0), jnp.maximum(end, 0.0)), inner)

    def bounds(self) -> Box3:
        a, r = AXES.index(self.axis), float(self.radius)
        half = [r, r, r]
        half[a] = float(self.height) / 2
        return tuple((float(c) - h, float(c) + h) for c, h in zip(self.center, half))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Polygon(Shape):
    """Prism over a simple polygon in the x-y plane, `vertices` of shape (n, 2) (m), between z bounds."""

    vertices: Any
    z: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if np.ndim(self.vertices) != 2 or np.shape(self.vertices)[1] != 2 or np.shape(self.vertices)[0] < 3:
            raise ShapeError("polygon vertices are (n >= 3, 2)", got=np.shape(self.vertices))
        finite(self.vertices, "polygon vertices")

    def distance(self, x, y, z):
        # All edges at once along a leading axis: one small program whatever their number.
        v = jnp.asarray(self.vertices, x.dtype)
        lay = (-1, *(1,) * x.ndim)
        (ax, ay), (bx, by) = (tuple(w.reshape(lay) for w in p.T) for p in (v, jnp.roll(v, -1, axis=0)))
        ex, ey, wx, wy = bx - ax, by - ay, x - ax, y - ay
        t = jnp.clip((wx * ex + wy * ey) / (ex * ex + ey * ey), 0.0, 1.0)
        nearest = jnp.min(norm(wx - ex * t, wy - ey * t), axis=0)
        # A ray to +x crosses this edge; the product form needs no division
        side = ex * wy - ey * wx
        crosses = ((ay > y) != (by > y)) & ((side > 0) == (ey > 0)) & (side != 0)
        planar = jnp.where(jnp.sum(crosses, axis=0) % 2 == 1, -1.0, 1.0).astype(x.dtype) * nearest
        if np.isinf(self.z[0]) and np.isinf(self.z[1]):
            return planar
        end = jnp.maximum(self.z[0] - z, z - self.z[1])
        inner = jnp.maximum(planar, end)
        return jnp.where(inner > 0, norm(jnp.maximum(planar, 0.0), jnp.maximum(end, 0.0)), inner)

    def bounds(self) -> Box3:
        v = np.asarray(self.vertices, float)
        return (v[:, 0].min(), v[:, 0].max()), (v[:, 1].min(), v[:, 1].max()), self.z


@dataclass(frozen=True)
class Combined(Shape):
    """Union, intersection or difference of two shapes."""

    first: Shape
    second: Shape
    kind: str

    def __post_init__(self) -> None:
        one_of(self.kind, ("union", "intersection", "difference"), "combination")

    def distance(self, x, y, z):
        a, b = self.first.distance(x, y, z), self.second.distance(x, y, z)
        if self.kind == "union":
            return jnp.minimum(a, b)
        return jnp.maximum(a, b if self.kind == "intersection" else -b)

    def bounds(self) -> Box3:
        a, b = self.first.bounds(), self.second.bounds()
        if self.kind == "difference":
            return a
        pick = (min, max) if self.kind == "union" else (max, min)
        return tuple((pick[0](p[0], q[0]), pick[1](p[1], q[1])) for p, q in zip(a, b))  # type: ignore[return-value]


def ring(center, inner, outer, height=np.inf) -> Shape:
    """A circular ring (m)."""
    return Cylinder(center, outer, height) - Cylinder(center, inner, height)
