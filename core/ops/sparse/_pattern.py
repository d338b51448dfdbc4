"""The fixed sparsity pattern of a matrix in compressed sparse rows (CSR), built once and reused for every set of values."""

import threading
from collections import OrderedDict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jaxtyping import Array, Int

from sciax.core.errors import InputError, ShapeError


class _Host:
    """What host libraries need of a pattern, and the factors they made: compared and hashed by identity."""

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, shape: tuple[int, int], coordinates: np.ndarray | None):
        self.indptr, self.indices, self.shape, self.coordinates = indptr, indices, shape, coordinates
        self.cache: OrderedDict[str, list[Any]] = OrderedDict()
        self.lock = threading.Lock()
        self._diagonal: np.ndarray | None = None
        self._transpose: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._symmetric: bool | None = None

    @property
    def nnz(self) -> int:
        return len(self.indices)

    def matrix(self, data: np.ndarray) -> sp.csr_matrix:
        return sp.csr_matrix((data, self.indices, self.indptr), shape=self.shape)

    def transpose(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """indptr and indices of the transposed pattern, and the permutation that takes data to it."""
        if self._transpose is None:
            moved = self.matrix(np.arange(self.nnz)).T.tocsr()
            moved.sort_indices()
            self._transpose = moved.indptr, moved.indices, moved.data
        return self._transpose

    def symmetric_structure(self) -> bool:
        if self._symmetric is None:
            indptr, indices, _ = self.transpose()
            self._symmetric = np.array_equal(indptr, self.indptr) and np.array_equal(indices, self.indices)
        return self._symmetric

    def diagonal(self) -> np.ndarray:
        """Index into data of each row's diagonal entry; nnz where the pattern has none."""
        if self._diagonal is None:
            rows = np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.indptr))
            where = np.full(self.shape[0], self.nnz, dtype=np.int32)
            on = np.flatnonzero(rows == self.indices)
            where[rows[on]] = on
            self._diagonal = where
        return self._diagonal


@jax.tree_util.register_pytree_node_class
class Pattern:
    """Sparsity pattern of an `n x m` matrix; `data[k]` of a matrix on it belongs to `(rows[k], cols[k])`.

    A pytree (its index arrays travel as arguments of a compiled function, not as constants in its program) that also
    hashes, by identity, so that it may be a static argument. Make one with `pattern`.

    Attributes:
        rows, cols: int32 [nnz], sorted by row, then column.
        shape: (n, m).
        nnz: number of entries.
    """

    def __init__(self, host: _Host, rows: Int[Array, " nnz"], cols: Int[Array, " nnz"]):
        self.host, self.rows, self.cols = host, rows, cols

    @property
    def shape(self) -> tuple[int, int]:
        return self.host.shape

    @property
    def nnz(self) -> int:
        return self.host.nnz

    @property
    def indptr(self) -> np.ndarray:
        return self.host.indptr

    @property
    def indices(self) -> np.ndarray:
        return self.host.indices

    def scipy(self, data: Any) -> sp.csr_matrix:
        """The matrix as SciPy CSR, on the host."""
        return self.host.matrix(np.asarray(data))

    def tree_flatten(self):
        return (self.rows, self.cols), self.host

    @classmethod
    def tree_unflatten(cls, host, leaves):
        return cls(host, *leaves)

    def __hash__(self) -> int:
        return hash(self.host)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and other.host is self.host

    def __repr__(self) -> str:
        return f"Pattern({self.shape[0]}x{self.shape[1]}, nnz={self.nnz})"


def pattern(
    rows: Any, cols: Any, shape: tuple[int, int], *, coordinates: Any = None
) -> tuple[Pattern, Int[Array, " entries"]]:
    """The pattern of all `(rows[k], cols[k])`, and where each of these entries goes.

    Entries of either index negative are dropped: their slot is `nnz`, which `assemble` discards (elimination of
    constrained unknowns uses this).

    Args:
        rows, cols: integers of equal shape; repeated pairs are summed by `assemble`.
        shape: (n, m).
        coordinates: [n, dim], positions of the unknowns; with them the direct solver orders by nested dissection.

    Returns:
        The pattern, and for every entry (flattened) its slot in `data`, int32.

    Raises:
        ShapeError: rows and cols of different shape.
        InputError: an index beyond `shape`.
    """
    rows, cols = np.asarray(rows), np.asarray(cols)
    if rows.shape != cols.shape:
        raise ShapeError("rows and cols differ in shape", got=(rows.shape, cols.shape), expected="equal shapes")
    rows, cols = rows.ravel().astype(np.int64), cols.ravel().astype(np.int64)
    n, m = int(shape[0]), int(shape[1])
    if rows.size and (rows.max() >= n or cols.max() >= m):
        raise InputError("an index lies beyond the matrix", got=(int(rows.max()), int(cols.max())), expected=shape)
    kept = (rows >= 0) & (cols >= 0)
    key = rows[kept] * m + cols[kept]
    unique, inverse = np.unique(key, return_inverse=True)
    slots = np.full(rows.size, len(unique), dtype=np.int32)
    slots[kept] = inverse
    row, col = (unique // m).astype(np.int32), (unique % m).astype(np.int32)
    indptr = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.bincount(row, minlength=n), out=indptr[1:])
    where = None if coordinates is None else np.asarray(coordinates, dtype=np.float64)
    with jax.ensure_compile_time_eval():  # index arrays stay concrete even when a trace is under way
        return Pattern(_Host(indptr, col, (n, m), where), jnp.asarray(row), jnp.asarray(col)), jnp.asarray(slots)
