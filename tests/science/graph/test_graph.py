"""Padded batches, buckets, readouts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError
from sciax.science.graph import BatchShape, Graph, batch_graphs, bucket_shapes, readout, sum_to_nodes


def ring(n, value=1.0):
    i = np.arange(n)
    return Graph(
        i, (i + 1) % n, {"x": np.full((n, 2), value, np.float32)}, {"w": i.astype(np.float32)}, {"g": np.float32(n)}
    )


def test_batch_and_readout():
    b = batch_graphs([ring(3), ring(1, 5.0), ring(4, 2.0)], BatchShape(5, 11, 13))
    assert b.shape == (5, 11, 13) and b.node_mask.sum() == 8 and b.edge_mask.sum() == 8
    assert (np.diff(b.receivers) >= 0).all()  # sorted, padding last
    x = jnp.asarray(b.nodes["x"]).at[8:].set(jnp.nan)  # whatever lies in the padding must not matter
    np.testing.assert_array_equal(readout(x, b)[:, 0], [3, 5, 8, 0, 0])
    np.testing.assert_array_equal(readout(x, b, "mean")[:, 0], [1, 5, 2, 0, 0])
    g = jax.grad(lambda v: (readout(v, b) ** 2).sum())(x)
    assert np.isfinite(g).all() and not g[8:].any()
    np.testing.assert_array_equal(np.asarray(b.globals["g"]), [3, 1, 4, 0, 0])


def test_sum_to_nodes_in_both_layouts():
    b = batch_graphs([ring(3), ring(4)], BatchShape(2, 9, 12))
    m = np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32)
    expected = np.zeros((9, 2))
    for e, r in enumerate(b.receivers):
        if r < 9:
            expected[r] += m[e]
    np.testing.assert_allclose(sum_to_nodes(m, jnp.asarray(b.receivers), 9), expected, rtol=1e-6)
    np.testing.assert_allclose(
        sum_to_nodes(m.T[:, :, None], jnp.asarray(b.receivers), 9, axis=1)[:, :, 0].T, expected, rtol=1e-6
    )


def test_buckets_are_few_and_hold_everything():
    rng = np.random.default_rng(1)
    sizes = [(n, int(n * rng.uniform(5, 12))) for n in rng.integers(2, 60, 300)]
    shapes, bucket = bucket_shapes(sizes, 8)
    assert 1 <= len(shapes) <= 6
    padded = 0
    for (n, e), b in zip(sizes, bucket):
        g, nodes, edges = shapes[b]
        assert n * g <= nodes and e * g <= edges
        padded += edges / g - e
    assert padded <= 0.35 * sum(e for _, e in sizes)
    assert len(bucket_shapes([(9, 72)] * 50, 5)[0]) == 1
    assert len(bucket_shapes([(9, 72 + k % 3) for k in range(50)], 5)[0]) == 1  # nearly equal graphs share one shape


def test_bad_input():
    with pytest.raises(InputError, match="does not fit"):
        batch_graphs([ring(4)], BatchShape(1, 3, 9))
    with pytest.raises(InputError, match="at least one graph"):
        batch_graphs([])
    with pytest.raises(InputError, match="not there"):
        Graph(np.array([5]), np.array([0]), {"x": np.zeros(2)})
    with pytest.raises(ShapeError):
        Graph(np.array([0]), np.array([0]), {"x": np.zeros(2)}, {"w": np.zeros(3)})
    with pytest.raises(InputError, match="different arrays"):
        batch_graphs([ring(2), Graph(np.array([0]), np.array([0]), {"y": np.zeros(2)})])
    with pytest.raises(InputError):
        bucket_shapes([], 4)
    with pytest.raises(InputError, match="readout"):
        readout(jnp.zeros((3, 1)), batch_graphs([ring(3)]), "max")
