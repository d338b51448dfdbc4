"""Sparse solves: values, both derivative modes, second order, batching, typed failures. The conformance grid does the rest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from sciax.core import x64 as wide
from sciax.core.errors import ConvergenceError, InputError, ShapeError, SingularError
from sciax.core.ops.sparse import assemble, pattern, solve, solve_with_info
from sciax.core.ops.sparse._host import _Factor
from sciax.core.ops.sparse._ordering import nested_dissection

OPTIONS = {
    "direct": {},
    "definite": {"definite": True},
    "cg": {"method": "cg", "preconditioner": "jacobi", "tol": 1e-13},
    "bicgstab": {"method": "bicgstab", "tol": 1e-13},
    "gmres": {"method": "gmres", "preconditioner": "jacobi", "tol": 1e-13},
    "amg cg": {"method": "cg", "preconditioner": "amg", "definite": True, "tol": 1e-12},
    "amg gmres": {"method": "gmres", "preconditioner": "amg", "tol": 1e-12},
}


def system(n=12, symmetric=True, seed=0):
    rng = np.random.default_rng(seed)
    band = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 2
    dense = np.where(band, rng.standard_normal((n, n)), 0.0)
    dense = dense + dense.T if symmetric else dense
    dense += np.diag(2.0 + np.abs(dense).sum(axis=1))
    rows, cols = np.nonzero(band)
    p, _ = pattern(rows, cols, (n, n))
    return p, dense[rows, cols], rng.standard_normal(n), dense


@pytest.mark.parametrize("name", OPTIONS)
def test_solve_and_its_derivatives(name, x64):
    p, data, b, dense = system()
    # keep the matrix symmetric under perturbation, so that every method sees what it is made for
    flip = p.host.transpose()[2]

    def run(data, b):
        return solve(0.5 * (data + data[flip]), b, pattern=p, **OPTIONS[name])

    assert np.allclose(run(data, b), np.linalg.solve(dense, b), rtol=1e-10)
    rng = np.random.default_rng(1)
    moved, right, weight = rng.standard_normal(p.nnz), rng.standard_normal(12), rng.standard_normal(12)
    _, tangent = jax.jvp(run, (jnp.asarray(data), jnp.asarray(b)), (jnp.asarray(moved), jnp.asarray(right)))
    inverse = np.linalg.inv(dense)
    matrix = np.zeros((12, 12))
    matrix[np.asarray(p.rows), np.asarray(p.cols)] = 0.5 * (moved + moved[flip])
    assert np.allclose(tangent, inverse @ (right - matrix @ inverse @ b), rtol=1e-8, atol=1e-10)
    _, pull = jax.vjp(run, jnp.asarray(data), jnp.asarray(b))
    g_data, g_b = pull(jnp.asarray(weight))
    forward, backward = np.dot(weight, tangent), np.dot(g_data, moved) + np.dot(g_b, right)
    assert abs(forward - backward) < 1e-9 * abs(forward)


def test_second_derivative_is_exact(x64):
    p, data, b, dense = system(6, symmetric=False)

    def total(scale):
        return solve(scale * data, jnp.asarray(b), pattern=p).sum()

    value = np.linalg.solve(dense, b).sum()
    assert np.isclose(jax.grad(jax.grad(total))(2.0), 2 * value / 8, rtol=1e-12)
    assert np.isclose(jax.jit(jax.hessian(total))(2.0), 2 * value / 8, rtol=1e-12)


def test_batches_share_or_split_the_factor(x64):
    p, data, b, dense = system(8, symmetric=False)
    many = np.stack([b, 2 * b, b[::-1]])
    one = jax.vmap(lambda r: solve(data, r, pattern=p))(many)
    assert np.allclose(one, np.linalg.solve(dense, many.T).T)
    matrices = jnp.stack([data, 2 * data])
    both = jax.jit(jax.vmap(jax.vmap(lambda d, r: solve(d, r, pattern=p), (None, 0)), (0, None)))(matrices, many)
    assert np.allclose(both[1], one / 2)


def test_callback_keeps_float64_when_only_the_scope_is_on():
    # the host side may run in a thread where the scope does not hold
    p, data, b, dense = system()
    with wide():
        x = jax.jit(lambda d, r: solve(d, r, pattern=p))(jnp.asarray(data), jnp.asarray(b))
        assert x.dtype == jnp.float64
        assert np.allclose(x, np.linalg.solve(dense, b), rtol=1e-13)


def test_float32_stays_and_is_solved_in_double():
    p, data, b, dense = system()
    x = solve(data.astype(np.float32), b.astype(np.float32), pattern=p)
    assert x.dtype == jnp.float32
    assert np.allclose(x, np.linalg.solve(dense, b), rtol=1e-5)


def test_complex_and_its_adjoint(x64):
    p, data, b, dense = system(7, symmetric=False)
    turned = data * np.exp(0.3j)
    x = jax.jit(lambda d, r: solve(d, r, pattern=p))(jnp.asarray(turned), jnp.asarray(b + 1j))
    assert np.allclose(x, np.linalg.solve(dense * np.exp(0.3j), b + 1j))
    g = jax.grad(lambda r: jnp.abs(solve(turned, r.astype(complex), pattern=p)[0]) ** 2)(jnp.asarray(b))
    step = 1e-6 * np.eye(7)
    f = lambda r: abs(np.linalg.solve(dense * np.exp(0.3j), r)[0]) ** 2  # noqa: E731
    assert np.allclose(g, [(f(b + s) - f(b - s)) / 2e-6 for s in step], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [0.0, np.nan])
@pytest.mark.parametrize("how", ["plain", "grad", "jit"])
def test_failures_are_typed(scale, how, x64):
    p, data, b, _ = system()

    def run(d):
        return solve(d, jnp.asarray(b), pattern=p).sum()

    function = {"plain": run, "grad": jax.grad(run), "jit": jax.jit(run)}[how]
    expected = jax.errors.JaxRuntimeError if how == "jit" else InputError if np.isnan(scale) else SingularError
    with pytest.raises(expected, match=r"singular|not finite"):
        jax.block_until_ready(function(jnp.asarray(data * scale)))


def test_nearly_singular_is_refused_and_badly_scaled_is_not(x64):
    n = 30
    laplace = sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1]).tolil()
    laplace[0, 0] = laplace[-1, -1] = 1.0  # flux conditions at both ends: constants are in the kernel
    matrix = laplace.tocsr()
    p, _ = pattern(*matrix.nonzero(), (n, n))
    with pytest.raises(SingularError):
        solve(matrix.data, np.ones(n), pattern=p)
    p, data, b, dense = system(n)
    rows = 10.0 ** np.linspace(-9, 9, n)
    x = solve(data * rows[np.asarray(p.rows)], b * rows, pattern=p)
    assert np.allclose(x, np.linalg.solve(dense, b), rtol=1e-8)


def test_short_iteration_raises_with_its_residual(x64):
    p, data, b, _ = system(40)
    with pytest.raises(ConvergenceError) as caught:
        solve(data, b, pattern=p, method="cg", maxiter=2)
    assert caught.value.history[0] > 1e-10
    _, info = solve_with_info(data, b, pattern=p, method="cg", maxiter=2)
    assert int(info.status) == 2


def test_wrong_arguments_are_named():
    p, data, b, _ = system()
    with pytest.raises(InputError, match="bicgstab"):
        solve(data, b, pattern=p, method="bicgsta")
    with pytest.raises(InputError, match="amg"):
        solve(data, b, pattern=p, method="cg", preconditioner="agm")
    with pytest.raises(ShapeError):
        solve(data, b[:-1], pattern=p)
    with pytest.raises(InputError):
        pattern([3], [0], (2, 2))
    with pytest.raises(ShapeError):
        assemble(jnp.ones(3), jnp.zeros(2, jnp.int32), nnz=1)


def test_factor_is_kept_for_the_adjoint(x64, monkeypatch):
    made = []
    original = _Factor.__init__

    def counted(self, *args):
        made.append(1)
        original(self, *args)

    monkeypatch.setattr(_Factor, "__init__", counted)
    p, data, b, _ = system()
    jax.grad(lambda d: solve(d, jnp.asarray(b), pattern=p).sum())(jnp.asarray(data))
    assert len(made) == 1


def test_nested_dissection_is_a_permutation_with_less_fill():
    n = 40
    grid = sp.kronsum(*[sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])] * 2).tocsr()
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    points = np.stack([x.ravel(), y.ravel()], axis=1)
    p, _ = pattern(*grid.nonzero(), grid.shape, coordinates=points)
    order = nested_dissection(p.host)
    assert order is not None
    assert np.array_equal(np.sort(order), np.arange(n * n))
    import scipy.sparse.linalg as spla

    natural = spla.splu(grid.tocsc(), permc_spec="NATURAL", options={"SymmetricMode": True}).nnz
    dissected = spla.splu(grid[order][:, order].tocsc(), permc_spec="NATURAL", options={"SymmetricMode": True}).nnz
    assert dissected < 0.6 * natural
