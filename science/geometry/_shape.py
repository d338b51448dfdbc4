"""Shapes by signed distance: primitives, their union, difference and intersection, and rigid motions of them.

A shape's `distance(x)` is negative inside. For a primitive it is the distance to its boundary (an ellipse's to first order);
for a combination the usual bound, max(d_A, -d_B) for A - B: right in sign everywhere and exact near the boundary but for corners.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.science.geometry._domain import BoxDomain, Domain
from sciax.science.geometry._sampling import BoundaryPoints, share, unit_points


def space(x: Any) -> Any:
    """NumPy for NumPy arrays (float64 on the host), jax.numpy for the rest."""
    return np if isinstance(x, np.ndarray) else jnp


@dataclass(frozen=True)
class Face:
    """A piece of a primitive's boundary.

    Attributes:
        name: of the boundary part it belongs to.
        at: unit parameters [n, dim - 1] -> points [n, dim], outward normals [n, dim]; even in length or area.
        measure: length or area of the whole piece (1 for a point).
        mask: x [..., dim] -> a smooth function that is 0 on the piece and of slope 1 there, positive inside the primitive.
        trimmed: the same, positive on both sides and 0 nowhere else; None if there is none.
    """

    name: str
    at: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    measure: float
    mask: Callable[[Any], Any]
    trimmed: Callable[[Any], Any] | None = None


class Shape(Domain):
    """Base of shapes.

    Attributes:
        bounds: lower and upper corner of a box around it.
        faces: pieces of the boundaries of the primitives it is made of; those not on its own boundary are never sampled.
        groups: name -> names of faces, for parts with a name of their own ("outer").
    """

    dim: int
    bounds: tuple[np.ndarray, np.ndarray]
    faces: tuple[Face, ...]
    groups: dict[str, tuple[str, ...]]

    def __init__(self, dim: int, bounds: Any, faces: Any, groups: Any = None):
        self.dim = dim
        self.bounds = (np.asarray(bounds[0], float), np.asarray(bounds[1], float))
        self.faces = tuple(faces)
        self.groups = dict(groups or {})
        self.boundaries = (*dict.fromkeys(f.name for f in self.faces), *self.groups)
        self._meshes: dict[Any, Any] = {}

    def distance(self, x: Any) -> Any:
        """Signed distance at points [..., dim], negative inside; a NumPy or JAX array as `x` is."""
        raise NotImplementedError

    # -- combination -----------------------------------------------------------------------------------------------------

    def __or__(self, other: Any) -> "Shape":
        return Combined("union", self, other)

    def __and__(self, other: Any) -> "Shape":
        return Combined("intersection", self, other)

    def __sub__(self, other: Any) -> "Shape":
        return Combined("difference", self, other)

    def translate(self, by: Any) -> "Shape":
        """Moved by a vector."""
        return Moved(self, np.eye(self.dim), np.broadcast_to(np.asarray(by, float), (self.dim,)), 1.0)

    def scale(self, factor: float) -> "Shape":
        """Enlarged about the origin."""
        if not factor > 0:
            raise InputError("a scale factor is positive", got=factor)
        return Moved(self, np.eye(self.dim), np.zeros(self.dim), float(factor))

    def rotate(self, angle: float, axis: Any = (0.0, 0.0, 1.0)) -> "Shape":
        """Turned about the origin by an angle in radians (about `axis` in 3-D)."""
        if self.dim == 1:
            raise InputError("an interval cannot be turned")
        c, s = np.cos(angle), np.sin(angle)
        if self.dim == 2:
            return Moved(self, np.array([[c, -s], [s, c]]), np.zeros(2), 1.0)
        a = np.asarray(axis, float) / np.linalg.norm(axis)
        cross = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        return Moved(self, np.eye(3) + s * cross + (1 - c) * cross @ cross, np.zeros(3), 1.0)

    def named(self, name: str) -> "Shape":
        """All of its boundary under one name."""
        return Renamed(self, name)

    # -- points ----------------------------------------------------------------------------------------------------------

    def contains(self, x: Any) -> Any:
        """Whether points [n, dim] lie inside."""
        return self.distance(np.asarray(x, float)) < 0

    def resolve(self, names: Any) -> tuple[str, ...]:
        """Names of faces from names of parts and groups."""
        out: dict[str, None] = {}
        for name in (names,) if isinstance(names, str) else names:
            if name == "boundary":
                out.update(dict.fromkeys(f.name for f in self.faces))
            elif name in self.groups:
                out.update(dict.fromkeys(self.groups[name]))
            elif name in self.boundaries:
                out[name] = None
            else:
                raise InputError(f"the shape has no boundary {name!r}", remedy=did_you_mean(name, self.boundaries))
        return tuple(out)

    def sample_interior(self, count: int, *, kind: str = "sobol", seed: Any = 0) -> Float[np.ndarray, "n dim"]:
        """Even points inside: those of the box around it that lie inside, in order."""
        rng, low, high = np.random.default_rng(seed), *self.bounds
        found, tries = [np.zeros((0, self.dim))], 0
        while sum(map(len, found)) < count:
            x = low + (high - low) * unit_points(max(4 * count, 256), self.dim, kind, rng)
            found.append(x[self.contains(x)])
            tries += 1
            if tries > 200:
                raise InputError("the shape is empty, or tiny in its box", got=repr(self))
        return np.concatenate(found)[:count]

    def orientation(self, points: np.ndarray, normals: np.ndarray) -> np.ndarray:
        """+1 where the shape lies behind the normal and not before it, -1 where it is the other way round, else 0."""
        step = 1e-7 * np.max(self.bounds[1] - self.bounds[0]) * normals
        before, behind = self.contains(points + step), self.contains(points - step)
        return np.where(behind & ~before, 1, np.where(before & ~behind, -1, 0))

    def sample_boundary(
        self, count: int, names: Any = "boundary", *, kind: str = "sobol", seed: Any = 0
    ) -> BoundaryPoints:
        """Even points of boundary parts: each face sampled evenly, what is not on the shape's boundary dropped."""
        rng = np.random.default_rng(seed)
        wanted = self.resolve(names)
        faces = [f for f in self.faces if f.name in wanted]
        total = sum(f.measure for f in faces)
        points, normals, part = (np.zeros((0, self.dim)), np.zeros((0, self.dim)), np.zeros(0, int))
        drawn = 0
        for _ in range(200):
            many = max(2 * count, 256)
            batch = [
                f.at(unit_points(n, self.dim - 1, kind, rng))
                for f, n in zip(faces, share(many, [f.measure for f in faces]), strict=True)
            ]
            p, n = (np.concatenate(a) for a in zip(*batch, strict=True))
            k = np.concatenate([np.full(len(b[0]), wanted.index(f.name)) for f, b in zip(faces, batch, strict=True)])
            sign = self.orientation(p, n)
            keep = rng.permutation(np.flatnonzero(sign))
            points = np.concatenate([points, p[keep]])
            normals = np.concatenate([normals, n[keep] * sign[keep, None]])
            part, drawn = np.concatenate([part, k[keep]]), drawn + many
            if len(points) >= count:
                measure = total * len(points) / drawn
                return BoundaryPoints(points[:count], normals[:count], part[:count], wanted, float(measure))
        raise InputError(f"nothing of {names!r} is on the boundary of the shape")

    def distance_to(self, names: Any) -> Callable[[Any], Any]:
        """A smooth function of a point that vanishes on these parts and is positive inside: for hard conditions.

        Raises:
            UnsupportedError: a part without one (flat sides of a 3-D hole).
        """
        wanted = self.resolve(names)
        low, high = self.bounds
        length = float(np.max(high - low)) / 2
        probe = self.sample_interior(256, seed=1)
        masks = []
        for face in self.faces:
            if face.name not in wanted:
                continue
            values = face.mask(probe)
            if (values > 0).all():
                masks.append((face.mask, 1.0))
            elif (values < 0).all():
                masks.append((face.mask, -1.0))
            elif face.trimmed is not None:
                masks.append((face.trimmed, 1.0))
            else:
                raise UnsupportedError(f"no smooth distance to {face.name!r}", remedy="solve(..., hard=False)")

        def phi(x: Any) -> Any:
            out: Any = 1.0
            for mask, sign in masks:
                out = out * (sign / length) * mask(x)
            return out

        return phi

    def mesh(self, *, size: float | None = None) -> Any:
        """Triangles (2-D) or intervals of about this edge length (a twentieth of the longest side unless given)."""
        from sciax.science.geometry._triangulate import triangulate

        size = float(np.max(self.bounds[1] - self.bounds[0])) / 20 if size is None else float(size)
        if not size > 0:
            raise InputError("the mesh size must be positive", got=size)
        if size not in self._meshes:
            self._meshes[size] = triangulate(self, size)
        return self._meshes[size]


