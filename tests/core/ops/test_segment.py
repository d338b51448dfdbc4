"""Segment reductions: what the conformance grid does not say — ties, padding, infinities, errors, properties."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.segment import segment_max, segment_mean, segment_min, segment_softmax, segment_sum

DATA = jnp.asarray([1.0, 5.0, 2.0, 5.0, -3.0])
IDS = jnp.asarray([1, 0, 1, 0, 3])


def test_values_by_hand() -> None:
    assert segment_sum(DATA, IDS, 5).tolist() == [10, 3, 0, -3, 0]
    assert segment_mean(DATA, IDS, 5).tolist() == [5, 1.5, 0, -3, 0]
    assert segment_max(DATA, IDS, 5).tolist() == [5, 2, 0, -3, 0]
    assert segment_min(DATA, IDS, 5, empty=9.0).tolist() == [5, 1, 9, -3, 9]


@pytest.mark.parametrize("reduce", [segment_sum, segment_mean, segment_max, segment_min])
def test_ids_outside_are_dropped(reduce) -> None:
    padded = jnp.concatenate([DATA, jnp.asarray([1e30, jnp.inf, jnp.nan])])
    ids = jnp.concatenate([IDS, jnp.asarray([-1, 5, 2**31 - 1])])
    assert reduce(padded, ids, 5).tolist() == reduce(DATA, IDS, 5).tolist()
    gradient = jax.grad(lambda x: reduce(x, ids, 5).sum())(padded)
    assert np.isfinite(gradient).all() and not gradient[5:].any()


def test_gradient_of_ties_is_split_evenly() -> None:
    x, ids = jnp.asarray([3.0, 3.0, 1.0, 3.0]), jnp.asarray([0, 0, 0, 1])
    want = [0.5, 0.5, 0.0, 1.0]
    assert jax.grad(lambda v: segment_max(v, ids, 2).sum())(x).tolist() == want
    assert jax.grad(lambda v: segment_min(v, ids, 2).sum())(-x).tolist() == want


def test_softmax_of_large_and_infinite_logits() -> None:
    logits = jnp.asarray([1e30, 1e30, -jnp.inf, -jnp.inf, 3e38, jnp.inf])
    out = segment_softmax(logits, jnp.asarray([0, 0, 1, 1, 2, 7]), 3)
    assert out.tolist() == [0.5, 0.5, 0, 0, 1, 0]
    gradient = jax.grad(lambda x: (segment_softmax(x, jnp.asarray([0, 0, 1, 2, 7]), 4) ** 2).sum())(
        jnp.asarray([1.0, 800.0, 2.0, -1e30, jnp.inf])
    )
    assert np.isfinite(gradient).all()


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(-2, 9), min_size=11, max_size=11), st.integers(0, 2**31))
def test_laws(ids: list[int], seed: int) -> None:
    data = np.random.default_rng(seed).standard_normal(11).astype(np.float32)
    ids_array = np.asarray(ids)
    kept = (ids_array >= 0) & (ids_array < 8)
    total = segment_sum(data, ids_array, 8)
    np.testing.assert_allclose(total.sum(), data[kept].sum(), atol=1e-5)
    order = np.random.default_rng(seed).permutation(11)
    np.testing.assert_allclose(segment_sum(data[order], ids_array[order], 8), total, atol=1e-5)
    ones = segment_sum(segment_softmax(data, ids_array, 8), ids_array, 8)
    np.testing.assert_allclose(ones, [float((ids_array == s).any()) for s in range(8)], atol=1e-5)
    assert (segment_max(data, ids_array, 8) >= segment_mean(data, ids_array, 8) - 1e-6).all()


def test_errors() -> None:
    with pytest.raises(ShapeError, match="one id a row"):
        segment_sum(DATA, IDS[:3], 5)
    with pytest.raises(DTypeError, match="integers"):
        segment_sum(DATA, DATA, 5)
    with pytest.raises(DTypeError, match="floating"):
        segment_sum(IDS, IDS, 5)
    with pytest.raises(DTypeError, match="no order"):
        segment_max(DATA * 1j, IDS, 5)
    with pytest.raises(InputError, match="num_segments"):
        segment_sum(DATA, IDS, -1)
    with pytest.raises(InputError, match="static"):
        jax.jit(segment_sum)(DATA, IDS, 5)
