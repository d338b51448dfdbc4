"""Vectors along the pairs of a neighbour list, differentiable in positions and cell."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sciax.core.errors import DTypeError, ShapeError
from sciax.core.ops._registry import Sample, operator


def _oracle(positions, cell, centers, others, shifts):
    d = positions[others] + shifts @ cell - positions[np.minimum(centers, len(positions) - 1)]
    d[centers >= len(positions)] = 0
    return d


def _samples(rng):
    for label, n, e, scale in (
        ("ordinary", 7, 20, 1.0),
        ("one atom", 1, 4, 1.0),
        ("empty", 3, 0, 1.0),
        ("badly scaled", 5, 9, 1e4),
    ):
        yield Sample(
            label,
            (
                rng.normal(size=(n, 3)) * scale,
                rng.normal(size=(3, 3)),
                rng.integers(0, n + 1, e).astype(np.int32),
                rng.integers(0, n, e).astype(np.int32),
                rng.integers(-1, 2, (e, 3)).astype(np.int32),
            ),
        )


@operator(
    "neighbours.displacements",
    oracle=_oracle,
    samples=_samples,
    flops=lambda positions, cell, centers, others, shifts: 21.0 * len(centers),
    unsupported={"complex": "positions are real"},
)
def displacements(
    positions: Float[Array, "atoms 3"],
    cell: Float[Array, "3 3"],
    centers: Int[Array, " pairs"],
    others: Int[Array, " pairs"],
    shifts: Int[Array, "pairs 3"],
) -> Float[Array, "pairs 3"]:
    """d = r_other + S·cell - r_center for each pair; padding (center = number of atoms) gives exactly 0 and no gradient.

    Raises:
        DTypeError: positions that are not real. ShapeError: arrays that do not fit.
    """
    if not jnp.issubdtype(positions.dtype, jnp.floating):
        raise DTypeError("positions are not real floating numbers", got=positions.dtype, expected="float32 or float64")
    if positions.ndim != 2 or positions.shape[1] != 3 or shifts.shape != (centers.shape[0], 3):
        raise ShapeError(
            "positions or shifts do not fit", got=(positions.shape, shifts.shape), expected="(atoms, 3) and (pairs, 3)"
        )
    n = positions.shape[0]
    valid = (centers < n)[:, None]
    image = jnp.matmul(shifts.astype(positions.dtype), cell.astype(positions.dtype), precision="highest")
    # difference first, then the image: keeps the digits of atoms far from the origin
    d = (positions[others] - positions[jnp.minimum(centers, n - 1)]) + image
    return jnp.where(valid, d, jnp.zeros((), positions.dtype))


def safe_norm(vectors: Float[Array, "*batch 3"], *, at_zero: float = 0.0) -> Float[Array, "*batch"]:
    """|v| whose value at v = 0 is `at_zero` and whose gradients of any order there are 0 (never NaN)."""
    square = jnp.sum(vectors * vectors, axis=-1)
    zero = square == 0
    return jnp.where(zero, jnp.asarray(at_zero, vectors.dtype), jnp.sqrt(jnp.where(zero, 1, square)))
