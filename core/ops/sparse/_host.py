"""Solves on the host: SuperLU and algebraic multigrid, with the factor of a matrix kept for its adjoint.

Every function here takes and returns NumPy arrays, works in float64 (complex128) whatever came in, and reports failure as a
status: it also runs inside a JAX callback, where an exception would lose its type.
"""

from typing import Any

import numpy as np
import scipy.sparse.linalg as spla

from sciax.core.errors import optional_import
from sciax.core.ops.sparse._ordering import nested_dissection
from sciax.core.ops.sparse._pattern import _Host

OK, SINGULAR, UNCONVERGED, NOT_FINITE = 0, 1, 2, 3
KEPT = 3
"""Factors kept for each pattern: the present matrix, and the ones a gradient of a few solves comes back to."""


def _wide(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.complex128 if np.iscomplexobj(array) else np.float64)


def _kept(host: _Host, kind: str, data: np.ndarray, make) -> Any:
    """The object `make()` gives for this data: made once, then found again by comparing the values themselves."""
    with host.lock:
        entries = host.cache.setdefault(kind, [])
        for index, (known, thing) in enumerate(entries):
            if known.dtype == data.dtype and np.array_equal(known, data):
                entries.insert(0, entries.pop(index))
                return thing
    thing = make()
    with host.lock:
        entries.insert(0, (data.copy(), thing))
        del entries[KEPT:]
    return thing


