"""Finite differences of any derivative order and accuracy, on uniform and stretched grids.

Weights come from Fornberg's recursion (Mathematics of Computation 51 (1988) 699-706; SIAM Review 40 (1998) 685-691) in
float64 on the host, so a program holds nothing but the weights. Boundaries:

- "one-sided": near an end the stencil shifts inwards and, where it is not centred, widens to keep the accuracy; the output
  has the size of the input.
- "periodic": the stencil wraps round; the last point is the neighbour of the first (it is not a copy of it).
- "ghost": the input brings its own boundary values, `halo(...)` = (left, right) extra points; the output is shorter by them.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Inexact

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean
from sciax.core.ops._registry import Sample, operator

BOUNDARIES = ("one-sided", "periodic", "ghost")
SIDES = ("centred", "forward", "backward")


def fornberg_weights(nodes: Sequence[float] | np.ndarray, at: float, order: int) -> np.ndarray:
    """Weights w with sum_j w[m, j] u(nodes[j]) = the m-th derivative of u at `at`, for m = 0 .. order.

    Exact for polynomials of degree len(nodes) - 1.

    Args:
        nodes: distinct points, in any order. at: where the derivative is wanted. order: highest derivative.

    Returns:
        (order + 1, len(nodes)), float64.

    Raises:
        InputError: repeated nodes, or no more nodes than `order`.
    """
    x = np.asarray(nodes, np.float64)
    if x.ndim != 1 or len(np.unique(x)) != x.size or not np.isfinite(x).all():
        raise InputError("fornberg_weights: nodes are distinct finite points", got=nodes)
    if not 0 <= order < x.size:
        raise InputError(
            "fornberg_weights: a derivative needs more nodes than its order", got=f"order {order}, {x.size} nodes"
        )
    w = np.zeros((order + 1, x.size))
    w[0, 0] = 1.0
    product, offset = 1.0, x[0] - at
    for n in range(1, x.size):
        highest = min(n, order)
        previous, product_n, offset_n = offset, 1.0, x[n] - at
        last = w[:, n - 1].copy()  # the recursion for the new node reads its neighbour before the update
        for j in range(n):
            gap = x[n] - x[j]
            product_n *= gap
            for m in range(highest, -1, -1):
                w[m, j] = (offset_n * w[m, j] - (m * w[m - 1, j] if m else 0.0)) / gap
        for m in range(highest, -1, -1):
            w[m, n] = product / product_n * ((m * last[m - 1] if m else 0.0) - previous * last[m])
        product, offset = product_n, offset_n
    return w


def stencil_offsets(order: int, accuracy: int, side: str = "centred") -> range:
    """Offsets of the points that a derivative of `order` takes on a uniform grid for error O(h^accuracy).

    Centred stencils have symmetric offsets; an odd accuracy is rounded up, which costs no extra points.
    """
    if side not in SIDES:
        raise InputError(f"unknown side {side!r} of a stencil", remedy=did_you_mean(side, SIDES))
    if int(order) != order or order < 1 or int(accuracy) != accuracy or accuracy < 1:
        raise InputError(
            "order and accuracy of a difference are whole numbers >= 1", got=f"order {order}, accuracy {accuracy}"
        )
    if side == "centred":
        half = (order + 1) // 2 + (accuracy + 1) // 2 - 1
        return range(-half, half + 1)
    return range(order + accuracy) if side == "forward" else range(1 - order - accuracy, 1)


def halo(order: int, accuracy: int, side: str = "centred") -> tuple[int, int]:
    """Ghost points that boundary="ghost" needs on the left and on the right."""
    offsets = stencil_offsets(order, accuracy, side)
    return -offsets[0], offsets[-1]


def _checked(field: Any, axis: int, boundary: str, who: str) -> tuple[Array, int]:
    if boundary not in BOUNDARIES:
        raise InputError(f"{who}: unknown boundary {boundary!r}", remedy=did_you_mean(boundary, BOUNDARIES))
    u = jnp.asarray(field)
    if not jnp.issubdtype(u.dtype, jnp.inexact):
        raise DTypeError(f"{who}: fields are floating or complex", got=u.dtype, remedy="field.astype(jnp.float32)")
    if not -u.ndim <= axis < u.ndim:
        raise ShapeError(f"{who}: no axis {axis}", got=u.shape)
    return u, axis % u.ndim


def _needs(who: str, size: int, points: int) -> None:
    if size < points:
        raise ShapeError(f"{who}: the axis has too few points for this stencil", got=size, expected=f">= {points}")


def _edge_rows(size: int, offsets: range, order: int, accuracy: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights of the rows near each end, on the first and last order + accuracy points, for unit spacing."""
    width = order + accuracy
    left = [fornberg_weights(np.arange(width), i, order)[order] for i in range(-offsets[0])]
    right = [fornberg_weights(np.arange(width), width - 1 - i, order)[order] for i in range(offsets[-1])][::-1]
    return np.reshape(left, (-1, width)), np.reshape(right, (-1, width))


