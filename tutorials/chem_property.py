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
# # A property from SMILES
#
# Measured activities of a series of molecules (CHEMBL2321810, which RDKit ships) are predicted from their structure, by a blend
# of models: a Gaussian process on descriptors and fingerprints, boosted trees, and (optional here) a message passing network on
# the molecular graph. Beside it stands the baseline that any such model must beat, gradient boosting on descriptors alone. The same
# lines work for solubility or any other column of a CSV file.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rdkit import RDConfig

from sciax.chem.molecules import (
    boosted_trees,
    fit_blend,
    molecule_table,
    murcko_split,
    parse_smiles,
    random_split,
)

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
# Each kind of model is fitted with a part of the molecules held out in turn; what it says of the held-out ones decides its weight
# in the blend and how wide the error bars must be. The test set is not touched. Without `parts=` the network takes part as well:
# on a series as small as this it adds little, and takes most of the time. With so few molecules to test on, blend and baseline
# cannot be told apart; `sciax run chem.property` compares them on the whole series.

# %%
train = np.concatenate([split.train, split.valid])
table = molecule_table(mols)
model = fit_blend([mols[k] for k in train], y[train], folds=3, parts=("process", "trees"), table=table[train])
mean, sigma = (a[:, 0] for a in model.predict([mols[k] for k in split.test], table[split.test]))
truth = y[split.test]
error = lambda guess: np.sqrt(np.mean((guess - truth) ** 2))  # noqa: E731
baseline = boosted_trees(table.values[train], y[train]).predict(table.values[split.test])
print("weights:", dict(zip(model.parts, model.weights[0].round(2).tolist())))
print(f"RMSE {error(mean):.2f}; boosted trees alone {error(baseline):.2f}; the mean {error(y[train].mean()):.2f}")
assert error(mean) < 0.6 * error(y[train].mean())

# %%
fig, axes = plt.subplots(figsize=(4.5, 4), layout="constrained")
axes.plot([truth.min(), truth.max()], [truth.min(), truth.max()], color="0.6")
axes.errorbar(truth, mean, sigma, fmt="o", ms=4, lw=0.8, ecolor="0.75")
axes.set(xlabel="measured activity", ylabel="predicted", title="Held-out molecules")
