"""Comparison of results with a message that says what differs, where and by how much."""

from typing import Any

import jax
import numpy as np


class ConformanceError(AssertionError):
    """A cell of the grid that does not hold."""


def inexact(tree: Any) -> list[Any]:
    """The floating and complex arrays among the leaves of `tree`."""
    return [leaf for leaf in jax.tree.leaves(tree) if np.issubdtype(np.asarray(leaf).dtype, np.inexact)]


def scale_of(tree: Any) -> float:
    """Largest finite modulus in `tree`."""
    values = [np.abs(np.asarray(leaf)) for leaf in inexact(tree)]
    return max((float(np.max(v, initial=0.0, where=np.isfinite(v))) for v in values), default=0.0)


def same(got: Any, want: Any, tol: float, what: str, floor: float = 0.0) -> None:
    """Fail unless every leaf of `got` has the shape of its partner in `want` and agrees to `tol`.

    Args:
        floor: absolute scale below which differences are measured against `floor` instead of the array's largest entry.
    """
    left, right = jax.tree.leaves(got), jax.tree.leaves(want)
    if len(left) != len(right):
        raise ConformanceError(f"{what}: {len(left)} output arrays, expected {len(right)}")
    for index, (a, b) in enumerate(zip(left, right)):
        a, b = np.asarray(a), np.asarray(b)
        name = what if len(left) == 1 else f"{what}, output {index}"
        if a.shape != b.shape:
            raise ConformanceError(f"{name}: shape {a.shape}, expected {b.shape}")
        if a.size == 0:
            continue
        if not np.issubdtype(b.dtype, np.inexact):
            if not np.array_equal(a, b):
                raise ConformanceError(
                    f"{name}: {int(np.sum(a != b))} of {a.size} integers differ\n got {a}\n expected {b}"
                )
            continue
        _same_floats(a, b, tol, name, floor)


def _same_floats(a: np.ndarray, b: np.ndarray, tol: float, name: str, floor: float) -> None:
    wide = np.complex128 if np.iscomplexobj(a) or np.iscomplexobj(b) else np.float64
    a, b = a.astype(wide), b.astype(wide)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    # infinities and NaN must sit in the same places with the same sign
    wrong = odd & ~((a == b) | (np.isnan(a) & np.isnan(b)))
    if wrong.any():
        at = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        raise ConformanceError(f"{name}: at {tuple(map(int, at))} got {a[at]}, expected {b[at]}")
    a, b = np.where(odd, 0, a), np.where(odd, 0, b)
    error = np.abs(a - b)
    limit = tol * (np.abs(b) + max(float(np.abs(b).max()), floor))
    bad = error > limit
    if bad.any():
        at = np.unravel_index(int(np.argmax(error - limit)), error.shape)
        share = float(error[at] / limit[at]) if limit[at] else float("inf")
        raise ConformanceError(
            f"{name}: {int(bad.sum())} of {bad.size} entries differ; worst at {tuple(map(int, at))}: got {a[at]:.9g}, "
            f"expected {b[at]:.9g}, difference {error[at]:.2e}, allowed {limit[at]:.2e} ({share:.1f} times too large)"
        )
