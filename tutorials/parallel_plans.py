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
# # One model, three plans: explained and compared
#
# A plan says where each array of a training lives on a mesh of devices. The same model is trained under three: every device with
# all parameters and a part of the batch; layers split by hand, columns then rows; and the plan that a search finds. Eight
# virtual CPU devices stand for the machine: what is sent is real, the speed is not.

# %%
import os

os.environ["JAX_NUM_CPU_DEVICES"] = "8"  # before jax starts

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax.sharding import PartitionSpec as P

from sciax.core.parallel import Plan, data_parallel, make_mesh
from sciax.core.train import fit

B, D, H = 64, 256, 2048
keys = jax.random.split(jax.random.key(0), 4)
model = {
    "up": jax.random.normal(keys[0], (D, H)) / np.sqrt(D),
    "down": jax.random.normal(keys[1], (H, D)) / np.sqrt(H),
}
batch = jax.random.normal(keys[2], (B, D)), jax.random.normal(keys[3], (B, D))


def loss(model, batch, key):
    x, y = batch
    return jnp.mean((jnp.tanh(x @ model["up"]) @ model["down"] - y) ** 2)


optimizer = optax.adam(1e-3)

# %% [markdown]
# ## Three plans
#
# `explain` compiles loss and gradient under a plan and lists where everything is and what is sent.

# %%
by_batch = data_parallel("devices")
print(by_batch.explain(loss, model, batch))

# %%
by_layer = Plan(make_mesh({"devices": 8}), {"up": P(None, "devices"), "down": P("devices", None)})
print(by_layer.explain(loss, model, batch))

# %% [markdown]
# The search prices each way to split each operation, and each change of placement between two operations, and solves for the
# cheapest sum. It says how far from the best its answer may be.

# %%
found = Plan.auto(model, loss, batch, optimizer, make_mesh({"devices": 8}))
print(found.explain())

# %% [markdown]
# This wide model with its small batch is best split by layers: the search finds the columns and rows of Megatron-LM. With a larger
# batch and a smaller model it would split the batch.

# %%
told = {
    "by batch": by_batch.explain(loss, model, batch),
    "by layer": by_layer.explain(loss, model, batch),
    "searched": found.explain(loss, model, batch),
}
sent = {name: sum(item.bytes * item.times for item in told[name].collectives) for name in told}
assert sent["searched"] == sum(item.bytes * item.times for item in found.explain().collectives)  # as predicted
assert found.explain().params["up"] == P(None, "devices")
assert sent["searched"] <= sent["by layer"] < sent["by batch"]

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8))
for axis, title, values in (
    (axes[0], "sent a step / kB", [sent[name] / 1e3 for name in told]),
    (axes[1], "arrays a device / MB", [item.bytes_per_device / 1e6 for item in told.values()]),
    (axes[2], "predicted / ms", [1e3 * item.seconds for item in told.values()]),
):
    axis.bar(list(told), values)
    axis.set_title(title)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## The same training
#
# A plan moves arrays; it does not change what is computed.

# %%
losses = {
    name: fit(model, loss, batch, optimizer, 10, plan=plan).history["loss"]
    for name, plan in (("by batch", by_batch), ("by layer", by_layer), ("searched", found))
}
alone = fit(model, loss, batch, optimizer, 10).history["loss"]
for values in losses.values():
    np.testing.assert_allclose(values, alone, rtol=1e-5)
print("loss", alone[0], "to", alone[-1])
