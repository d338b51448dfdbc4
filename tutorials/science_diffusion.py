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
# # One problem, several methods, and its gradient
#
# A problem is stated once, in strong form: a domain with named boundaries, an equation, conditions. How it is solved is a
# separate choice. Here a diffusion problem is solved by finite elements, finite differences and a spectral method, the three
# answers are compared, and then finite elements find an unknown conductivity from a measured mean by following the gradient.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from sciax.core import x64
from sciax.datasets.bracket import bracket_file
from sciax.science import (
    Dirichlet,
    Domain,
    Field,
    Neumann,
    Parameter,
    Problem,
    Rectangle,
    Robin,
    compare,
    div,
    grad,
    solve,
)

x64_scope = x64()
x64_scope.__enter__()  # this notebook computes in float64

# %% [markdown]
# ## The statement
#
# $-\nabla\cdot(k\,\nabla u) = f$ on the unit square, zero on the left and the right side, insulated at the bottom, and losing
# heat to the outside at the top: $k\,\partial_n u + 2u = 0$. Coefficients may be numbers, parameters, or functions of the
# point `x`. A part of the boundary without a condition is an error, so "insulated" is said, not implied.

# %%
u, k = Field("u"), Parameter("k", 1.0)


def source(x):
    return 10 * jnp.exp(-20 * ((x[0] - 0.4) ** 2 + (x[1] - 0.6) ** 2))


problem = Problem(
    Rectangle((0, 0), (1, 1)),
    -div(k * grad(u)) == source,
    Dirichlet(u, 0, on=("left", "right")),
    Neumann(u, 0, on="bottom"),
    Robin(u, 2.0, 0.0, on="top"),
)
print(problem)

# %% [markdown]
# ## Three methods

# %%
by_elements = solve(problem, method="fem", order=2, cells=24)
by_differences = solve(problem, method="fdm", order=4, cells=24)
by_polynomials = solve(problem, method="spectral", cells=20)
for other in (by_elements, by_differences):
    print(compare(by_polynomials, other))
assert compare(by_polynomials, by_elements).relative < 1e-4
assert compare(by_polynomials, by_differences).relative < 1e-3

# %%
by_elements.plot(title="u, quadratic elements")

# %% [markdown]
# A solution says how it was reached (`info`: iterations and residual), how wrong its gradient is thought to be
# (`error_estimate`), and where heat goes. The fluxes balance the source to rounding.

# %%
print(by_elements.info)
print("estimated error of the gradient:", by_elements.error_estimate)
sides = {side: float(by_elements.flux(side)) for side in ("left", "right", "bottom", "top")}
print(sides, "source:", float(by_elements.integrate(source)))
assert abs(sum(sides.values()) + float(by_elements.integrate(source))) < 1e-9

# %% [markdown]
# ## A mesh with groups, and an inverse problem
#
# The bracket that comes with sciax has named holes and two materials. A heater sits in the last hole of the arm; the bolts
# of the foot are at 20 °C. Suppose the mean temperature was measured as 45 °C: what is the arm's conductivity? `solve` is a
# pure function of the parameters, so `jax.grad` goes through it (by the adjoint equation, which reuses the factors of the
# forward solve), and Newton's method on one number needs a few steps.

# %%
arm = Parameter("arm", 50.0)
bracket = Problem(
    Domain.from_mesh(bracket_file()),
    -div({"foot": 160.0, "arm": arm} * grad(u)) == 0,
    Dirichlet(u, 20.0, on=("hole1", "hole2")),
    Neumann(u, 2e4, on="hole4"),
    Robin(u, 25.0, 25.0 * 20.0, on="outer"),
    Neumann(u, 0.0, on="rest"),
)
area = solve(bracket, order=1).integrate(lambda x: 1.0)


def mean(value):
    return solve(bracket.with_(arm=value), method="fem", order=1).integrate(u) / area


value_and_slope = jax.value_and_grad(mean)
conductivity, path = 50.0, []
for _ in range(6):
    temperature, slope = value_and_slope(conductivity)
    path.append((conductivity, float(temperature)))
    conductivity = conductivity - float((temperature - 45.0) / slope)
print(f"conductivity of the arm: {conductivity:.4f} W/(m K)")
assert abs(float(mean(conductivity)) - 45.0) < 1e-8

# %%
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
ks = np.linspace(25, 60, 8)
axes.plot(ks, [float(mean(v)) for v in ks], label="mean temperature")
axes.plot(*np.array(path).T, "o", label="Newton's steps")
axes.axhline(45.0, color="gray", linewidth=0.8)
axes.set(xlabel="conductivity of the arm, W/(m K)", ylabel="°C")
axes.legend()
plt.show()

# %%
solve(bracket.with_(arm=conductivity), order=2).plot(title="temperature of the bracket, °C")