def _scales(host: _Host, size, definite: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column factors, powers of two, that bring the largest entries near one: pivoting compares scaled rows only."""

    def inverse_power(largest, half=1.0):
        return np.exp2(-np.round(half * np.log2(np.where(largest > 0, largest, 1.0))))

    if definite:
        diagonal = np.append(size.data, 1.0)[host.diagonal()]
        both = inverse_power(diagonal, 0.5)
        return both, both
    rows = inverse_power(np.asarray(size.max(axis=1).todense()).ravel())
    largest = np.zeros(host.shape[1])
    np.maximum.at(largest, host.indices, size.data * np.repeat(rows, np.diff(host.indptr)))
    return rows, inverse_power(largest)


class _Factor:
    """LU factors of a matrix, with a Skeel condition estimate (invariant to row and column scaling)."""

    def __init__(self, host: _Host, data: np.ndarray, definite: bool):
        matrix = self.matrix = host.matrix(data)
        self.order: np.ndarray | None = None
        self.size = abs(matrix)
        self.left, self.right = _scales(host, self.size, definite)
        rows = np.repeat(np.arange(host.shape[0]), np.diff(host.indptr))
        matrix = host.matrix(data * self.left[rows] * self.right[host.indices])
        if definite:
            # A definite matrix needs no pivoting, so any symmetric order that keeps fill low will do.
            options: dict[str, Any] = {
                "diag_pivot_thresh": 0.0,
                "relax": 4,
                "panel_size": 16,
                "options": {"SymmetricMode": True},
            }
            self.order = nested_dissection(host)
            if self.order is not None:
                columns = matrix[self.order][:, self.order].tocsc()
                self.lu = spla.splu(columns, permc_spec="NATURAL", **options)
            else:
                self.lu = spla.splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", **options)
        else:
            self.lu = spla.splu(matrix.tocsc())
        weight = np.asarray(self.size.sum(axis=1)).ravel() * np.random.default_rng(0).uniform(0.5, 1.0, host.shape[0])
        response = self.solve(weight.astype(data.dtype), False)
        with np.errstate(all="ignore"):
            self.condition = float(np.max((self.size @ np.abs(response)) / weight, initial=0.0))

    def solve(self, b: np.ndarray, transpose: bool) -> np.ndarray:
        trans = "T" if transpose else "N"
        first, last = (self.right, self.left) if transpose else (self.left, self.right)
        wide = (slice(None), *(None,) * (b.ndim - 1))
        scaled = b * first[wide]
        if self.order is None:
            return self.lu.solve(scaled, trans) * last[wide]
        x = np.empty_like(scaled)
        x[self.order] = self.lu.solve(np.ascontiguousarray(scaled[self.order]), trans)
        return x * last[wide]


def direct(host: _Host, data: np.ndarray, b: np.ndarray, transpose: bool, definite: bool):
    """Solve with `b` of shape [n, k]; returns x, iterations, residual, status."""
    data, b = _wide(data), _wide(b)
    if not (np.isfinite(data).all() and np.isfinite(b).all()):
        return b, 0, np.inf, NOT_FINITE
    if host.shape[0] == 0:
        return b, 0, 0.0, OK
    kind = "definite" if definite else "general"
    try:
        factor = _kept(host, kind, data, lambda: _Factor(host, data, definite))
    except RuntimeError:  # SuperLU: "Factor is exactly singular"
        return b, 0, np.inf, SINGULAR
    if not np.isfinite(factor.condition) or factor.condition > 0.1 / np.finfo(np.float64).eps:
        return b, 0, np.inf, SINGULAR
    dtype = np.result_type(data, b)
    if np.iscomplexobj(b) and not np.iscomplexobj(data):
        x = factor.solve(np.real(b).copy(), transpose) + 1j * factor.solve(np.imag(b).copy(), transpose)
    else:
        x = factor.solve(b.astype(dtype), transpose)
    matrix = factor.matrix.T if transpose else factor.matrix
    scale = max(float(np.linalg.norm(b)), np.finfo(np.float64).tiny)
    residual = float(np.linalg.norm(b - matrix @ x)) / scale
    return x, 1, residual, OK


def _hierarchy(host: _Host, data: np.ndarray, definite: bool):
    pyamg = optional_import("pyamg", "mesh")
    kind = "symmetric" if definite else "nonsymmetric"
    # pyamg draws a start vector for its spectral radii from NumPy's global generator: give it a fixed one and put it back.
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        return pyamg.smoothed_aggregation_solver(host.matrix(data), symmetry=kind)
    finally:
        np.random.set_state(state)  # noqa: NPY002


def multigrid(
    host: _Host, data: np.ndarray, b: np.ndarray, transpose: bool, definite: bool, method: str, tol: float, steps: int
):
    """Krylov iteration with a smoothed-aggregation V-cycle as preconditioner, one column of `b` after another."""
    data, b = _wide(data), _wide(b)
    if not (np.isfinite(data).all() and np.isfinite(b).all()):
        return b, 0, np.inf, NOT_FINITE
    if transpose and not definite:
        indptr, indices, order = host.transpose()
        flipped = host.cache.setdefault("flipped", [_Host(indptr, indices, (host.shape[1], host.shape[0]), None)])[0]
        return multigrid(flipped, data[order], b, False, definite, method, tol, steps)
    levels = _kept(host, "amg" if definite else "amg general", data, lambda: _hierarchy(host, data, definite))
    matrix = host.matrix(data)
    cycle = levels.aspreconditioner(cycle="V")
    x, worst, most, status = np.zeros_like(b, dtype=np.result_type(data, b)), 0.0, 0, OK
    for column in range(b.shape[1]):
        right = b[:, column]
        size = float(np.linalg.norm(right))
        if size == 0.0:
            continue
        count = 0

        def counted(_):
            nonlocal count
            count += 1

        if method == "cg":
            y, _ = spla.cg(matrix, right, rtol=tol, atol=0.0, maxiter=steps, M=cycle, callback=counted)
        elif method == "bicgstab":
            y, _ = spla.bicgstab(matrix, right, rtol=tol, atol=0.0, maxiter=steps, M=cycle, callback=counted)
        else:
            y, _ = spla.gmres(
                matrix, right, rtol=tol, atol=0.0, maxiter=steps, M=cycle, callback=counted, callback_type="pr_norm"
            )
        residual = float(np.linalg.norm(right - matrix @ y)) / size
        x[:, column], worst, most = y, max(worst, residual), max(most, count)
        if not residual <= 10.0 * tol:
            status = UNCONVERGED
    return x, most, worst, status
