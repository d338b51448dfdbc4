"""Pair search: every directed pair (i, j, S) with |r_j + S·cell - r_i| < cutoff, self images included."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from sciax.core.errors import DTypeError, InputError, ShapeError, UnsupportedError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.neighbours import _native


class Grid(NamedTuple):
    """Static shape of the XLA search: `bins` along each direction, `reach` of bins to look at, atoms `per_bin`."""

    bins: tuple[int, int, int]
    reach: tuple[int, int, int]
    per_bin: int


class Pairs(NamedTuple):
    """Directed pairs sorted by center; entries from `count` on are padding (center = number of atoms, other = 0, shift = 0).

    `count` is the true number, also where it exceeds the capacity, and -1 for a degenerate cell or positions that are not
    finite; `per_bin` the fullest bin; `covered` False where the grid's bins no longer cover the cutoff.
    """

    centers: Int[Array, " pairs"]
    others: Int[Array, " pairs"]
    shifts: Int[Array, "pairs 3"]
    count: Int[Array, ""]
    per_bin: Int[Array, ""]
    covered: Array


def check_input(positions, cell, pbc, cutoff) -> tuple[bool, bool, bool]:
    """The periodicity as three bools, after checking what can be checked without values."""
    if positions.ndim != 2 or positions.shape[1] != 3:
        raise ShapeError("positions are not of shape (atoms, 3)", got=positions.shape, expected="(atoms, 3)")
    if cell.shape != (3, 3):
        raise ShapeError("the cell is not a matrix of three row vectors", got=cell.shape, expected="(3, 3)")
    if positions.dtype.name not in ("float32", "float64"):
        raise DTypeError("positions are not real floating numbers", got=positions.dtype, expected="float32 or float64")
    flags = (pbc,) * 3 if isinstance(pbc, bool | np.bool_) else tuple(pbc)
    if len(flags) != 3:
        raise ShapeError("pbc is neither one bool nor three", got=pbc, expected="(bool, bool, bool)")
    if not (np.isfinite(cutoff) and cutoff > 0):
        raise InputError("the cutoff is not a positive length", got=cutoff, expected="> 0")
    return bool(flags[0]), bool(flags[1]), bool(flags[2])


def complete_basis(cell: np.ndarray, pbc: Sequence[bool], who: str = "neighbours") -> np.ndarray:
    """The cell with its open directions replaced by unit vectors normal to the others (float64).

    A molecule without a cell, a slab and a wire so become ordinary boxes; the row of an open direction in the given cell
    (often zero, or an arbitrary vacuum length) never matters.
    """
    basis = np.array(cell, np.float64)
    open_ = [k for k in range(3) if not pbc[k]]
    if len(open_) == 3:
        return np.eye(3)
    if len(open_) == 2:
        p = 3 - sum(open_)
        v = basis[p]
        axis = np.zeros(3)
        axis[np.argmin(np.abs(v))] = 1
        q, r = (p + 1) % 3, (p + 2) % 3
        basis[q] = np.cross(v, axis)
        basis[q] /= max(np.linalg.norm(basis[q]), 1e-300)
        basis[r] = np.cross(v, basis[q])
        basis[r] /= max(np.linalg.norm(basis[r]), 1e-300)
    elif len(open_) == 1:
        r = open_[0]
        basis[r] = np.cross(basis[(r + 1) % 3], basis[(r + 2) % 3])
        basis[r] /= max(np.linalg.norm(basis[r]), 1e-300)
    volume = abs(np.linalg.det(basis))
    if not np.isfinite(volume) or volume <= 1e-12 * np.prod(np.linalg.norm(basis, axis=1)):
        raise InputError(
            f"{who}: the periodic cell vectors are zero or linearly dependent",
            got=np.asarray(cell).tolist(),
            expected=f"independent vectors along pbc={tuple(map(bool, pbc))}",
            remedy="set pbc=False along directions without a lattice vector",
        )
    return basis


def _heights(basis: np.ndarray) -> np.ndarray:
    return 1 / np.linalg.norm(np.linalg.inv(basis), axis=0)


def host_pairs(positions, cell, pbc, cutoff: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs as NumPy arrays (centers, others, shifts), of whatever number: a KD-tree over explicit images.

    The fallback of the compiled search on the host, and an independent check of it. Sorted by center.

    Raises:
        InputError: positions that are not finite; a degenerate cell.
    """
    positions, cell = np.asarray(positions, np.float64), np.asarray(cell, np.float64)
    pbc = check_input(positions, cell, pbc, cutoff)
    from scipy.spatial import cKDTree  # pyright: ignore

    n = len(positions)
    if not np.isfinite(positions).all():
        bad = int(np.flatnonzero(~np.isfinite(positions).all(1))[0])
        raise InputError(f"atom {bad} has a position that is not finite", got=positions[bad].tolist())
    basis = complete_basis(cell, pbc)
    if n == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros((0, 3), np.int32)
    periodic = np.array(pbc)
    fractional = positions @ np.linalg.inv(basis)
    wrap = np.where(periodic, np.floor(fractional), 0).astype(np.int64)
    wrapped = positions - wrap @ basis
    fractional = fractional - wrap
    margin = cutoff / _heights(basis)  # in fractional units
    reach = np.where(periodic, np.ceil(margin), 0).astype(int)
    shifts = np.stack(np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij"), -1).reshape(-1, 3)
    low, high = fractional.min(0) - margin - 1e-9, fractional.max(0) + margin + 1e-9
    image = (fractional[None] + shifts[:, None]).reshape(-1, 3)
    keep = np.flatnonzero(((image >= low) & (image <= high)).all(1))
    owner, which = keep % n, keep // n
    ghosts = wrapped[owner] + shifts[which] @ basis
    found = cKDTree(wrapped).sparse_distance_matrix(cKDTree(ghosts), cutoff, output_type="ndarray")
    i, g = found["i"], found["j"]
    j, s = owner[g], shifts[which[g]]
    ok = (found["v"] < cutoff) & ~((i == j) & (s == 0).all(1))
    i, j, s = i[ok], j[ok], s[ok]
    order = np.argsort(i, kind="stable")
    i, j, s = i[order], j[order], s[order]
    return i.astype(np.int32), j.astype(np.int32), (s + wrap[i] - wrap[j]).astype(np.int32)


def plan_grid(positions: np.ndarray, cell: np.ndarray, pbc, cutoff: float, headroom: float = 1.25) -> Grid:
    """A grid for the XLA search from a concrete configuration."""
    basis = complete_basis(cell, pbc)
    inverse = np.linalg.inv(basis)
    fractional = np.asarray(positions, np.float64) @ inverse
    extent = _heights(basis)
    n = len(positions)
    if n == 0:
        return Grid((1, 1, 1), (1, 1, 1), 1)
    span = np.where(pbc, 1.0, np.ptp(fractional, axis=0))
    # Bins of 1.03 cutoffs at least, so that a slightly shrinking cell stays covered.
    most = max(1, int(np.cbrt(n)) + 1)
    bins = np.clip(np.floor(span * extent / (1.03 * cutoff)), 1, most).astype(int)
    length = span * extent / bins
    reach = np.array([int(np.ceil(cutoff / x * 1.0001)) if p else min(b - 1, 1) for x, p, b in zip(length, pbc, bins)])
    offset = np.where(pbc, np.floor(fractional), fractional.min(0))
    index = np.clip(((fractional - offset) / np.maximum(span, 1e-300) * bins).astype(int), 0, bins - 1)
    fullest = np.bincount(np.ravel_multi_index(index.T, bins)).max()
    per_bin = int(min(n, np.ceil(fullest * headroom) + 1))
    return Grid(tuple(map(int, bins)), tuple(map(int, reach)), per_bin)  # pyright: ignore


def basis_jax(cell: Array, pbc: tuple[bool, bool, bool]) -> Array:
    """`complete_basis` on traced values."""

    def unit(v):
        return v / jnp.linalg.norm(v)

    rows = [cell[0], cell[1], cell[2]]
    open_ = [k for k in range(3) if not pbc[k]]
    if len(open_) == 3:
        return jnp.eye(3, dtype=cell.dtype)
    if len(open_) == 2:
        p = 3 - sum(open_)
        axis = jax.nn.one_hot(jnp.argmin(jnp.abs(rows[p])), 3, dtype=cell.dtype)
        rows[(p + 1) % 3] = unit(jnp.cross(rows[p], axis))
        rows[(p + 2) % 3] = unit(jnp.cross(rows[p], rows[(p + 1) % 3]))
    elif len(open_) == 1:
        r = open_[0]
        rows[r] = unit(jnp.cross(rows[(r + 1) % 3], rows[(r + 2) % 3]))
    return jnp.stack(rows)


@functools.partial(jax.jit, static_argnums=(2, 3, 4, 5))
def _xla_pairs(positions: Array, cell: Array, pbc, cutoff: float, capacity: int, grid: Grid) -> Pairs:
    """The search in XLA: sort atoms into bins, test each atom against the bins around its own, compress the hits."""
    n, dtype = positions.shape[0], positions.dtype
    periodic = jnp.asarray(pbc)
    bins, reach = jnp.asarray(grid.bins, jnp.int32), grid.reach
    basis = basis_jax(cell, pbc)
    inverse = jnp.linalg.inv(basis)
    fractional = jnp.matmul(positions, inverse, precision="highest")
    sound = jnp.isfinite(positions).all() & jnp.isfinite(inverse).all()
    wrap = jnp.where(periodic, jnp.floor(fractional), 0)
    low = jnp.where(periodic, 0, fractional.min(0))
    span = jnp.where(periodic, 1, fractional.max(0) - low)
    inside = fractional - wrap - low
    wrap = wrap.astype(jnp.int32)
    place = jnp.clip(jnp.floor(inside / jnp.maximum(span, 1e-30) * bins).astype(jnp.int32), 0, bins - 1)
    length = span / (bins * jnp.linalg.norm(inverse, axis=0))
    whole = jnp.asarray([not p and r >= b - 1 for p, r, b in zip(pbc, grid.reach, grid.bins)])
    covered = (whole | (length * jnp.asarray(reach) >= cutoff)).all()
    flat = (place[:, 0] * grid.bins[1] + place[:, 1]) * grid.bins[2] + place[:, 2]
    total = grid.bins[0] * grid.bins[1] * grid.bins[2]
    order = jnp.argsort(flat)
    start = jnp.searchsorted(flat[order], jnp.arange(total + 1, dtype=flat.dtype)).astype(jnp.int32)
    fullest = jnp.max(start[1:] - start[:-1])
    offsets = np.stack(np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij"), -1).reshape(-1, 3)
    target = place[:, None] + jnp.asarray(offsets, jnp.int32)  # (n, offsets, 3)
    image = jnp.where(periodic, jnp.floor_divide(target, bins), 0)
    exists = (periodic | ((target >= 0) & (target < bins))).all(-1)
    target = jnp.clip(target - image * bins, 0, bins - 1)
    at = (target[..., 0] * grid.bins[1] + target[..., 1]) * grid.bins[2] + target[..., 2]
    slot = start[at][..., None] + jnp.arange(grid.per_bin, dtype=jnp.int32)  # (n, offsets, per_bin)
    filled = exists[..., None] & (slot < start[at + 1][..., None])
    other = order[jnp.minimum(slot, n - 1)].astype(jnp.int32)
    # differences of unwrapped positions would lose digits far from the origin; use the wrapped ones
    wrapped = positions - jnp.matmul(wrap.astype(dtype), basis, precision="highest")
    moved = jnp.matmul(image.astype(dtype), basis, precision="highest")
    d = wrapped[other] - wrapped[:, None, None] + moved[:, :, None]
    centre = jnp.arange(n, dtype=jnp.int32)[:, None, None]
    same = (other == centre) & (image == 0).all(-1)[..., None]
    hit = filled & ~same & ((d * d).sum(-1) < cutoff * cutoff)
    count = jnp.sum(hit, dtype=jnp.int32)
    where = jnp.nonzero(hit.ravel(), size=capacity, fill_value=-1)[0].astype(jnp.int32)
    real = where >= 0
    width = len(offsets) * grid.per_bin
    i = jnp.where(real, where // width, n)
    inner = jnp.where(real, where % width, 0)
    row = jnp.minimum(i, n - 1)
    j = jnp.where(real, other.reshape(n, width)[row, inner], 0)
    s = image[row, inner // grid.per_bin] + wrap[row] - wrap[j]
    s = jnp.where(real[:, None], s, 0)
    return Pairs(i, j, s, jnp.where(sound, count, -1), fullest, covered)


@jax.custom_jvp
def _constant(x):
    return x


@_constant.defjvp
def _no_derivative(primals, tangents):
    raise UnsupportedError("a number of pairs has no derivative", remedy="jax.lax.stop_gradient(positions)")


def _oracle(positions, cell, *, pbc=False, cutoff, capacity=None, grid=None, method="auto"):
    return len(host_pairs(positions, cell, pbc, cutoff)[0])


def _samples(rng):
    for label, n, pbc, far in (
        ("ordinary", 12, True, 0.0),
        ("odd: a slab", 9, (True, True, False), 0.0),
        ("badly scaled: far from the origin", 8, True, 100.0),
    ):
        cell = np.diag([4.0, 4.5, 5.0]) + rng.normal(size=(3, 3)) * 0.2
        x = rng.normal(size=(n, 3)) * 3
        grid = plan_grid(x, cell, (pbc,) * 3 if pbc is True else pbc, 2.5, 3.0)._replace(per_bin=n)
        yield Sample(label, (x + far, cell), {"pbc": pbc, "cutoff": 2.5, "capacity": 300, "grid": grid})


@operator(
    "neighbours.pair_count",
    oracle=_oracle,
    samples=_samples,
    flops=lambda positions, cell, **_: 10.0 * positions.shape[0] * 27,
    orders=0,
    unsupported={
        "complex": "positions are real",
        "jvp": "a number of pairs has no derivative",
        "vjp": "a number of pairs has no derivative",
        "second_order": "a number of pairs has no derivative",
    },
)
def pair_count(positions, cell, *, pbc=False, cutoff: float, capacity: int | None = None, grid=None, method="auto"):
    """The number of directed pairs within the cutoff: `pairs(...).count`.

    Raises:
        UnsupportedError: when differentiated. `pairs` itself may stand inside a differentiated function: it is constant there.
    """
    return pairs(_constant(positions), cell, pbc=pbc, cutoff=cutoff, capacity=capacity, grid=grid, method=method).count


def pairs(
    positions: Float[Array, "atoms 3"],
    cell: Float[Array, "3 3"],
    *,
    pbc: bool | Sequence[bool] = False,
    cutoff: float,
    capacity: int | None = None,
    grid: Grid | None = None,
    method: str = "auto",
) -> Pairs:
    """All directed pairs (i, j, S) with 0 < |r_j + S·cell - r_i| < cutoff, several images of j and images of i itself included.

    Works under jit: `capacity` (the static length of the arrays) must then be given, and `grid` too for the XLA search.
    It does not raise on overflow: `count` tells. `NeighbourList` is the class that cannot be used wrongly.

    Args:
        positions: Cartesian coordinates; need not lie inside the cell.
        cell: lattice vectors in rows; rows of open directions are ignored.
        pbc: periodicity, one bool or one per lattice vector.
        cutoff: in the units of positions.
        method: "native" (compiled, CPU), "xla", or "auto": native where it was built and runs on the CPU.

    Raises:
        ShapeError, DTypeError, InputError: bad arguments.
    """
    positions = jax.lax.stop_gradient(jnp.asarray(positions))
    if positions.dtype.name not in ("float32", "float64"):
        raise DTypeError("positions are not real floating numbers", got=positions.dtype, expected="float32 or float64")
    cell = jax.lax.stop_gradient(jnp.asarray(cell, positions.dtype))
    flags = check_input(positions, cell, pbc, cutoff)
    if method not in ("auto", "native", "xla"):
        raise InputError(f"unknown pair search {method!r}", expected="auto, native or xla")
    traced = isinstance(positions, Tracer) or isinstance(cell, Tracer)
    if capacity is None:
        if traced:
            raise InputError(
                "under jit the pair search needs a static capacity", remedy="use NeighbourList, or capacity="
            )
        capacity = max(1, len(host_pairs(positions, cell, flags, cutoff)[0]))
    n = positions.shape[0]
    if n == 0:
        none = jnp.zeros(capacity, jnp.int32)
        return Pairs(none, none, jnp.zeros((capacity, 3), jnp.int32), jnp.int32(0), jnp.int32(0), jnp.asarray(True))
    native = _native.available() and jax.default_backend() == "cpu"
    if method == "native" and not native:
        raise InputError("the compiled pair search was not built here", remedy='method="xla", or build the extensions')
    if native and method != "xla":
        i, j, s, count = _native.native_pairs(positions, cell, flags, float(cutoff), capacity)
        return Pairs(i, j, s, count, jnp.int32(0), jnp.asarray(True))
    if grid is None:
        if traced:
            raise InputError("under jit the XLA pair search needs a static grid", remedy="use NeighbourList, or grid=")
        grid = plan_grid(np.asarray(positions), np.asarray(cell), flags, float(cutoff))
    return _xla_pairs(positions, cell, flags, float(cutoff), capacity, grid)
