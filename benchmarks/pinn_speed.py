"""Time per residual point of one training step: carried derivatives against what tutorials do (vmap of jax.hessian).

    python benchmarks/pinn_speed.py [--points 8192] [--width 64] [--depth 4] [--steps 10] [--deepxde PYTHON]

Poisson in two dimensions, tanh network, Adam, float32, residual and its gradient; best of five after warm-up, the variants in turn.
`--deepxde` names a Python that has deepxde with torch, jax and flax; both backends are timed, each in a process of its own.
"""

import argparse
import os
import subprocess
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sciax.core.autodiff import sum_in_blocks
from sciax.science.pinn import jet_of
from sciax.science.pinn._jets import closed
from sciax.science.pinn._system import block_size
from sciax.science.pinn.networks import build

DEEPXDE = """
import os, sys, time
backend, *numbers = sys.argv[1:]
points, width, depth, steps, threads = map(int, numbers)
os.environ["DDE_BACKEND"] = backend
import numpy as np, deepxde as dde
if backend == "pytorch":
    import torch
    torch.set_num_threads(threads)
    sin = torch.sin
else:
    import jax.numpy as jnp
    sin = jnp.sin
geometry = dde.geometry.Rectangle([0, 0], [1, 1])
def second(u, x, i):
    found = dde.grad.hessian(u, x, i=i, j=i)
    return found[0] if isinstance(found, tuple) else found
def pde(x, u):
    source = 2*np.pi**2*sin(np.pi*x[..., :1])*sin(np.pi*x[..., 1:])
    return second(u, x, 0) + second(u, x, 1) + source
data = dde.data.PDE(geometry, pde, [], num_domain=points, num_boundary=0)
net = dde.nn.FNN([2] + [width]*depth + [1], "tanh", "Glorot normal")
net.apply_output_transform(lambda x, u: u*x[..., :1]*(1 - x[..., :1])*x[..., 1:]*(1 - x[..., 1:]))
model = dde.Model(data, net)
model.compile("adam", lr=1e-3, verbose=0)
model.train(iterations=3, display_every=10**9, verbose=0)
times = []
for _ in range(3):
    start = time.perf_counter()
    model.train(iterations=steps, display_every=10**9, verbose=0)
    times.append((time.perf_counter() - start)/steps)
print("seconds", min(times), len(data.train_x_all))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=8192)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--deepxde", default="")
    o = parser.parse_args()
    network = build(
        "mlp", 2, 1, width=o.width, depth=o.depth, activation="tanh", key=jax.random.key(0), dtype=jnp.float32
    )
    z = jnp.asarray(np.random.default_rng(0).uniform(size=(2, o.points)), jnp.float32)
    source = 2 * np.pi**2 * jnp.sin(np.pi * z[0]) * jnp.sin(np.pi * z[1])
    mask = lambda x: jnp.stack([x[0] * (1 - x[0]) * x[1] * (1 - x[1])])  # noqa: E731
    laplacian, pure = closed([(-1, -1)], 2), closed([(2, 0), (0, 2)], 2)

    def carried(net, z=z):
        prepared = jet_of(lambda x: x, z, laplacian), jet_of(mask, z, laplacian)
        return (prepared[1] * net(prepared[0])).parts[(-1, -1)][0]

    def pure_second(net, z=z):
        prepared = jet_of(lambda x: x, z, pure), jet_of(mask, z, pure)
        parts = (prepared[1] * net(prepared[0])).parts
        return (parts[(2, 0)] + parts[(0, 2)])[0]

    def value(net, x):
        return (mask(x) * net(x[:, None])[:, 0])[0]

    def hessian(net):
        return jax.vmap(lambda x: jnp.trace(jax.hessian(lambda y: value(net, y))(x)), in_axes=1)(z)

    def nested(net):
        whole = lambda x: mask(x)[0] * net(x)[0]  # noqa: E731

        def second(axis):
            e = jnp.zeros_like(z).at[axis].set(1)
            return jax.jvp(lambda a: jax.jvp(whole, (a,), (e,))[1], (z,), (e,))[1]

        return second(0) + second(1)

    variants = {
        "sciax, forward Laplacian": carried,
        "forward Laplacian, not in blocks": carried,
        "sciax, pure second derivatives": pure_second,
        "nested forward mode": nested,
        "vmap of jax.hessian": hessian,
    }
    adam = optax.adam(1e-3)
    reference = np.asarray(hessian(network))
    programs = {}
    for name, laplace in variants.items():
        off = np.abs(np.asarray(laplace(network)) - reference).max() / np.abs(reference).max()
        assert off < 1e-4, (name, off)

        def whole(net, laplace=laplace):
            return jnp.mean((laplace(net) + source) ** 2)

        def blocks(net, laplace=laplace):
            squares = lambda net, d: jnp.sum((laplace(net, d[0]) + d[1]) ** 2)  # noqa: E731
            return sum_in_blocks(squares, net, (z, source), block=block_size(4, o.width, jnp.float32)) / o.points

        loss_of = blocks if name.startswith("sciax") else whole

        def step(carry, _, loss_of=loss_of):
            net, state = carry
            loss, gradient = jax.value_and_grad(loss_of)(net)
            updates, state = adam.update(gradient, state)
            return (optax.apply_updates(net, updates), state), loss

        programs[name] = jax.jit(lambda c, step=step: jax.lax.scan(step, c, None, length=o.steps))
    params = network
    start = (params, adam.init(jax.tree.map(lambda v: v, params)))
    best = {}
    for turn in range(6):
        for name, program in programs.items():
            begin = time.perf_counter()
            jax.block_until_ready(program(start))
            if turn:
                best[name] = min(best.get(name, np.inf), (time.perf_counter() - begin) / o.steps)
    ours = best["sciax, forward Laplacian"] / o.points
    print(f"{o.points} points, {o.depth}x{o.width} tanh, float32, threads {os.cpu_count()}")
    for name, seconds in best.items():
        each = seconds / o.points
        print(f"{name:32s} {1e6 * each:8.2f} us a point and step, ratio to sciax {each / ours:5.2f}")
    if not o.deepxde:
        print("deepxde: skipped, no --deepxde PYTHON given")
        return
    for backend in ("pytorch", "jax"):
        sizes = (o.points, o.width, o.depth, o.steps, os.cpu_count() or 1)
        done = subprocess.run(
            [o.deepxde, "-c", DEEPXDE, backend, *map(str, sizes)], capture_output=True, text=True, check=False
        )
        lines = [line for line in done.stdout.splitlines() if line.startswith("seconds")]
        if not lines:
            print(f"deepxde ({backend}): failed:", done.stderr.strip()[-300:])
            continue
        _, seconds, count = lines[-1].split()
        each = float(seconds) / int(count)
        print(f"{f'deepxde ({backend})':32s} {1e6 * each:8.2f} us a point and step, ratio to sciax {each / ours:5.2f}")


if __name__ == "__main__":
    main()
