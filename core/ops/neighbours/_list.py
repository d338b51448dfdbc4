"""The neighbour list with a skin: built on the host, refreshed anywhere, and impossible to use after an overflow."""

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

from sciax.core.errors import InputError, SciaxError
from sciax.core.ops.neighbours._displacements import displacements
from sciax.core.ops.neighbours._pairs import Grid, Pairs, basis_jax, check_input, complete_basis, pairs, plan_grid


class NeighbourOverflowError(SciaxError, OverflowError):
    """A neighbour list whose fixed capacity no longer holds all pairs; the message names the capacity and the need."""


class NeighbourTable(NamedTuple):
    """Dense form: `others[k, i]` is the k-th neighbour of atom i, at r_other + offsets[:, k, i]; padding lies far away."""

    others: Int[Array, "width atoms"]
    offsets: Float[Array, "3 width atoms"]


class NeighbourList(eqx.Module):
    """Directed pairs (center, other, shift) within cutoff + skin of the positions they were built at.

    Build with `NeighbourList.build` on concrete positions. `update` refreshes it with the same shapes: outside jit an
    overflow grows the capacity geometrically and builds again, under jit it raises at run time, or with
    `on_overflow="flag"` leaves `overflowed` to be checked by the caller (who must call `check`).

    Shifts refer to the positions as given, wrapped or not. Self images are included; cells may be smaller than the cutoff.
    """

    ROOM: ClassVar[tuple[str, ...]] = ("capacity", "width", *3 * ("bins",), *3 * ("reach",), "per bin")

    centers: Int[Array, " pairs"]
    others: Int[Array, " pairs"]
    shifts: Int[Array, "pairs 3"]
    count: Int[Array, ""]
    width: Int[Array, ""]
    per_bin: Int[Array, ""]
    covered: Bool[Array, ""]
    reference: Float[Array, "atoms 3"]
    reference_cell: Float[Array, "3 3"]
    pbc: tuple[bool, bool, bool] = eqx.field(static=True)
    cutoff: float = eqx.field(static=True)
    skin: float = eqx.field(static=True)
    grid: Grid = eqx.field(static=True)
    max_width: int = eqx.field(static=True)
    method: str = eqx.field(static=True)

    @staticmethod
    def build(
        positions: Float[Array, "atoms 3"],
        cell: Float[Array, "3 3"] | None = None,
        pbc: bool | Sequence[bool] = False,
        *,
        cutoff: float,
        skin: float = 0.0,
        headroom: float = 1.2,
        method: str = "auto",
        minimum: int = 0,
    ) -> "NeighbourList":
        """A list for concrete positions, with room for `headroom` times the pairs found (at least `minimum`).

        Raises:
            InputError: positions that are not finite, a degenerate cell, a negative skin, traced arrays.
        """
        if isinstance(positions, Tracer) or isinstance(cell, Tracer):
            raise InputError(
                "a neighbour list is built outside jit, and updated inside", remedy="pass the list in, call update"
            )
        positions = jnp.asarray(positions)
        if not jnp.issubdtype(positions.dtype, jnp.floating):
            positions = positions.astype(float)
        cell = jnp.zeros((3, 3), positions.dtype) if cell is None else jnp.asarray(cell, positions.dtype)
        flags = check_input(positions, cell, pbc, cutoff)
        if not (skin >= 0 and math.isfinite(skin)):
            raise InputError("the skin is not a length", got=skin, expected=">= 0")
        host = np.asarray(positions, np.float64)
        if not np.isfinite(host).all():
            bad = int(np.flatnonzero(~np.isfinite(host).all(1))[0])
            raise InputError(f"atom {bad} has a position that is not finite", got=host[bad].tolist())
        basis = complete_basis(np.asarray(cell, np.float64), flags)
        reach = cutoff + skin
        grid = plan_grid(host, np.asarray(cell, np.float64), flags, reach, headroom)
        # First guess: ideal-gas count; the second pass has the exact need.
        n = len(host)
        span = host.max(0) - host.min(0) + 1e-3 if n else np.ones(3)
        volume = abs(np.linalg.det(basis)) if all(flags) else float(np.prod(np.maximum(span, 1.0)))
        guess = int(n * min(4.2 * reach**3 * n / max(volume, 1e-9), 400) * 1.3) + 64
        capacity, width = max(guess, minimum), 0
        for _ in range(4):
            found = pairs(positions, cell, pbc=flags, cutoff=reach, capacity=capacity, grid=grid, method=method)
            need = int(found.count)
            if need <= capacity and int(found.per_bin) <= grid.per_bin:
                break
            capacity = int(need * headroom) + 16
            grid = grid._replace(per_bin=max(grid.per_bin, int(int(found.per_bin) * headroom) + 1))
        roomy = max(int(need * headroom) + 16, minimum)
        found = _resize(found, roomy, n)
        width = int(_row_counts(found.centers, n).max()) if n else 0
        return NeighbourList(
            *found[:4],
            width=jnp.int32(width),
            per_bin=found.per_bin,
            covered=found.covered,
            reference=positions,
            reference_cell=cell,
            pbc=flags,
            cutoff=float(cutoff),
            skin=float(skin),
            grid=grid,
            max_width=max(1, math.ceil(width * headroom) + (2 if headroom > 1 else 0)),
            method=method,
        )

    @staticmethod
    def template(
        positions, cell, pbc, *, cutoff: float, skin: float, room: tuple[int, ...], method: str = "auto"
    ) -> "NeighbourList":
        """A list of exactly the size of another (its `room`), still without pairs: stale until `update`."""
        positions = jnp.asarray(positions)
        capacity, width, *grid = room
        nothing = jnp.zeros((), jnp.int32)
        return NeighbourList(
            centers=jnp.full(capacity, positions.shape[0], jnp.int32),
            others=jnp.zeros(capacity, jnp.int32),
            shifts=jnp.zeros((capacity, 3), jnp.int32),
            count=nothing,
            width=nothing,
            per_bin=nothing,
            covered=jnp.asarray(True),
            reference=jnp.full_like(positions, jnp.inf),
            reference_cell=jnp.asarray(cell, positions.dtype),
            pbc=check_input(positions, jnp.asarray(cell), pbc, cutoff),
            cutoff=float(cutoff),
            skin=float(skin),
            grid=Grid(tuple(grid[:3]), tuple(grid[3:6]), grid[6]),  # pyright: ignore
            max_width=width,
            method=method,
        )

    @property
    def room(self) -> tuple[int, ...]:
        """The static sizes: capacity, width of the table, and the grid of the XLA search."""
        return (self.capacity, self.max_width, *self.grid.bins, *self.grid.reach, self.grid.per_bin)

    @property
    def capacity(self) -> int:
        return self.centers.shape[0]

    @property
    def mask(self) -> Bool[Array, " pairs"]:
        """True for real pairs."""
        return self.centers < self.reference.shape[0]

    @property
    def overflowed(self) -> Bool[Array, ""]:
        """True where pairs were lost or could not be searched; every use must be preceded by a look at this."""
        return (
            (self.count > self.capacity)
            | (self.count < 0)
            | (self.width > self.max_width)
            | (self.per_bin > self.grid.per_bin)
            | ~self.covered
        )

    def check(self) -> "NeighbourList":
        """Itself, or the error that names which capacity is too small and what it needs (outside jit)."""
        limits = (
            ("pairs", int(self.count), self.capacity),
            ("neighbours of one atom", int(self.width), self.max_width),
            ("atoms in a search bin", int(self.per_bin), self.grid.per_bin),
        )
        if int(self.count) < 0:
            raise InputError(
                "positions that are not finite, or a degenerate cell, reached the neighbour list", got="NaN or inf"
            )
        for what, need, have in limits:
            if need > have:
                raise NeighbourOverflowError(
                    f"the neighbour list holds too few {what}",
                    got=need,
                    expected=f"<= {have}",
                    remedy="list = list.grown(positions, cell), or build with a larger headroom",
                )
        if not bool(self.covered):
            raise NeighbourOverflowError(
                "the cell shrank until the search grid no longer covers the cutoff",
                got=np.asarray(self.reference_cell).tolist(),
                remedy="list = list.grown(positions, cell)",
            )
        return self

    def stale(self, positions: Float[Array, "atoms 3"], cell: Float[Array, "3 3"] | None = None) -> Bool[Array, ""]:
        """True where an atom may have entered the cutoff unseen: the two largest moves since the build exceed the skin."""
        return is_stale(positions, cell, self.reference, self.reference_cell, self.pbc, self.cutoff, self.skin)

    def update(
        self, positions: Float[Array, "atoms 3"], cell: Float[Array, "3 3"] | None = None, *, on_overflow: str = "raise"
    ) -> "NeighbourList":
        """The list for new positions (and cell), with the same static shapes under jit.

        Args:
            on_overflow: "raise" (outside jit: grow and build again; under jit: an error at run time) or "flag".
        """
        if on_overflow not in ("raise", "flag"):
            raise InputError(f"unknown on_overflow={on_overflow!r}", expected="'raise' or 'flag'")
        cell = self.reference_cell if cell is None else cell
        n = self.reference.shape[0]
        reach = self.cutoff + self.skin
        found = pairs(
            positions, cell, pbc=self.pbc, cutoff=reach, capacity=self.capacity, grid=self.grid, method=self.method
        )
        width = _row_counts(found.centers, n).max(initial=0)
        new = NeighbourList(
            *found[:4],
            width=width.astype(jnp.int32),
            per_bin=found.per_bin,
            covered=found.covered,
            reference=jax.lax.stop_gradient(positions),
            reference_cell=jax.lax.stop_gradient(cell),
            pbc=self.pbc,
            cutoff=self.cutoff,
            skin=self.skin,
            grid=self.grid,
            max_width=self.max_width,
            method=self.method,
        )
        if on_overflow == "flag":
            return new
        if isinstance(new.count, Tracer):
            new_centers = eqx.error_if(
                new.centers,
                new.overflowed,
                "neighbour list overflow under jit: more pairs than its capacity; build it again outside jit (list.grown)",
            )
            return eqx.tree_at(lambda l: l.centers, new, new_centers)
        return self.grown(positions, cell) if bool(new.overflowed) else new

    def refreshed(
        self, positions: Float[Array, "atoms 3"], cell: Float[Array, "3 3"] | None = None, *, on_overflow: str = "raise"
    ) -> "NeighbourList":
        """`update` only where `stale` says so. An overflow once flagged stays flagged."""
        if isinstance(positions, Tracer):
            # kept flags: a list that overflowed must not look sound after a later, smaller rebuild
            needed = self.stale(positions, cell) & ~self.overflowed
            arrays, static = eqx.partition(self, eqx.is_array)

            def fresh(p):
                return eqx.filter(self.update(p, cell, on_overflow=on_overflow), eqx.is_array)

            return eqx.combine(jax.lax.cond(needed, fresh, lambda p: arrays, positions), static)
        return self.update(positions, cell, on_overflow=on_overflow) if bool(self.stale(positions, cell)) else self

    def grown(self, positions, cell=None, factor: float = 1.5) -> "NeighbourList":
        """Built again outside jit with at least `factor` times the capacity: geometric growth, so few rebuilds."""
        cell = self.reference_cell if cell is None else cell
        new = NeighbourList.build(
            positions,
            cell,
            self.pbc,
            cutoff=self.cutoff,
            skin=self.skin,
            headroom=factor,
            method=self.method,
            minimum=int(self.capacity * factor) if int(self.count) > self.capacity else self.capacity,
        )
        wider = max(new.max_width, self.max_width)
        return _with_width(new, wider) if wider != new.max_width else new

    def displacements(self, positions: Float[Array, "atoms 3"], cell: Float[Array, "3 3"] | None = None):
        """Vectors from center to other, with the gradient to positions and cell; padding gives 0."""
        cell = self.reference_cell if cell is None else cell
        return displacements(positions, cell, self.centers, self.others, self.shifts)

    def table(self, cell: Float[Array, "3 3"] | None = None) -> NeighbourTable:
        """The dense form for `pair_forces`; gathers only (a scatter of the same size takes ten times as long on CPU)."""
        cell = self.reference_cell if cell is None else cell
        n = self.reference.shape[0]
        start = jnp.searchsorted(self.centers, jnp.arange(n + 1, dtype=jnp.int32)).astype(jnp.int32)
        slot = start[:-1] + jnp.arange(self.max_width, dtype=jnp.int32)[:, None]
        real = slot < start[1:]
        slot = jnp.minimum(slot, self.capacity - 1)
        others = jnp.where(real, self.others[slot], jnp.arange(n, dtype=jnp.int32))
        far = jnp.asarray(1e3 * (self.cutoff + self.skin), self.reference.dtype)
        shift = self.shifts[slot].astype(self.reference.dtype)  # (width, atoms, 3)
        offsets = jnp.einsum("kns,sc->ckn", shift, cell, precision="highest")
        return NeighbourTable(others, jnp.where(real, offsets, far))


