"""`A x = b` on a fixed pattern, differentiable in the matrix and the right-hand side to any order."""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Shaped

from sciax.core.errors import ConvergenceError, InputError, ShapeError, SingularError, did_you_mean
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.sparse import _host
from sciax.core.ops.sparse._pattern import Pattern, pattern
from sciax.core.ops.sparse._product import check, matvec, transposed

METHODS = ("direct", "cg", "bicgstab", "gmres")
PRECONDITIONERS = ("none", "jacobi", "amg")


class SolveInfo(NamedTuple):
    """How a linear solve went.

    Attributes:
        iterations: Int[Array, ""], of the Krylov method; 1 for a direct solve.
        residual: Float[Array, ""], `|b - A x| / |b|`, computed from the answer itself.
        status: Int[Array, ""], 0 solved, 1 singular, 2 not converged, 3 matrix or right-hand side not finite.
    """

    iterations: Any
    residual: Any
    status: Any


_MESSAGES = {
    _host.SINGULAR: "the matrix is singular to working precision",
    _host.UNCONVERGED: "the linear iteration did not reach its tolerance",
    _host.NOT_FINITE: "the matrix or the right-hand side has a value that is not finite",
}


def raise_for(info: SolveInfo, who: str = "linear solve") -> None:
    """Raise the typed error for a failed solve; `info` must be concrete."""
    status = int(info.status)
    if status == _host.OK:
        return
    message = f"{who}: {_MESSAGES[status]}"
    if status == _host.SINGULAR:
        raise SingularError(message, remedy="pin the free constant (a Dirichlet part, or a reaction term)")
    if status == _host.UNCONVERGED:
        raise ConvergenceError(
            message,
            history=[float(info.residual)],
            got=f"relative residual {float(info.residual):.2e} after {int(info.iterations)} iterations",
            remedy='raise maxiter, loosen tol, use preconditioner="amg", or method="direct"',
        )
    raise InputError(message, remedy="look for NaN or infinity in coefficients, sources and boundary values")


# A callback may run in a thread where the scope that switched 64-bit arrays on does not hold, and JAX would then narrow what
# goes in and out. float64 therefore crosses as pairs of 32-bit words, and complex numbers as pairs of reals.


def _encode(array):
    if jnp.iscomplexobj(array):
        array = jnp.stack([array.real, array.imag], axis=-1)
    return jax.lax.bitcast_convert_type(array, jnp.uint32) if array.dtype == np.float64 else array


def _decode(array, dtype):
    if np.finfo(dtype).bits == 64:
        array = jax.lax.bitcast_convert_type(array, jnp.float64)
    return jax.lax.complex(array[..., 0], array[..., 1]) if np.issubdtype(dtype, np.complexfloating) else array


def _host_decode(array, dtype):
    array = np.ascontiguousarray(array)
    if np.finfo(dtype).bits == 64:
        array = array.view(np.float64)[..., 0]
    return array[..., 0] + 1j * array[..., 1] if np.issubdtype(dtype, np.complexfloating) else array


def _host_encode(array):
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], axis=-1)
    return np.ascontiguousarray(array[..., None]).view(np.uint32) if array.dtype == np.float64 else array


def _encoded_callback(host, data, b, *, dtype, **options):
    x, info = _callback(host, _host_decode(data, dtype), _host_decode(b, dtype), **options)
    return _host_encode(x), SolveInfo(info.iterations, _host_encode(info.residual), info.status)


def _callback(host, data, b, *, transpose, definite, method, tol, maxiter):
    """Batched host solve: leading axes of data and b broadcast; one factor serves all right-hand sides of a matrix."""
    data, b = np.asarray(data), np.asarray(b)
    batch = np.broadcast_shapes(data.shape[:-1], b.shape[:-1])
    dtype = np.result_type(data, b)
    n, count = b.shape[-1], int(np.prod(batch, dtype=np.int64))
    shared = all(size == 1 for size in data.shape[:-1])
    x = np.empty((count, n), dtype=dtype)
    report = np.zeros((3, count))
    right = np.broadcast_to(b, (*batch, n)).reshape(count, n)
    rows = np.broadcast_to(data, (*batch, data.shape[-1])).reshape(count, -1) if not shared else data.reshape(1, -1)
    groups = [(rows[0], slice(None))] if shared else [(rows[k], slice(k, k + 1)) for k in range(count)]
    for values, part in groups:
        if method == "direct":
            out = _host.direct(host, values, right[part].T, transpose, definite)
        else:
            out = _host.multigrid(host, values, right[part].T, transpose, definite, method, tol, maxiter)
        x[part] = out[0].T
        report[:, part] = np.asarray(out[1:], dtype=np.float64)[:, None]
    real = np.finfo(dtype).dtype
    info = SolveInfo(
        report[0].astype(np.int32).reshape(batch),
        report[1].astype(real).reshape(batch),
        report[2].astype(np.int32).reshape(batch),
    )
    return x.reshape(*batch, n), info


