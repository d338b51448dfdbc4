"""The plan against all placements of the inputs, each compiled and its cost read off the HLO; two programs, ten with `-m slow`."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding

from sciax.core.parallel import CPU_CORE, Plan, collectives, make_mesh
from sciax.core.parallel._hlo import communication
from sciax.core.parallel.search._layout import Grid, layouts
from sciax.core.train._step import make_gradient


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def mlp(p, x, key):
    return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"]) ** 2)


def linear(p, x, key):
    return jnp.mean((x @ p["a"]) ** 2)


def gated(p, x, key):
    return jnp.mean(((jax.nn.sigmoid(x @ p["a"]) * (x @ p["b"])) @ p["a"].T) ** 2)


def normed(p, x, key):
    y = x @ p["a"]
    y = (y - y.mean(-1, keepdims=True)) / jnp.sqrt(y.var(-1, keepdims=True) + 1e-5)
    return jnp.mean((y @ p["b"]) ** 2)


def attention(p, x, key):
    q, v = jnp.einsum("btd,dhe->bhte", x, p["a"]), jnp.einsum("btd,dhe->bhte", x, p["b"])
    return jnp.mean((jax.nn.softmax(q @ q.swapaxes(-1, -2)) @ v) ** 2)


def convolution(p, x, key):
    y = jax.nn.relu(jax.lax.conv(x, p["a"], (1, 1), "SAME"))
    return jnp.mean(jax.lax.conv(y, p["b"], (1, 1), "SAME") ** 2)


def embedding(p, x, key):
    return jnp.mean((jnp.tanh(p["a"][jnp.arange(512) % 64] @ p["b"]) - x) ** 2)


PROGRAMS = {
    "wide": (mlp, {"a": shape(256, 2048), "b": shape(2048, 256)}, shape(64, 256)),
    "big batch": (mlp, {"a": shape(64, 64), "b": shape(64, 64)}, shape(16384, 64)),
    "square": (mlp, {"a": shape(512, 512), "b": shape(512, 512)}, shape(512, 512)),
    "linear": (linear, {"a": shape(1024, 1024)}, shape(256, 1024)),
    "tall": (linear, {"a": shape(4096, 64)}, shape(256, 4096)),
    "gated": (gated, {"a": shape(256, 1024), "b": shape(256, 1024)}, shape(128, 256)),
    "normed": (normed, {"a": shape(256, 1024), "b": shape(1024, 256)}, shape(1024, 256)),
    "attention": (attention, {"a": shape(256, 8, 32), "b": shape(256, 8, 32)}, shape(4, 128, 256)),
    "convolution": (convolution, {"a": shape(64, 16, 3, 3), "b": shape(16, 64, 3, 3)}, shape(16, 16, 16, 16)),
    "embedding": (embedding, {"a": shape(64, 256), "b": shape(256, 512)}, shape(512, 512)),
}


def measured(function, params, x, specs, mesh) -> float:
    """Seconds on the machine of the search: FLOPs and collectives of the compiled loss and gradient."""

    def put(leaf, spec):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, spec))

    places = {name: put(leaf, specs[name]) for name, leaf in params.items()}
    kept = {name: leaf.sharding for name, leaf in places.items()}
    step = jax.jit(lambda p, x: function(p, x, jax.random.key(0), None), out_shardings=((None, None), kept))
    compiled = step.lower(places, put(x, specs["x"])).compile()
    flops = compiled.cost_analysis()["flops"]
    return flops / CPU_CORE.flops + communication(collectives(compiled.as_text()), CPU_CORE, mesh.size)


def ratio(name: str) -> float:
    """Measured cost of the plan over that of the best placement of parameters and data."""
    loss, params, x = PROGRAMS[name]
    mesh = make_mesh({"x": 8})
    grid = Grid.of(mesh)
    gradient = make_gradient(dict.fromkeys(params), loss)
    plan = Plan.auto(params, loss, x, None, mesh)
    chosen = {**plan.search.params, "x": plan.search.batch[""]}
    ours = measured(plan.inside(gradient), params, x, chosen, mesh)
    arrays = {**params, "x": x}
    best = np.inf
    for combination in itertools.product(*(layouts(leaf.shape, grid) for leaf in arrays.values())):
        specs = {n: grid.spec(c, len(leaf.shape)) for (n, leaf), c in zip(arrays.items(), combination, strict=True)}
        best = min(best, measured(gradient, params, x, specs, mesh))
    return ours / best


@pytest.mark.parametrize("name", ["linear", "tall"])
def test_the_plan_is_within_5_percent_of_the_best_placement(name):
    assert ratio(name) <= 1.05


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("linear", "tall")])
def test_study_of_all_placements(name):
    assert ratio(name) <= 1.05
