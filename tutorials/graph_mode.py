# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A solver written plainly: compiled, differentiated, profiled
#
# A solver often stops when it is good enough: how many steps it takes depends on the data. In JAX such a loop has to be
# written with `lax.while_loop`, and even then it cannot be differentiated in reverse mode. Here it is written as ordinary
# Python and left to `@graph`.
#
# The problem: heat in a rod with a conductivity that depends on temperature, $-(k(u)\,u')' = q$ with $u = 0$ at both ends
# and $k(u) = 1 + a u^2$. Each outer step freezes $k$ and solves a tridiagonal system (Picard iteration).

# %%
import tempfile
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from sciax.core.autodiff import check_gradients, root
from sciax.core.graph import GraphError, UnboundedLoopError, eager, graph, trace
from sciax.core.inspect import locate_nonfinite, profile
from sciax.core.precision import x64

x64_scope = x64()
x64_scope.__enter__()  # this notebook computes in float64

N = 32
x = jnp.linspace(0.0, 1.0, N + 1)
h = 1.0 / N
source = 20.0 * jnp.exp(-50.0 * (x - 0.3) ** 2)


def tridiagonal(lower, diagonal, upper, b):
    """Thomas' algorithm: one sweep down, one up, written as two loops over arrays."""
    c, d = jnp.zeros_like(b), jnp.zeros_like(b)
    c[0], d[0] = upper[0] / diagonal[0], b[0] / diagonal[0]
    for i in jnp.arange(1, b.shape[0]):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i], d[i] = upper[i] / m, (b[i] - lower[i] * d[i - 1]) / m
    u = d
    for i in jnp.arange(b.shape[0] - 2, -1, -1):
        u[i] = d[i] - c[i] * u[i + 1]
    return u


@graph(max_steps=100)
def temperature(a, source):
    """Picard iteration until the temperature stands still; returns it with the number of steps."""
    u = jnp.zeros(N + 1)
    change, steps = 1.0, 0
    while change > 1e-9:
        k = 1.0 + a * (0.5 * (u[1:] + u[:-1])) ** 2
        west, east = k[:-1] / h**2, k[1:] / h**2
        inner = tridiagonal(-west, west + east, -east, source[1:-1])
        new = jnp.zeros(N + 1)
        new[1:-1] = 0.5 * inner + 0.5 * u[1:-1]  # damped, so that strong nonlinearity converges as well
        change = jnp.max(jnp.abs(new - u))
        u = new
        steps += 1
    return u, steps


# %% [markdown]
# Nothing in it is special: `while` on a computed number, `a[i] = v` on immutable arrays, loops over index arrays, a helper
# function. The first call compiles it.

# %%
start = time.perf_counter()
u, steps = temperature(2.0, source)
first = time.perf_counter() - start
start = time.perf_counter()
jax.block_until_ready(temperature(2.0, source))
again = time.perf_counter() - start
print(f"{steps} steps; first call {first:.2f} s, again {again * 1e3:.2f} ms")
assert int(steps) < 60

figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
for a in (0.0, 0.5, 2.0, 8.0):
    axis.plot(x, temperature(a, source)[0], label=f"a = {a:g}")
axis.set(xlabel="x", ylabel="temperature u", title="A rod whose conductivity grows with temperature")
axis.legend()
plt.show()

# %% [markdown]
# For $a = 0$ the problem is linear and NumPy solves it directly: the result must be the same.

# %%
matrix = (np.diag(np.full(N - 1, 2.0)) - np.diag(np.ones(N - 2), 1) - np.diag(np.ones(N - 2), -1)) / h**2
exact = np.linalg.solve(matrix, np.asarray(source)[1:-1])
difference = float(np.abs(temperature(0.0, source)[0][1:-1] - exact).max())
print(f"largest difference to a direct solve: {difference:.1e}")
assert difference < 1e-8