def as_shape(thing: Any) -> Shape:
    """A shape, or a box as one."""
    if isinstance(thing, Shape):
        return thing
    if isinstance(thing, BoxDomain):
        from sciax.science.geometry._primitives import BoxShape

        return BoxShape(thing)
    raise InputError("only shapes and boxes combine", got=repr(thing), expected="Disk, Polygon, Rectangle, ...")


class Combined(Shape):
    """Union, intersection or difference of two shapes.

    The faces of what is subtracted get the name "hole" (then "hole2", ...) unless they were `named`; those of the first shape
    together are also called "outer".
    """

    def __init__(self, kind: str, first: Any, second: Any):
        a, b = as_shape(first), as_shape(second)
        if a.dim != b.dim:
            raise InputError("shapes of different dimension", got=(a.dim, b.dim))
        self.kind, self.first, self.second = kind, a, b
        low, high = a.bounds
        if kind == "union":
            low, high = np.minimum(low, b.bounds[0]), np.maximum(high, b.bounds[1])
        elif kind == "intersection":
            low, high = np.maximum(low, b.bounds[0]), np.minimum(high, b.bounds[1])
            if not (high > low).all():
                raise InputError("the shapes do not meet", got=(a, b))
        groups = {**b.groups, **a.groups}
        faces = list(b.faces)
        if kind == "difference":
            taken = {f.name for f in a.faces}
            if not isinstance(b, Renamed):
                name = next(n for n in ("hole", *(f"hole{i}" for i in range(2, 1000))) if n not in taken)
                faces = [replace(f, name=name) for f in faces]
                groups = dict(a.groups)
            groups.setdefault("outer", tuple(dict.fromkeys(f.name for f in a.faces)))
        super().__init__(a.dim, (low, high), [*a.faces, *faces], groups)

    def __repr__(self) -> str:
        sign = {"union": "|", "intersection": "&", "difference": "-"}[self.kind]
        return f"({self.first!r} {sign} {self.second!r})"

    def distance(self, x: Any) -> Any:
        a, b, xp = self.first.distance(x), self.second.distance(x), space(x)
        if self.kind == "union":
            return xp.minimum(a, b)
        return xp.maximum(a, b if self.kind == "intersection" else -b)


