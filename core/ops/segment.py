"""Reductions over segments: sum, mean, max, min and softmax of rows that share an id (graphs, scatter, padding).

All take `data` of shape (n, ...), integer `segment_ids` of shape (n,) in any order and a static `num_segments`. A row whose id
is outside [0, num_segments) belongs to no segment and is dropped, so padding is an id of -1 or num_segments. Values and
gradients are finite for empty segments and for padding.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact, Int

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops._registry import Sample, operator


def _checked(data: Any, ids: Any, num_segments: Any, who: str, *, real: bool = False) -> tuple[Array, Array]:
    """Arrays after the checks that all reductions share; ids outside the range become `num_segments`."""
    data, ids = jnp.asarray(data), jnp.asarray(ids)
    if not isinstance(num_segments, int | np.integer) or num_segments < 0:
        raise InputError(f"{who}: num_segments must be a static whole number >= 0", got=num_segments)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise DTypeError(f"{who}: segment ids are integers", got=ids.dtype)
    if ids.ndim != 1 or data.ndim < 1 or data.shape[0] != ids.shape[0]:
        raise ShapeError(
            f"{who}: one id a row", got=f"data {data.shape}, ids {ids.shape}", expected="data (n, ...), ids (n,)"
        )
    if not jnp.issubdtype(data.dtype, jnp.inexact):
        raise DTypeError(f"{who}: data are floating or complex", got=data.dtype, remedy="data.astype(jnp.float32)")
    if real and jnp.issubdtype(data.dtype, jnp.complexfloating):
        raise DTypeError(
            f"{who}: complex numbers have no order", got=data.dtype, remedy="reduce real, imaginary part or modulus"
        )
    # .at[] would count negative indices from the end
    return data, jnp.where((ids < 0) | (ids >= num_segments), num_segments, ids)


def _total(data: Array, ids: Array, num_segments: int) -> Array:
    return jnp.zeros((num_segments, *data.shape[1:]), data.dtype).at[ids].add(data, mode="drop")


def _rows(per_segment: Array, ids: Array) -> Array:
    """The segment's value at each of its rows, zero at dropped rows."""
    # one more row of zeros for the dropped ones: a fill value would put a select into the loop, which then is not vectorised
    padded = jnp.concatenate([per_segment, jnp.zeros_like(per_segment, shape=(1, *per_segment.shape[1:]))])
    return padded.at[ids].get(mode="promise_in_bounds")


def _along(per_row: Array, like: Array) -> Array:
    return per_row.reshape(per_row.shape + (1,) * (like.ndim - 1))


# Oracles: plain loops over segments.


def _members(ids: Any, num_segments: int) -> list[np.ndarray]:
    return [np.flatnonzero(np.asarray(ids) == s) for s in range(num_segments)]


def _reduced(reduce: Any, data: Any, ids: Any, num_segments: int, empty: float = 0.0) -> np.ndarray:
    data = np.asarray(data)
    out = np.full((num_segments, *data.shape[1:]), empty, data.dtype)
    for s, rows in enumerate(_members(ids, num_segments)):
        if rows.size:
            out[s] = reduce(data[rows], axis=0)
    return out


def _softmax_oracle(data: Any, ids: Any, num_segments: int) -> np.ndarray:
    out = np.zeros_like(data)
    for rows in _members(ids, num_segments):
        if rows.size:
            e = np.exp(data[rows] - data[rows].max(axis=0))
            out[rows] = e / e.sum(axis=0)
    return out


def _samples(rng: np.random.Generator) -> list[Sample]:
    data, ids = rng.standard_normal((12, 3)), rng.integers(0, 4, 12)
    holes = np.where(ids == 2, 7, ids)  # segment 2 stays empty; 7 and -1 are padding
    holes[3] = -1
    return [
        Sample("ordinary: unsorted ids", (data, ids, 4)),
        Sample("empty segment and padding", (data, holes, 4)),
        Sample("empty", (np.zeros((0, 3)), np.zeros(0, np.int64), 4)),
        Sample("size one", (rng.standard_normal(1), np.zeros(1, np.int64), 1)),
        Sample("non-contiguous, more axes", (rng.standard_normal((7, 2, 6))[:, :, ::2], rng.integers(0, 3, 7), 3)),
        Sample("badly scaled", (data * 10.0 ** rng.integers(-6, 7, (12, 1)), ids, 4)),
    ]


def _logits(rng: np.random.Generator) -> list[Sample]:
    *others, _ = _samples(rng)
    # differences of hundreds: weights underflow, and a difference step sees only the winner
    far = np.array([900.0, 899.0, -1e4, 5e2, 501.0, -700.0])
    reason = "exp amplifies the rounding of logits of 1e3 by as much"
    return [*others, Sample("badly scaled", (far, np.array([0, 0, 0, 1, 1, 1]), 2), tolerance=100.0, reason=reason)]


def _extremes(rng: np.random.Generator) -> list[Sample]:
    ties = Sample("ties", (np.array([1.0, 3.0, 3.0, -2.0, 3.0]), np.array([0, 0, 0, 1, 1]), 2), smooth=False)
    return [*_samples(rng), ties]


def _size(data: Any, *_: Any, **__: Any) -> float:
    return float(np.size(data))


