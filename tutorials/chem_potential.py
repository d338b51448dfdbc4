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
# # A potential, trained and run
#
# Copper, from a teacher to molecular dynamics: a few dozen small cells are labelled by ASE's effective-medium potential, a
# network learns energies, forces and stresses from them, and the network then drives a simulation of a larger crystal that it
# has never seen. The teacher stands in for a quantum-chemistry code, which would be slow; everything else is as with real data.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np
from ase.build import bulk
from ase.calculators.emt import EMT

from sciax.chem import md, training
from sciax.chem.potentials import PotentialField, predict
from sciax.chem.units import METAL
from sciax.datasets.atoms import from_ase

# %% [markdown]
# ## Labels
# Each structure is a strained and rattled cube of four atoms. The cells are smaller than the cutoff: atoms see their own images.

# %%
rng = np.random.default_rng(0)


def labelled():
    atoms = bulk("Cu", cubic=True)
    atoms.set_cell(atoms.cell.array @ (np.eye(3) + rng.normal(size=(3, 3)) * 0.02), scale_atoms=True)
    atoms.positions += rng.normal(size=(4, 3)) * 0.12
    atoms.calc = EMT()
    return from_ase(atoms, with_results=True)


data = [labelled() for _ in range(60)]
train, held_out = data[:48], data[48:]

# %% [markdown]
# ## Training
# Scale, shift and the reference energy come from the training structures only. The loss weighs energy per atom, forces and stress.

# %%
potential = training.start_potential("schnet", train, cutoff=4.5, key=jax.random.key(0), channels=16, layers=2)
config = training.FitConfig(epochs=40, batch=8, learning_rate=1e-2, stress_weight=1.0)
result = training.fit(potential, train, config=config)
before, after = training.errors(potential, held_out), training.errors(result.potential, held_out)
print(f"held-out force MAE: {before.force_mae:.0f} before, {after.force_mae:.1f} meV/Å after")
assert after.force_mae < 0.2 * before.force_mae

# %%
true = np.concatenate([s.forces.ravel() for s in held_out])
guess = np.concatenate([p.forces.ravel() for p in predict(result.potential, held_out)])
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.semilogy([h["loss"] for h in result.history])
left.set(xlabel="epoch", ylabel="loss", title="Training")
right.plot(true, true, color="0.6")
right.plot(true, guess, ".", ms=4)
right.set(xlabel="reference force (eV/Å)", ylabel="predicted", title="Held-out structures")
# %% [markdown]
# ## Dynamics
# A crystal of 32 atoms at 300 K (started with twice the energy, which equipartition halves). No thermostat: the total energy
# must stay where it is, and that it does is the test that forces are the exact derivative of the energy.

# %%
crystal = from_ase(bulk("Cu", cubic=True) * (2, 2, 2))
system = md.maxwell_velocities(md.from_structure(crystal, dtype=np.float32), 600.0, jax.random.key(1), METAL)
rdf = md.Rdf(5.0, 100, skip=4)
run = md.simulate(
    system, PotentialField(result.potential, crystal.numbers), md.NVE(2.0, METAL), 400, block=20, observers=[rdf]
)
wander = np.ptp(run.conserved) / np.ptp(run.kinetic)
print(
    f"temperature {run.temperature[200:].mean():.0f} K; the energy wanders by {wander:.1%} of the swing of its kinetic part"
)
assert wander < 0.05

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.plot(run.time / 1000, run.temperature)
left.set(xlabel="time (ps)", ylabel="temperature (K)", title="Equipartition")
right.plot(rdf.r, rdf.g)
right.set(xlabel="distance (Å)", ylabel="g(r)", title="Shells of the crystal")
