"""The search for a plan: what the field does by hand is found, what is predicted is what XLA sends, and training is the same."""

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from sciax.core.errors import InputError
from sciax.core.parallel import CPU_CORE, Plan, make_mesh
from sciax.core.parallel.search._bound import Bound
from sciax.core.parallel.search._layout import Grid, layouts, moves, reduction
from sciax.core.train import fit

ADAM = optax.adam(1e-3)


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def mlp(layers, batch, key):
    x, y = batch
    for first, second in layers:
        x = jnp.tanh(x @ first) @ second
    return jnp.mean((x - y) ** 2)


def block(p, x, heads=8):
    b, t, d = x.shape
    q, k, v = ((x @ p[name]).reshape(b, t, heads, d // heads).transpose(0, 2, 1, 3) for name in "qkv")
    scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d // heads))
    x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ p["o"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def attention(layers, batch, key):
    x, y = batch
    for layer in layers:
        x = block(layer, x)
    return jnp.mean((x - y) ** 2)


def transformer(d, f):
    return {**{name: shape(d, d) for name in "qkvo"}, "up": shape(d, f), "down": shape(f, d)}


def sent(collectives):
    total = Counter()
    for item in collectives:
        total[item.kind] += item.bytes * item.times
    return total


def test_a_wide_mlp_is_split_by_columns_and_rows():
    """Shoeybi et al. 2019 (Megatron-LM): one all-reduce forward; four layers add one each way."""
    model, batch = [(shape(1024, 4096), shape(4096, 1024))] * 4, (shape(64, 1024),) * 2
    plan = Plan.auto(model, mlp, batch, ADAM)
    for i in range(4):
        assert plan.search.params[f"{i}/0"] == P(None, "devices")
        assert plan.search.params[f"{i}/1"] == P("devices", None)
    predicted = sent(plan.search.collectives)
    assert predicted == {"all-reduce": 7 * 64 * 1024 * 4}
    told = plan.explain(mlp, model, batch)
    assert sent(told.collectives) == predicted
    assert plan.search.gap <= 1e-4
    assert "proved" in str(plan.explain()) and "all-reduce" in str(plan.explain())


def test_attention_is_split_by_heads():
    model, batch = [transformer(512, 2048)], (shape(2, 64, 512),) * 2
    plan = Plan.auto(model, attention, batch, ADAM)
    column, row = P(None, "devices"), P("devices", None)
    expected = {"q": column, "k": column, "v": column, "o": row, "up": column, "down": row}
    assert plan.search.params == {f"0/{name}": spec for name, spec in expected.items()}
    # Two all-reduces forward, one back: the input needs no gradient.
    assert sent(plan.search.collectives) == {"all-reduce": 3 * 2 * 64 * 512 * 4}
    assert sent(plan.explain(attention, model, batch).collectives) == sent(plan.search.collectives)


def test_a_small_model_with_a_big_batch_is_data_parallel():
    plan = Plan.auto([(shape(64, 64), shape(64, 64))], mlp, (shape(65536, 64),) * 2, ADAM)
    assert set(plan.search.params.values()) == {P(None, None)}
    assert plan.search.batch == {"0": P("devices", None), "1": P("devices", None)}
    assert sent(plan.search.collectives) == {"all-reduce": 2 * 64 * 64 * 4 + 4}


def test_under_a_memory_cap_parameters_are_split():
    """ZeRO-3 (Rajbhandari et al. 2020): each device keeps a part of parameters and moments, and gathers what it computes with."""
    model, batch = [(shape(256, 256), shape(256, 256))] * 4, (shape(4096, 256),) * 2
    free = Plan.auto(model, mlp, batch, ADAM)
    assert set(free.search.params.values()) == {P(None, None)}
    whole = 8 * 256 * 256 * 4
    capped = Plan.auto(model, mlp, batch, ADAM, memory=free.search.bytes_per_device - 2.5 * whole)
    assert capped.search.bytes_per_device <= capped.search.memory
    split = [spec for spec in capped.search.params.values() if "devices" in spec]
    assert len(split) >= 4
    assert capped.search.batch["0"] == P("devices", None)
    assert sent(capped.search.collectives)["all-gather"] > 0
    with pytest.raises(InputError, match="no plan fits"):
        Plan.auto(model, mlp, batch, ADAM, memory=1e5)


def test_what_is_given_stays():
    model, batch = [(shape(64, 64), shape(64, 64))], (shape(65536, 64),) * 2
    plan = Plan.auto(model, mlp, batch, ADAM, params={"0/0": P("devices", None)}, data={"*": P()})
    assert plan.search.params["0/0"] == P("devices", None)
    assert plan.search.batch == {"0": P(None, None), "1": P(None, None)}
    with pytest.raises(InputError, match="matches nothing"):
        Plan.auto(model, mlp, batch, params={"1/0": P()})


class Scanned(eqx.Module):
    """Layers stacked and scanned, a convolution, a gather, a rematerialised body."""

    stack: jax.Array
    kernel: jax.Array
    table: jax.Array

    def __init__(self):
        keys = jax.random.split(jax.random.key(0), 3)
        self.stack = 0.3 * jax.random.normal(keys[0], (3, 16, 16))
        self.kernel = 0.3 * jax.random.normal(keys[1], (16, 16, 3))
        self.table = jax.random.normal(keys[2], (24, 16))


def scanned(model, batch, key):
    index, y = batch
    x = model.table[index] + 0.01 * jax.random.normal(key, (*index.shape, 16))

    @jax.checkpoint
    def layer(x, w):
        return jnp.tanh(x @ w), jnp.mean(x)

    x, means = jax.lax.scan(layer, x, model.stack)
    x = jax.lax.conv_general_dilated(x.swapaxes(1, 2), model.kernel, (1,), "SAME").swapaxes(1, 2)
    return jnp.mean((jnp.cumsum(x, axis=1) - y) ** 2) + jnp.mean(means), {"mean": means[0]}


@pytest.mark.parametrize("memory", [pytest.param(None, marks=pytest.mark.slow), 20e3])
def test_training_is_that_of_one_device(memory):
    index = jax.random.randint(jax.random.key(1), (16, 8), 0, 24)
    batch = index, jax.random.normal(jax.random.key(2), (16, 8, 16))
    plan = Plan.auto(Scanned(), scanned, batch, ADAM, make_mesh({"data": 2, "model": 4}), memory=memory)
    one = fit(Scanned(), scanned, batch, ADAM, 3)
    many = fit(Scanned(), scanned, batch, ADAM, 3, plan=plan)
    np.testing.assert_allclose(many.history["loss"], one.history["loss"], rtol=1e-6)
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(many.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    for path in ("stack", "kernel", "table"):
        wanted = NamedSharding(plan.mesh, plan.search.params[path])
        array = getattr(many.state.params, path)
        assert array.sharding.is_equivalent_to(wanted, array.ndim), path
    if memory is not None:
        assert any(any(plan.search.params[path]) for path in ("stack", "kernel", "table"))


def test_a_plan_for_another_program_is_refused():
    batch = jnp.ones((16, 8)), jnp.ones((16, 8))
    model = [(jnp.ones((8, 8)), jnp.ones((8, 8)))]
    plan = Plan.auto(model, mlp, batch, ADAM)
    half = jax.tree.map(lambda leaf: leaf[:8], batch)
    with pytest.raises(InputError, match="another program"):
        fit(model, mlp, half, ADAM, 1, plan=plan)
    fit(model, mlp, half, ADAM, 1, plan=plan.outside())
    with pytest.raises(InputError, match="by hand"):
        Plan(make_mesh({"data": 8}), {}).explain()


def test_changes_of_layout_are_what_xla_sends():
    grid = Grid(("a", "b"), (2, 4))
    both = layouts((64, 64), grid)
    assert len(both) == 9
    whole, rows, columns = (-1, -1), (0, -1), (1, -1)
    assert moves((64, 64), whole, rows, grid)[0].sends == ()
    assert moves((64, 64), rows, whole, grid)[0].sends == (("all-gather", 64 * 64, 2),)
    assert moves((64, 64), rows, columns, grid)[0].sends == (("all-to-all", 64 * 32, 2),)
    assert moves((64, 64), (0, 0), whole, grid)[0].sends == (("all-gather", 64 * 64, 8),)
    # A sum scattered over one axis and whole over the other, with and without a reduce-scatter.
    assert reduction((64, 64), whole, (0, 1), rows, grid, True) == (
        ("reduce-scatter", 2048, 2),
        ("all-reduce", 2048, 4),
    )
    assert reduction((64, 64), whole, (0, 1), rows, grid, False) == (("all-reduce", 4096, 2), ("all-reduce", 2048, 4))


def test_the_bound_is_below_the_optimum_and_tight_on_a_tree():
    generator = np.random.default_rng(0)
    sizes = [3, 4, 2, 3]
    unary = [generator.uniform(size=n) for n in sizes]
    chain = [(i, i + 1, generator.uniform(size=(sizes[i], sizes[i + 1]))) for i in range(3)]
    loop = [*chain, (3, 0, generator.uniform(size=(3, 3)))]

    def best(pairs):
        return min(
            sum(unary[i][k] for i, k in enumerate(x)) + sum(cost[x[i], x[j]] for i, j, cost in pairs)
            for x in np.ndindex(*sizes)
        )

    assert Bound(unary, chain).rise(50) == pytest.approx(best(chain))
    bound = Bound(unary, loop)
    assert bound.rise(100) <= best(loop) + 1e-12
    # No option is excluded that a cheapest choice has.
    excess, chosen = (
        bound.excess(),
        min(
            np.ndindex(*sizes),
            key=lambda x: sum(unary[i][k] for i, k in enumerate(x)) + sum(c[x[i], x[j]] for i, j, c in loop),
        ),
    )
    assert all(excess[i][k] <= best(loop) - bound.value + 1e-9 for i, k in enumerate(chosen))


def test_equal_layers_share_their_variables_and_the_gap_is_told():
    model, batch = [(shape(512, 2048), shape(2048, 512))] * 12, (shape(64, 512),) * 2
    plan = Plan.auto(model, mlp, batch, ADAM, tie=True, machine=CPU_CORE)
    assert plan.search.tied and "alike" in str(plan.explain())
    assert plan.search.params["11/0"] == P(None, "devices")
    small = Plan.auto(model[:4], mlp, batch, ADAM, tie=True)
    assert plan.search.variables <= 1.2 * small.search.variables
