"""Training steps side by side: sciax, hand-written JAX, and, where present, torch and MindSpore. Prints ratios.

    python benchmarks/core_training.py [PYTHON_WITH_PEERS]

torch and MindSpore do not share an environment with jax: give the interpreter of one that has them (Python 3.11,
torch==2.13.0, mindspore==2.10.0, numpy<2). CPU time of the process is compared, which a busy machine disturbs least.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sciax.core.autodiff import laplacian, measure, measure_laplacian, sum_in_blocks, value_and_grad
from sciax.core.graph import graph
from sciax.science.pinn import jet_of
from sciax.science.pinn._jets import closed, laplacian_index
from sciax.science.pinn._system import block_size
from sciax.science.pinn.networks import build

TORCH = """
import time, numpy as np, torch
r = np.random.RandomState(0)
layers = []
for a, b in zip([3, 256, 256, 256, 256], [256] * 4 + [1]):
    layers += [torch.nn.Linear(a, b), torch.nn.Tanh()]
net = torch.nn.Sequential(*layers[:-1]); opt = torch.optim.Adam(net.parameters(), 1e-3)
x, y = torch.tensor(r.randn(4096, 3), dtype=torch.float32), torch.tensor(r.randn(4096, 1), dtype=torch.float32)
def step():
    opt.zero_grad(); loss = ((net(x) - y) ** 2).mean(); loss.backward(); opt.step(); return float(loss)
[step() for _ in range(3)]
ts = []
for _ in range(12):
    c = time.process_time(); step(); ts.append(time.process_time() - c)
print(min(ts))
"""

MINDSPORE = """
import time, numpy as np, mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.GRAPH_MODE)
cells, d = [], 3
for _ in range(4):
    cells += [nn.Dense(d, 256), nn.Tanh()]; d = 256
cells.append(nn.Dense(256, 1))
net = nn.SequentialCell(cells); opt = nn.Adam(net.trainable_params(), 1e-3)
def forward(x, y): return ops.reduce_mean((net(x) - y) ** 2)
vg = ms.value_and_grad(forward, None, opt.parameters)
@ms.jit
def step(x, y):
    loss, g = vg(x, y); opt(g); return loss
r = np.random.RandomState(0)
x, y = Tensor(r.randn(4096, 3).astype(np.float32)), Tensor(r.randn(4096, 1).astype(np.float32))
[step(x, y).asnumpy() for _ in range(3)]
ts = []
for _ in range(12):
    c = time.process_time(); step(x, y).asnumpy(); ts.append(time.process_time() - c)
print(min(ts))
"""

BURGERS = """
import time, numpy as np, mindspore as ms
from mindspore import nn, ops, Tensor
ms.set_context(mode=ms.GRAPH_MODE)
cells, d = [], 2
for _ in range(4):
    cells += [nn.Dense(d, 64), nn.Tanh()]; d = 64
cells.append(nn.Dense(64, 1))
net = nn.SequentialCell(cells); opt = nn.Adam(net.trainable_params(), 1e-3)
total = lambda x: net(x).sum()
first = ms.grad(total)
def second(x): return first(x)[:, 0].sum()
def forward(x):
    u, du, uxx = net(x)[:, 0], first(x), ms.grad(second)(x)[:, 0]
    return ops.reduce_mean((du[:, 1] + u * du[:, 0] - 0.003183 * uxx) ** 2)
vg = ms.value_and_grad(forward, None, opt.parameters)
@ms.jit
def step(x):
    loss, g = vg(x); opt(g); return loss
x = Tensor(np.random.RandomState(0).rand(8192, 2).astype(np.float32))
[step(x).asnumpy() for _ in range(2)]
ts = []
for _ in range(6):
    c = time.process_time(); step(x).asnumpy(); ts.append(time.process_time() - c)
print(min(ts))
"""


def network(sizes, key):
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, (a, b)) / np.sqrt(a), jnp.zeros(b)) for k, a, b in zip(keys, sizes[:-1], sizes[1:])]


def apply(p, x):
    for w, b in p[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def mse(p, x, y):
    return jnp.mean((apply(p, x) - y) ** 2)


def cpu_ms(step, state, *data, n=12):
    """Smallest CPU time of a step, in ms; the compiled step is warm."""
    for _ in range(3):
        state = jax.block_until_ready(step(*state, *data))[:2]
    times = []
    for _ in range(n):
        start = time.process_time()
        state = jax.block_until_ready(step(*state, *data))[:2]
        times.append(time.process_time() - start)
    return min(times) * 1e3


def peer(python, code):
    """CPU ms of a step in another interpreter, or None with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "peer.py"  # MindSpore reads the source of what it compiles
        script.write_text(code)
        try:
            out = subprocess.run([python, str(script)], capture_output=True, text=True, timeout=170)
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, str(error)
    if out.returncode:
        return None, out.stderr.strip().splitlines()[-1] if out.stderr.strip() else "failed"
    return float(out.stdout.split()[-1]) * 1e3, ""


