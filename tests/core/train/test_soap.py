"""SOAP: what it must be by its definition, and on a problem that Adam finds hard."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from sciax.core.errors import InputError
from sciax.core.train import fit, soap

pytestmark = pytest.mark.usefixtures("x64")


def run(optimizer, gradient, params, steps):
    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(gradient(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    return jax.lax.scan(step, (params, optimizer.init(params)), None, length=steps)[0]


def test_vectors_get_adam():
    """After the first step, which is spent on the averages: Adam with its second average one step ahead."""
    g = [jnp.array([1.0, -2.0]), jnp.array([0.5, 0.1]), jnp.array([-1.0, 3.0])]
    method = soap(1.0, b1=0.9, b2=0.8, eps=0.0)
    state = method.init(g[0])
    update_of, got = jax.jit(method.update), []
    for each in g:
        update, state = update_of(each, state, each)
        got.append(np.asarray(update))
    m1, m2 = 0.1 * g[1], 0.9 * 0.1 * g[1] + 0.1 * g[2]
    v1 = 0.8 * 0.2 * g[0] ** 2 + 0.2 * g[1] ** 2
    v2 = 0.8 * v1 + 0.2 * g[2] ** 2
    np.testing.assert_allclose(got[0], 0.0)
    np.testing.assert_allclose(got[1], -(m1 / 0.1) / np.sqrt(v1 / (1 - 0.8**2)), rtol=1e-12)
    np.testing.assert_allclose(got[2], -(m2 / (1 - 0.9**2)) / np.sqrt(v2 / (1 - 0.8**3)), rtol=1e-12)


def test_matrices_turn_with_the_gradient():
    """Steps for gradients U G V' are U (steps for G) V': Adam has no such property."""
    rng = np.random.default_rng(0)
    u, v = (np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3))
    gradients = [rng.normal(size=(4, 3)) for _ in range(6)]
    method = soap(0.1, every=2)
    update_of = jax.jit(method.update)

    def walk(turned):
        x = jnp.zeros((4, 3))
        state = method.init(x)
        for g in gradients:
            update, state = update_of(jnp.asarray(u @ g @ v.T if turned else g), state, x)
            x = x + update
        return np.asarray(x)

    np.testing.assert_allclose(walk(True), u @ walk(False) @ v.T, atol=1e-8)
    assert np.abs(walk(False)).max() > 0.05


def test_quicker_than_adam_where_rows_and_columns_are_mixed():
    """0.5 |A X B - C|^2 with ill-conditioned, rotated A and B: SOAP is orders lower at equal steps."""
    rng = np.random.default_rng(1)
    a, b = (np.linalg.qr(rng.normal(size=(8, 8)))[0] * np.logspace(0, -1.5, 8) for _ in range(2))
    a, b = jnp.asarray(a @ np.linalg.qr(rng.normal(size=(8, 8)))[0]), jnp.asarray(b.T)
    want = jnp.asarray(rng.normal(size=(8, 8)))
    f = lambda x: 0.5 * jnp.sum((a @ (x - want) @ b) ** 2)  # noqa: E731
    schedule = optax.cosine_decay_schedule(0.05, 600)
    ends = {
        name: float(f(run(method, jax.grad(f), jnp.zeros((8, 8)), 600)[0]))
        for name, method in (("soap", soap(schedule)), ("adam", optax.adam(schedule)))
    }
    assert ends["soap"] < 0.1 * ends["adam"], ends


def test_in_fit_with_a_model_of_several_shapes():
    """Matrices, biases, a tensor of three axes and a long side; the loss of a linear regression falls to its floor."""

    class Model(eqx.Module):
        weight: jax.Array
        bias: jax.Array
        cube: jax.Array

        def __call__(self, x):
            return x @ self.weight + self.bias + jnp.einsum("bi,ijk->bk", x, self.cube)

    rng = np.random.default_rng(2)
    x = jnp.asarray(rng.normal(size=(64, 5)))
    y = x @ jnp.asarray(rng.normal(size=(5, 3))) + 0.5
    model = Model(jnp.zeros((5, 3)), jnp.zeros(3), jnp.zeros((5, 2, 3)))
    loss = lambda m, batch, key: jnp.mean((m(batch[0]) - batch[1]) ** 2)  # noqa: E731
    steps = 300
    method = soap(optax.cosine_decay_schedule(0.05, steps), max_side=4)
    result = fit(model, loss, (x, y), method, steps, key=jax.random.key(0))
    assert result.history["loss"][-1] < 1e-6 * result.history["loss"][0]


def test_bad_options():
    with pytest.raises(InputError, match="b1"):
        soap(b1=1.0)
    with pytest.raises(InputError, match="every"):
        soap(every=0)
