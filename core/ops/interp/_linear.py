"""Multilinear interpolation."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.interp._axis import corners, finish, locate, make_grid


def _oracle(
    values: Any, points: Any, *, axes: Any, outside: Any = "error", fill: Any = None, period: Any = None
) -> np.ndarray:
    from scipy.interpolate import RegularGridInterpolator

    from sciax.core.ops.interp._oracle import prepared

    values, points, axes, outer = prepared(values, points, axes, outside, period)
    channels = values.reshape(*values.shape[: len(axes)], -1)
    out = np.zeros((*points.shape[:-1], channels.shape[-1]), values.dtype)
    for c in range(channels.shape[-1]):
        for part, unit in ((np.real, 1), (np.imag, 1j)) if np.iscomplexobj(values) else ((np.real, 1),):
            call = RegularGridInterpolator(axes, part(channels[..., c]), bounds_error=False, fill_value=None)  # type: ignore[arg-type]
            out[..., c] += unit * call(points)
    if fill is not None:
        out[outer] = fill
    return out.reshape(points.shape[:-1] + values.shape[len(axes) :])


def _samples(rng: np.random.Generator) -> list[Sample]:
    x, y, z = np.linspace(0, 3, 7), np.linspace(-1, 1, 5) + rng.uniform(-0.1, 0.1, 5), np.array([0.0, 0.5, 2.0])
    inside = lambda n, *axes: np.stack([rng.uniform(a[0] + 0.1, a[-1] - 0.1, n) for a in axes], -1)  # noqa: E731
    plane, where = rng.standard_normal((7, 5)), inside(6, x, y)
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
            "three axes with channels, clip, fill and periodic",
            (rng.standard_normal((7, 5, 3, 2)), rng.uniform(-3, 5, (3, 2, 3))),
            {"axes": (x, y, z), "outside": ("clip", "fill", "periodic"), "fill": 7.5, "period": (None, None, 2.5)},
            real=(1,),
        ),
        Sample(
            "smallest, extrapolated",
            (rng.standard_normal(2), np.array([[2.5]])),
            {"axes": (x[:2],), "outside": "extrapolate"},
            real=(1,),
        ),
    ]


def _cost(values: Any, points: Any, *, axes: Any, **_: Any) -> float:
    corners = 2.0 ** len(axes)
    trailing = np.prod(np.shape(values)[len(axes) :])
    return float(np.size(points) / len(axes) * corners * (2 * trailing + len(axes)))


@operator("interp.linear", oracle=_oracle, samples=_samples, flops=_cost)
def interp_linear(
    values: Inexact[Array, "..."],
    points: Float[Array, "... axes"],
    *,
    axes: tuple[np.ndarray, ...],
    outside: str | tuple[str, ...] = "error",
    fill: float | complex | None = None,
    period: float | tuple[float | None, ...] | None = None,
) -> Inexact[Array, "..."]:
    """Multilinear interpolation of gridded values at points.

    In each cell u(x) = (1 - t) u_i + t u_{i+1}, t = (x - x_i) / (x_{i+1} - x_i), along every axis in turn. The derivative with
    respect to a point is that of its cell; on a node it is that of the cell to the right.

    Args:
        values: grid axes first, then any channels; real or complex.
        points: (..., number of axes).
        axes: increasing coordinates of each grid axis, concrete; evenly spaced ones are found without a search.
        outside: for all axes or one each. "error" raises (under jit when the program runs), "clip" takes the nearest point
            of the grid, "fill" gives `fill`, "extrapolate" continues the outermost cell, "periodic" wraps with `period`
            (the last point is the neighbour of the first, not its copy).

    Returns:
        `points.shape[:-1]` + channels, in the dtype of `values`.

    Raises:
        InputError: a point outside with "error"; unknown policy; axes that do not increase; missing period or fill.
        ShapeError, DTypeError: arrays that do not fit.
    """
    grid = make_grid(values, points, axes, outside, fill, period, "interp_linear")
    table = grid.values.reshape(int(np.prod(grid.sizes)), -1)
    real = jnp.real(table).dtype
    cells, masks = [], []
    weights: Array = jnp.ones((1, 1), real)
    for i, axis in enumerate(grid.axes):
        cell, t, _, inside = locate(axis, grid.points[..., i].reshape(-1))
        pair = jnp.stack([1 - t, t], -1).astype(real)
        weights = (weights[:, :, None] * pair[:, None, :]).reshape(t.size, 2 * weights.shape[1])
        cells.append(cell)
        masks.append(inside)
    out = jnp.sum(weights[:, :, None] * table[corners(grid.sizes, cells)], axis=1)
    return finish(out, grid, masks)