def is_stale(positions, cell, reference, reference_cell, pbc, cutoff: float, skin: float) -> Bool[Array, ""]:
    """True where two atoms may have come within the cutoff that a list of cutoff + skin at `reference` does not hold."""
    strain = jnp.zeros((), positions.dtype)
    if cell is not None and any(pbc):
        # A changed cell carries atoms and images along (F): only what is left after F is motion, and F itself
        # changes a vector of the list's length by at most |F - 1| times it.
        old, new = basis_jax(reference_cell, pbc), basis_jax(cell, pbc)
        deform = jnp.matmul(jnp.linalg.inv(old), new, precision="highest")
        strain = jnp.linalg.norm(deform - jnp.eye(3, dtype=deform.dtype)) * (cutoff + skin)
        reference = jnp.where(strain > 0, jnp.matmul(reference, deform, precision="highest"), reference)
    moved = positions - reference
    farthest = jnp.sqrt(jnp.max(jnp.sum(moved * moved, axis=-1), initial=0.0))
    return 2 * farthest + strain >= skin


def _with_width(l: NeighbourList, width: int) -> NeighbourList:
    fields = {name: getattr(l, name) for name in l.__dataclass_fields__}
    return NeighbourList(**{**fields, "max_width": width})


def _row_counts(centers: Array, n: int) -> Array:
    start = jnp.searchsorted(centers, jnp.arange(n + 1, dtype=jnp.int32))
    return start[1:] - start[:-1]


def _resize(found: Pairs, capacity: int, n: int) -> Pairs:
    have = found.centers.shape[0]
    if capacity <= have:
        return found._replace(
            centers=found.centers[:capacity], others=found.others[:capacity], shifts=found.shifts[:capacity]
        )
    more = capacity - have
    return found._replace(
        centers=jnp.pad(found.centers, (0, more), constant_values=n),
        others=jnp.pad(found.others, (0, more)),
        shifts=jnp.pad(found.shifts, ((0, more), (0, 0))),
    )