# %% [markdown]
# ## What was compiled
#
# `trace` gives the program as an object: operations with the lines they come from, FLOPs with loops multiplied out, memory,
# and after `compile()` where the time of the first call went.

# %%
program = trace(temperature)(2.0, source)
print("\n".join(program.text().splitlines()[:14]))
print("...\n", program.compile(), sep="")

# %% [markdown]
# ## The gradient of the whole solver
#
# How does the hottest temperature depend on $a$ and on the source at each place? One reverse sweep through the
# data-dependent loop, because `max_steps` bounds it (states are checkpointed, not all stored).


# %%
def hottest(a, source):
    return jnp.max(temperature(a, source)[0])


slope, sensitivity = jax.grad(hottest, (0, 1))(2.0, source)
step = 1e-5
by_difference = (hottest(2.0 + step, source) - hottest(2.0 - step, source)) / (2 * step)
print(f"d(max u)/da = {slope:.8f}, by differences {by_difference:.8f}")
assert abs(float(slope - by_difference)) < 1e-6

figure, axis = plt.subplots(figsize=(6, 2.8), layout="constrained")
axis.plot(x, sensitivity * N)
axis.axvline(float(x[int(jnp.argmax(u))]), color="0.6", linestyle=":", label="hottest point")
axis.set(xlabel="x", ylabel="sensitivity", title="Where heating raises the maximum most")
axis.legend()
plt.show()

# %% [markdown]
# The same derivative without going through the steps at all: the solution is a root of the discrete equation, and
# `root(...).value` is differentiated by the implicit function theorem. Both agree to solver tolerance.


# %%
def residual(u, a):
    full = jnp.concatenate([jnp.zeros(1), u, jnp.zeros(1)])
    k = 1.0 + a * (0.5 * (full[1:] + full[:-1])) ** 2
    flux = k * jnp.diff(full) / h
    return jnp.diff(flux) / h + source[1:-1]


@jax.jit
def hottest_by_root(a):
    return jnp.max(root(residual, u[1:-1], a, tol=1e-9).value)


implicit_slope = jax.grad(hottest_by_root)(2.0)
print(f"implicit: {implicit_slope:.8f}")
assert abs(float(implicit_slope - slope)) < 1e-6
print("worst error of check_gradients:", f"{check_gradients(hottest_by_root, jnp.asarray(2.0)).worst:.1e}")

# %% [markdown]
# ## When something is wrong
#
# Without a bound, reverse mode is refused, and the message says what to do. A variable that only one side of a traced `if`
# assigns is refused where it is read, by name and line.

# %%
unbounded = graph(temperature.function)
try:
    jax.grad(lambda a: jnp.max(unbounded(a, source)[0]))(2.0)
except UnboundedLoopError as error:
    print(str(error).split("/")[-1])


@graph
def one_sided(v):
    if v > 0:
        y = 2 * v
    return y


try:
    one_sided(1.0)
except GraphError as error:
    print(error.variable, "|", error.remedy)

# %% [markdown]
# To step through the code with a debugger, run it uncompiled: inside `eager()` the same lines run one by one.

# %%
system = -np.ones(9), np.full(9, 2.5), -np.ones(9), np.linspace(0.0, 1.0, 9)
sweep = graph(tridiagonal)
with eager():
    slow = sweep(*system)
print(f"compiled and line by line agree to {float(jnp.abs(slow - sweep(*system)).max()):.1e}")

# %% [markdown]
# A NaN is traced to the operation and the line that made it, also inside loops, and also in a gradient:

# %%
print(locate_nonfinite(jax.grad(lambda v: jnp.sum(jnp.sqrt(v * v))), jnp.zeros(2)))

# %% [markdown]
# ## Where the time goes
#
# `profile` writes a trace for Perfetto and prints a table of operations.

# %%
with profile(tempfile.mkdtemp()) as result:
    for a in (0.5, 1.0, 2.0):
        jax.block_until_ready(temperature(a, source))
print(result.table(6))
assert result.ops

x64_scope.__exit__(None, None, None)
