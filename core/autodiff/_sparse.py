"""Sparse Jacobians: columns (or rows) that share no entry are computed together."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.autodiff._derivatives import _require_callable, require_vector
from sciax.core.errors import InputError, ShapeError


def jacobian_pattern(f: Callable[[Any], Any], x: Any, *, samples: int = 3, seed: int = 0) -> Any:
    """Which entries of the Jacobian of f: (n,) -> (m,) are not zero, as a boolean scipy CSR matrix.

    Found from Jacobians at `x` and near it; an entry that vanishes at all of them is missed, which `SparseJacobian` would notice.
    Costs one dense Jacobian a sample, computed in blocks.
    """
    import scipy.sparse as sp

    _require_callable(f, "jacobian_pattern")
    x = require_vector(x, "jacobian_pattern")
    if samples < 1:
        raise InputError("samples must be at least 1", got=samples)
    rng = np.random.default_rng(seed)
    block = jax.jit(lambda y, vs: jax.vmap(lambda v: jax.jvp(f, (y,), (v,))[1])(vs))
    n, width = x.size, 256
    scale = 1e-2 * (1.0 + np.abs(np.asarray(x)))
    pattern: Any = sp.csr_matrix((jax.eval_shape(f, x).shape[0], n), dtype=bool)
    for k in range(samples):
        y = x if k == 0 else x + jnp.asarray(rng.normal(size=n) * scale, x.dtype)
        columns = []
        for start in range(0, n, width):
            eye = np.zeros((min(width, n - start), n), x.dtype)
            eye[np.arange(len(eye)), start + np.arange(len(eye))] = 1
            columns.append(sp.csr_matrix(np.asarray(block(y, jnp.asarray(eye))) != 0))
        found = sp.vstack(columns).T if columns else sp.csr_matrix((jax.eval_shape(f, x).shape[0], 0), dtype=bool)
        pattern = pattern + found
    return sp.csr_matrix(pattern, dtype=bool)


def color_columns(pattern: Any) -> np.ndarray:
    """A colour for each column such that columns of one colour share no row (greedy, largest first; Curtis, Powell, Reid 1974)."""
    import scipy.sparse as sp

    csc: Any = sp.csc_matrix(pattern)
    csr: Any = sp.csr_matrix(pattern)
    colors = np.full(csc.shape[1], -1)
    for j in np.argsort(-np.diff(csc.indptr), kind="stable"):
        rows = csc.indices[csc.indptr[j] : csc.indptr[j + 1]]
        taken = {int(colors[k]) for i in rows for k in csr.indices[csr.indptr[i] : csr.indptr[i + 1]]}
        color = 0
        while color in taken:
            color += 1
        colors[j] = color
    return colors


class SparseJacobian:
    """The Jacobian of f: (n,) -> (m,), with as many sweeps as its pattern needs colours.

    Attributes:
        pattern: scipy CSR, boolean.
        colors: number of sweeps.
        mode: "forward" (columns) or "reverse" (rows), whichever needs fewer.
    """

    def __init__(self, f: Callable[[Any], Any], x: Any, *, pattern: Any = None):
        import scipy.sparse as sp

        _require_callable(f, "SparseJacobian")
        x = require_vector(x, "SparseJacobian")
        out = jax.eval_shape(f, x)
        if not hasattr(out, "shape") or len(out.shape) != 1:
            raise ShapeError(
                "SparseJacobian: the function must return a vector",
                got=getattr(out, "shape", type(out).__name__),
                expected="(m,)",
            )
        self.f = f
        self.pattern = jacobian_pattern(f, x) if pattern is None else sp.csr_matrix(pattern, dtype=bool)
        if self.pattern.shape != (out.shape[0], x.size):
            raise ShapeError(
                "SparseJacobian: the pattern has another shape", got=self.pattern.shape, expected=(out.shape[0], x.size)
            )
        self.pattern.sort_indices()
        by_column, by_row = color_columns(self.pattern), color_columns(self.pattern.T)
        forward = (by_column.max(initial=-1)) <= (by_row.max(initial=-1))
        self.mode = "forward" if forward else "reverse"
        chosen = by_column if forward else by_row
        self.colors = int(chosen.max(initial=-1)) + 1
        rows, cols = self.pattern.nonzero()
        self._seeds = jnp.asarray(np.eye(max(self.colors, 1))[:, chosen] if chosen.size else np.zeros((1, 0)), x.dtype)
        self._color = chosen[cols] if forward else chosen[rows]
        self._place = rows if forward else cols
        self._verify(x)

    def values(self, x: Any) -> jax.Array:
        """The entries, in the order of `pattern`'s CSR indices; traceable."""
        x = jnp.asarray(x)
        if self.pattern.nnz == 0:
            return jnp.zeros((0,), x.dtype)
        seeds = self._seeds.astype(x.dtype)
        if self.mode == "forward":
            swept = jax.vmap(lambda v: jax.jvp(self.f, (x,), (v,))[1])(seeds)
        else:
            value, pull = jax.vjp(self.f, x)
            swept = jax.vmap(lambda c: pull(c.astype(value.dtype))[0])(seeds)
        return swept[self._color, self._place]

    def __call__(self, x: Any) -> Any:
        """The Jacobian at x as a scipy CSR matrix."""
        import scipy.sparse as sp

        return sp.csr_matrix(
            (np.asarray(self.values(x)), self.pattern.indices, self.pattern.indptr), self.pattern.shape
        )

    def _verify(self, x: jax.Array) -> None:
        v = jnp.asarray(np.random.default_rng(1).normal(size=x.size), x.dtype)
        true = np.asarray(jax.jvp(self.f, (x,), (v,))[1])
        got = self(x) @ np.asarray(v)
        tolerance = 200 * float(jnp.finfo(x.dtype).eps) * (np.abs(true).max(initial=0) + 1e-30) * max(self.colors, 1)
        if not np.allclose(got, true, rtol=0, atol=tolerance):
            raise InputError(
                "the pattern misses entries of the Jacobian",
                got=f"largest difference in a product {np.abs(got - true).max():.3g}",
                remedy="pass the full pattern, or detect it at a point where no entry vanishes",
            )
