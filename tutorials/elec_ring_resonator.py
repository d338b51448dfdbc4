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
# # A ring resonator: frequency, quality factor, and how wrong they are
#
# A ring of high index holds light that runs round it; the light leaks out slowly. We excite the ring with a short pulse,
# listen, and read off the complex frequencies of what rings on. The exact answer is known from Bessel functions, so we can
# also watch the error fall as the grid gets finer.

# %%
import matplotlib.pyplot as plt
import numpy as np

from sciax.core import x64
from sciax.elec import (
    C0,
    PML,
    Boundaries,
    Dipole,
    FieldMonitor,
    GaussianPulse,
    Grid,
    Medium,
    Probe,
    Scene,
    Simulation,
    Structure,
    analytic,
    resonances,
    ring,
)

x64_scope = x64()
x64_scope.__enter__()  # this notebook computes in float64

um = 1e-6
index, inner, outer, order = 3.4, 1.0, 2.0, 3
exact = analytic.ring_resonance(index, inner, outer, order, 0.118 - 0.0007j)
print(f"exact: f = {exact.real:.10f} c/um, Q = {-exact.real / exact.imag / 2:.4f}")

# %% [markdown]
# The mode $\cos(3\varphi)$ is even in $y$ and odd in $x$. So a quarter of the plane is enough: a magnetic wall ("pmc") on
# the $x$ axis, a conductor ("pec") on the $y$ axis, and absorbers on the two outer sides. Walls of the ring cut through
# cells; the scene averages the permittivity there, which keeps the error at second order.

# %%
frequency = exact.real * C0 / um
pulse = GaussianPulse(frequency, 0.05 * frequency)
middle = 1.5 * um


def scene(cells_per_um, periods=60):
    pml = PML(max(10, round(0.6 * cells_per_um)))
    edges = np.arange(round((outer + 0.8) * cells_per_um) + pml.cells + 1) * um / cells_per_um
    return Scene(
        Grid(edges, edges),
        structures=[Structure("ring", ring((0, 0), inner * um, outer * um), Medium(index**2))],
        sources=[Dipole("spark", (middle, 0.0), "ez", pulse)],
        monitors=[
            Probe("ear", (middle * np.cos(np.pi / 3), middle * np.sin(np.pi / 3)), ("ez",)),
            FieldMonitor("plane", [frequency], components=("ez",)),
        ],
        boundaries=Boundaries(x=("pec", pml), y=("pmc", pml)),
        duration=pulse.end() + periods / frequency,
        dtype="float64",
    )


result = Simulation(scene(20))()
signal = np.asarray(result.signal("ear", "ez"))
time = result.time()

# %% [markdown]
# What the probe hears: the pulse passes, then the ring decays. Only the part after the pulse goes into the fit.

# %%
quiet = time > pulse.end()
found = resonances(signal[quiet], result.plan.scene.dt, (0.9 * frequency, 1.1 * frequency))
best = int(np.argmin(np.abs(found.frequency * um / C0 - exact)))
f = found.frequency[best] * um / C0
print(f"found: f = {f.real:.10f} c/um, Q = {found.quality[best]:.4f}, fit residual {found.residual:.1e}")

fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(time * 1e15, signal / np.abs(signal).max(), lw=0.6)
left.axvline(pulse.end() * 1e15, color="0.6", ls="--")
left.set(xlabel="time (fs)", ylabel="Ez at the probe (scaled)", title="The ring decays")
field = np.real(result["plane"].ez.values[0, :, :, 0].T)
x = result["plane"].x.values / um
right.imshow(
    field / np.abs(field).max(), extent=(x[0], x[-1], x[0], x[-1]), origin="lower", cmap="RdBu_r", vmin=-1, vmax=1
)
turn = np.linspace(0, np.pi / 2, 100)
for r in (inner, outer):
    right.plot(r * np.cos(turn), r * np.sin(turn), "k", lw=1)
right.set(xlabel="x (µm)", ylabel="y (µm)", title="Re Ez of the mode, one quarter")
plt.show()

# %% [markdown]
# Now finer and finer grids. On a double logarithmic plot the error of the frequency falls with slope 2. The values that are
# often copied for this ring (0.118101, Q 80.7) are those of a coarse grid, not of the ring.

# %%
cells = np.array([8, 12, 16, 24, 32])
errors = []
for n in cells:
    run = Simulation(scene(int(n)))()
    tail = np.asarray(run.signal("ear", "ez"))[run.time() > pulse.end()]
    got = resonances(tail, run.plan.scene.dt, (0.9 * frequency, 1.1 * frequency)).frequency * um / C0
    errors.append(abs(got[np.argmin(np.abs(got - exact))].real / exact.real - 1))
slope = np.polyfit(np.log(cells), np.log(errors), 1)[0]

fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
ax.loglog(cells, errors, "o-", label=f"measured, slope {slope:.2f}")
ax.loglog(cells, errors[0] * (cells / cells[0]) ** -2.0, "k--", lw=0.8, label="second order")
ax.set(xlabel="cells per µm", ylabel="relative error of the frequency")
ax.legend(frameon=False)
plt.show()

assert abs(f.real / exact.real - 1) < 4e-4
assert abs(found.quality[best] / 77.2554 - 1) < 3e-3
assert slope < -1.8
