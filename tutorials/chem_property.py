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
# # A property from SMILES
#
# Measured activities of a series of molecules (CHEMBL2321810, which RDKit ships) are predicted from their structure. A message
# passing network sees the molecular graph and RDKit's descriptors; beside it stands the baseline that any such model must beat,
# gradient boosting on descriptors alone. The same lines work for solubility or any other column of a CSV file.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rdkit import RDConfig

from sciax.chem.molecules import PropertyConfig, fit_properties, murcko_split, parse_smiles, random_split

# %% [markdown]
# ## Reading
# A row that is not a molecule is named, never lost: `failures` lists row, text and reason.

# %%
folder = Path(RDConfig.RDContribDir) / "FreeWilson" / "data"
smiles, names = zip(*(line.split()[:2] for line in (folder / "CHEMBL2321810.smi").read_text().splitlines()))
activity = dict(line.split(",") for line in (folder / "CHEMBL2321810_act.csv").read_text().splitlines()[1:])
kept = [k for k, n in enumerate(names) if n in activity][::4]
bad = parse_smiles(["CCO", "C(C)(C)(C)(C)C"], on_error="skip")
print("left out:", bad.failures)
mols = parse_smiles(smiles[k] for k in kept).mols
y = np.array([float(activity[names[k]]) for k in kept])

# %% [markdown]
# ## Splits
# At random, or by scaffold: then no ring system of the test set was seen in training, which is harder and nearer to real use.

# %%
split = random_split(mols, seed=0)
scaffold = murcko_split(mols)
print("sizes:", [len(p) for p in split], "by scaffold:", [len(p) for p in scaffold])

# %% [markdown]
# ## Fitting and predicting
# An ensemble of two networks. Its spread, calibrated on the validation part, says how far to trust each prediction.

# %%
pick = lambda part: [mols[k] for k in part]  # noqa: E731
config = PropertyConfig(hidden=64, members=2, epochs=30)
model = fit_properties(pick(split.train), y[split.train], (pick(split.valid), y[split.valid]), config)
mean, sigma = (a[:, 0] for a in model.predict(pick(split.test)))
truth = y[split.test]
rmse = np.sqrt(np.mean((mean - truth) ** 2))
trivial = np.sqrt(np.mean((truth - y[split.train].mean()) ** 2))
print(f"RMSE {rmse:.2f}; predicting the mean gives {trivial:.2f}")
assert rmse < trivial

# %%
fig, axes = plt.subplots(figsize=(4.5, 4), layout="constrained")
axes.plot([truth.min(), truth.max()], [truth.min(), truth.max()], color="0.6")
axes.errorbar(truth, mean, sigma, fmt="o", ms=4, lw=0.8, ecolor="0.75")
axes.set(xlabel="measured activity", ylabel="predicted", title="Held-out molecules")