class Moved(Shape):
    """x = factor R x' + shift, of a shape in x'."""

    def __init__(self, shape: Shape, rotation: np.ndarray, shift: np.ndarray, factor: float):
        self.shape, self.rotation, self.shift, self.factor = shape, rotation, shift, factor
        low, high = shape.bounds
        corners = np.stack(np.meshgrid(*zip(low, high, strict=True), indexing="ij"), -1).reshape(-1, shape.dim)
        moved = factor * corners @ rotation.T + shift

        def move(face: Face) -> Face:
            def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                p, n = face.at(u)
                return factor * p @ rotation.T + shift, n @ rotation.T

            trimmed = face.trimmed
            return Face(
                face.name,
                at,
                face.measure * factor ** (shape.dim - 1),
                lambda x: factor * face.mask(self._back(x)),
                None if trimmed is None else lambda x: factor * trimmed(self._back(x)),
            )

        super().__init__(shape.dim, (moved.min(0), moved.max(0)), [move(f) for f in shape.faces], shape.groups)

    def __repr__(self) -> str:
        return f"Moved({self.shape!r})"

    def _back(self, x: Any) -> Any:
        xp = space(x)
        return (x - xp.asarray(self.shift, x.dtype)) @ xp.asarray(self.rotation / self.factor, x.dtype)

    def distance(self, x: Any) -> Any:
        return self.factor * self.shape.distance(self._back(x))


class Renamed(Shape):
    """A shape with all of its boundary under one name."""

    def __init__(self, shape: Shape, name: str):
        self.shape = shape
        super().__init__(shape.dim, shape.bounds, [replace(f, name=name) for f in shape.faces])

    def __repr__(self) -> str:
        return f"{self.shape!r}.named({self.boundaries[0]!r})"

    def distance(self, x: Any) -> Any:
        return self.shape.distance(x)
