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
# # A waveguide bend, designed by gradients
#
# Light arrives in a narrow guide from the left and has to leave at the top, through a square of 1.6 µm whose 1600 pixels
# are ours to choose. One simulation says how good a design is; one gradient says what to do with every pixel.
# The gradient is exact: the simulation is run backwards in time, step by step, and nothing but one layer of field beside
# the absorbers is stored.

# %%
import time

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from sciax.elec import Simulation, design
from sciax.elec.demo import bend_scene

pixels = 40
pixel = 1.6e-6 / pixels
c = (np.arange(pixels) + 0.5) * pixel
radius = np.hypot(c[:, None], c[None, ::-1])
start = 0.45 + 0.25 * (np.abs(radius - 0.8e-6) < 0.25e-6)  # grey, with a hint of a quarter circle

simulation = Simulation(bend_scene(start, picture=False), gradient="reversible")
print(simulation.scene.grid.cells, "cells,", simulation.scene.steps, "steps;", simulation.gradient_reason)

# %% [markdown]
# Free numbers between 0 and 1 become a design in three moves: mirrored about the diagonal (the bend is symmetric), blurred
# by a cone of 160 nm (nothing much smaller can appear), and pushed towards black and white by a steep step.


# %%
def density(x, beta):
    x = design.mirror(x, "antidiagonal")
    return design.project(design.conic_filter(x, 160e-9 / pixel), beta)


def quality(x, beta):
    result = simulation({"design.medium.density": density(x, beta)})
    arriving, back = result.modes("arriving")
    leaving, _ = result.modes("leaving")
    return jnp.mean(jnp.abs(leaving / arriving) ** 2) - jnp.mean(jnp.abs(back / arriving) ** 2)


objective = jax.jit(jax.value_and_grad(quality))
begin = time.perf_counter()
value, gradient = objective(start, 8.0)
print(
    f"start: {float(value):.3f} of the power passes (less what is reflected); first call {time.perf_counter() - begin:.1f} s"
)
begin = time.perf_counter()
jax.block_until_ready(objective(start, 8.0))
print(f"value and gradient of 1600 pixels: {time.perf_counter() - begin:.2f} s")

# %% [markdown]
# Is the gradient right? Move all pixels a little along a random direction and compare.

# %%
direction = np.random.default_rng(0).standard_normal(start.shape)
slope = float(np.sum(np.asarray(gradient) * direction))
h = 3e-3
ahead, behind = (float(objective(start + s * h * direction, 8.0)[0]) for s in (1, -1))
print(f"gradient {slope:.6f}, central difference {(ahead - behind) / (2 * h):.6f}")
assert abs((ahead - behind) / (2 * h) / slope - 1) < 0.02  # float32

# %%
best, history = design.maximise(objective, start, betas=(10.0, 30.0), iterations=12, move=0.12, span=0.2)
final = (np.asarray(density(jnp.asarray(best), 30.0)) > 0.5).astype(float)
result = Simulation(bend_scene(final)).run(chunks=1)
arriving, back = (np.asarray(a)[:, 0] for a in result.modes("arriving"))
leaving = np.asarray(result.modes("leaving")[0])[:, 0]
through, reflected = np.abs(leaving / arriving) ** 2, np.abs(back / arriving) ** 2
solid, void = design.feature_size(final, pixel)
worst, returned = 10 * np.log10(through.min()), 10 * np.log10(reflected.max())
print(f"black and white: worst transmission {worst:.2f} dB, worst reflection {returned:.1f} dB")
print(f"smallest solid {solid * 1e9:.0f} nm, smallest void {void * 1e9:.0f} nm")

# %%
fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 3.9), layout="constrained")
left.imshow(1 - final.T, origin="lower", cmap="gray", extent=(-0.8, 0.8, -0.8, 0.8))
left.set(title="Design (black: high index)", xlabel="x (µm)", ylabel="y (µm)")
power = np.abs(result["plane"].ez.values[0, :, :, 0].T) ** 2
x = result["plane"].x.values * 1e6
middle.imshow(
    power / np.quantile(power, 0.998), origin="lower", cmap="inferno", vmax=1, extent=(x[0], x[-1], x[0], x[-1])
)
middle.set(title="|Ez|² at 1.55 µm", xlabel="x (µm)", ylabel="y (µm)")
right.plot([s.iteration for s in history], [s.value for s in history], "o-", ms=3.5)
right.axvline(12.5, color="0.8")
right.set(
    title="Transmitted less reflected power",
    xlabel="iteration (line: steeper step)",
    ylabel="mean |S21|² - |S11|²",
    ylim=(0, 1),
)
plt.show()

assert through.min() > 10 ** (-0.05)  # better than -0.5 dB
