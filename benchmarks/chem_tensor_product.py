"""Channelwise tensor product 32x(0e+1o+2e) against e3nn-jax: forward, with gradients, second order; one thread.

    python benchmarks/chem_tensor_product.py [edges]

Prints CPU milliseconds (best of 5) and ratios. Both compute the same sums to 1e-5.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp

from sciax.core.ops import so3


def main(edges: int = 4000, channels: int = 32) -> None:
    try:
        import e3nn_jax as e3nn
    except ImportError:
        print("skipped: the peer e3nn-jax is not installed here")
        return
    ir = so3.Irreps.harmonics(2)
    table, paths = so3.product_table(ir, ir, ir)
    k = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(k[0], (ir.dim, edges, channels))
    y = so3.spherical_harmonics(jax.random.normal(k[1], (edges, 3)), lmax=2)[:, :, None]
    w = jax.random.normal(k[2], (len(paths), edges, channels))

    def ours(x, y, w):
        return so3.multilinear(x, y, w, table=table)

    wide = e3nn.Irreps("+".join(f"{channels}x{i}" for _, i in ir))
    flat = jnp.concatenate(
        [x[s].transpose(1, 2, 0).reshape(edges, -1) for s in (slice(0, 1), slice(1, 4), slice(4, 9))], -1
    )

    def theirs(x, y, w):
        out = e3nn.tensor_product(
            e3nn.IrrepsArray(wide, x), e3nn.IrrepsArray("0e+1o+2e", y), filter_ir_out=["0e", "1o", "2e"]
        )
        out = out * w.transpose(1, 0, 2).reshape(edges, -1)
        return [c.reshape(edges, m // channels, channels, i.dim).sum(1) for (m, i), c in zip(out.irreps, out.chunks)]

    def total(o):
        return sum((c**2).sum() for c in (o if isinstance(o, list) else [o]))

    def gradients(f):
        return jax.value_and_grad(lambda *a: total(f(*a)), (0, 1, 2))

    def second(f):
        def loss(x, y, w):
            return (jax.grad(lambda y: total(f(x, y, w)))(y) ** 2).sum()

        return jax.value_and_grad(loss, (0, 2))

    mine, peer = (x, y, w), (flat, y[:, :, 0].T, w)
    ratio = float(total(ours(*mine)) / total(theirs(*peer)))
    print(
        f"edges {edges}, channels {channels}; |ours|²/|e3nn-jax|² = {ratio:.6f} (1: the same weights mean the same paths)"
    )
    for label, wrap in (("forward", lambda f: f), ("forward + backward", gradients), ("second order", second)):
        programs = {"sciax": (jax.jit(wrap(ours)), mine), "e3nn-jax": (jax.jit(wrap(theirs)), peer)}
        first, best = {}, dict.fromkeys(programs, 1e9)
        for name, (f, a) in programs.items():
            c = time.process_time()
            jax.block_until_ready(f(*a))
            first[name] = time.process_time() - c
        for _ in range(5):
            for name, (f, a) in programs.items():
                c = time.process_time()
                jax.block_until_ready(f(*a))
                best[name] = min(best[name], time.process_time() - c)
        s, e = (best[n] * 1e3 for n in programs)
        print(
            f"{label:20s} sciax {s:8.1f}  e3nn-jax {e:8.1f} CPU ms   ratio {e / s:5.1f}   "
            f"compile {first['sciax']:.1f} / {first['e3nn-jax']:.1f} CPU s ({first['sciax'] / first['e3nn-jax']:.2f})",
            flush=True,
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