def _slide(u: Array, weights: np.ndarray, axis: int, count: int) -> Array:
    """out[i] = sum_k weights[k] u[i + k] for i < count."""
    terms = (
        jax.lax.slice_in_dim(u, k, k + count, axis=axis) * jnp.asarray(w, jnp.real(u).dtype)
        for k, w in enumerate(weights)
        if w != 0
    )
    return sum(terms, start=jnp.zeros((), u.dtype)) if np.any(weights) else jnp.zeros_like(u)


def _wrapped(u: Array, left: int, right: int, axis: int) -> Array:
    pad = [(left, right) if a == axis else (0, 0) for a in range(u.ndim)]
    return jnp.pad(u, pad, mode="wrap")


def _apply_rows(rows: np.ndarray, u: Array, axis: int) -> Array:
    return jnp.moveaxis(jnp.tensordot(jnp.asarray(rows, u.dtype), u, axes=(1, axis)), 0, axis)


# Oracle: every row's weights by solving the Vandermonde system of its Taylor series.


def _taylor_weights(nodes: np.ndarray, order: int) -> np.ndarray:
    n = len(nodes)
    scale = np.abs(nodes).max()
    moments = np.vander(nodes / scale, n, increasing=True).T
    right = np.zeros(n)
    right[order] = math.factorial(order)
    return np.linalg.solve(moments, right) / scale**order


def _dense(x: np.ndarray, order: int, accuracy: int, boundary: str, side: str, period: float | None) -> np.ndarray:
    offsets = stencil_offsets(order, accuracy, side)
    n, width = len(x), order + accuracy
    rows = range(n) if boundary != "ghost" else range(-offsets[0], n - offsets[-1])
    out = np.zeros((len(rows), n))
    for r, i in enumerate(rows):
        points = i + np.array(offsets)
        if boundary == "one-sided" and (points[0] < 0 or points[-1] >= n):
            points = np.arange(width) + (0 if points[0] < 0 else n - width)
        turns, wrapped = np.divmod(points, n)
        nodes = x[wrapped] + turns * (0.0 if period is None else period) - x[i]
        np.add.at(out[r], wrapped, _taylor_weights(nodes, order))
    return out


def _difference_oracle(
    field: Any,
    spacing: Any,
    *,
    order: int = 1,
    accuracy: int = 2,
    axis: int = -1,
    boundary: str = "one-sided",
    side: str = "centred",
) -> Any:
    field = np.asarray(field)
    n = field.shape[axis]
    matrix = _dense(np.arange(n, dtype=float), order, accuracy, boundary, side, float(n))
    return np.moveaxis(np.tensordot(matrix, field, axes=(1, axis)), 0, axis) / np.asarray(spacing) ** order


def _stretched_oracle(
    field: Any,
    *,
    grid: Any,
    order: int = 1,
    accuracy: int = 2,
    axis: int = -1,
    boundary: str = "one-sided",
    period: float | None = None,
) -> np.ndarray:
    matrix = _dense(np.asarray(grid), order, accuracy, boundary, "centred", period)
    return np.moveaxis(np.tensordot(matrix, np.asarray(field), axes=(1, axis)), 0, axis)


