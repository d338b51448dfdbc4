"""Coordinates of a grid, and where in it a point lies."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array

from sciax.core.errors import DTypeError, InputError, ShapeError, did_you_mean

OUTSIDE = ("error", "clip", "fill", "extrapolate", "periodic")


@dataclass(frozen=True)
class Axis:
    """One axis of a grid.

    Attributes:
        nodes: increasing coordinates, float64; a periodic axis ends with the copy of its first point.
        outside: what happens beyond them, one of `OUTSIDE`.
    """

    nodes: np.ndarray
    outside: str

    @property
    def uniform(self) -> bool:
        """Whether the spacing is constant to 1e-9, so that a division finds the cell."""
        even = np.linspace(self.nodes[0], self.nodes[-1], self.nodes.size)
        return bool(np.abs(self.nodes - even).max() <= 1e-9 * (even[1] - even[0]))


@dataclass(frozen=True)
class Grid:
    """Checked arguments of an interpolation."""

    values: Array
    points: Array
    axes: tuple[Axis, ...]
    fill: Any

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.nodes.size for axis in self.axes)


def per_axis(option: Any, count: int, name: str, who: str) -> list[Any]:
    """One option an axis, from one for all or a sequence."""
    if isinstance(option, str) or not isinstance(option, tuple | list):
        return [option] * count
    if len(option) != count:
        raise InputError(f"{who}: one {name}, or one an axis", got=option, expected=f"{count} entries")
    return list(option)


def make_grid(values: Any, points: Any, axes: Sequence[Any], outside: Any, fill: Any, period: Any, who: str) -> Grid:
    """Check everything that both interpolations share; extend periodic axes; apply the policy "error".

    Raises:
        InputError, ShapeError, DTypeError: naming the argument.
    """
    values, points = jnp.asarray(values), jnp.asarray(points)
    if not jnp.issubdtype(values.dtype, jnp.inexact):
        raise DTypeError(f"{who}: values are floating or complex", got=values.dtype)
    if not jnp.issubdtype(points.dtype, jnp.floating):
        raise DTypeError(f"{who}: points are real floating numbers", got=points.dtype)
    if not isinstance(axes, tuple | list) or not axes or any(isinstance(a, Tracer) for a in axes):
        raise InputError(f"{who}: axes is a tuple of concrete coordinate arrays", remedy="close over them under jit")
    count = len(axes)
    if points.ndim < 1 or points.shape[-1] != count:
        raise ShapeError(f"{who}: points have one coordinate an axis", got=points.shape, expected=f"(..., {count})")
    checked = []
    options = zip(axes, per_axis(outside, count, "policy", who), per_axis(period, count, "period", who))
    for i, (nodes, policy, length) in enumerate(options):
        nodes = np.asarray(nodes, np.float64)
        if policy not in OUTSIDE:
            raise InputError(
                f"{who}: unknown policy {policy!r} for points outside", remedy=did_you_mean(policy, OUTSIDE)
            )
        if nodes.ndim != 1 or values.ndim < count or values.shape[i] != nodes.size:
            raise ShapeError(
                f"{who}: axis {i} does not fit the values", got=f"axis {nodes.shape}, values {values.shape}"
            )
        if not (np.isfinite(nodes).all() and (np.diff(nodes) > 0).all()):
            raise InputError(
                f"{who}: coordinates of axis {i} must increase", got=nodes, remedy="flip the axis and the values"
            )
        if policy == "periodic":
            if length is None or not length > nodes[-1] - nodes[0]:
                raise InputError(f"{who}: axis {i} is periodic and needs a period larger than its extent", got=length)
            nodes = np.append(nodes, nodes[0] + length)
            first = jax.lax.slice_in_dim(values, 0, 1, axis=i)
            values = jnp.concatenate([values, first], axis=i)
        if nodes.size < 2:
            raise ShapeError(f"{who}: axis {i} needs two points", got=nodes.size)
        checked.append(Axis(nodes, policy))
    if any(axis.outside == "fill" for axis in checked) and fill is None:
        raise InputError(f"{who}: the policy 'fill' needs fill=VALUE", got=None)
    return Grid(values, _refuse_outside(points, checked, who), tuple(checked), fill)


def _refuse_outside(points: Array, axes: list[Axis], who: str) -> Array:
    """Raise for a point outside an axis of policy "error": at once if it is concrete, when the program runs if traced."""
    strict = [i for i, axis in enumerate(axes) if axis.outside == "error"]
    if not strict or points.size == 0:
        return points
    low, high = (np.array([axes[i].nodes[end] for i in strict]) for end in (0, -1))
    inner = points[..., np.array(strict)]
    # negated, so that a NaN is outside
    bad = ~((inner >= low.astype(points.dtype)) & (inner <= high.astype(points.dtype)))
    remedy = f"choose what happens outside: outside={OUTSIDE[1:]}"
    if isinstance(bad, Tracer):
        return eqx.error_if(points, bad, f"{who}: a point lies outside the grid; {remedy}")
    if bad.any():
        first = np.unravel_index(int(jnp.argmax(bad.any(axis=-1))), bad.shape[:-1])
        raise InputError(
            f"{who}: {int(bad.any(axis=-1).sum())} points lie outside the grid",
            got=f"point {tuple(map(int, first))} = {np.asarray(points[first])}",
            expected=f"axes {strict} within {low.tolist()} .. {high.tolist()}",
            remedy=remedy,
        )
    return points


def locate(axis: Axis, x: Array) -> tuple[Array, Array, Array, Array | None]:
    """Cell index i, local coordinate t = (x - x_i) / h_i, cell width h_i, and the mask of points inside (for "fill")."""
    nodes, dtype, last = axis.nodes, x.dtype, axis.nodes.size - 2
    low, high = (jnp.asarray(nodes[end], dtype) for end in (0, -1))
    inside = None
    if axis.outside == "periodic":
        x = low + jnp.mod(x - low, jnp.asarray(nodes[-1] - nodes[0], dtype))
    elif axis.outside in ("clip", "fill"):
        inside = (x >= low) & (x <= high) if axis.outside == "fill" else None
        x = jnp.clip(x, low, high)
    if axis.uniform:
        width = jnp.asarray((nodes[-1] - nodes[0]) / (last + 1), dtype)
        s = (x - low) / width
        cell = jnp.clip(jnp.floor(s), 0, last)
        return cell.astype(jnp.int32), s - jax.lax.stop_gradient(cell), jnp.broadcast_to(width, x.shape), inside
    table = jnp.asarray(nodes, dtype)
    cell = jnp.clip(jnp.searchsorted(table, x, side="right") - 1, 0, last).astype(jnp.int32)
    start = table[cell]
    width = table[cell + 1] - start
    return cell, (x - start) / width, width, inside


def corners(sizes: tuple[int, ...], cells: Sequence[Array]) -> Array:
    """Flat indices (C order) of the 2^d corners of each point's cell, shape (points, 2^d); the last axis varies fastest."""
    pair = jnp.arange(2, dtype=jnp.int32)
    flat = cells[0].reshape(-1, 1) + pair
    for size, cell in zip(sizes[1:], cells[1:]):
        flat = (flat[:, :, None] * size + (cell.reshape(-1, 1) + pair)[:, None, :]).reshape(-1, 2 * flat.shape[1])
    return flat


def finish(out: Array, grid: Grid, masks: list[Array | None]) -> Array:
    """From (points, channels): put `fill` where a point is outside, and give the result its shape."""
    for mask in masks:
        if mask is not None:
            out = jnp.where(mask.reshape(-1, 1), out, jnp.asarray(grid.fill, out.dtype))
    return out.reshape(grid.points.shape[:-1] + grid.values.shape[len(grid.axes) :])
