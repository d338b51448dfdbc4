"""Primitive shapes: polygon, disk, ellipse, sphere, cylinder, torus, and boxes as shapes."""

from typing import Any

import numpy as np

from sciax.core.errors import InputError
from sciax.science.geometry._domain import BoxDomain
from sciax.science.geometry._shape import Face, Shape, space


def _positive(**sizes: float) -> None:
    for name, value in sizes.items():
        if not value > 0:
            raise InputError(f"the {name} of a shape is positive", got=value)


def _norm(xp: Any, v: Any) -> Any:
    """Length along the last axis, with a finite gradient at 0."""
    square = xp.sum(v * v, axis=-1)
    safe = xp.where(square > 0, square, 1)
    return xp.where(square > 0, xp.sqrt(safe), 0)


def _box_distance(x: Any, low: np.ndarray, high: np.ndarray) -> Any:
    xp = space(x)
    centre, half = xp.asarray((low + high) / 2, x.dtype), xp.asarray((high - low) / 2, x.dtype)
    q = xp.abs(x - centre) - half
    return _norm(xp, xp.maximum(q, 0)) + xp.minimum(xp.max(q, axis=-1), 0)


class BoxShape(Shape):
    """An interval, rectangle or box; sides keep their names."""

    def __init__(self, box: BoxDomain):
        self.box = box
        low, high, dim = box.lower, box.upper, box.dim

        def face(name: str) -> Face:
            axis, upper = box.side(name)
            other = np.delete(np.arange(dim), axis)

            def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                p = np.empty((len(u), dim))
                p[:, axis] = (low, high)[upper][axis]
                p[:, other] = low[other] + (high - low)[other] * u
                return p, np.tile(np.eye(dim)[axis] * (1 if upper else -1), (len(u), 1))

            def mask(x: Any) -> Any:
                return float(high[axis]) - x[..., axis] if upper else x[..., axis] - float(low[axis])

            trimmed = None
            if dim == 2:
                a, b = low.copy(), high.copy()
                a[axis] = b[axis] = (low, high)[upper][axis]
                trimmed = _segment(a, b)
            return Face(name, at, float(np.prod((high - low)[other])), mask, trimmed)

        super().__init__(dim, (low, high), [face(n) for n in box.boundaries])

    def __repr__(self) -> str:
        return repr(self.box)

    def distance(self, x: Any) -> Any:
        return _box_distance(x, self.box.lower, self.box.upper)


def _segment(a: np.ndarray, b: np.ndarray) -> Any:
    """Smooth distance to a segment, trimmed at its ends (Sukumar & Srivastava 2022, eqs. 2.5 to 2.7).

    f: signed distance to the line; t = (L^2/4 - |x - centre|^2) / L;  phi^2 = f^2 + ((sqrt(t^2 + f^4) - t) / 2)^2.
    """
    length = float(np.linalg.norm(b - a))
    tangent = (b - a) / length

    def phi(x: Any) -> Any:
        xp = space(x)
        d = x - xp.asarray((a + b) / 2, x.dtype)
        f = d[..., 0] * float(tangent[1]) - d[..., 1] * float(tangent[0])
        t = (length**2 / 4 - xp.sum(d * d, axis=-1)) / length
        rest = (xp.sqrt(t * t + f**4) - t) / 2
        return xp.sqrt(f * f + rest * rest)

    return phi