def _laplacian_oracle(field: Any, spacing: Any, *, accuracy: int = 2, boundary: str = "periodic") -> Any:
    field = np.asarray(field)
    trim = halo(2, accuracy) if boundary == "ghost" else (0, 0)
    total: Any = 0.0
    for axis, h in enumerate(np.broadcast_to(spacing, field.ndim)):
        cut = tuple(slice(trim[0], n - trim[1]) if a != axis else slice(None) for a, n in enumerate(field.shape))
        total = total + _difference_oracle(field[cut], h, order=2, accuracy=accuracy, axis=axis, boundary=boundary)
    return total


def _smooth(rng: np.random.Generator, *shape: int) -> Any:
    """A field that its grid resolves, so that differences do not cancel to nothing."""
    grids = np.meshgrid(*(np.linspace(0, 3, n) for n in shape), indexing="ij")
    return sum(np.sin(rng.uniform(1, 2) * g + rng.uniform(0, 3)) for g in grids) + rng.standard_normal()


_CANCEL = "differences of neighbouring values cancel leading digits"


def _difference_samples(rng: np.random.Generator) -> list[Sample]:
    u, h = _smooth(rng, 9, 3), np.asarray(0.3)
    loose = {"tolerance": 10.0, "reason": _CANCEL}
    return [
        Sample("ordinary", (u, h), {"axis": 0}, **loose),
        Sample("badly scaled", (u * 1e8, h * 1e-3), {"axis": 0}, **loose),
        Sample(
            "third derivative, fourth order",
            (_smooth(rng, 12), h),
            {"order": 3, "accuracy": 4},
            tolerance=100.0,
            reason=_CANCEL,
        ),
        Sample("periodic, upwind", (u, h), {"axis": 0, "boundary": "periodic", "side": "backward"}, **loose),
        Sample("ghost values", (_smooth(rng, 8), h), {"order": 2, "accuracy": 4, "boundary": "ghost"}, **loose),
        Sample(
            "smallest: wraps on itself",
            (rng.standard_normal(2), h),
            {"order": 2, "accuracy": 4, "boundary": "periodic"},
        ),
    ]


def _stretched_samples(rng: np.random.Generator) -> list[Sample]:
    x = np.sort(np.linspace(0, 3, 9) + rng.uniform(-0.1, 0.1, 9))
    u, loose = _smooth(rng, 9, 3), {"tolerance": 10.0, "reason": _CANCEL}
    return [
        Sample("ordinary", (u,), {"grid": x, "axis": 0}, **loose),
        Sample("badly scaled", (u * 1e8,), {"grid": x * 1e-4, "axis": 0}, **loose),
        Sample(
            "second derivative, periodic",
            (u,),
            {"grid": x, "axis": 0, "order": 2, "boundary": "periodic", "period": 3.5},
            **loose,
        ),
        Sample(
            "ghost values", (_smooth(rng, 9),), {"grid": x, "order": 2, "accuracy": 4, "boundary": "ghost"}, **loose
        ),
        Sample("smallest", (rng.standard_normal(3),), {"grid": x[:3]}),
    ]


def _laplacian_samples(rng: np.random.Generator) -> list[Sample]:
    u, loose = _smooth(rng, 6, 7), {"tolerance": 10.0, "reason": _CANCEL}
    h = np.array([0.5, 0.4])
    return [
        Sample("ordinary", (u, h), {"boundary": "one-sided"}, **loose),
        Sample("badly scaled", (u * 1e-8, h * 1e3), {"boundary": "one-sided"}, **loose),
        Sample("periodic, fourth order", (u, h), {"accuracy": 4}, **loose),
        Sample("ghost values, one axis", (_smooth(rng, 7), np.asarray(0.4)), {"boundary": "ghost"}, **loose),
        Sample("smallest: size one", (np.ones((1, 1)), h)),
    ]


def _cost(field: Any, *_: Any, order: int = 1, accuracy: int = 2, **__: Any) -> float:
    return 2.0 * np.size(field) * len(stencil_offsets(order, accuracy))


