"""What the oracles of the interpolations share: policies for points outside, spelt out in NumPy."""

from typing import Any

import numpy as np


def prepared(
    values: Any, points: Any, axes: Any, outside: Any, period: Any
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """Values and axes with periodic copies, points moved inside, and the mask of points that get the fill value."""
    values, points = np.asarray(values), np.array(points)
    axes = [np.asarray(a) for a in axes]
    outer = np.zeros(points.shape[:-1], bool)
    for i in range(len(axes)):
        policy = outside if isinstance(outside, str) else outside[i]
        low, high = axes[i][0], axes[i][-1]
        x = points[..., i]
        if policy == "periodic":
            length = period[i] if isinstance(period, tuple) else period
            axes[i] = np.append(axes[i], low + length)
            values = np.concatenate([values, np.take(values, [0], axis=i)], axis=i)
            points[..., i] = (x - low) % length + low
        elif policy == "fill":
            outer |= (x < low) | (x > high)
        if policy in ("fill", "clip"):
            points[..., i] = np.minimum(np.maximum(x, low), high)
    return values, points, axes, outer