class Polygon(Shape):
    """A simple polygon.

    Args:
        corners: [k, 2], in either direction, not closed.
        names: of the edges, edge i from corner i to the next; "edge0", "edge1", ... unless given.
    """

    def __init__(self, corners: Any, names: Any = None):
        c = np.asarray(corners, float)
        if c.ndim != 2 or c.shape[1] != 2 or len(c) < 3 or not np.isfinite(c).all():
            raise InputError("a polygon needs three or more corners", got=c.shape, expected="[k, 2]")
        names = [f"edge{i}" for i in range(len(c))] if names is None else list(names)
        if len(names) != len(c):
            raise InputError("one name an edge", got=len(names), expected=len(c))
        x, y = c.T
        self.area = float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2)
        if self.area == 0:
            raise InputError("the polygon has no area")
        if self.area < 0:
            c, self.area = np.roll(c[::-1], 0, axis=0), -self.area
            names = [names[(len(c) - 2 - i) % len(c)] for i in range(len(c))]
        self.corners = c
        ends = np.roll(c, -1, axis=0)

        def face(name: str, a: np.ndarray, b: np.ndarray) -> Face:
            tangent = (b - a) / np.linalg.norm(b - a)
            normal = np.array([tangent[1], -tangent[0]])

            def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                return a + u[:, :1] * (b - a), np.tile(normal, (len(u), 1))

            def mask(x: Any) -> Any:
                xp = space(x)
                return -(x - xp.asarray(a, x.dtype)) @ xp.asarray(normal, x.dtype)

            return Face(name, at, float(np.linalg.norm(b - a)), mask, _segment(a, b))

        super().__init__(2, (c.min(0), c.max(0)), [face(n, a, b) for n, a, b in zip(names, c, ends, strict=True)])

    def __repr__(self) -> str:
        return f"Polygon({self.corners.tolist()})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        nearest: Any = None
        inside: Any = None
        for a, b in zip(self.corners, np.roll(self.corners, -1, axis=0), strict=True):
            e = b - a
            d = x - xp.asarray(a, x.dtype)
            along = xp.clip(d @ xp.asarray(e / (e @ e), x.dtype), 0, 1)
            far = xp.sum((d - along[..., None] * xp.asarray(e, x.dtype)) ** 2, axis=-1)
            nearest = far if nearest is None else xp.minimum(nearest, far)
            # a ray to the right crosses this edge
            between = (x[..., 1] >= min(a[1], b[1])) & (x[..., 1] < max(a[1], b[1]))
            if a[1] != b[1]:
                crossing = between & (x[..., 0] < float(a[0]) + (x[..., 1] - float(a[1])) * float(e[0] / e[1]))
                inside = crossing if inside is None else inside ^ crossing
        safe = xp.where(nearest > 0, nearest, 1)
        return xp.where(inside, -1, 1) * xp.where(nearest > 0, xp.sqrt(safe), 0)


class Ellipse(Shape):
    """An ellipse with half axes along x and y; the boundary is called "ellipse"."""

    def __init__(self, centre: Any = (0.0, 0.0), axes: Any = (1.0, 0.5), _name: str = "ellipse"):
        self.centre, self.axes = np.asarray(centre, float), np.broadcast_to(np.asarray(axes, float), (2,))
        _positive(**{"first axis": self.axes[0], "second axis": self.axes[1]})
        a, b = self.axes
        angle = np.linspace(0, 2 * np.pi, 4097)
        speed = np.hypot(a * np.sin(angle), b * np.cos(angle))
        # spectrally exact length by the trapezoidal rule of a periodic function
        arc = np.concatenate([[0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(angle))])

        def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            s = np.interp(u[:, 0] * arc[-1], arc, angle)
            unit = np.stack([np.cos(s), np.sin(s)], 1)
            normal = unit / self.axes
            return self.centre + unit * self.axes, normal / np.linalg.norm(normal, axis=1, keepdims=True)

        def mask(x: Any) -> Any:
            xp = space(x)
            q = (x - xp.asarray(self.centre, x.dtype)) / xp.asarray(self.axes, x.dtype)
            return (1 - xp.sum(q * q, axis=-1)) * float(a * b / (a + b))

        super().__init__(2, (self.centre - self.axes, self.centre + self.axes), [Face(_name, at, float(arc[-1]), mask)])

    def __repr__(self) -> str:
        return f"Ellipse({tuple(self.centre.tolist())}, {tuple(self.axes.tolist())})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        d = x - xp.asarray(self.centre, x.dtype)
        r = xp.asarray(self.axes, x.dtype)
        k0, k1 = _norm(xp, d / r), _norm(xp, d / r**2)
        middle = k1 == 0
        return xp.where(middle, -float(self.axes.min()), k0 * (k0 - 1) / xp.where(middle, 1, k1))


class Disk(Ellipse):
    """A disk; its boundary is called "disk"."""

    def __init__(self, centre: Any = (0.0, 0.0), radius: float = 1.0):
        self.radius = float(radius)
        super().__init__(centre, (self.radius, self.radius), _name="disk")

    def __repr__(self) -> str:
        return f"Disk({tuple(self.centre.tolist())}, {self.radius})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        return _norm(xp, x - xp.asarray(self.centre, x.dtype)) - self.radius


class Sphere(Shape):
    """A ball; its boundary is called "sphere"."""

    def __init__(self, centre: Any = (0.0, 0.0, 0.0), radius: float = 1.0):
        _positive(radius=radius)
        self.centre, self.radius = np.asarray(centre, float), float(radius)

        def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            z, angle = 2 * u[:, 0] - 1, 2 * np.pi * u[:, 1]
            ring = np.sqrt(1 - z**2)
            n = np.stack([ring * np.cos(angle), ring * np.sin(angle), z], 1)
            return self.centre + self.radius * n, n

        def mask(x: Any) -> Any:
            xp = space(x)
            d = x - xp.asarray(self.centre, x.dtype)
            return (self.radius**2 - xp.sum(d * d, axis=-1)) / (2 * self.radius)

        face = Face("sphere", at, 4 * np.pi * self.radius**2, mask)
        super().__init__(3, (self.centre - self.radius, self.centre + self.radius), [face])

    def __repr__(self) -> str:
        return f"Sphere({tuple(self.centre.tolist())}, {self.radius})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        return _norm(xp, x - xp.asarray(self.centre, x.dtype)) - self.radius


