"""Graph mode against hand-written lax: steady state, decoration, first call, import. Prints ratios.

python benchmarks/core_graph.py
"""

import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp

from sciax.core.graph import graph, trace


def by_python(x, w, n):
    for i in range(n):
        y = jnp.tanh(x @ w)
        if jnp.max(y) > 0.5:
            x = y * 0.9
        else:
            x = y + 0.01 * i
    return x


def by_hand(x, w, n):
    def body(carry):
        i, x = carry
        y = jnp.tanh(x @ w)
        x = jax.lax.cond(jnp.max(y) > 0.5, lambda: y * 0.9, lambda: y + 0.01 * i)
        return i + 1, x

    return jax.lax.while_loop(lambda c: c[0] < n, body, (0, x))[1]


def best(call, repeats=5):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    x, w, n = jnp.ones((512, 512)) * 0.01, jnp.eye(512) * 1.1, jnp.int32(10)
    compiled = graph(by_python)
    hand = jax.jit(by_hand)
    a, b = compiled(x, w, n), hand(x, w, n)
    assert jnp.allclose(a, b, atol=1e-6)
    times = {"graph": float("inf"), "hand": float("inf")}
    for _ in range(9):
        for name, f in (("graph", compiled), ("hand", hand)):
            start = time.perf_counter()
            for _ in range(3):
                r = f(x, w, n)
            jax.block_until_ready(r)
            times[name] = min(times[name], (time.perf_counter() - start) / 3)
    print(
        f"steady state, {times['hand'] * 1e3 / 10:.2f} ms bodies: "
        f"graph / hand-written = {times['graph'] / times['hand']:.3f} (target <= 1.05)"
    )

    small = graph(lambda v: v + 1)
    one = jnp.float32(1.0)
    plain = jax.jit(lambda v: v + 1)
    small(one), plain(one)
    call = best(lambda: [small(one) for _ in range(500)]) / 500
    base = best(lambda: [plain(one) for _ in range(500)]) / 500
    print(f"one call: graph {call * 1e6:.1f} us, jax.jit {base * 1e6:.1f} us")
    again = best(lambda: graph(by_python))
    print(f"decorating again: {again * 1e3:.3f} ms (target < 1)")

    def first(f):
        jax.clear_caches()
        start = time.perf_counter()
        jax.block_until_ready(f(x, w, n))
        return time.perf_counter() - start

    ours, theirs = first(graph(by_python)), first(jax.jit(by_hand))
    print(f"first call: graph {ours * 1e3:.0f} ms, hand-written {theirs * 1e3:.0f} ms, ratio {ours / theirs:.2f}")
    mine, his = trace(by_python)(x, w, n).ops, trace(jax.jit(by_hand))(x, w, n).ops
    print(
        f"operations in the program: graph {sum(mine.values())}, hand-written {sum(his.values())} "
        "(target: + 2 a construct, 2 here)"
    )

    imports = {"jax": "import jax.numpy", "core": "import sciax.core", "graph": "import sciax.core.graph"}
    took = dict.fromkeys(imports, float("inf"))
    for _ in range(4):
        for name, line in imports.items():
            took[name] = min(
                took[name], best(lambda line=line: subprocess.run([sys.executable, "-c", line], check=True), 1)
            )
    print(
        f"import: jax {took['jax']:.2f} s, sciax.core {took['core'] / took['jax']:.2f}x (target <= 1.5), "
        f"with graph mode {took['graph'] / took['jax']:.2f}x"
    )
    code = (
        "import sys, time, jax, jax.numpy as jnp, optax\n"
        "from sciax.core.graph import persistent_cache\npersistent_cache(sys.argv[1])\n"
        "def net(p, x):\n    for w in p: x = jnp.tanh(x @ w)\n    return x\n"
        "def loss(p, x):\n"
        "    u = lambda v: net(p, v)[0]\n"
        "    lap = lambda v: jnp.trace(jax.hessian(u)(v))\n"
        "    return jnp.mean(jax.vmap(lap)(x) ** 2)\n"
        "p = [jnp.full((2, 64), 0.1)] + [jnp.full((64, 64), 0.1)] * 5 + [jnp.full((64, 1), 0.1)]\nx = jnp.ones((256, 2))\n"
        "opt = optax.adam(1e-3)\n"
        "def step(p, s, x):\n    g = jax.grad(loss)(p, x); u, s = opt.update(g, s); return optax.apply_updates(p, u), s\n"
        "s = opt.init(p); t = time.perf_counter(); jax.block_until_ready(jax.jit(step)(p, s, x)); print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as folder:
        cold, warm = (
            float(
                subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True).stdout
            )
            for _ in range(2)
        )
    print(
        f"first step of a new process: cold {cold * 1e3:.0f} ms, with the cache {warm / cold:.1%} of it (target <= 25 %)"
    )


if __name__ == "__main__":
    main()