def _laplacian_cost(field: Any, *_: Any, accuracy: int = 2, **__: Any) -> float:
    return np.ndim(field) * _cost(field, order=2, accuracy=accuracy)


@operator(
    "stencil.difference",
    oracle=_difference_oracle,
    samples=lambda rng: [
        Sample(s.label, s.args, s.kwargs, real=(1,), tolerance=s.tolerance, reason=s.reason)
        for s in _difference_samples(rng)
    ],
    flops=_cost,
)
def difference(
    field: Inexact[Array, "..."],
    spacing: float | Float[Array, ""],
    *,
    order: int = 1,
    accuracy: int = 2,
    axis: int = -1,
    boundary: str = "one-sided",
    side: str = "centred",
) -> Inexact[Array, "..."]:
    """The derivative d^order u / dx^order on a uniform grid, with error O(spacing^accuracy).

    Args:
        field: real or complex. spacing: distance of neighbours, a number or a scalar array (differentiable).
        order, accuracy: whole numbers >= 1, static. axis: which axis is x.
        boundary: "one-sided", "periodic" or "ghost", see the module's text.
        side: "centred", or "forward"/"backward" for stencils that reach to one side only (upwinding).

    Returns:
        Shape of `field`; shorter along `axis` by `sum(halo(order, accuracy, side))` with ghost values.

    Raises:
        InputError: unknown boundary or side, order or accuracy below one, a spacing that is not positive.
        ShapeError: fewer points than the stencil needs. DTypeError: integers.
    """
    u, axis = _checked(field, axis, boundary, "difference")
    offsets = stencil_offsets(order, accuracy, side)
    weights = fornberg_weights(offsets, 0.0, order)[order]
    weights[np.abs(weights) < 1e-13 * np.abs(weights).max()] = 0  # the centre of odd derivatives, exactly zero
    size, (left, right) = u.shape[axis], (-offsets[0], offsets[-1])
    if isinstance(spacing, int | float | np.ndarray | np.generic):
        if np.ndim(spacing) or not (np.isfinite(spacing) and spacing > 0):
            raise InputError("difference: spacing is one positive number", got=spacing)
        scale: Any = float(spacing) ** -order  # in float64: a power may leave float32's range where the result does not
        scale = jnp.asarray(scale, jnp.real(u).dtype)
    else:
        scale = jnp.asarray(spacing, jnp.real(u).dtype) ** -order
    if boundary == "periodic":
        _needs("difference", size, 1)
        return _slide(_wrapped(u, left, right, axis), weights, axis, size) * scale
    if boundary == "ghost":
        _needs("difference", size, left + right + 1)
        return _slide(u, weights, axis, size - left - right) * scale
    width = order + accuracy
    _needs("difference", size, max(width, left + right))
    head, tail = _edge_rows(size, offsets, order, accuracy)
    parts = [
        _apply_rows(head, jax.lax.slice_in_dim(u, 0, width, axis=axis), axis),
        _slide(u, weights, axis, size - left - right),
        _apply_rows(tail, jax.lax.slice_in_dim(u, size - width, size, axis=axis), axis),
    ]
    return jnp.concatenate(parts, axis=axis) * scale


