"""Assembly into a fixed pattern, and the matrix-vector product."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Shaped

from sciax.core.errors import ShapeError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.sparse._pattern import Pattern, pattern


def _assemble_samples(rng: np.random.Generator):
    for label, entries, nnz in (("ordinary", 40, 12), ("empty", 0, 3), ("size one", 1, 1), ("odd", 17, 5)):
        slots = rng.integers(0, nnz + 1, entries).astype(np.int32)
        yield Sample(label, (rng.standard_normal(entries), slots), {"nnz": nnz})
    scale = 10.0 ** rng.uniform(-6, 6, 30)
    slots = rng.integers(0, 9, 30).astype(np.int32)
    yield Sample(
        "badly scaled",
        (rng.standard_normal(30) * scale, slots),
        {"nnz": 8},
        tolerance=10.0,
        reason="sums of mixed scale",
    )


def _assemble_oracle(values, slots, *, nnz):
    out = np.zeros(nnz + 1, dtype=np.asarray(values).dtype)
    np.add.at(out, np.asarray(slots).ravel(), np.asarray(values).ravel())
    return out[:nnz]


@operator(
    "sparse.assemble",
    oracle=_assemble_oracle,
    samples=_assemble_samples,
    flops=lambda values, slots, *, nnz: values.size,
)
def assemble(values: Shaped[Array, "*entries"], slots: Int[Array, " entries"], *, nnz: int) -> Shaped[Array, " nnz"]:
    """Matrix data from element contributions: `data[s] = sum of values[k] over slots[k] = s`.

    Args:
        values: contributions in any shape, in the order in which their (row, col) went to `pattern`.
        slots: where each goes, from `pattern`; slot `nnz` is discarded.
        nnz: entries of the pattern.
    """
    if values.size != slots.size:
        raise ShapeError("values and slots differ in size", got=values.shape, expected=f"{slots.size} entries")
    return jax.ops.segment_sum(values.reshape(-1), slots.reshape(-1), num_segments=nnz + 1)[:nnz]


def _sample_matrix(rng, n, m=None, density=0.3):
    m = n if m is None else m
    rows, cols = np.nonzero(rng.random((n, m)) < density)
    p, _ = pattern(rows, cols, (n, m))
    return p, rng.standard_normal(p.nnz)


def _matvec_samples(rng: np.random.Generator):
    for label, n, m in (
        ("ordinary", 12, 12),
        ("empty", 0, 0),
        ("size one", 1, 1),
        ("odd and wide", 5, 9),
        ("large", 61, 47),
    ):
        p, data = _sample_matrix(rng, n, m, 1.0 if n == 1 else 0.3)
        yield Sample(label, (data, rng.standard_normal(m)), {"pattern": p})
    p, data = _sample_matrix(rng, 8)
    yield Sample("non-contiguous", (data, rng.standard_normal(16)[::2]), {"pattern": p})
    yield Sample(
        "badly scaled",
        (data * 10.0 ** rng.uniform(-4, 4, data.shape), rng.standard_normal(8)),
        {"pattern": p},
        tolerance=10.0,
        reason="sums of mixed scale",
    )


def _matvec_oracle(data, x, *, pattern):
    return pattern.scipy(np.asarray(data)) @ np.asarray(x)


@operator(
    "sparse.matvec",
    oracle=_matvec_oracle,
    samples=_matvec_samples,
    flops=lambda data, x, *, pattern: 2 * data.size,
    bytes=lambda data, x, *, pattern: data.nbytes + 8 * data.size + x.nbytes,
)
def matvec(data: Shaped[Array, " nnz"], x: Shaped[Array, " m"], *, pattern: Pattern) -> Shaped[Array, " n"]:
    """`y = A x` for the matrix of `data` on `pattern`; `vmap` it for several vectors.

    Raises:
        ShapeError: sizes that do not fit the pattern.
    """
    check(data, x, pattern)
    if pattern.nnz == 0:
        return jnp.zeros(pattern.shape[0], jnp.result_type(data, x))
    products = data * x[pattern.cols]
    return jax.ops.segment_sum(products, pattern.rows, num_segments=pattern.shape[0], indices_are_sorted=True)


def transposed(data: Shaped[Array, " nnz"], pattern: Pattern, y: Shaped[Array, " n"]) -> Shaped[Array, " m"]:
    """`A^T y` (no conjugate)."""
    return jax.ops.segment_sum(data * y[pattern.rows], pattern.cols, num_segments=pattern.shape[1])


def check(data, x, pattern: Pattern, side: int = 1) -> None:
    if data.shape != (pattern.nnz,) or x.shape != (pattern.shape[side],):
        raise ShapeError(
            "matrix data or vector do not fit the pattern",
            got=f"data {data.shape}, vector {x.shape}",
            expected=f"data ({pattern.nnz},), vector ({pattern.shape[side]},)",
        )