@operator(
    "segment.sum",
    oracle=partial(_reduced, np.sum),
    samples=_samples,
    flops=_size,
)
def segment_sum(
    data: Inexact[Array, "n ..."], segment_ids: Int[Array, "n"], num_segments: int
) -> Inexact[Array, "s ..."]:
    """out[s] = sum of data[i] over all i with segment_ids[i] = s; zero for an empty segment.

    Args:
        data: (n, ...), real or complex.
        segment_ids: (n,), any order; ids outside [0, num_segments) are dropped.
        num_segments: static.

    Raises:
        ShapeError, DTypeError, InputError: arrays that do not fit; `num_segments` traced or negative.
    """
    data, ids = _checked(data, segment_ids, num_segments, "segment_sum")
    return _total(data, ids, num_segments)


@operator(
    "segment.mean", oracle=partial(_reduced, np.mean), samples=_samples, flops=lambda data, *_: 2.0 * np.size(data)
)
def segment_mean(
    data: Inexact[Array, "n ..."], segment_ids: Int[Array, "n"], num_segments: int
) -> Inexact[Array, "s ..."]:
    """out[s] = mean of data[i] over all i with segment_ids[i] = s; zero for an empty segment.

    Arguments and errors as `segment_sum`.
    """
    data, ids = _checked(data, segment_ids, num_segments, "segment_mean")
    count = _total(jnp.ones(ids.shape, jnp.real(data).dtype), ids, num_segments)
    return _total(data, ids, num_segments) / _along(jnp.maximum(count, 1), data)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _largest(data: Array, ids: Array, num_segments: int, empty: float) -> Array:
    low = jnp.full((num_segments, *data.shape[1:]), -jnp.inf, data.dtype).at[ids].max(data, mode="drop")
    filled = jnp.zeros(num_segments, bool).at[ids].set(True, mode="drop")
    return jnp.where(_along(filled, data), low, jnp.asarray(empty, data.dtype))


@_largest.defjvp
def _largest_jvp(num_segments: int, empty: float, primals: Any, tangents: Any) -> tuple[Array, Array]:
    data, ids = primals
    out = _largest(data, ids, num_segments, empty)
    winner = data == _rows(out, ids)
    share = _total(winner.astype(data.dtype), ids, num_segments)
    slope = _total(jnp.where(winner, tangents[0], 0), ids, num_segments)
    return out, slope / jnp.maximum(share, 1)


_ORDERED = {"complex": "complex numbers have no order"}


@operator("segment.max", oracle=partial(_reduced, np.max), samples=_extremes, flops=_size, unsupported=_ORDERED)
def segment_max(
    data: Float[Array, "n ..."], segment_ids: Int[Array, "n"], num_segments: int, *, empty: float = 0.0
) -> Float[Array, "s ..."]:
    """out[s] = max of data[i] over all i with segment_ids[i] = s.

    Where several rows attain the maximum, the gradient is split evenly among them.

    Args:
        data, segment_ids, num_segments: as `segment_sum`, real.
        empty: value of an empty segment.

    Raises:
        DTypeError: complex data; else as `segment_sum`.
    """
    data, ids = _checked(data, segment_ids, num_segments, "segment_max", real=True)
    return _largest(data, ids, num_segments, empty)


@operator("segment.min", oracle=partial(_reduced, np.min), samples=_extremes, flops=_size, unsupported=_ORDERED)
def segment_min(
    data: Float[Array, "n ..."], segment_ids: Int[Array, "n"], num_segments: int, *, empty: float = 0.0
) -> Float[Array, "s ..."]:
    """out[s] = min of data[i] over all i with segment_ids[i] = s; ties, `empty` and errors as `segment_max`."""
    data, ids = _checked(data, segment_ids, num_segments, "segment_min", real=True)
    return -_largest(-data, ids, num_segments, -empty)


@operator(
    "segment.softmax",
    oracle=_softmax_oracle,
    samples=_logits,
    flops=lambda data, *_: 5.0 * np.size(data),
    unsupported={"complex": "a softmax orders its logits by size; complex numbers have no order"},
)
def segment_softmax(
    logits: Float[Array, "n ..."], segment_ids: Int[Array, "n"], num_segments: int
) -> Float[Array, "n ..."]:
    """out[i] = exp(x[i]) / sum of exp(x[j]) over all j in the segment of i; zero at dropped rows.

    The segment's maximum is subtracted first, so no logit overflows; a segment of logits that are all -inf gives zeros.
    Arguments and errors as `segment_sum`; real.
    """
    data, ids = _checked(logits, segment_ids, num_segments, "segment_softmax", real=True)
    kept = _along(ids < num_segments, data)
    top = jax.lax.stop_gradient(_largest(data, ids, num_segments, 0.0))
    top = _rows(jnp.where(jnp.isfinite(top), top, 0), ids)
    # measured: an exponential fused with gather and select is not vectorised on CPU (7 ms against 3 for 2e5 rows of 8)
    weight = jnp.exp(jax.lax.optimization_barrier(jnp.where(kept, data - top, -jnp.inf)))
    norm = _rows(_total(weight, ids, num_segments), ids)
    return weight / jnp.where(norm > 0, norm, 1)
