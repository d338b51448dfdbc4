"""Shape buckets: few compilations, the unpadded result, and refusal of results that depend on the padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError
from sciax.core.graph import GraphError, graph

W = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)


def rows(x, w):
    h = jnp.tanh(x @ w)
    return {"h": h, "norm": jnp.sum(h * h, axis=1)}


def loss(x, mask=None):
    if mask is None:
        return jnp.mean(x**2)
    return jnp.sum(x**2, where=mask[:, None]) / (jnp.sum(mask) * x.shape[1])


def test_100_sizes_compile_at_most_8_times_and_equal_the_unpadded_result():
    compiled = graph(rows, buckets={"x": "pow2"})
    compiles = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: compiles.append(name))
    rng = np.random.default_rng(1)
    data = rng.normal(size=(1000, 3)).astype(np.float32)
    compiled(data[:1000], W)
    before = len(compiles)
    for n in rng.integers(1, 1000, 99):
        got = compiled(data[:n], W)
        h = np.tanh(data[:n] @ np.asarray(W))
        assert got["h"].shape == (n, 4) and got["norm"].shape == (n,)
        np.testing.assert_allclose(got["h"], h, atol=1e-5)
        np.testing.assert_allclose(got["norm"], (h * h).sum(1), atol=1e-5)
    assert len(compiled.compilations) <= 8
    backend = [c for c in compiles[before:] if c.endswith("backend_compile_duration")]
    assert len(backend) <= 8, "padding and cropping must not compile either"


def test_a_reduction_takes_the_mask():
    compiled = graph(loss, buckets={"x": "pow2"})
    x = np.random.default_rng(2).normal(size=(11, 3)).astype(np.float32)
    np.testing.assert_allclose(compiled(x), np.mean(x**2), rtol=1e-6)
    gradient = jax.grad(lambda v: compiled(v))(jnp.asarray(x))
    np.testing.assert_allclose(gradient, 2 * x / x.size, rtol=1e-5)


@pytest.mark.parametrize(
    "mixing",
    [lambda x: jnp.mean(x), lambda x: x - jnp.mean(x, axis=0), lambda x: x / jnp.max(jnp.abs(x))],
    ids=["mean", "centred", "scaled"],
)
def test_a_result_that_depends_on_the_padding_is_refused(mixing):
    with pytest.raises(GraphError, match="padded rows"):
        graph(mixing, buckets={"x": "pow2"})(np.ones((5, 2), np.float32))


def test_sizes_given_and_exceeded():
    compiled = graph(rows, buckets={"x": (4, 16)})
    assert compiled(np.ones((3, 3), np.float32), W)["h"].shape == (3, 4)
    with pytest.raises(ShapeError, match="largest bucket"):
        compiled(np.ones((17, 3), np.float32), W)


def test_empty_batch():
    assert graph(rows, buckets={"x": "pow2"})(np.ones((0, 3), np.float32), W)["h"].shape == (0, 4)


@pytest.mark.parametrize("bad", [{"y": "pow2"}, {"x": "pow3"}, {"x": (0,)}, {"x": ()}, {}])
def test_bad_specification(bad):
    with pytest.raises(InputError):
        graph(rows, buckets=bad)


def test_scalar_cannot_be_padded():
    with pytest.raises(ShapeError, match="no axis"):
        graph(lambda x: x, buckets={"x": "pow2"})(1.0)