def mlp(python):
    rng = np.random.RandomState(0)
    x, y = jnp.asarray(rng.randn(4096, 3), jnp.float32), jnp.asarray(rng.randn(4096, 1), jnp.float32)
    p = network([3, 256, 256, 256, 256, 1], jax.random.key(0))
    opt = optax.adam(1e-3)

    def by_hand(p, s, x, y):
        loss, g = jax.value_and_grad(mse)(p, x, y)
        u, s = opt.update(g, s)
        return optax.apply_updates(p, u), s, loss

    @graph
    def ours(p, s, x, y):
        loss, g = value_and_grad(mse)(p, x, y)
        u, s = opt.update(g, s)
        return optax.apply_updates(p, u), s, loss

    hand = jax.jit(by_hand)
    a, b = [], []
    for _ in range(5):
        a.append(cpu_ms(ours, (p, opt.init(p)), x, y))
        b.append(cpu_ms(hand, (p, opt.init(p)), x, y))
    print(
        f"MLP 3-256x4-1, batch 4096: sciax {min(a):.1f} CPU ms, / hand-written JAX = {min(a) / min(b):.3f} (target <= 1.05)"
    )
    for name, code, target in (("torch 2.13 eager", TORCH, 1.5), ("MindSpore 2.10 graph", MINDSPORE, 2.0)):
        report(name, python, code, min(a), target)


def burgers(python):
    x = jnp.asarray(np.random.RandomState(0).rand(2, 8192), jnp.float32)
    p = build("mlp", 2, 1, width=64, depth=4, activation="tanh", key=jax.random.key(0), dtype=jnp.float32)
    opt = optax.adam(1e-3)
    indices = closed([(2, 0), (0, 1)], 2)

    def squares(p, x):
        """u_t + u u_x - nu u_xx, the derivatives carried with the values; axes (x, t)."""
        u = p(jet_of(lambda z: z, x, indices)).parts
        return jnp.sum((u[0, 1] + u[0, 0] * u[1, 0] - 0.003183 * u[2, 0]) ** 2)

    def residual(p, x):
        return sum_in_blocks(squares, p, x, block=block_size(len(indices), 64, jnp.float32)) / x.shape[1]

    @graph
    def ours(p, s, x):
        loss, g = value_and_grad(residual)(p, x)
        u, s = opt.update(g, s)
        return optax.apply_updates(p, u), s, loss

    ms = cpu_ms(ours, (p, opt.init(p)), x, n=6)
    print(f"Burgers PINN 2-64x4-1, 8192 points: sciax {ms:.1f} CPU ms")
    report("MindSpore 2.10 graph", python, BURGERS, ms, 2.0)


def report(name, python, code, ours, target):
    if python is None:
        print(f"  {name}: no interpreter with peers given, skipped")
        return
    value, why = peer(python, code)
    if value is None:
        print(f"  {name}: skipped ({why})")
    else:
        print(f"  {name}: {value:.1f} CPU ms, sciax is {value / ours:.2f}x faster (target >= {target})")


def second_order():
    for d, n in ((2, 2048), (10, 512)):
        params = network([d, 128, 128, 128, 128, 1], jax.random.key(1))
        points = jax.random.normal(jax.random.key(2), (n, d))

        def f(p, x):
            return apply(p, x)[0]

        t = measure_laplacian(f, params, points, repeats=7).seconds
        fast = laplacian(lambda x, p: f(p, x))(points[0], params)
        slow = laplacian(lambda x, p: f(p, x), method="hessian")(points[0], params)
        index = laplacian_index(d, d)
        indices = closed([index], d)
        network_ = build("mlp", d, 1, width=128, depth=4, activation="tanh", key=jax.random.key(0), dtype=jnp.float32)

        def squares(net, z, index=index, indices=indices):
            return jnp.sum(net(jet_of(lambda x: x, z, indices)).parts[index] ** 2)

        def carried(net, z, n=n, squares=squares, indices=indices):
            return sum_in_blocks(squares, net, z, block=block_size(len(indices), 128, jnp.float32)) / n

        def traced(p, xs, f=f):
            return jnp.mean(jax.vmap(laplacian(lambda x: f(p, x), method="hessian"))(xs) ** 2)

        pair = measure(
            {
                "carried": lambda net, p, xs, carried=carried: jax.grad(carried)(net, xs.T),
                "hessian": lambda net, p, xs, traced=traced: jax.grad(traced)(p, xs),
            },
            network_,
            params,
            points,
            repeats=7,
        ).seconds
        print(
            f"Laplacian, d={d}, training gradient: forward Laplacian {t['forward'] * 1e3:.1f} ms, "
            f"{t['forward_over_reverse'] / t['forward']:.2f}x faster than forward over reverse (target >= 2 at d = 10), "
            f"{t['hessian'] / t['forward']:.2f}x than the trace of the Hessian; carried by layers and in blocks "
            f"{pair['hessian'] / pair['carried']:.2f}x (target >= 4); "
            f"relative difference {abs(float(fast - slow) / float(slow)):.1e}"
        )


def main() -> None:
    python = sys.argv[1] if len(sys.argv) > 1 else None
    mlp(python)
    burgers(python)
    second_order()


if __name__ == "__main__":
    main()
