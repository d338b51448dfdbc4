"""Gradients under a plan equal those of one device: attention, Fourier layer, message passing, stencil with halos."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from sciax.core.errors import InputError, ShapeError
from sciax.core.parallel import CPU_CORE, Machine, Plan, exchange_halo, explain, make_mesh
from sciax.core.parallel._hlo import collectives, count

KEYS = jax.random.split(jax.random.key(0), 8)
MESHES = [{"data": 1, "model": 8}, {"data": 2, "model": 4}, {"data": 2, "model": 2, "rest": 2}]


def normal(key, *shape):
    return jax.random.normal(key, shape) / np.sqrt(shape[0])


def transformer(p, x):
    """Attention over 8 heads and a feed-forward layer, (B, T, D)."""
    q, k, v = (jnp.einsum("btd,dhe->bhte", x, p[name]) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bhte,bhse->bhts", q, k) / np.sqrt(q.shape[-1]))
    x = x + jnp.einsum("bhts,bhse,hed->btd", scores, v, p["o"])
    return x + jnp.tanh(x @ p["up"]) @ p["down"]


TRANSFORMER = {
    **{name: normal(key, 16, 8, 4) for name, key in zip("qkv", KEYS)},
    "o": normal(KEYS[3], 8, 4, 16),
    "up": normal(KEYS[4], 16, 32),
    "down": normal(KEYS[5], 32, 16),
}


def fourier(p, x):
    """One FNO block, (B, N, C): modes by channels, a pointwise path, an activation."""
    modes = p["spectral"].shape[0]
    spectrum = jnp.einsum(
        "bmi,mio->bmo", jnp.fft.rfft(x, axis=1)[:, :modes], p["spectral"][..., 0] + 1j * p["spectral"][..., 1]
    )
    return jax.nn.gelu(jnp.fft.irfft(spectrum, n=x.shape[1], axis=1) + x @ p["local"])


FOURIER = {"spectral": normal(KEYS[0], 8, 8, 8, 2), "local": normal(KEYS[1], 8, 8)}

SENDER = jnp.asarray(np.random.default_rng(0).integers(0, 12, 40))
RECEIVER = jnp.asarray(np.random.default_rng(1).integers(0, 12, 40))


def messages(p, x):
    """One message-passing layer on a fixed graph, (B, N, C)."""
    sent = jnp.tanh(jnp.concatenate([x[:, SENDER], x[:, RECEIVER]], -1) @ p["edge"])
    gathered = jnp.zeros((*x.shape[:2], sent.shape[-1])).at[:, RECEIVER].add(sent)
    return x + gathered @ p["node"]


MESSAGES = {"edge": normal(KEYS[0], 16, 32), "node": normal(KEYS[1], 32, 8)}

BLOCKS = {
    "transformer": (
        transformer,
        TRANSFORMER,
        normal(KEYS[6], 8, 6, 16),
        {"[qkv]": P(None, "model"), "o": P("model"), "up": P(None, "model"), "down": P("model")},
    ),
    "fourier": (
        fourier,
        FOURIER,
        normal(KEYS[6], 8, 16, 8),
        {"spectral": P(None, None, "model"), "local": P(None, "model")},
    ),
    "messages": (messages, MESSAGES, normal(KEYS[6], 8, 12, 8), {"edge": P(None, "model"), "node": P("model")}),
}


@pytest.mark.parametrize("axes", MESHES, ids=["1x8", "2x4", "2x2x2"])
@pytest.mark.parametrize("block", BLOCKS)
def test_gradient_equals_that_of_one_device(block, axes, x64):
    function, params, x, patterns = BLOCKS[block]
    params, x = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), (params, x))
    plan = Plan(make_mesh(axes), patterns, batch=P("data"))

    def loss(params, x):
        return jnp.sum(jnp.sin(function(params, x)))

    expected = jax.grad(loss)(params, x)
    split = jax.jit(lambda p, x: plan.constrain(jax.grad(loss)(plan.constrain(p), plan.constrain_batch(x))))
    actual = split(plan.place(params), plan.place_batch(x))
    for name in params:
        np.testing.assert_allclose(actual[name], expected[name], rtol=1e-6, atol=1e-10)
        assert actual[name].sharding.spec == plan.param_specs(params)[name]


def heat(u, steps=5):
    def step(u, _):
        return u + 0.2 * (jnp.roll(u, 1, 0) - 2 * u + jnp.roll(u, -1, 0)), None

    return jax.lax.scan(step, u, length=steps)[0]


def heat_split(mesh, periodic=True, steps=5):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    def run(u):
        def step(u, _):
            wide = exchange_halo(u, "x", 1, periodic=periodic)
            return u + 0.2 * (wide[:-2] - 2 * u + wide[2:]), None

        return jax.lax.scan(step, u, length=steps)[0]

    return run


def test_a_split_stencil_is_the_stencil_and_only_neighbours_talk(x64):
    u = jax.random.normal(KEYS[0], (32, 3), jnp.float64)
    split = heat_split(make_mesh({"x": 8}))
    np.testing.assert_allclose(split(u), heat(u), rtol=1e-13)
    expected = jax.grad(lambda u: jnp.sum(heat(u) ** 3))(u)
    np.testing.assert_allclose(jax.grad(lambda u: jnp.sum(split(u) ** 3))(u), expected, rtol=1e-12)
    sent = collectives(jax.jit(split).lower(u).compile().as_text())
    assert {item.kind for item in sent} == {"collective-permute"}
    assert all(item.bytes == 3 * 8 for item in sent)  # one layer of three values


@pytest.mark.parametrize("axes", MESHES)
def test_a_grid_split_along_every_mesh_axis_has_the_gradient_of_one_device(x64, axes):
    """A five-point (seven-point) Laplacian; each array axis is split along one mesh axis and talks along it alone."""
    mesh, dims = make_mesh(axes), len(axes)
    u = jax.random.normal(KEYS[1], (8,) * dims, jnp.float64)

    def neighbours(wide, axis):
        return jnp.roll(wide, 1, axis) + jnp.roll(wide, -1, axis)

    def whole(u):
        return u + 0.1 * sum(neighbours(u, axis) - 2 * u for axis in range(dims))

    def part(u):
        change = jnp.zeros_like(u)
        for axis, name in enumerate(axes):
            wide = jnp.moveaxis(exchange_halo(u, name, 1, axis=axis, periodic=True), axis, 0)
            change += jnp.moveaxis(wide[:-2] - 2 * wide[1:-1] + wide[2:], 0, axis)
        return u + 0.1 * change

    split = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=P(*axes), out_specs=P(*axes)))
    np.testing.assert_allclose(split(u), whole(u), rtol=1e-13, atol=1e-13)
    ours, expected = (jax.grad(lambda u, f=f: jnp.sum(f(f(u)) ** 3))(u) for f in (split, whole))
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    assert {item.kind for item in collectives(split.lower(u).compile().as_text())} == {"collective-permute"}


def test_the_ends_of_a_grid_that_is_not_periodic_see_zeros(x64):
    u = jax.random.normal(KEYS[0], (16,), jnp.float64)
    wide = jnp.concatenate([jnp.zeros(1), u, jnp.zeros(1)])
    np.testing.assert_allclose(
        heat_split(make_mesh({"x": 8}), periodic=False, steps=1)(u), u + 0.2 * (wide[:-2] - 2 * u + wide[2:])
    )


@pytest.mark.parametrize(("width", "error"), [(-1, InputError), (3, ShapeError)])
def test_halo_refusals(width, error):
    split = jax.shard_map(
        lambda u: exchange_halo(u, "x", width), mesh=make_mesh({"x": 8}), in_specs=P("x"), out_specs=P("x")
    )
    with pytest.raises(error):
        split(jnp.ones(16))


def test_a_plan_is_explained():
    function, params, x, patterns = BLOCKS["transformer"]
    plan = Plan(make_mesh({"data": 1, "model": 8}), patterns, batch=P("data"))
    told = explain(plan, lambda p, x, key: jnp.mean(function(p, x) ** 2), params, x)
    by_path = {item.path: item for item in told.arrays}
    assert by_path["model: q"].bytes_per_device == 16 * 4 * 4
    assert by_path["model: q"].spec == "(None, 'model')"
    assert {item.kind for item in told.collectives} == {"all-reduce"}
    text = str(told)
    for part in ("mesh data=1 x model=8", "model: up", "all-reduce", "predicted"):
        assert part in text
    assert told.seconds > told.communication_seconds > 0


def test_collectives_of_a_tuple_are_added_up():
    text = "%a = (f32[64,64]{1,0}, bf16[2]{0}) all-reduce(%x, %y), channel_id=2\n%b = f32[3] add(%all-reduce, %c)"
    assert [(item.kind, item.bytes) for item in collectives(text)] == [("all-reduce", 64 * 64 * 4 + 4)]
    assert count(text) == {"all-reduce": 1}


def test_ring_costs():
    assert CPU_CORE.transfer("all-reduce", 1e9, 1) == 0
    eight = CPU_CORE.transfer("all-reduce", 1e9, 8) - CPU_CORE.latency
    assert eight == pytest.approx(2 * 7 / 8 * 1e9 / CPU_CORE.link)
    gathered = CPU_CORE.transfer("all-gather", 1e9, 8) + CPU_CORE.transfer("reduce-scatter", 1e9 / 8, 8)
    assert gathered - 2 * CPU_CORE.latency == pytest.approx(eight)
    with pytest.raises(InputError, match="positive"):
        Machine("none", 0, 1, 1, 1)
