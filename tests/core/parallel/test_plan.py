"""Plans on eight virtual devices: the same numbers as one device, the collectives expected, no silent no-op."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from sciax.core.errors import InputError, ShapeError
from sciax.core.parallel import Plan, collectives, data_parallel, make_mesh
from sciax.core.parallel._hlo import count
from sciax.core.train import fit

KEY = jax.random.key(0)
X = jax.random.normal(jax.random.key(1), (16, 8))
Y = jax.random.normal(jax.random.key(2), (16, 8))
COLUMN_ROW = {"layers/0/weight": P("model", None), "layers/0/bias": P("model"), "layers/1/weight": P(None, "model")}


class MLP(eqx.Module):
    layers: list

    def __init__(self, width=32, size=8):
        first, second = jax.random.split(KEY)
        self.layers = [eqx.nn.Linear(size, width, key=first), eqx.nn.Linear(width, size, key=second)]

    def __call__(self, x):
        return self.layers[1](jnp.tanh(self.layers[0](x)))


def loss(model, batch, key):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


@pytest.mark.parametrize(
    ("axes", "zero"),
    [
        ({"data": 1, "model": 8}, None),
        ({"data": 2, "model": 4}, None),
        ({"data": 2, "model": 4}, "data"),
        ({"data": 2, "model": 2, "rest": 2}, None),
    ],
)
def test_training_equals_that_of_one_device(axes, zero):
    plan = Plan(make_mesh(axes), COLUMN_ROW, batch=P("data"), zero=zero)
    one = fit(MLP(), loss, (X, Y), optax.adam(1e-2), 5, ema=0.9)
    many = fit(MLP(), loss, (X, Y), optax.adam(1e-2), 5, ema=0.9, plan=plan)
    np.testing.assert_allclose(many.history["loss"], one.history["loss"], rtol=1e-6)
    for a, b in zip(jax.tree.leaves(one.model), jax.tree.leaves(many.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    weight = many.state.params.layers[0].weight
    assert weight.sharding.shard_shape(weight.shape) == (32 // axes["model"], 8)
    moment = many.state.opt_state[0].mu.layers[0].weight
    rows = 32 // axes["model"] // (axes["data"] if zero else 1)
    assert moment.sharding.shard_shape(moment.shape) == (rows, 8)


def test_zero3_splits_the_parameters():
    plan = data_parallel("data", zero=3, model=MLP())
    one = fit(MLP(), loss, (X, Y), optax.adam(1e-2), 5)
    many = fit(MLP(), loss, (X, Y), optax.adam(1e-2), 5, plan=plan)
    np.testing.assert_allclose(many.history["loss"], one.history["loss"], rtol=1e-6)
    weight = many.state.params.layers[0].weight
    assert weight.sharding.shard_shape(weight.shape) == (4, 8)


def test_a_column_and_a_row_split_need_one_all_reduce():
    plan = Plan(make_mesh({"model": 8}), COLUMN_ROW)
    arrays, static = eqx.partition(MLP(), eqx.is_array)
    placed = plan.place(arrays)
    forward = jax.jit(lambda arrays, x: jax.vmap(eqx.combine(arrays, static))(x))
    program = forward.lower(placed, X).compile().as_text()
    assert count(program) == {"all-reduce": 1}
    assert collectives(program)[0].bytes == 16 * 8 * 4


def test_the_place_of_every_array_is_told():
    plan = Plan(make_mesh({"data": 2, "model": 4}), COLUMN_ROW, batch={"0": P("data"), "1": P("data")})
    specs = plan.param_specs(eqx.filter(MLP(), eqx.is_array))
    assert specs == {
        "layers/0/weight": P("model", None),
        "layers/0/bias": P("model"),
        "layers/1/weight": P(None, "model"),
        "layers/1/bias": P(),
    }
    assert plan.batch_specs((X, Y)) == {"0": P("data"), "1": P("data")}


@pytest.mark.parametrize(
    ("params", "error", "text"),
    [
        ({"layer/0/weight": P("model")}, InputError, "matches nothing"),
        ({"layers/0/*": P("model"), "*/weight": P(None, "model")}, InputError, "differently"),
        ({"layers/0/weight": P("tensor")}, InputError, "no axis 'tensor'"),
        ({"layers/0/bias": P("model", None)}, ShapeError, "more entries"),
        ({"layers/0/weight": P("model", "model")}, InputError, "twice"),
    ],
)
def test_plans_that_would_silently_do_nothing_are_errors(params, error, text):
    plan = Plan(make_mesh({"data": 2, "model": 4}), params)
    with pytest.raises(error, match=text):
        plan.place(MLP())


def test_an_axis_that_does_not_divide_is_named():
    plan = Plan(make_mesh({"model": 8}), COLUMN_ROW)
    with pytest.raises(ShapeError, match=r"layers/0/weight: an axis of length 12 .* 8 devices"):
        plan.place(MLP(width=12))
    with pytest.raises(ShapeError, match="0: an axis of length 6"):
        data_parallel("data").place_batch((X[:6], Y[:6]))


def test_mesh_refusals():
    with pytest.raises(InputError, match="does not fit"):
        make_mesh({"data": 3})
    with pytest.raises(InputError, match="one of them"):
        make_mesh({"data": -1, "model": -1})
    with pytest.raises(InputError, match="no axis"):
        Plan(make_mesh({"data": 8}), {}, zero="model")
