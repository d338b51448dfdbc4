"""Time of the search for a plan against the number of operations: transformer layers on a 2 x 4 mesh, and what is predicted of XLA.

The peer is the plain formulation of the same problem, without ties and without message passing (`--plain`, for one layer).
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sciax.core.parallel import Plan, make_mesh
from sciax.core.parallel.search import _solve

WIDTH, HIDDEN, HEADS, BATCH, LENGTH = 512, 2048, 8, 8, 64


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, jnp.float32)


def layer(p, x):
    b, t, d = x.shape
    q, k, v = ((x @ p[name]).reshape(b, t, HEADS, d // HEADS).transpose(0, 2, 1, 3) for name in "qkv")
    scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) / np.sqrt(d // HEADS))
    x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(b, t, d) @ p["o"]
    return x + jax.nn.gelu(x @ p["up"]) @ p["down"]


def loss(layers, batch, key):
    x, y = batch
    for p in layers:
        x = layer(p, x)
    return jnp.mean((x - y) ** 2)


def search(layers: int) -> None:
    one = {**{name: shape(WIDTH, WIDTH) for name in "qkvo"}, "up": shape(WIDTH, HIDDEN), "down": shape(HIDDEN, WIDTH)}
    data = (shape(BATCH, LENGTH, WIDTH),) * 2
    mesh = make_mesh({"data": 2, "model": 4})
    wall, cpu = time.perf_counter(), time.process_time()
    found = Plan.auto([one] * layers, loss, data, optax.adam(1e-3), mesh).search
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert found is not None
    print(
        f"{layers} layers, {found.operations} operations: {wall:.1f} s ({cpu:.1f} s of CPU), {found.variables} variables, "
        f"gap {100 * found.gap:.2f} %, {1e3 * found.seconds:.1f} ms a step",
        flush=True,
    )


def main() -> None:
    if "--plain" in sys.argv:
        _solve.FEW = _solve.MANY = 10**9
        search(1)
        return
    for layers in (1, 2, 4, 6):
        search(layers)


if __name__ == "__main__":
    main()
