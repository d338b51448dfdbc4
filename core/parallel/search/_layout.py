"""Layouts of one array on a mesh, and what it takes to go from one to another."""

import itertools
import math
from dataclasses import dataclass
from functools import cache

from jax.sharding import Mesh, PartitionSpec

from sciax.core.errors import InputError
from sciax.core.parallel._machine import Machine
from sciax.core.parallel._plan import axes_of

Layout = tuple[int, ...]
"""For each axis of the grid the dimension of the array that it splits, or -1. Two axes on one dimension stand in mesh order."""


@dataclass(frozen=True)
class Grid:
    """The axes of a mesh that have more than one device."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @staticmethod
    def of(mesh: Mesh) -> "Grid":
        axes = {name: size for name, size in mesh.shape.items() if size > 1}
        return Grid(tuple(axes), tuple(axes.values()))

    @property
    def whole(self) -> Layout:
        """Every device has all."""
        return (-1,) * len(self.sizes)

    def parts(self, layout: Layout) -> int:
        """Number of pieces an array is in."""
        return math.prod(size for size, dim in zip(self.sizes, layout, strict=True) if dim >= 0)

    def spec(self, layout: Layout, rank: int) -> PartitionSpec:
        entries = [[name for name, dim in zip(self.names, layout, strict=True) if dim == i] for i in range(rank)]
        return PartitionSpec(*(None if not e else e[0] if len(e) == 1 else tuple(e) for e in entries))

    def layout(self, spec: PartitionSpec) -> Layout:
        """The layout of a PartitionSpec that keeps to mesh order."""
        found = dict.fromkeys(self.names, -1)
        for dim, entry in enumerate(spec):
            names = [name for name in axes_of(entry) if name in found]
            if names != sorted(names, key=self.names.index):
                raise InputError("the search knows axes in mesh order only", got=str(spec), expected=self.names)
            for name in names:
                found[name] = dim
        return tuple(found.values())


@cache
def layouts(shape: tuple[int, ...], grid: Grid) -> tuple[Layout, ...]:
    """All layouts that divide the shape evenly."""
    found = itertools.product(range(-1, len(shape)), repeat=len(grid.sizes))
    return tuple(layout for layout in found if _divides(shape, layout, grid))


def _divides(shape: tuple[int, ...], layout: Layout, grid: Grid) -> bool:
    return all(
        length % math.prod(size for size, dim in zip(grid.sizes, layout, strict=True) if dim == i) == 0
        for i, length in enumerate(shape)
        if i in layout
    )


@dataclass(frozen=True)
class Move:
    """One step of a change of layout.

    Attributes:
        layout: after the step.
        sends: (kind, elements of the result on one device, devices that take part); empty for a slice.
    """

    layout: Layout
    sends: tuple[tuple[str, int, int], ...]


@cache
def moves(shape: tuple[int, ...], source: Layout, target: Layout, grid: Grid) -> tuple[Move, ...]:
    """Slices first, since they are free and make the rest smaller; then all-to-alls; then all-gathers.

    One axis at a time: XLA's partitioner does each of these steps by one collective, but gathers the whole array where it is asked
    for several at once.
    """
    total = math.prod(shape)
    now, steps = source, []

    def step(layout: Layout, *kinds: tuple[str, int]) -> None:
        nonlocal now
        size = total // grid.parts(layout)
        before = total // grid.parts(now)
        sends = tuple((kind, before if kind == "collective-permute" else size, devices) for kind, devices in kinds)
        steps.append(Move(layout, sends))
        now = layout

    def put(axis: int, dim: int) -> Layout:
        return (*now[:axis], dim, *now[axis + 1 :])

    def minor(axis: int, dim: int) -> bool:
        """Whether no later axis stands on the dimension: only then are the parts where they shall be."""
        return all(now[later] != dim for later in range(axis + 1, len(now)))

    axes = range(len(now))
    late = []
    for axis in axes:
        if source[axis] < 0 <= target[axis]:
            wanted = put(axis, target[axis])
            if not _divides(shape, wanted, grid):
                late.append(axis)
            elif minor(axis, target[axis]):
                step(wanted)
            else:
                step(wanted)
                steps[-1] = Move(wanted, (("collective-permute", total // grid.parts(wanted), grid.sizes[axis]),))
    for axis in reversed(axes):
        if source[axis] >= 0 and target[axis] >= 0 and source[axis] != target[axis]:
            wanted = put(axis, target[axis])
            if not _divides(shape, wanted, grid):
                late.append(axis)
                step(put(axis, -1), ("all-gather", grid.sizes[axis]))
            else:
                aside = () if minor(axis, now[axis]) and minor(axis, target[axis]) else (("collective-permute", 0),)
                step(wanted, *aside, ("all-to-all", grid.sizes[axis]))
    for dim in sorted({source[axis] for axis in axes if target[axis] < 0 <= source[axis]}):
        leaving = [axis for axis in axes if source[axis] == dim and target[axis] < 0]
        aside = any(now[axis] == dim and axis not in leaving for axis in range(leaving[0], len(now)))
        wanted = tuple(-1 if axis in leaving else now[axis] for axis in axes)
        group = math.prod(grid.sizes[axis] for axis in leaving)
        step(wanted, *((("collective-permute", 0),) if aside else ()), ("all-gather", group))
    for axis in late:
        step(put(axis, target[axis]))
    return tuple(steps)


Sends = tuple[tuple[str, int, int], ...]
"""Collectives: kind, elements, devices."""


@cache
def resharding(shape: tuple[int, ...], source: Layout, target: Layout, grid: Grid) -> Sends:
    return tuple(send for move in moves(shape, source, target, grid) for send in move.sends)


@cache
def reduction(
    shape: tuple[int, ...], source: Layout, partial: tuple[int, ...], target: Layout, grid: Grid, scatter: bool
) -> Sends:
    """From partial sums over the axes `partial` (which split no dimension of `source`) to the whole sums in `target`.

    An axis that splits the target is scattered over first: one reduce-scatter, or an all-reduce and a slice where the machine's
    compiler knows no reduce-scatter (XLA on CPU).
    """
    total, now, sent = math.prod(shape), source, []
    for axis in partial:
        if target[axis] >= 0:
            wanted = (*now[:axis], target[axis], *now[axis + 1 :])
            minor = all(now[later] != target[axis] for later in range(axis + 1, len(now)))
            if not minor or not _divides(shape, wanted, grid):
                continue
            size = total // grid.parts(wanted if scatter else now)
            sent.append(("reduce-scatter" if scatter else "all-reduce", size, grid.sizes[axis]))
            now = wanted
    rest = [axis for axis in partial if now[axis] < 0]
    if rest:
        group = math.prod(grid.sizes[axis] for axis in rest)
        sent.append(("all-reduce", total // grid.parts(now), group))
    return (*sent, *resharding(shape, now, target, grid))


def seconds(sends: Sends, itemsize: int, machine: Machine) -> float:
    return sum(machine.transfer(kind, size * itemsize, devices) for kind, size, devices in sends)
