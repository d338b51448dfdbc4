"""Operators beside NumPy, SciPy and XLA's own, in one process: warm, best of several, float32. Prints ours / peer.

python benchmarks/ops.py
"""

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.fft
from scipy.interpolate import CubicSpline, RegularGridInterpolator

from sciax.core.ops import elementary
from sciax.core.ops.interp import interp_cubic, interp_linear
from sciax.core.ops.segment import segment_max, segment_softmax, segment_sum
from sciax.core.ops.spectral_fft import fft_derivative
from sciax.core.ops.stencil import difference


def best(call: Callable[[], Any], repeats: int = 7) -> float:
    """Seconds a call, the best of `repeats`, each of enough calls for 50 ms."""
    jax.block_until_ready(call())
    start = time.perf_counter()
    jax.block_until_ready(call())
    count = max(1, int(0.05 / max(time.perf_counter() - start, 1e-7)))
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(count):
            out = call()
        jax.block_until_ready(out)
        times.append((time.perf_counter() - start) / count)
    return min(times)


def row(name: str, ours: Callable[..., Any], peer: Callable[..., Any], args: tuple[Any, ...], peer_name: str) -> None:
    arrays = [jnp.asarray(a) for a in args]
    start = time.perf_counter()
    compiled = jax.jit(ours).lower(*arrays).compile()
    first = time.perf_counter() - start
    mine, theirs = best(lambda: compiled(*arrays)), best(lambda: peer(*args))
    print(
        f"{name:44s} {mine * 1e3:9.3f} ms  {theirs * 1e3:9.3f} ms  {mine / theirs:7.2f}  {first:6.2f} s  {peer_name}",
        flush=True,
    )


def main() -> None:
    rng = np.random.default_rng(0)
    single = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    print(f"{'operator':44s} {'ours':>12s}  {'peer':>12s}  {'ratio':>7s}  {'compile':>8s}  peer")

    u, h = single(1024, 1024), 0.01

    def slices(v: np.ndarray) -> np.ndarray:
        w = np.pad(v, ((0, 0), (2, 2)), mode="wrap")
        return (w[:, :-4] - 8 * w[:, 1:-3] + 8 * w[:, 3:-1] - w[:, 4:]) / np.float32(12 * h)

    row(
        "stencil.difference 4th order, 1024^2",
        lambda v: difference(v, h, accuracy=4, boundary="periodic"),
        slices,
        (u,),
        "NumPy slices",
    )

    v = single(512, 512)
    k = 2j * np.pi * np.fft.rfftfreq(512, 1 / 512).astype(np.float32)
    k[-1] = 0
    peer = lambda a: scipy.fft.irfft(k * scipy.fft.rfft(a), n=512)  # noqa: E731
    row(
        "spectral.derivative, 512^2, last axis", lambda a: fft_derivative(a, (1,), lengths=1.0), peer, (v,), "scipy.fft"
    )

    data, ids = single(200_000, 8), rng.integers(0, 20_000, 200_000)
    ids32 = ids.astype(np.int32)
    jax_sum, jax_max = (jax.jit(lambda d, i, f=f: f(d, i, 20_000)) for f in (jax.ops.segment_sum, jax.ops.segment_max))
    row(
        "segment.sum, 2e5 x 8 rows, 2e4 segments",
        lambda d, i: segment_sum(d, i, 20_000),
        jax_sum,
        (data, ids32),
        "jax.ops",
    )
    row("segment.max, same", lambda d, i: segment_max(d, i, 20_000), jax_max, (data, ids32), "jax.ops")
    row(
        "segment.softmax, same, beside a sum",
        lambda d, i: segment_softmax(d, i, 20_000),
        jax_sum,
        (data, ids32),
        "jax.ops sum",
    )

    axes = (np.linspace(-90, 90, 361), np.linspace(0, 360, 721))
    field = single(361, 721)
    points = np.stack([rng.uniform(-90, 90, 100_000), rng.uniform(0, 360, 100_000)], -1).astype(np.float32)
    peer = lambda f, p: RegularGridInterpolator(axes, f)(p)  # noqa: E731
    row(
        "interp.linear, 361 x 721, 1e5 points",
        lambda f, p: interp_linear(f, p, axes=axes, outside="clip"),
        peer,
        (field, points),
        "SciPy",
    )

    x, line = np.linspace(0, 1, 1000), single(1000)
    where = rng.uniform(0, 1, (1_000_000, 1)).astype(np.float32)
    peer = lambda y, p: CubicSpline(x, y)(p[:, 0])  # noqa: E731
    row(
        "interp.cubic, 1000 nodes, 1e6 points",
        lambda y, p: interp_cubic(y, p, axes=(x,), outside="clip"),
        peer,
        (line, where),
        "SciPy",
    )

    z = single(1_000_000)
    unit = np.tanh(z)
    for name, xla in (
        ("erf", jax.lax.erf),
        ("erfc", jax.lax.erfc),
        ("erfinv", jax.lax.erf_inv),
        ("tanh", jnp.tanh),
        ("gelu", lambda a: jax.nn.gelu(a, approximate=False)),
        ("gelu_tanh", jax.nn.gelu),
        ("silu", jax.nn.silu),
        ("exp2", jnp.exp2),
        ("sinh", jnp.sinh),
        ("atan", jnp.arctan),
    ):
        row(
            f"elementary.{name}, 1e6",
            getattr(elementary, name),
            jax.jit(xla),
            (unit if name == "erfinv" else z,),
            "XLA",
        )


if __name__ == "__main__":
    main()
