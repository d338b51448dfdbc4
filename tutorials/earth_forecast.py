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
# # A weather forecast and its verification
#
# A forecast is only worth something beside what it must beat. Here we forecast twice: near-surface temperature over North
# America from real six-hourly analyses that come with the package `hvsampledata`, and the flow around the globe with the
# barotropic vorticity equation, on fields the project makes itself (synthetic, and labelled so).

# %%
# %matplotlib inline
import matplotlib.pyplot as plt
import numpy as np

from sciax.core import x64
from sciax.earth import Barotropic, DampedPersistence, Ensemble, Forecast, canonicalise, plot, samples, verify

# %% [markdown]
# ## Real analyses, and one canonical form
#
# Latitudes run from north to south in this file. Inside, every dataset has ascending latitudes, longitudes from 0 to 360, SI
# units and CF names. `layout.restore` gives the user's own layout back, exactly.

# %%
source, note = samples.load("sample")
print(note)
canonical, layout = canonicalise(source)
print(source["lat"].values[:3], "->", canonical["lat"].values[:3])
assert layout.restore(canonical).equals(source)

# %% [markdown]
# ## Forecast and verify
#
# Three days of data are too few to estimate a correlation, so we keep the whole anomaly (`rho=1`) and only correct the
# expected field for the time of day. That is already better than persistence, except where persistence has the right time of
# day by itself: at 24 hours.

# %%
fc = Forecast(source, DampedPersistence(rho=1.0), steps=6, start="2014-02-27T06")
scores = fc.verify(baselines=["persistence", "climatology"])
print(scores.table())
scores.plot()

# %%
ours, theirs = (scores.value("rmse", m, 12) for m in ("damped_persistence", "persistence"))
print(f"12 h RMSE: {ours:.2f} K against {theirs:.2f} K for persistence")
assert ours < 0.85 * theirs

# %% [markdown]
# ## A global flow
#
# The model turns geopotential into a stream function by linear balance, solves the barotropic vorticity equation with
# spherical harmonics, and adds the predicted change to the analysis. Ten members start from perturbed analyses.

# %%
with x64():
    nature, note = samples.load("generated")
    print(note)
    ensemble = Forecast(nature, Barotropic(), steps=6, members=10, ensemble=Ensemble("perturbed", amplitude=0.02))
    result = ensemble.run()
    global_scores = ensemble.verify(baselines=["persistence"])
print(global_scores.table("rmse"))
global_scores.plot()

# %%
last = result["z"].isel(init_time=0, lead_time=3, level=0)
truth = ensemble.data()["z"].sel(time=ensemble.valid_times()[3]).isel(level=0)
plot.maps(
    {"ensemble mean, 24 h": last.mean("member"), "synthetic truth": truth, "spread": np.sqrt(verify.variance(last))},
    units="m2 s-2",
    difference={"spread"},
)

# %% [markdown]
# ## Is it significant? Is the spread right?
#
# The score card shows the skill against persistence for every region. Near the equator geopotential says little about the
# wind; the model falls back on persistence there.

# %%
global_scores.card("persistence")

# %%
ratio = global_scores.data["spread_skill"].sel(model="barotropic", region="nh").values.ravel()
print("spread-skill ratio, 20-90N:", np.round(ratio, 2), "(1 is calibrated)")
skill = 1 - global_scores.value("rmse", "barotropic", 24, region="nh") / global_scores.value(
    "rmse", "persistence", 24, region="nh"
)
print(f"24 h skill over persistence, 20-90N: {100 * skill:.0f} %")
assert skill > 0.3
plt.close("all")