def _krylov(data, b, pattern, *, transpose, method, preconditioner, tol, maxiter, restart):
    """Iteration inside JAX, by lineax; the verdict is ours, on the true relative residual."""

    def product(x):
        return transposed(data, pattern, x) if transpose else matvec(data, x, pattern=pattern)

    tags = lx.positive_semidefinite_tag if method == "cg" else ()
    shape = jax.ShapeDtypeStruct(b.shape, b.dtype)
    linear = lx.FunctionLinearOperator(product, shape, tags)
    options = {}
    if preconditioner == "jacobi":
        diagonal = jnp.concatenate([data, jnp.zeros(1, data.dtype)])[pattern.host.diagonal()]
        inverse = jnp.where(diagonal == 0, 1.0, 1.0 / jnp.where(diagonal == 0, 1.0, diagonal)).astype(data.dtype)
        options["preconditioner"] = lx.FunctionLinearOperator(lambda r: inverse * r, shape, tags)
    # lineax stops on componentwise changes as well; its tolerance is set below ours and the residual is checked after.
    size = jnp.linalg.norm(b)
    scaled = b / jnp.where(size == 0, 1.0, size).astype(b.dtype)
    inner = {"rtol": 0.1 * tol, "atol": 0.1 * tol / np.sqrt(max(b.shape[0], 1)), "norm": _two_norm}
    if method == "cg":
        solver = lx.CG(max_steps=maxiter, **inner)
    elif method == "bicgstab":
        solver = lx.BiCGStab(max_steps=maxiter, **inner)
    else:
        solver = lx.GMRES(max_steps=maxiter, restart=restart, stagnation_iters=restart, **inner)
    out = lx.linear_solve(linear, scaled, solver, options=options, throw=False)
    x = out.value * size.astype(b.dtype)
    residual = jnp.linalg.norm(scaled - product(out.value))
    finite = jnp.isfinite(data).all() & jnp.isfinite(b).all()
    status = jnp.where(residual <= tol, _host.OK, _host.UNCONVERGED)
    status = jnp.where(finite, status, _host.NOT_FINITE).astype(jnp.int32)
    return x, SolveInfo(jnp.asarray(out.stats["num_steps"], jnp.int32), residual, status)


def _two_norm(tree):
    return jnp.linalg.norm(jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)]))


_STATIC = ("method", "preconditioner", "definite", "tol", "maxiter", "restart")


@partial(jax.jit, static_argnames=_STATIC)
def _traced(data, b, pattern, *, method, preconditioner, definite, tol, maxiter, restart):
    dtype = jnp.result_type(data, b)
    data, b = data.astype(dtype), b.astype(dtype)
    real = jnp.finfo(dtype).dtype

    def run(transpose, right):
        if method == "direct" or preconditioner == "amg":
            integer = jax.ShapeDtypeStruct((), jnp.int32)
            shapes = (
                jax.eval_shape(_encode, right),
                SolveInfo(integer, jax.eval_shape(_encode, jax.ShapeDtypeStruct((), real)), integer),
            )
            call = partial(
                _encoded_callback,
                pattern.host,
                dtype=np.dtype(dtype),
                transpose=transpose,
                definite=definite,
                method=method,
                tol=tol,
                maxiter=maxiter,
            )
            x, info = jax.pure_callback(call, shapes, _encode(data), _encode(right), vmap_method="expand_dims")
            return _decode(x, dtype), info._replace(residual=_decode(info.residual, real))
        return _krylov(
            data,
            right,
            pattern,
            transpose=transpose,
            method=method,
            preconditioner=preconditioner,
            tol=tol,
            maxiter=maxiter,
            restart=restart,
        )

    return jax.lax.custom_linear_solve(
        lambda x: matvec(data, x, pattern=pattern),
        b,
        solve=lambda _, right: run(False, right),
        transpose_solve=lambda _, right: run(True, right),
        has_aux=True,
    )


