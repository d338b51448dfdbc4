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
# # One inverse problem, two ways
#
# A square plate is heated evenly, its rim is kept cold, and coolant flows through a round hole. Thirty thermometers, each a little
# wrong, tell the temperature. How well does the plate conduct heat, and how well does the coolant take it away?
#
# $$-\nabla\cdot(k\,\nabla u) = 10, \qquad u = 0 \text{ on the rim}, \qquad k\,\partial_n u + h\,u = 0 \text{ on the hole}$$
#
# We state the problem once, and look for $k$ and $h$ twice: with finite elements and their adjoint, and with a network that learns
# temperature and coefficients together.

# %%
# %matplotlib inline
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize

from sciax.science import Dirichlet, Field, Parameter, Problem, Rectangle, Robin, div, grad, solve
from sciax.science.geometry import Disk, sample_interior
from sciax.science.pinn import Observations

jax.config.update("jax_enable_x64", True)

# %%
u, k, h = Field("u"), Parameter("k"), Parameter("h")
plate = Rectangle() - Disk((0.6, 0.5), 0.2)
problem = Problem(plate, -div(k * grad(u)) == 10.0, Dirichlet(u, 0.0, on="outer"), Robin(u, h, 0.0, on="hole"))
print(problem)

# %% [markdown]
# ## The measurements
#
# The truth is $k = 0.7$, $h = 2$. We solve once on a finer mesh than we shall use afterwards, read the thermometers, and add an
# error of half a per cent of the largest temperature.

# %%
TRUTH = np.array([0.7, 2.0])
fine = solve(problem.with_(k=TRUTH[0], h=TRUTH[1]), method="fem", order=2, size=0.03)
where = sample_interior(plate, 30, seed=4)
exact = np.asarray(fine(where))
measured = exact + 0.005 * exact.max() * np.random.default_rng(1).standard_normal(30)
fine.plot()

# %% [markdown]
# ## By the adjoint
#
# The misfit is a function of $(k, h)$ through a finite element solution. `jax.value_and_grad` gives its exact gradient for about
# the price of one more linear solve, however many parameters there are; SciPy's L-BFGS does the rest. We search for the logarithms,
# so that both stay positive.


# %%
@jax.value_and_grad
def misfit(log):
    s = solve(problem.with_(k=jnp.exp(log[0]), h=jnp.exp(log[1])), method="fem", order=2, size=0.06)
    return jnp.mean((s(where) - measured) ** 2) / jnp.mean(measured**2)


path = []


def objective(log):
    value, slope = misfit(jnp.asarray(log))
    path.append(np.exp(log))
    return float(value), np.asarray(slope)


found = minimize(objective, np.zeros(2), jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-9})
by_adjoint = np.exp(found.x)
print(f"adjoint: k = {by_adjoint[0]:.4f}, h = {by_adjoint[1]:.3f} after {len(path)} solves")

# %% [markdown]
# ## By a network
#
# Nothing is solved inside a loop here: the network's weights and the two coefficients are unknowns of one least-squares problem,
# made of the equation, the condition on the hole and the measurements. That the rim is cold holds exactly: the network is
# multiplied by a smooth distance to the rim. Temperatures are small numbers beside the source of 10, so their misfit gets a weight
# of 100.

# %%
history = []
s = solve(
    problem,
    method="pinn",
    width=12,
    depth=2,
    points=400,
    adam=300,
    iterations=500,
    renew=125,
    unknowns={"k": 1.0, "h": 1.0},
    observations=Observations(u, where, measured),
    weights=(1.0, 1.0, 100.0),  # the equation, the hole, the measurements
    watch=lambda model, step, loss: history.append((step, float(model.unknowns["k"]), float(model.unknowns["h"]))),
)
by_network = np.array([float(s.unknowns["k"]), float(s.unknowns["h"])])
print(f"network: k = {by_network[0]:.4f}, h = {by_network[1]:.3f}")
s.plot()

# %%
figure = Figure(figsize=(9, 3.4), layout="constrained")
left, right = figure.subplots(1, 2)
solves, rounds = np.array(path), np.array(history)
for i, (name, truth, colour) in enumerate((("k", TRUTH[0], "C0"), ("h", TRUTH[1], "C1"))):
    left.plot(solves[:, i], "o-", ms=3, color=colour, label=name)
    right.plot(rounds[:, 0], rounds[:, 1 + i], "o-", ms=3, color=colour, label=name)
    for axes in (left, right):
        axes.axhline(truth, color=colour, ls="--", lw=0.8)
left.set(title="adjoint", xlabel="solves", ylabel="value (dashed: the truth)")
right.set(title="network", xlabel="iterations")
left.legend(frameon=False)
figure  # noqa: B018

# %% [markdown]
# Both find the coefficients as well as the thermometers allow, and agree with each other: what is left is the noise's doing, not
# the method's.

# %%
assert np.allclose(by_adjoint, TRUTH, rtol=0.1), by_adjoint
assert np.allclose(by_network, by_adjoint, rtol=0.08), (by_network, by_adjoint)
print("relative errors of k and h: adjoint", np.abs(by_adjoint / TRUTH - 1), "network", np.abs(by_network / TRUTH - 1))
