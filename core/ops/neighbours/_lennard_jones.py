"""The Lennard-Jones sum over a half neighbour list: one operator, in XLA for its derivatives and compiled for its values."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.neighbours import _native
from sciax.core.ops.neighbours._half_list import IMAGE_BITS
from sciax.core.ops.neighbours._pairs import host_pairs

LENNARD_JONES_ENDS = ("truncate", "shift", "force-shift", "smooth")


def lennard_jones_pair(
    r2: Float[Array, "*n"], *, epsilon: float, sigma: float, cutoff: float, end: str, onset: float
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """(u, u'(r)/r) from r² of u = 4ε[(σ/r)¹² - (σ/r)⁶], ended at the cutoff as `end` says; zero from there on."""
    rc2 = cutoff**2
    inside = r2 < rc2
    s2 = sigma**2 / r2
    s6 = s2 * s2 * s2
    u = 4 * epsilon * s6 * (s6 - 1)
    g = -48 * epsilon * s6 * (s6 - 0.5) / r2
    c6 = (sigma / cutoff) ** 6
    u_c, f_c = 4 * epsilon * c6 * (c6 - 1), -48 * epsilon * c6 * (c6 - 0.5) / cutoff
    if end == "shift":
        u = u - u_c
    elif end == "force-shift":
        r = r2**0.5
        u, g = u - u_c - (r - cutoff) * f_c, g - f_c / r
    elif end == "smooth":
        on2 = onset**2
        x = ((r2 - on2) / (rc2 - on2)).clip(0, 1)
        switch = 1 + x * x * x * (-10 + x * (15 - 6 * x))
        slope = -30 * (x * (1 - x)) ** 2 * (2 / (rc2 - on2))  # (d switch/dr)/r
        u, g = u * switch, g * switch + u * slope
    return jnp.where(inside, u, 0), jnp.where(inside, g, 0)


def _oracle(positions, cell, order, wrap, start, others, *, epsilon, sigma, cutoff, end="shift", onset=None):
    n = len(positions)
    x = positions[order] - wrap @ cell
    energies, forces, virial = np.zeros(n), np.zeros((n, 3)), np.zeros((3, 3))

    def u(r):
        inner = 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)
        slope = -4 * epsilon * (12 * (sigma / r) ** 12 - 6 * (sigma / r) ** 6) / r
        return inner, slope

    on = 0.8 * cutoff if onset is None else onset
    for a in range(n):
        for k in range(start[a], start[a + 1]):
            b, code = int(others[k]) % 2**IMAGE_BITS, int(others[k]) >> IMAGE_BITS
            d = x[b] + np.array([code // 9 - 1, code // 3 % 3 - 1, code % 3 - 1]) @ cell - x[a]
            r = np.sqrt(d @ d)
            if r >= cutoff:
                continue
            value, slope = u(r)
            if end in ("shift", "force-shift"):
                value -= u(cutoff)[0]
            if end == "force-shift":
                value, slope = value - (r - cutoff) * u(cutoff)[1], slope - u(cutoff)[1]
            if end == "smooth" and r > on:
                t = (r * r - on * on) / (cutoff**2 - on * on)
                s, ds = 1 - 10 * t**3 + 15 * t**4 - 6 * t**5, (-30 * t**2 + 60 * t**3 - 30 * t**4) * 2 * r
                value, slope = value * s, slope * s + value * ds / (cutoff**2 - on * on)
            for atom, sign in ((order[a], 1), (order[b], -1)):
                energies[atom] += value / 2
                forces[atom] += sign * slope * d / r
            virial += slope / r * np.outer(d, d)
    return energies, forces, virial


def _half(positions, cell, pbc, reach):
    """A half list from the KD-tree's full one, for the samples; slots in an arbitrary order."""
    n = len(positions)
    i, j, s = host_pairs(positions, cell, pbc, reach)
    order = np.arange(n)[::-1].copy()
    slot = np.argsort(order)
    a, b = slot[i], slot[j]
    code = (s + 1) @ np.array([9, 3, 1])
    keep = (a < b) | ((a == b) & (code > 13))
    a, b, code = a[keep], b[keep], code[keep]
    by = np.argsort(a, kind="stable")
    start = np.searchsorted(a[by], np.arange(n + 1)).astype(np.int32)
    packed = (b[by] + (code[by] << IMAGE_BITS)).astype(np.uint32)
    return order.astype(np.int32), np.zeros((n, 3), np.int32), start, np.append(packed, np.zeros(3, np.uint32))


def _samples(rng):
    for label, cells, scale, end in (
        ("ordinary", 2, 1.0, "smooth"),
        ("one atom, its images", 1, 1.0, "shift"),
        ("truncated", 2, 1.0, "truncate"),
        ("badly scaled", 2, 1e-3, "force-shift"),
    ):
        cell = np.diag([1.2, 1.3, 1.4]) * cells
        x = np.stack(np.meshgrid(*(np.arange(cells),) * 3, indexing="ij"), -1).reshape(-1, 3) @ (cell / cells)
        x = x + rng.normal(size=x.shape) * 0.05 * (cells > 1) + 0.3
        pairs = _half(x, cell, (True,) * 3, 1.15 * cells)
        options = {"epsilon": 0.7, "sigma": 0.9 * scale, "cutoff": 1.15 * cells * scale, "end": end}
        yield Sample(label, (x * scale, cell * scale, *pairs), options, fixed=(1,))


def _sum_xla(positions, cell, order, wrap, start, others, *, epsilon, sigma, cutoff, end, onset):
    n, pairs = positions.shape[0], others.shape[0]
    dtype = positions.dtype
    dot = functools.partial(jnp.matmul, precision="highest")
    x = positions[order] - dot(wrap.astype(dtype), cell)
    k = jnp.arange(pairs, dtype=start.dtype)
    a = jnp.searchsorted(start, k, side="right").astype(jnp.int32) - 1
    real = k < start[-1]
    a = jnp.where(real, jnp.minimum(a, n - 1), 0)
    b = (others & np.uint32(2**IMAGE_BITS - 1)).astype(jnp.int32)
    code = (others >> IMAGE_BITS).astype(jnp.int32)
    image = jnp.stack([code // 9 - 1, code // 3 % 3 - 1, code % 3 - 1], -1).astype(dtype)
    # padding lies beyond the cutoff, at a place where nothing is singular
    d = jnp.where(real[:, None], x[b] + dot(image, cell) - x[a], jnp.asarray(2 * cutoff, dtype))
    u, g = lennard_jones_pair(jnp.sum(d * d, -1), epsilon=epsilon, sigma=sigma, cutoff=cutoff, end=end, onset=onset)
    f = g[:, None] * d
    energies = jnp.zeros(n, dtype).at[order[a]].add(u / 2).at[order[b]].add(u / 2)
    forces = jnp.zeros((n, 3), dtype).at[order[a]].add(f).at[order[b]].add(-f)
    return energies, forces, dot(f.T, d)


def _checked(positions, cell, start, end, cutoff, onset) -> float:
    if not jnp.issubdtype(positions.dtype, jnp.floating):
        raise DTypeError("positions are not real floating numbers", got=positions.dtype, expected="float32 or float64")
    if positions.ndim != 2 or positions.shape[1] != 3 or cell.shape != (3, 3) or start.shape != (len(positions) + 1,):
        raise ShapeError(
            "the list does not fit the atoms",
            got=(positions.shape, cell.shape, start.shape),
            expected="(atoms, 3), (3, 3), (atoms + 1,)",
        )
    if end not in LENNARD_JONES_ENDS:
        raise InputError(f"unknown end of a pair potential {end!r}", remedy=did_you_mean(end, LENNARD_JONES_ENDS))
    return 0.8 * cutoff if onset is None else float(onset)


@functools.partial(jax.custom_jvp, nondiff_argnums=(6,))
def _sum_native(positions, cell, order, wrap, start, others, options):
    return _native.native_lennard_jones(positions, cell, order, wrap, start, others, dict(options))


@_sum_native.defjvp
def _sum_native_jvp(options, primals, tangents):
    # the closed form in XLA, differentiable to any order; the compiled sum gives values only
    inner = functools.partial(_sum_xla, **dict(options))
    return jax.jvp(lambda x, c: inner(x, c, *primals[2:]), primals[:2], tangents[:2])


def lennard_jones_native(
    positions, cell, order, wrap, start, others, *, epsilon, sigma, cutoff, end="shift", onset=None
):
    """`lennard_jones` compiled (on the CPU, where it was built), its derivatives by the closed form in XLA."""
    onset = _checked(positions, cell, start, end, cutoff, onset)
    options = dict(epsilon=epsilon, sigma=sigma, cutoff=cutoff, end=end, onset=onset)
    if not (_native.half_available() and jax.default_backend() == "cpu"):
        return _sum_xla(positions, cell, order, wrap, start, others, **options)
    return _sum_native(positions, cell, order, wrap, start, others, tuple(options.items()))


@operator(
    "neighbours.lennard_jones",
    oracle=_oracle,
    samples=_samples,
    flops=lambda positions, cell, order, wrap, start, others, **_: 50.0 * others.size,
    unsupported={"complex": "positions are real"},
    implementations={"native": lennard_jones_native},
)
def lennard_jones(
    positions: Float[Array, "atoms 3"],
    cell: Float[Array, "3 3"],
    order: Int[Array, " atoms"],
    wrap: Int[Array, "atoms 3"],
    start: Int[Array, " rows"],
    others: UInt32[Array, " pairs"],
    *,
    epsilon: float,
    sigma: float,
    cutoff: float,
    end: str = "shift",
    onset: float | None = None,
) -> tuple[Float[Array, " atoms"], Float[Array, "atoms 3"], Float[Array, "3 3"]]:
    """Per-atom energies ½ Σ u, forces and dE/d(strain) of u(r) = 4ε[(σ/r)¹² - (σ/r)⁶] over a `HalfPairs` list.

    Args:
        order, wrap, start, others: the fields of `HalfPairs`.
        epsilon, sigma, cutoff: depth, diameter, reach.
        end: "truncate", "shift", "force-shift" or "smooth" (from `onset`, by default 0.8 cutoff); see `LennardJones`.

    Raises:
        DTypeError, ShapeError: arrays that do not fit. InputError: an unknown end.
    """
    onset = _checked(positions, cell, start, end, cutoff, onset)
    return _sum_xla(
        positions, cell, order, wrap, start, others, epsilon=epsilon, sigma=sigma, cutoff=cutoff, end=end, onset=onset
    )
