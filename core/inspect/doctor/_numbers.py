"""Probes of arithmetic and differentiation. Every answer is a closed form or NumPy's."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.inspect.doctor._probe import Measured, probe
from sciax.core.precision import x64

_RNG_SEED = 0
MISCOMPILE = "small-matrix products"


def _arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(_RNG_SEED)
    return [rng.standard_normal(shape) for shape in shapes]


@probe("jit", "a compiled expression against NumPy, float32", subject=jax.jit)
def _jit(jit: Any) -> Measured:
    (x,) = _arrays((257,))
    x = x.astype(np.float32)
    got = jit(lambda x: jnp.sin(x) * jnp.exp(-x * x) + x / (1 + jnp.abs(x)))(x)
    wide = x.astype(float)
    return Measured(got, np.sin(wide) * np.exp(-wide * wide) + wide / (1 + np.abs(wide)), 1e-6)


@probe("vmap", "a batched product against a loop", subject=jax.vmap)
def _vmap(vmap: Any) -> Measured:
    a, x = _arrays((5, 4, 3), (5, 3))
    with x64():
        got = vmap(jnp.dot)(a, x)
    return Measured(got, np.stack([m @ v for m, v in zip(a, x)]), 1e-13)


@probe("gradient", "reverse mode against the closed form of d/dx exp(sin x)", subject=jax.grad)
def _gradient(grad: Any) -> Measured:
    (x,) = _arrays((33,))
    with x64():
        got = grad(lambda x: jnp.exp(jnp.sin(x)).sum())(x)
    return Measured(got, np.cos(x) * np.exp(np.sin(x)), 1e-13)


@probe("forward gradient", "forward mode against the closed form of d/dx exp(sin x)", subject=jax.jvp)
def _forward(jvp: Any) -> Measured:
    (x,) = _arrays((33,))
    with x64():
        got = jvp(lambda x: jnp.exp(jnp.sin(x)), (x,), (np.ones_like(x),))[1]
    return Measured(got, np.cos(x) * np.exp(np.sin(x)), 1e-13)


@probe("second order", "a Hessian against the closed form of |x|^4", subject=jax.hessian)
def _second_order(hessian: Any) -> Measured:
    (x,) = _arrays((5,))
    with x64():
        got = hessian(lambda x: jnp.dot(x, x) ** 2)(x)
    return Measured(got, 4 * np.dot(x, x) * np.eye(5) + 8 * np.outer(x, x), 1e-13)


@probe("complex gradient", "the convention: grad of |z|^2 at 1+2j is 2-4j", subject=jax.grad)
def _complex(grad: Any) -> Measured:
    with x64():
        got = grad(lambda z: (z * z.conj()).real)(jnp.asarray(1 + 2j))
    return Measured(got, 2 - 4j, 1e-14)


@probe("linear algebra", "a solve against NumPy, its gradient against the adjoint solve", subject=jnp.linalg.solve)
def _linear(solve: Any) -> Measured:
    a, b, w = _arrays((9, 9), (9,), (9,))
    a = a + 9 * np.eye(9)
    with x64():
        x, pull = jax.vjp(solve, jnp.asarray(a), jnp.asarray(b))
        bar_a, bar_b = pull(jnp.asarray(w))
    adjoint, exact = np.linalg.solve(a.T, w), np.linalg.solve(a, b)
    got = np.concatenate([x, bar_b, np.ravel(bar_a)])
    return Measured(got, np.concatenate([exact, adjoint, -np.outer(adjoint, exact).ravel()]), 1e-12)


@probe(
    "eigenvalues", "a symmetric eigenproblem against the closed form of the 1-d Laplacian", subject=jnp.linalg.eigvalsh
)
def _eigenvalues(eigvalsh: Any) -> Measured:
    n = 12
    with x64():
        got = eigvalsh(jnp.asarray(2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)))
    return Measured(got, 4 * np.sin(np.arange(1, n + 1) * np.pi / (2 * (n + 1))) ** 2, 1e-12)


@probe("FFT", "a transform against the DFT sum, and back again", subject=jnp.fft.fft)
def _fft(fft: Any) -> Measured:
    x, y = _arrays((45,), (45,))
    z = x + 1j * y
    with x64():
        there = fft(jnp.asarray(z))
        back = jnp.fft.ifft(there)
    k = np.arange(45)
    sums = np.exp(-2j * np.pi * np.outer(k, k) / 45) @ z
    return Measured(np.concatenate([there, back]), np.concatenate([sums, z]), 1e-13)


@probe("scan", "a scanned recurrence and its gradient against the closed form", subject=jax.lax.scan)
def _scan(scan: Any) -> Measured:
    def compound(rate: Any) -> Any:
        total, _ = scan(lambda c, _: (c * (1 + rate), c), jnp.ones_like(rate), None, length=30)
        return total

    with x64():
        value, slope = jax.value_and_grad(compound)(jnp.asarray(0.05))
    return Measured([value, slope], [1.05**30, 30 * 1.05**29], 1e-13)


@probe("64-bit scope", "1 + 1e-12 is kept inside the scope, and only there", subject=x64)
def _scope(scope: Any) -> Measured:
    before = bool(jax.config.jax_enable_x64)
    with scope(True):
        wide = jnp.asarray(1 + 1e-12) - 1
        width = wide.dtype.itemsize
    with scope(False):
        narrow = jnp.asarray(1 + 1e-12) - 1
    after = bool(jax.config.jax_enable_x64)
    return Measured([float(wide), width, float(narrow), after], [1e-12, 8, 0.0, before], 1e-15)


@probe("random numbers", "bits and normals of a key against the recorded ones", subject=jax.random)
def _random(random: Any) -> Measured:
    key = random.key(42)
    bits = np.asarray(random.bits(key, (3,)), np.uint32).astype(float) / 2**32
    normal = random.normal(random.fold_in(key, 1), (3,), dtype=jnp.float32)
    return Measured(np.concatenate([bits, normal]), _RECORDED, 1e-6)


_RECORDED = np.array(
    [
        0.488709666300565,
        0.6797972230706364,
        0.6162716133985668,
        0.6057640314102173,
        0.7990440726280212,
        -0.9089270234107971,
    ]
)
"""Threefry-2x32 (Salmon et al., SC 2011): the bits over 2^32 as the published cipher gives them, the normals as jax 0.12 does."""


def _reductions() -> tuple[Any, ...]:
    return (lambda v, xp: xp.sum(v, axis=-1), lambda v, xp: xp.sum(v * v, axis=-1))


@probe(
    MISCOMPILE,
    "jit(vmap(reduce(A @ r))) against NumPy, 16383 to 40000 rows, 3x3 to 6x6, both precisions",
    subject=jax.jit,
    remedy="this jax computes wrong numbers on CPU (jax-ml/jax#39103; 0.9 and 0.10): pip install 'jax>=0.11'",
)
def _small_matrix(jit: Any) -> Measured:
    got, expected = [], []
    for dtype, tolerance in ((np.float32, 2e-6), (np.float64, 1e-14)):
        for size in (3, 4, 6):
            matrix, rows = _arrays((size, size), (40000, size))
            matrix, rows = matrix.astype(dtype), rows.astype(dtype)
            products = rows.astype(float) @ matrix.astype(float).T
            with x64(dtype == np.float64):
                for reduce in _reductions():
                    program = jit(jax.vmap(partial(lambda reduce, matrix, r: reduce(matrix @ r, jnp), reduce, matrix)))
                    exact = reduce(products, np)
                    for count in (16383, 16384, 16385, 16386, 20000, 40000):
                        error = np.abs(np.asarray(program(rows[:count]), float) - exact[:count]).max()
                        got.append(error / np.abs(exact).max() / tolerance)
                        expected.append(0.0)
    return Measured(got, expected, 1.0, f"{len(got)} programs, errors in units of their tolerance")