@operator("stencil.difference_stretched", oracle=_stretched_oracle, samples=_stretched_samples, flops=_cost)
def difference_stretched(
    field: Inexact[Array, "..."],
    *,
    grid: np.ndarray,
    order: int = 1,
    accuracy: int = 2,
    axis: int = -1,
    boundary: str = "one-sided",
    period: float | None = None,
) -> Inexact[Array, "..."]:
    """The derivative d^order u / dx^order at the points of a stretched grid, exact for polynomials.

    On a smoothly stretched grid the error is O(h^accuracy); on an irregular one a centred even derivative loses one order.

    Args:
        field: real or complex, with `len(grid)` points along `axis`.
        grid: increasing coordinates, concrete (not traced): weights are computed on the host, once a compilation.
        order, accuracy, axis, boundary: as `difference`; with "ghost" the grid includes the ghost points.
        period: with "periodic", the distance from the first point to its copy; larger than the grid.

    Raises:
        InputError: grid not increasing or traced, period missing or too small; else as `difference`.
    """
    u, axis = _checked(field, axis, boundary, "difference_stretched")
    if isinstance(grid, Tracer):
        raise InputError(
            "difference_stretched: the grid must be concrete", remedy="close over it, or mark it static under jit"
        )
    x = np.asarray(grid, np.float64)
    size = u.shape[axis]
    if x.shape != (size,):
        raise ShapeError("difference_stretched: one coordinate a point", got=f"grid {x.shape}, axis of {size}")
    if not (np.isfinite(x).all() and (np.diff(x) > 0).all()):
        raise InputError("difference_stretched: the grid must increase", got=x)
    offsets = stencil_offsets(order, accuracy)
    half, width = offsets[-1], order + accuracy
    if boundary == "periodic":
        if period is None or not period > x[-1] - x[0]:
            raise InputError("difference_stretched: a periodic grid needs a period larger than the grid", got=period)
        _needs("difference_stretched", size, len(offsets))
    else:
        _needs("difference_stretched", size, len(offsets) if boundary == "ghost" else max(width, 2 * half))
    centres = np.arange(half, size - half) if boundary == "ghost" else np.arange(size)
    # every row on the same number of points: a window of `width` near an end is padded with zero weights
    columns = max(len(offsets), width)
    index, weights = np.zeros((len(centres), columns), np.int32), np.zeros((len(centres), columns))
    for row, i in enumerate(centres):
        points = i + np.array(offsets)
        if boundary == "one-sided" and (points[0] < 0 or points[-1] >= size):
            points = np.arange(width) + (0 if points[0] < 0 else size - width)
        turns, wrapped = np.divmod(points, size)
        nodes = x[wrapped] - x[i] + turns * (period or 0.0)
        index[row, : len(points)] = wrapped
        weights[row, : len(points)] = fornberg_weights(nodes, 0.0, order)[order]
    taken = jnp.take(u, index, axis=axis)  # (..., rows, columns, ...)
    w = jnp.asarray(weights, jnp.real(u).dtype).reshape(weights.shape + (1,) * (u.ndim - 1 - axis))
    return jnp.sum(taken * w, axis=axis + 1)


@operator(
    "stencil.laplacian",
    oracle=_laplacian_oracle,
    samples=lambda rng: [
        Sample(s.label, s.args, s.kwargs, real=(1,), tolerance=s.tolerance, reason=s.reason)
        for s in _laplacian_samples(rng)
    ],
    flops=_laplacian_cost,
)
def laplacian(
    field: Inexact[Array, "..."],
    spacing: float | Float[Array, ""] | Float[Array, "axes"],
    *,
    accuracy: int = 2,
    boundary: str = "periodic",
) -> Inexact[Array, "..."]:
    """The Laplacian over all axes of a uniform grid, with error O(spacing^accuracy).

    Args:
        field: real or complex. spacing: one number, or one an axis. accuracy, boundary: as `difference`; ghost values are
            expected along every axis.

    Raises:
        As `difference`.
    """
    u, _ = _checked(field, -1, boundary, "laplacian")
    if isinstance(spacing, tuple | list):
        spacing = np.asarray(spacing, np.float64)  # type: ignore[assignment]
    if np.ndim(spacing) and np.shape(spacing) != (u.ndim,):
        raise ShapeError("laplacian: one spacing, or one an axis", got=np.shape(spacing), expected=(u.ndim,))
    left, right = halo(2, accuracy) if boundary == "ghost" else (0, 0)
    total: Any = 0
    for axis in range(u.ndim):
        inner = u
        for other in range(u.ndim):
            if other != axis:
                inner = jax.lax.slice_in_dim(inner, left, u.shape[other] - right, axis=other)
        h = spacing[axis] if np.ndim(spacing) else spacing  # type: ignore[index]
        total = total + difference(inner, h, order=2, accuracy=accuracy, axis=axis, boundary=boundary)
    return total
