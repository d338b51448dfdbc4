"""Cubic interpolation: splines (natural, not-a-knot, clamped, periodic) and the local Catmull-Rom cubic."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.interp._axis import Axis, corners, finish, locate, make_grid

METHODS = ("not-a-knot", "natural", "clamped", "catmull-rom")
LARGEST_SPLINE = 2048
"""Points along an axis up to which splines are offered: their slopes are one dense product with an n x n matrix."""


def spline_slopes(nodes: np.ndarray, method: str) -> np.ndarray:
    """The matrix S with S y = slopes at the nodes of the cubic through (nodes, y), float64.

    Splines solve m_{i-1}/h_{i-1} + 2 m_i (1/h_{i-1} + 1/h_i) + m_{i+1}/h_i = 3 (d_{i-1}/h_{i-1} + d_i/h_i), which makes the
    second derivative continuous, with h the spacings, d the divided differences, and one condition at each end:
    "natural" u'' = 0, "clamped" u' = 0, "not-a-knot" u''' continuous across the second node, "periodic" all of it wrapped (the
    last node is the copy of the first). "catmull-rom" is local: m_i = (y_{i+1} - y_{i-1}) / (x_{i+1} - x_{i-1}), with the slope of
    the parabola through three points at an end (Keys 1981: third order). Source: de Boor, A Practical Guide to Splines (1978).
    """
    x = np.asarray(nodes, np.float64)
    n, h = x.size, np.diff(x)
    # d = D y: divided differences
    D = (np.eye(n)[1:] - np.eye(n)[:-1]) / h[:, None]
    if n == 2:
        return np.zeros((2, 2)) if method in ("clamped", "periodic") else np.repeat(D, 2, axis=0)
    if method.startswith("catmull-rom"):
        inner = (h[1:, None] * D[1:] + h[:-1, None] * D[:-1]) / (h[1:] + h[:-1])[:, None]
        if method == "catmull-rom periodic":
            wrap = (h[0] * D[0] + h[-1] * D[-1]) / (h[0] + h[-1])
            return np.vstack([wrap, inner, wrap])
        first = D[0] + (D[0] - D[1]) * h[0] / (h[0] + h[1])
        last = D[-1] + (D[-1] - D[-2]) * h[-1] / (h[-1] + h[-2])
        return np.vstack([first, inner, last])
    if method == "not-a-knot" and n == 3:  # both end conditions say the same: one parabola
        first, last = D[0] + (D[0] - D[1]) * h[0] / h.sum(), D[1] + (D[1] - D[0]) * h[1] / h.sum()
        return np.stack([first, (h[1] * D[0] + h[0] * D[1]) / h.sum(), last])
    A, B = np.zeros((n, n)), np.zeros((n, n))
    for i in range(1, n - 1):
        A[i, i - 1], A[i, i], A[i, i + 1] = 1 / h[i - 1], 2 / h[i - 1] + 2 / h[i], 1 / h[i]
        B[i] = 3 * (D[i - 1] / h[i - 1] + D[i] / h[i])
    if method == "natural":
        A[0, :2], B[0] = (2, 1), 3 * D[0]
        A[-1, -2:], B[-1] = (1, 2), 3 * D[-1]
    elif method == "clamped":
        A[0, 0] = A[-1, -1] = 1
    elif method == "periodic":
        A[0, -2], A[0, 0], A[0, 1] = 1 / h[-1], 2 / h[-1] + 2 / h[0], 1 / h[0]
        B[0] = 3 * (D[-1] / h[-1] + D[0] / h[0])
        A[-1, 0], A[-1, -1] = 1, -1
    else:  # not-a-knot; u''' = 6 (m_i + m_{i+1} - 2 d_i) / h_i^2
        for row, (i, j) in ((0, (0, 1)), (-1, (n - 2, n - 3))):
            A[row, i] += 1 / h[i] ** 2
            A[row, i + 1] += 1 / h[i] ** 2
            A[row, j] -= 1 / h[j] ** 2
            A[row, j + 1] -= 1 / h[j] ** 2
            B[row] = 2 * (D[i] / h[i] ** 2 - D[j] / h[j] ** 2)
    scale = np.abs(A).max(axis=1, keepdims=True)  # rows of different units
    return np.linalg.solve(A / scale, B / scale)


def _slopes(values: Array, axis: Axis, i: int, method: str) -> Array:
    periodic = axis.outside == "periodic"
    if method == "catmull-rom":
        return _local_slopes(values, axis.nodes, i, periodic)
    if axis.nodes.size > LARGEST_SPLINE:
        raise UnsupportedError(
            "interp_cubic: splines are offered up to a number of points along an axis",
            got=axis.nodes.size,
            expected=f"<= {LARGEST_SPLINE}",
            remedy='method="catmull-rom" is local and has no such limit',
        )
    matrix = jnp.asarray(spline_slopes(axis.nodes, "periodic" if periodic else method), values.dtype)
    return jnp.moveaxis(jnp.tensordot(matrix, values, axes=(1, i), precision="highest"), 0, i)


def _local_slopes(values: Array, nodes: np.ndarray, i: int, periodic: bool) -> Array:
    """`spline_slopes(nodes, "catmull-rom")` applied without the matrix."""
    y = jnp.moveaxis(values, i, 0)
    column = (-1,) + (1,) * (y.ndim - 1)
    h = np.diff(nodes)
    d = (y[1:] - y[:-1]) / jnp.asarray(h.reshape(column), jnp.real(y).dtype)
    if nodes.size == 2:
        slopes = jnp.zeros_like(y) if periodic else jnp.concatenate([d, d])
        return jnp.moveaxis(slopes, 0, i)
    share = jnp.asarray((h[1:] / (h[1:] + h[:-1])).reshape(column), jnp.real(y).dtype)
    inner = share * d[1:] + (1 - share) * d[:-1]
    if periodic:
        share = float(h[0] / (h[0] + h[-1]))
        first = last = share * d[:1] + (1 - share) * d[-1:]
    else:
        first = d[:1] + (d[:1] - d[1:2]) * float(h[0] / (h[0] + h[1]))
        last = d[-1:] + (d[-1:] - d[-2:-1]) * float(h[-1] / (h[-1] + h[-2]))
    return jnp.moveaxis(jnp.concatenate([first, inner, last]), 0, i)


def _oracle(
    values: Any,
    points: Any,
    *,
    axes: Any,
    method: str = "not-a-knot",
    outside: Any = "error",
    fill: Any = None,
    period: Any = None,
) -> np.ndarray:
    from sciax.core.ops.interp._oracle import prepared

    values, points, axes, outer = prepared(values, points, axes, outside, period)
    flat = points.reshape(-1, len(axes))
    out = np.zeros((len(flat), *values.shape[len(axes) :]), values.dtype)
    for row, point in enumerate(flat):
        part = values
        for i, (x, at) in enumerate(zip(axes, point)):
            wrapped = (outside if isinstance(outside, str) else outside[i]) == "periodic"
            part = _oracle_line(x, part, at, method, wrapped)
        out[row] = part
    out = out.reshape(points.shape[:-1] + values.shape[len(axes) :])
    if fill is not None:
        out[outer] = fill
    return out


def _oracle_line(x: np.ndarray, y: np.ndarray, at: float, method: str, wrapped: bool) -> np.ndarray:
    from scipy.interpolate import CubicSpline

    if method != "catmull-rom":
        return CubicSpline(x, y, axis=0, bc_type="periodic" if wrapped else method)(at)
    # the cubic with slopes of parabolas: a blend of the two parabolas through (i-1, i, i+1) and (i, i+1, i+2)
    n = len(x)
    i = int(np.clip(np.searchsorted(x, at, side="right") - 1, 0, n - 2))
    if n == 2:
        return y[0] + (y[1] - y[0]) * (at - x[0]) / (x[1] - x[0])

    def slope(j: int) -> np.ndarray:
        if 0 < j < n - 1:
            a, b, c = j - 1, j, j + 1
        elif wrapped:
            left, right = x[n - 1] - x[n - 2], x[1] - x[0]
            return (y[1] - y[n - 2]) / (left + right)
        else:
            a, b, c = (0, 1, 2) if j == 0 else (n - 3, n - 2, n - 1)
            fit = np.linalg.solve(np.vander(x[[a, b, c]] - x[j], 3), y[[a, b, c]].reshape(3, -1))
            return fit[1].reshape(y.shape[1:])
        return (y[c] - y[a]) / (x[c] - x[a])

    from scipy.interpolate import CubicHermiteSpline

    return CubicHermiteSpline(x[i : i + 2], y[i : i + 2], np.stack([slope(i), slope(i + 1)]), axis=0)(at)


def _samples(rng: np.random.Generator) -> list[Sample]:
    x, y, z = (
        np.linspace(0, 3, 7),
        np.linspace(-1, 1, 5) + rng.uniform(-0.1, 0.1, 5),
        np.array([0.0, 0.5, 2.0]),
    )
    plane = rng.standard_normal((7, 5))
    where = np.stack([rng.uniform(0.1, 2.9, 6), rng.uniform(-0.8, 0.8, 6)], -1)
    return [
        Sample("ordinary", (plane, where), {"axes": (x, y), "outside": "clip"}, real=(1,)),
        Sample(
            "badly scaled",
            (plane * 10.0 ** rng.integers(-6, 9, (7, 1)), where),
            {"axes": (x, y), "outside": "clip"},
            real=(1,),
        ),
        Sample("empty", (plane, where[:0]), {"axes": (x, y), "outside": "clip"}, real=(1,)),
        Sample(
            "Catmull-Rom with channels, periodic and filled",
            (rng.standard_normal((5, 3, 2)), rng.uniform(-1, 2, (3, 2))),
            {
                "axes": (y, z),
                "method": "catmull-rom",
                "outside": ("periodic", "fill"),
                "fill": 7.5,
                "period": (2.7, None),
            },
            real=(1,),
        ),
        Sample(
            "natural spline, extrapolated, and periodic",
            (plane, where * 2),
            {"axes": (x, y), "method": "natural", "outside": ("periodic", "extrapolate"), "period": 3.7},
            real=(1,),
        ),
        Sample(
            "smallest: two points, clamped",
            (rng.standard_normal(2), np.array([[0.2]])),
            {"axes": (x[:2],), "method": "clamped", "outside": "extrapolate"},
            real=(1,),
        ),
    ]


def _cost(values: Any, points: Any, *, axes: Any, method: str = "not-a-knot", **_: Any) -> float:
    d, size = len(axes), float(np.size(values))
    trailing = np.prod(np.shape(values)[d:])
    slopes = 2**d * size * (4 if method == "catmull-rom" else 2 * max(len(a) for a in axes))
    return float(slopes + np.size(points) / d * 4**d * 2 * trailing)


@operator("interp.cubic", oracle=_oracle, samples=_samples, flops=_cost)
def interp_cubic(
    values: Inexact[Array, "..."],
    points: Float[Array, "... axes"],
    *,
    axes: tuple[np.ndarray, ...],
    method: str = "not-a-knot",
    outside: str | tuple[str, ...] = "error",
    fill: float | complex | None = None,
    period: float | tuple[float | None, ...] | None = None,
) -> Inexact[Array, "..."]:
    """Tensor-product cubic interpolation of gridded values at points.

    In each cell, along every axis, with t and h as in `interp_linear` and slopes m (see `spline_slopes`):
    u(x) = (1 + 2t)(1 - t)^2 u_i + t (1 - t)^2 h m_i + t^2 (3 - 2t) u_{i+1} - t^2 (1 - t) h m_{i+1}.

    Args:
        values, points, axes, outside, fill, period: as `interp_linear`.
        method: "not-a-knot" (fourth order, SciPy's default), "natural", "clamped" (splines, twice continuously
            differentiable, every value depends on all of its line), or "catmull-rom" (local, third order, once
            differentiable). On a periodic axis a spline is the periodic one.

    Raises:
        InputError: unknown method; else as `interp_linear`. UnsupportedError: a spline over more than 2048 points along an axis.
    """
    if method not in METHODS:
        raise InputError(f"interp_cubic: unknown method {method!r}", remedy=did_you_mean(method, METHODS))
    grid = make_grid(values, points, axes, outside, fill, period, "interp_cubic")
    # for each subset of the axes, the mixed slopes along them, beside the values: one gather brings all
    tables = [grid.values]
    for i, axis in enumerate(grid.axes):
        tables = [t for table in tables for t in (table, _slopes(table, axis, i, method))]
    stacked = jnp.stack([t.reshape(int(np.prod(grid.sizes)), -1) for t in tables], axis=1)
    real = jnp.real(stacked).dtype
    cells, masks = [], []
    weights: Array = jnp.ones((1, 1, 1), real)  # points, corners, kinds of slopes
    for i, axis in enumerate(grid.axes):
        cell, t, h, inside = locate(axis, grid.points[..., i].reshape(-1))
        r = 1 - t
        basis = jnp.stack([(1 + 2 * t) * r * r, t * r * r * h, t * t * (3 - 2 * t), -t * t * r * h], -1).astype(real)
        outer = weights[:, :, None, :, None] * basis.reshape(-1, 1, 2, 1, 2)
        weights = outer.reshape(t.size, 2 * weights.shape[1], 2 * weights.shape[2])
        cells.append(cell)
        masks.append(inside)
    out = jnp.sum(weights[..., None] * stacked[corners(grid.sizes, cells)], axis=(1, 2))
    return finish(out, grid, masks)