class Cylinder(Shape):
    """A round cylinder along z, standing on the centre of its bottom; parts "side", "bottom", "top"."""

    def __init__(self, base: Any = (0.0, 0.0, 0.0), radius: float = 1.0, height: float = 1.0):
        _positive(radius=radius, height=height)
        self.base, self.radius, self.height = np.asarray(base, float), float(radius), float(height)
        r, h, c = self.radius, self.height, self.base

        def side(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            angle = 2 * np.pi * u[:, 0]
            n = np.stack([np.cos(angle), np.sin(angle), 0 * angle], 1)
            return c + r * n + np.outer(h * u[:, 1], [0, 0, 1]), n

        def cap(level: float) -> Any:
            def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                ring, angle = r * np.sqrt(u[:, 0]), 2 * np.pi * u[:, 1]
                p = c + np.stack([ring * np.cos(angle), ring * np.sin(angle), np.full(len(u), level)], 1)
                return p, np.tile([0.0, 0.0, 1.0 if level else -1.0], (len(u), 1))

            return at

        def round_mask(x: Any) -> Any:
            d = [x[..., i] - float(c[i]) for i in (0, 1)]
            return (r**2 - d[0] ** 2 - d[1] ** 2) / (2 * r)

        faces = [
            Face("side", side, 2 * np.pi * r * h, round_mask),
            Face("bottom", cap(0.0), np.pi * r**2, lambda x: x[..., 2] - float(c[2])),
            Face("top", cap(h), np.pi * r**2, lambda x: float(c[2] + h) - x[..., 2]),
        ]
        super().__init__(3, (c - [r, r, 0], [c[0] + r, c[1] + r, c[2] + h]), faces)

    def __repr__(self) -> str:
        return f"Cylinder({tuple(self.base.tolist())}, {self.radius}, {self.height})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        d = x - xp.asarray(self.base + np.array([0, 0, self.height / 2]), x.dtype)
        q = xp.stack([_norm(xp, d[..., :2]) - self.radius, xp.abs(d[..., 2]) - self.height / 2], axis=-1)
        return _norm(xp, xp.maximum(q, 0)) + xp.minimum(xp.max(q, axis=-1), 0)


class Torus(Shape):
    """A torus about the z axis through its centre; its boundary is called "torus"."""

    def __init__(self, centre: Any = (0.0, 0.0, 0.0), radius: float = 1.0, tube: float = 0.25):
        _positive(radius=radius, tube=tube)
        if tube >= radius:
            raise InputError("the tube of a torus is thinner than its radius", got=(tube, radius))
        self.centre, self.radius, self.tube = np.asarray(centre, float), float(radius), float(tube)
        big, small = self.radius, self.tube

        def at(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            # area below angle a of the tube: (R a + r sin a) / (2 pi R), inverted by Newton's method
            wanted, a = 2 * np.pi * big * u[:, 0], 2 * np.pi * u[:, 0]
            for _ in range(30):
                a = a - (big * a + small * np.sin(a) - wanted) / (big + small * np.cos(a))
            b = 2 * np.pi * u[:, 1]
            n = np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], 1)
            ring = np.stack([np.cos(b), np.sin(b), 0 * b], 1)
            return self.centre + big * ring + small * n, n

        def mask(x: Any) -> Any:
            xp = space(x)
            d = x - xp.asarray(self.centre, x.dtype)
            ring = _norm(xp, d[..., :2]) - big
            return (small**2 - ring**2 - d[..., 2] ** 2) / (2 * small)

        reach = np.array([big + small, big + small, small])
        face = Face("torus", at, 4 * np.pi**2 * big * small, mask)
        super().__init__(3, (self.centre - reach, self.centre + reach), [face])

    def __repr__(self) -> str:
        return f"Torus({tuple(self.centre.tolist())}, {self.radius}, {self.tube})"

    def distance(self, x: Any) -> Any:
        xp = space(x)
        d = x - xp.asarray(self.centre, x.dtype)
        q = xp.stack([_norm(xp, d[..., :2]) - self.radius, d[..., 2]], axis=-1)
        return _norm(xp, q) - self.tube