def solve_with_info(
    data: Shaped[Array, " nnz"],
    b: Shaped[Array, " n"],
    *,
    pattern: Pattern,
    method: str = "direct",
    preconditioner: str = "none",
    definite: bool = False,
    tol: float | None = None,
    maxiter: int | None = None,
    restart: int = 40,
) -> tuple[Shaped[Array, " n"], SolveInfo]:
    """`x` with `A x = b`, and how the solve went; nothing raises for a failed solve (see `solve`).

    Derivatives come from the implicit function theorem, `x' = A^-1 (b' - A' x)`, in both modes and to any order; the
    adjoint solves with `A^T` and, for a direct solve, reuses the factors (the last three matrices of a pattern are kept).

    Args:
        data: matrix entries on `pattern`.
        b: right-hand side.
        method: "direct" (SuperLU on the host, float64 inside), "cg", "bicgstab" or "gmres".
        preconditioner: for the Krylov methods "none", "jacobi" or "amg" (smoothed aggregation; extra `mesh`).
        definite: the matrix is symmetric positive definite (or complex symmetric with such a real part): factored without
            pivoting in a low-fill order.
        tol: relative residual wanted of a Krylov method; 1e-10 (float64), 1e-5 (float32).
        maxiter: iterations allowed; 10 n + 100 up to 10000.
        restart: Krylov vectors kept by "gmres".

    Raises:
        ShapeError: sizes that do not fit, or a matrix that is not square.
        InputError: unknown method or preconditioner.
    """
    if method not in METHODS:
        raise InputError(f"unknown linear solver {method!r}", remedy=did_you_mean(method, METHODS))
    if preconditioner not in PRECONDITIONERS:
        raise InputError(
            f"unknown preconditioner {preconditioner!r}", remedy=did_you_mean(preconditioner, PRECONDITIONERS)
        )
    if method == "direct" and preconditioner != "none":
        raise InputError("a direct solve takes no preconditioner", got=preconditioner, expected="none")
    if pattern.shape[0] != pattern.shape[1]:
        raise ShapeError("a linear solve needs a square matrix", got=pattern.shape)
    data, b = jnp.asarray(data), jnp.asarray(b)
    check(data, b, pattern, side=0)
    dtype = jnp.result_type(data, b)
    if not jnp.issubdtype(dtype, jnp.inexact):
        raise InputError("a linear solve needs floating-point data", got=dtype)
    if tol is None:
        tol = 1e-10 if jnp.finfo(dtype).bits == 64 else 1e-5
    if maxiter is None:
        maxiter = min(10 * pattern.shape[0] + 100, 10_000)
    options = {"definite": definite, "method": method, "tol": float(tol), "maxiter": int(maxiter)}
    on_host = method == "direct" or preconditioner == "amg"
    if on_host and not any(isinstance(a, Tracer) for a in (data, b)):
        x, info = _callback(pattern.host, data, b, transpose=False, **options)
        return jnp.asarray(x, dtype), info
    if pattern.shape[0] == 0:
        zero = jnp.zeros((), jnp.finfo(dtype).dtype)
        return b.astype(dtype), SolveInfo(jnp.int32(0), zero, jnp.int32(0))
    return _traced(data, b, pattern, preconditioner=preconditioner, restart=restart, **options)


def _well(rng, n, symmetric):
    rows, cols = np.nonzero(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2)
    p, _ = pattern(rows, cols, (n, n))
    dense = np.where(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2, rng.standard_normal((n, n)), 0.0)
    dense = dense + dense.T if symmetric else dense
    dense += np.diag(6.0 + np.abs(dense).sum(axis=1))
    return p, dense[rows, cols]


def _solve_samples(rng: np.random.Generator):
    for label, n in (("ordinary", 9), ("size one", 1), ("odd", 23)):
        p, data = _well(rng, n, False)
        yield Sample(label, (data, rng.standard_normal(n)), {"pattern": p})
    p, _ = pattern([], [], (0, 0))
    yield Sample("empty", (np.zeros(0), np.zeros(0)), {"pattern": p})
    p, data = _well(rng, 16, False)
    yield Sample("gmres", (data, rng.standard_normal(16)), {"pattern": p, "method": "gmres", "tol": 1e-6}, tolerance=1e4,
                 reason="stops at a relative residual of 1e-6")  # fmt: skip
    scale = 10.0 ** rng.uniform(-3, 3, 16)
    yield Sample("badly scaled", (data * scale[np.asarray(p.rows)], rng.standard_normal(16) * scale), {"pattern": p},
                 tolerance=100.0, reason="rows scaled over six decades")  # fmt: skip


def _solve_oracle(data, b, *, pattern, **_):
    dense = pattern.scipy(np.asarray(data)).toarray()
    return np.linalg.solve(dense, np.asarray(b)) if dense.size else np.asarray(b)


@operator(
    "sparse.solve",
    oracle=_solve_oracle,
    samples=_solve_samples,
    flops=lambda data, b, *, pattern, **_: 10.0 * data.size,
)
def solve(
    data: Shaped[Array, " nnz"],
    b: Shaped[Array, " n"],
    *,
    pattern: Pattern,
    method: str = "direct",
    preconditioner: str = "none",
    definite: bool = False,
    tol: float | None = None,
    maxiter: int | None = None,
    restart: int = 40,
) -> Shaped[Array, " n"]:
    """`x` with `A x = b`; arguments as in `solve_with_info`.

    Raises:
        SingularError: a matrix without a unique solution.
        ConvergenceError: a Krylov method that stopped short of `tol`.
        InputError: NaN or infinity in `data` or `b`.
        Under `jit` and `vmap` the same refusals come as JAX's runtime error with the same text.
    """
    x, info = solve_with_info(
        data,
        b,
        pattern=pattern,
        method=method,
        preconditioner=preconditioner,
        definite=definite,
        tol=tol,
        maxiter=maxiter,
        restart=restart,
    )
    return checked(x, info)


def checked(x, info: SolveInfo, who: str = "linear solve"):
    """`x`, with a failed solve raised: typed where the status is known, as a runtime check where it is traced."""
    try:
        failed = bool(info.status != _host.OK)
    except jax.errors.ConcretizationTypeError:
        messages = [f"{who}: {_MESSAGES[code]}" for code in sorted(_MESSAGES)]
        return eqx.branched_error_if(x, info.status != _host.OK, jnp.maximum(info.status - 1, 0), messages)
    if failed:
        raise_for(SolveInfo(*(jax.lax.stop_gradient(leaf) for leaf in info)), who)
    return x
