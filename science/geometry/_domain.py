"""`Domain`: where a problem lives. Anything with a dimension, named boundaries and a way to be meshed."""

from typing import Any

import numpy as np

from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.science.mesh import Mesh, box_mesh, read_mesh
from sciax.science.mesh._generate import SIDES


class Domain:
    """Base of all domains.

    Attributes:
        dim: dimension.
        boundaries: names of boundary parts; "boundary" always means all of it.
    """

    dim: int
    boundaries: tuple[str, ...] = ()

    def mesh(self, **options: Any) -> Mesh:
        """The domain cut into cells; what `options` may hold depends on the domain."""
        raise UnsupportedError(f"{self!r} cannot be meshed", remedy="use a method without a mesh, or Domain.from_mesh")

    @staticmethod
    def from_mesh(source: Any, **options: Any) -> "MeshDomain":
        """The domain of a mesh, given as a `Mesh` or a file (`read_mesh` takes the options)."""
        return MeshDomain(source if isinstance(source, Mesh) else read_mesh(source, **options))


class MeshDomain(Domain):
    """A domain given by its mesh."""

    def __init__(self, mesh: Mesh):
        if mesh.dim != mesh.space:
            raise InputError(
                f"{mesh.source} is a surface: {mesh.dim}-dimensional cells in {mesh.space}-dimensional space",
                expected="cells that fill the space",
                remedy="mesh the volume it encloses",
            )
        self._mesh = mesh
        self.dim = mesh.dim
        self.boundaries = tuple(mesh.facet_groups)

    def __repr__(self) -> str:
        return f"Domain.from_mesh({self._mesh!r})"

    def mesh(self, **options: Any) -> Mesh:
        if options:
            name = next(iter(options))
            raise InputError(f"a domain given by its mesh takes no {name!r}", remedy="leave it out: the mesh is given")
        return self._mesh


class BoxDomain(Domain):
    """An interval, rectangle or box with its sides named; the base of `Interval`, `Rectangle` and `Box`.

    Attributes:
        lower, upper: opposite corners, [dim].
    """

    def __init__(self, lower: Any, upper: Any, dim: int):
        self.lower = np.atleast_1d(np.asarray(lower, dtype=np.float64))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=np.float64))
        if self.lower.shape != (dim,) or self.upper.shape != (dim,) or not (self.upper > self.lower).all():
            raise InputError(
                f"{type(self).__name__} needs two corners of {dim} coordinates, the second above the first",
                got=(self.lower.tolist(), self.upper.tolist()),
            )
        self.dim = dim
        self.boundaries = tuple(name for pair in SIDES[dim] for name in pair)
        self._meshes: dict[Any, Mesh] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({tuple(self.lower.tolist())}, {tuple(self.upper.tolist())})"

    @property
    def extent(self) -> np.ndarray:
        return self.upper - self.lower

    def __sub__(self, other: Any) -> Any:
        from sciax.science.geometry._shape import as_shape

        return as_shape(self) - other

    def __or__(self, other: Any) -> Any:
        from sciax.science.geometry._shape import as_shape

        return as_shape(self) | other

    def __and__(self, other: Any) -> Any:
        from sciax.science.geometry._shape import as_shape

        return as_shape(self) & other

    def side(self, name: str) -> tuple[int, int]:
        """(axis, 0 at the lower or 1 at the upper end) of a named side."""
        for axis, pair in enumerate(SIDES[self.dim]):
            if name in pair:
                return axis, pair.index(name)
        raise InputError(f"{self!r} has no side {name!r}", remedy=did_you_mean(name, self.boundaries))

    def mesh(self, *, size: float | None = None, cells: Any = None, kind: str | None = None, **other: Any) -> Mesh:
        """A uniform mesh.

        Args:
            size: edge length wanted (the longest side / 16 if neither is given).
            cells: or boxes along each axis.
            kind: "triangle", "quad", "tet", "hex", "interval".
        """
        if other:
            raise InputError(
                f"unknown option {next(iter(other))!r}",
                remedy=did_you_mean(next(iter(other)), ["size", "cells", "kind"]),
            )
        if size is not None and cells is not None:
            raise InputError("give either size or cells", got=f"size={size}, cells={cells}")
        if size is not None and not size > 0:
            raise InputError("the mesh size must be positive", got=size)
        if cells is None:
            counts = np.ceil(self.extent / (size or self.extent.max() / 16) - 1e-9).astype(int)
        else:
            counts = np.broadcast_to(np.asarray(cells), (self.dim,))
        key = (tuple(int(c) for c in counts), kind)
        if key not in self._meshes:
            self._meshes[key] = box_mesh(self.lower, self.upper, counts, kind)
        return self._meshes[key]


class Interval(BoxDomain):
    """`lower < x < upper`, ends "left" and "right"."""

    def __init__(self, lower: float = 0.0, upper: float = 1.0):
        super().__init__(lower, upper, 1)


class Rectangle(BoxDomain):
    """A rectangle with sides "left", "right", "bottom", "top"."""

    def __init__(self, lower: Any = (0.0, 0.0), upper: Any = (1.0, 1.0)):
        super().__init__(lower, upper, 2)


class Box(BoxDomain):
    """A box with sides "left", "right" (x), "front", "back" (y), "bottom", "top" (z)."""

    def __init__(self, lower: Any = (0.0, 0.0, 0.0), upper: Any = (1.0, 1.0, 1.0)):
        super().__init__(lower, upper, 3)
