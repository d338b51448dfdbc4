"""Half neighbour lists in the order of the search cells: what compiled pair sums read."""

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from sciax.core.errors import InputError
from sciax.core.ops.neighbours import _native
from sciax.core.ops.neighbours._list import NeighbourOverflowError, is_stale
from sciax.core.ops.neighbours._pairs import check_input, complete_basis

IMAGE_BITS = 27
"""An entry of `HalfPairs.others` is slot + image · 2²⁷, the image (s0 + 1)·9 + (s1 + 1)·3 + s2 + 1 in 0..26."""


class HalfPairs(NamedTuple):
    """Every pair once. Slot a holds atom `order[a]`, brought into the cell by taking `wrap[a]` lattice vectors off; its pairs are
    the entries start[a]..start[a + 1] of `others`, each the slot of the other atom and its image."""

    order: Int[Array, " atoms"]
    wrap: Int[Array, "atoms 3"]
    start: Int[Array, " rows"]
    others: UInt32[Array, " pairs"]


class HalfNeighbourList(eqx.Module):
    """Pairs within cutoff + skin, each held once and in four bytes, atoms sorted by place: the list for compiled pair sums.

    The interface is that of `NeighbourList`, whose driver (rebuild when stale, grow on overflow) serves both. It needs the
    compiled search, and a cell no thinner than cutoff + skin along its periodic directions: ask `fits`.
    """

    ROOM: ClassVar[tuple[str, ...]] = ("capacity",)

    pairs: HalfPairs
    count: Int[Array, ""]
    reference: Float[Array, "atoms 3"]
    reference_cell: Float[Array, "3 3"]
    pbc: tuple[bool, bool, bool] = eqx.field(static=True)
    cutoff: float = eqx.field(static=True)
    skin: float = eqx.field(static=True)

    @staticmethod
    def fits(cell, pbc: Sequence[bool], reach: float, atoms: int) -> bool:
        """True where such a list can be built here: compiled search, CPU, a cell thick enough, fewer than 2²⁷ atoms."""
        if not (_native.half_available() and jax.default_backend() == "cpu" and 0 < atoms < 2**IMAGE_BITS):
            return False
        basis = complete_basis(np.asarray(cell, np.float64), pbc)
        height = 1 / np.linalg.norm(np.linalg.inv(basis), axis=0)
        return all(h >= reach for h, p in zip(height, pbc) if p)

    @staticmethod
    def build(
        positions, cell, pbc, *, cutoff: float, skin: float = 0.0, headroom: float = 1.2, minimum: int = 0
    ) -> "HalfNeighbourList":
        """A list for concrete positions, with room for `headroom` times the pairs found (at least `minimum`).

        Raises:
            InputError: positions that are not finite, a cell for which `fits` says no.
        """
        positions = jnp.asarray(positions)
        cell = jnp.asarray(cell, positions.dtype)
        flags = check_input(positions, cell, pbc, cutoff)
        if not HalfNeighbourList.fits(cell, flags, cutoff + skin, len(positions)):
            raise InputError(
                "no half list here: no compiled search, or a cell thinner than the cutoff and the skin",
                got=np.asarray(cell).tolist(),
                remedy="NeighbourList",
            )
        if not bool(jnp.isfinite(positions).all()):
            raise InputError("a position is not finite")
        room = max(minimum, 16)
        for _ in range(2):
            made = HalfNeighbourList.template(positions, cell, flags, cutoff=cutoff, skin=skin, room=(room,))
            made = made.update(positions, cell)
            need = max(int(int(made.count) * headroom) + 16, minimum)
            if room >= need or (room == minimum and int(made.count) <= room):
                break
            room = need
        return made.check()

    @staticmethod
    def template(positions, cell, pbc, *, cutoff: float, skin: float, room: tuple[int, ...]) -> "HalfNeighbourList":
        """A list of exactly the size of another (its `room`), still without pairs: stale until `update`."""
        positions = jnp.asarray(positions)
        n = positions.shape[0]
        pairs = HalfPairs(
            jnp.zeros(n, jnp.int32),
            jnp.zeros((n, 3), jnp.int32),
            jnp.zeros(n + 1, jnp.int32),
            jnp.zeros(room[0], jnp.uint32),
        )
        cell = jnp.asarray(cell, positions.dtype)
        return HalfNeighbourList(
            pairs,
            jnp.zeros((), jnp.int32),
            jnp.full_like(positions, jnp.inf),
            cell,
            check_input(positions, cell, pbc, cutoff),
            float(cutoff),
            float(skin),
        )

    @property
    def capacity(self) -> int:
        return self.pairs.others.shape[0]

    @property
    def room(self) -> tuple[int, ...]:
        """The static size: the capacity."""
        return (self.capacity,)

    @property
    def overflowed(self) -> Bool[Array, ""]:
        """True where pairs were lost or could not be searched; the list then is empty."""
        return (self.count > self.capacity) | (self.count < 0)

    def check(self) -> "HalfNeighbourList":
        """Itself, or the error that says what it lacks (outside jit)."""
        count = int(self.count)
        if count == -1:
            raise InputError("positions that are not finite, or a degenerate cell, reached the neighbour list")
        if count == -2:
            raise InputError("the cell became thinner than the cutoff and the skin", remedy="NeighbourList")
        if count > self.capacity:
            raise NeighbourOverflowError(
                "the neighbour list holds too few pairs",
                got=count,
                expected=f"<= {self.capacity}",
                remedy="list = list.grown(positions, cell), or build with a larger headroom",
            )
        return self

    def stale(self, positions: Float[Array, "atoms 3"], cell: Float[Array, "3 3"] | None = None) -> Bool[Array, ""]:
        """True where an atom may have entered the cutoff unseen."""
        return is_stale(positions, cell, self.reference, self.reference_cell, self.pbc, self.cutoff, self.skin)

    def update(self, positions, cell=None, *, on_overflow: str = "flag") -> "HalfNeighbourList":
        """The list for new positions (and cell), of the same size; look at `overflowed` before it is used."""
        cell = self.reference_cell if cell is None else cell
        positions, cell = jax.lax.stop_gradient((positions, cell))
        *pairs, count = _native.native_half(positions, cell, self.pbc, self.cutoff + self.skin, self.capacity)
        return HalfNeighbourList(HalfPairs(*pairs), count, positions, cell, self.pbc, self.cutoff, self.skin)

    def grown(self, positions, cell=None, factor: float = 1.5) -> "HalfNeighbourList":
        """Built again outside jit with at least `factor` times the capacity, where that was too small."""
        self_cell = self.reference_cell if cell is None else cell
        full = int(self.count) > self.capacity
        return HalfNeighbourList.build(
            positions,
            self_cell,
            self.pbc,
            cutoff=self.cutoff,
            skin=self.skin,
            headroom=factor,
            minimum=math.ceil(self.capacity * factor) if full else self.capacity,
        )
