"""Mixed precision: islands, loss scaling, and training that ends within 2 % of float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core import LossScale, Policy, cast_floats, island, scaled_value_and_grad
from sciax.core.errors import DTypeError, InputError


def test_cast_leaves_other_kinds_alone():
    tree = {"w": jnp.ones(2), "n": jnp.arange(2), "z": jnp.ones(1, jnp.complex64), "name": "a"}
    cast = cast_floats(tree, jnp.bfloat16)
    assert cast["w"].dtype == jnp.bfloat16 and cast["n"].dtype == jnp.int32 and cast["z"].dtype == jnp.complex64


def test_an_island_keeps_the_sum():
    x = jnp.full(4096, 0.1, jnp.bfloat16)

    def running(v):
        return jax.lax.scan(lambda c, y: (c + y, None), jnp.zeros((), v.dtype), v)[0]

    exact = 4096 * float(x[0])
    assert abs(float(running(x)) - exact) > 0.5 * exact  # stalls where the sum outgrows the terms
    inside = island(running)(x)
    assert inside.dtype == jnp.bfloat16 and float(inside) == pytest.approx(exact, rel=1e-2)


def test_scaling_saves_gradients_that_underflow():
    def loss(p, x):
        return jnp.mean((p * x) ** 2)

    policy, x = Policy.named("float16"), jnp.full(64, 2e-3)
    p = jnp.full(64, 1e-3)
    exact = jax.grad(loss)(p, x)
    plain = jax.grad(policy.wrap(loss))(p, x)
    assert float(jnp.abs(plain).max()) == 0.0
    _, gradient, finite, _ = scaled_value_and_grad(loss, policy)(LossScale.start(2.0**15), p, x)
    assert gradient.dtype == jnp.float32 and bool(finite)
    np.testing.assert_allclose(gradient, exact, rtol=0.1)  # p * x is a subnormal number of float16


def test_overflow_skips_the_step_and_halves_the_scale():
    step = scaled_value_and_grad(lambda p: jnp.sum(p) * 1e4, Policy.named("float16"))
    scale = LossScale.start(2.0**15)
    _, gradient, finite, scale = step(scale, jnp.ones(3))
    assert not bool(finite) and float(jnp.abs(gradient).max()) == 0 and scale.scale == 2.0**14 and scale.skipped == 1
    for _ in range(14):
        _, gradient, finite, scale = step(scale, jnp.ones(3))
    assert bool(finite)
    np.testing.assert_allclose(gradient, 1e4, rtol=1e-3)
    grown = LossScale.start(8.0)
    for _ in range(200):
        grown = grown.update(jnp.bool_(True))
    assert grown.scale == 16.0


def _data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (256, 2)).astype(np.float32)
    return jnp.asarray(x), jnp.asarray(np.sin(3 * x[:, :1]) * x[:, 1:] + 0.3 * rng.normal(size=(256, 1)), jnp.float32)


def _train(policy, steps=400):
    x, y = _data()
    keys = jax.random.split(jax.random.key(0), 3)
    sizes = [2, 32, 32, 1]
    params = [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]

    def loss(p, x, y):
        for w, b in p[:-1]:
            x = jnp.tanh(x @ w + b)
        x = x @ p[-1][0] + p[-1][1]
        return island(lambda a, b: jnp.mean((a - b) ** 2))(x, y)

    both = scaled_value_and_grad(loss, policy)

    def step(state, _):
        params, velocity, scale = state
        _, gradient, finite, scale = both(scale, params, x, y)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradient)
        new = jax.tree.map(lambda p, v: jnp.where(finite, p - 0.05 * v, p), params, velocity)
        return (new, velocity, scale), None

    start = (params, jax.tree.map(jnp.zeros_like, params), LossScale.start())
    (params, _, scale), _ = jax.jit(lambda s: jax.lax.scan(step, s, None, length=steps))(start)
    return float(loss(params, x, y)), scale


def test_trained_loss_within_2_percent_of_float32():
    reference, _ = _train(Policy.named("float32"))
    assert reference < 0.12
    for name in ("bfloat16", "float16"):
        value, _ = _train(Policy.named(name))
        assert value == pytest.approx(reference, rel=0.02), name


def test_bad_policies():
    with pytest.raises(InputError, match="did you mean"):
        Policy.named("bfloat8")
    with pytest.raises(DTypeError):
        Policy(compute=jnp.int32)
    with pytest.raises(DTypeError):
        Policy(compute="nothing")
    with pytest.raises(InputError):
        LossScale.start(0.0)
    with pytest.raises(InputError):
        island(3)
