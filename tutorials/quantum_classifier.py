# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A hybrid classifier: a quantum circuit inside a network
#
# A small classical layer turns two numbers into the angles of four qubits, measured values come out, and a linear layer decides.
# Everything is one Equinox model with one gradient. The data are two interleaved half moons, made here.
#
# A circuit this small is simulated exactly and is no match in speed for a classical network of the same skill; the point is
# that the two compose.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from IPython.display import display

from sciax.quantum import Circuit, QuantumLayer, draw, hardware_efficient, pauli

# %%
rng = np.random.default_rng(0)


def moons(count):
    angle = np.pi * rng.uniform(size=count)
    label = rng.integers(0, 2, count)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle)) + 0.12 * rng.normal(size=count)
    y = np.where(label, 0.4 - np.sin(angle), np.sin(angle)) + 0.12 * rng.normal(size=count)
    return np.stack([x, y], 1).astype(np.float32), label.astype(np.float32)


train_x, train_y = moons(300)
test_x, test_y = moons(300)

# %% [markdown]
# ## The circuit
#
# The data enter twice: angles that come once give only sines and cosines of the first order, repetition gives higher ones. The
# encoder's parameters are marked as inputs, all others are trained.

# %%
n = 4
encoder = Circuit(n)
for q in range(n):
    encoder = encoder.ry(f"x{q}", q)
encoder = encoder.as_encoder()
first, second = hardware_efficient(n, 1, prefix="a"), hardware_efficient(n, 2, prefix="b")
circuit = encoder + first + encoder + second
display(draw(circuit))


class Hybrid(eqx.Module):
    scale: eqx.nn.Linear
    quantum: QuantumLayer
    decide: eqx.nn.Linear

    def __init__(self, key):
        keys = jax.random.split(key, 3)
        self.scale = eqx.nn.Linear(2, n, key=keys[0])
        self.quantum = QuantumLayer(circuit, [pauli(f"Z{q}") for q in range(n)], key=keys[1], scale=0.5)
        self.decide = eqx.nn.Linear(n, 1, key=keys[2])

    def __call__(self, x):
        return self.decide(self.quantum(self.scale(x)))[0]


# %% [markdown]
# ## Training
#
# `jax.vmap` gives the compiled kernel the whole batch at once; gradients of all weights, classical and quantum, come together.

# %%
model = Hybrid(jax.random.key(1))
optimiser = optax.adam(0.1)
state = optimiser.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, state, x, y):
    def loss(m):
        return optax.sigmoid_binary_cross_entropy(jax.vmap(m)(x), y).mean()

    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, state = optimiser.update(grads, state)
    return eqx.apply_updates(model, updates), state, value


@eqx.filter_jit
def predict(model, x):
    return jax.vmap(model)(x)


losses = []
for _ in range(120):
    model, state, value = step(model, state, train_x, train_y)
    losses.append(float(value))

accuracy = float(np.mean((np.asarray(predict(model, test_x)) > 0) == test_y))
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, test accuracy {100 * accuracy:.1f} %")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.plot(losses, color="#1f5fa8")
left.set(xlabel="step", ylabel="cross entropy", title="training")
left.grid(alpha=0.25)
grid_x, grid_y = np.meshgrid(np.linspace(-1.6, 2.6, 80), np.linspace(-1.2, 1.5, 60))
points = jnp.asarray(np.stack([grid_x.ravel(), grid_y.ravel()], 1), jnp.float32)
surface = jax.nn.sigmoid(predict(model, points)).reshape(grid_x.shape)
filled = right.contourf(grid_x, grid_y, surface, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.75)
right.scatter(*test_x[test_y == 0].T, s=9, color="#1d3f72", label="class 0")
right.scatter(*test_x[test_y == 1].T, s=9, color="#8c1c1c", label="class 1")
right.set(xlabel="$x_1$", ylabel="$x_2$", title=f"test set, {100 * accuracy:.1f} % right")
right.legend(loc="lower left")
figure.colorbar(filled, ax=right, label="probability of class 1")
plt.show()

# %%
assert accuracy > 0.97
