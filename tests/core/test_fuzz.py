"""Core's public functions on arrays of any shape, dtype and content: a typed error, or the right answer."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sciax.core import autodiff, cast_floats, graph, island
from sciax.core._mixed import all_finite
from sciax.core.errors import SciaxError
from sciax.core.inspect import locate_nonfinite, with_hooks

SHAPES = [(), (1,), (0,), (3,), (2, 3), (1, 1)]
DTYPES = [np.float32, np.int32, np.bool_, np.complex64, np.float16]


def values(dtype):
    if np.dtype(dtype).kind == "f":
        return st.sampled_from([0.0, 1.0, -2.5, 3.0, np.nan, np.inf])
    if np.dtype(dtype).kind == "c":
        return st.sampled_from([0j, 1 + 2j, -3j, complex("nan")])
    return st.sampled_from([0, 1]) if dtype is np.bool_ else st.sampled_from([0, 1, -7, 100])


arrays = st.sampled_from(DTYPES).flatmap(
    lambda d: st.sampled_from(SHAPES).flatmap(lambda s: hnp.arrays(d, s, elements=values(d)))
)
anything = st.one_of(arrays, st.sampled_from([None, "x", 3, True, 1.5, [1.0, 2.0], {"a": 1.0}]))
FUZZ = settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def attempt(call):
    """The result, or None if the call refused with a typed error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except SciaxError as error:
        assert str(error)
        return None


def same(got, expected):
    for g, e in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert np.shape(g) == np.shape(e)
        np.testing.assert_allclose(np.asarray(g), np.asarray(e), rtol=2e-3, atol=1e-3)


def inexact(x):
    return all(jnp.issubdtype(jax.dtypes.result_type(v), jnp.inexact) for v in jax.tree.leaves(x))


def square(x):
    return sum(jnp.sum(jnp.abs(v) ** 2) for v in jax.tree.leaves(x)) + 0.0


@FUZZ
@given(anything)
def test_grad(x):
    got = attempt(lambda: autodiff.grad(square)(x))
    if got is not None and jax.tree.leaves(x):
        assert inexact(x)
        finite = all(np.isfinite(np.asarray(v)).all() for v in jax.tree.leaves(x))
        if finite:
            same(got, jax.tree.map(lambda v: 2 * np.conj(v), x))


@FUZZ
@given(anything, anything)
def test_jvp_never_broadcasts(x, v):
    got = attempt(lambda: autodiff.jvp(lambda y: jax.tree.map(lambda t: t * 3, y), (x,), (v,)))
    if got is not None and jax.tree.leaves(x):
        assert [np.shape(a) for a in jax.tree.leaves(x)] == [np.shape(a) for a in jax.tree.leaves(v)]
        same(got[1], jax.tree.map(lambda t, p: 3 * np.asarray(t).astype(np.asarray(p).dtype), v, x))


@FUZZ
@given(arrays, arrays)
def test_vjp_and_hvp(x, v):
    pulled = attempt(lambda: autodiff.vjp(lambda y: y * 2, x)[1](v))
    if pulled is not None:
        assert np.shape(x) == np.shape(v)
    product = attempt(lambda: autodiff.hvp(square, x, v))
    if product is not None and np.isfinite(x).all() and np.isfinite(v).all():
        assert np.shape(x) == np.shape(v) and np.asarray(x).dtype.kind in "fc"
        if np.asarray(x).dtype.kind == "f" and np.asarray(v).dtype.kind != "c":
            same(product, 2 * np.asarray(v, np.float32))


@FUZZ
@given(anything, st.integers(-1, 3))
def test_directional_jacobian_laplacian(x, order):
    attempt(lambda: autodiff.directional(square, x, x, order))
    dense = attempt(lambda: autodiff.jacobian(lambda y: jax.tree.map(jnp.sin, y))(x))
    if dense is not None and isinstance(x, np.ndarray):
        assert dense.shape == (*x.shape, *x.shape)
    out = attempt(lambda: autodiff.laplacian(lambda y: jnp.sum(y * y).real)(x))
    if out is not None and isinstance(x, np.ndarray) and x.dtype.kind == "f" and np.isfinite(x).all():
        assert x.ndim == 1 and float(out) == 2.0 * x.size


@FUZZ
@given(anything)
def test_root_and_fixed_point(x0):
    found = attempt(lambda: autodiff.root(lambda y: jax.tree.map(lambda t: t - 1.5, y), x0))
    if found is not None and jax.tree.leaves(x0):
        assert bool(found.converged)
        same(found.value, jax.tree.map(lambda t: np.full(np.shape(t), 1.5), x0))
    still = attempt(lambda: autodiff.fixed_point(lambda y: jax.tree.map(lambda t: t / 2 + 1, y), x0))
    if still is not None and jax.tree.leaves(x0):
        same(still.value, jax.tree.map(lambda t: np.full(np.shape(t), 2.0), x0))


@FUZZ
@given(anything)
def test_check_gradients(x):
    finite = all(
        np.isfinite(np.asarray(v)).all() for v in jax.tree.leaves(x) if not isinstance(v, str) and v is not None
    )
    report = attempt(
        lambda: autodiff.check_gradients(lambda y: jax.tree.map(lambda t: t * t * 0.5, y), x, directions=1)
    )
    assert report is None or finite


@graph.graph
def absolute(x):
    if x < 0:
        return -x
    return x


@FUZZ
@given(anything)
def test_graph_function(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got = absolute(x)
        except (SciaxError, TypeError, ValueError) as error:  # Python's own: None < 0, "x" < 0
            assert str(error)
            return
    assert np.size(x) == 1  # complex numbers are ordered as in NumPy
    expected = np.where(np.asarray(x) < 0, -np.asarray(x, complex), np.asarray(x, complex))
    np.testing.assert_allclose(np.asarray(got, complex), expected, rtol=1e-6)


@FUZZ
@given(arrays)
def test_buckets(x):
    compiled = _BUCKETED
    got = attempt(lambda: compiled(x))
    if got is not None:
        assert np.ndim(x) >= 1
        same(got, np.asarray(x) * np.asarray(2).astype(np.asarray(x).dtype) if x.dtype != bool else np.asarray(x) * 2)


_BUCKETED = graph.graph(lambda x: x * 2, buckets={"x": "pow2"})


@FUZZ
@given(anything)
def test_inspection(x):
    if isinstance(x, str) or x is None:
        return
    same(
        with_hooks(lambda y: jax.tree.map(lambda t: t * 2, y), lambda op, i, run: run(*i))(x),
        jax.tree.map(lambda t: jnp.asarray(t) * 2, x),
    )
    found = attempt(lambda: locate_nonfinite(lambda y: jax.tree.map(lambda t: jnp.log(jnp.abs(t) + 1.0), y), x))
    assert found is None  # a NaN that came in is not blamed on an operation


@FUZZ
@given(anything)
def test_precision(x):
    cast = cast_floats(x, jnp.bfloat16)
    for a, b in zip(jax.tree.leaves(x), jax.tree.leaves(cast)):
        if hasattr(a, "dtype") and a.dtype.kind == "f":
            assert b.dtype == jnp.bfloat16 and np.shape(a) == np.shape(b)
        else:
            assert a is b
    expected = all(
        np.isfinite(np.asarray(v)).all() for v in jax.tree.leaves(x) if hasattr(v, "dtype") and v.dtype.kind in "fc"
    )
    assert bool(all_finite(x)) == expected
    same(attempt(lambda: island(lambda y: y)(x)), x) if isinstance(x, np.ndarray) and np.isfinite(x).all() else None
