"""Learned emulators: normalisation that travels with the network, training by unrolling with a growing lead."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from sciax.core.errors import ConvergenceError, FileFormatError, InputError, MissingFileError
from sciax.earth._grid import area_weights
from sciax.earth.models._base import Coords, Model


class EmulatorModel(Model):
    """x(t + step) = x(t) + sigma_d * network((x - mean) / sigma): the network predicts the normalised change.

    mean, sigma (of fields) and sigma_d (of changes), by channel, are leaves: they are saved and loaded with the weights.
    """

    name: ClassVar[str] = "emulator"
    network: Callable
    mean: Float[Array, " channel"]
    scale: Float[Array, " channel"]
    change: Float[Array, " channel"]
    coords: Coords = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        return (fields - self._wide(self.mean)) / self._wide(self.scale)

    def step(self, state, when):
        state = self.normal_step(state)
        return state, state * self._wide(self.scale) + self._wide(self.mean)

    def normal_step(self, x):
        """One step of normalised fields."""
        return x + self._wide(self.change / self.scale) * self.network(x)

    @staticmethod
    def _wide(x):
        return x[:, None, None]


@dataclass(frozen=True)
class Training:
    """How an emulator is trained.

    Attributes:
        stages: (lead in steps, optimiser steps) in turn: the curriculum on lead time.
        batch: trajectories' pieces in one step.
        rate: peak learning rate; cosine decay over all stages.
        channel_weights: weight of each channel in the loss (by level, for instance); default all equal.
    """

    stages: tuple[tuple[int, int], ...] = ((1, 1500), (2, 500), (4, 300))
    batch: int = 16
    rate: float = 2e-3
    channel_weights: tuple[float, ...] | None = None


def make_emulator(
    network: Callable, trajectories: Float[Array, "run time channel lat lon"], coords: Coords
) -> EmulatorModel:
    """An untrained emulator with the statistics of the training trajectories, in their dtype."""
    x = np.asarray(trajectories)
    if x.ndim != 5 or x.shape[2:] != coords.shape:
        raise InputError(
            "trajectories do not fit the coordinates", got=x.shape, expected=("runs", "times", *coords.shape)
        )
    axes = (0, 1, 3, 4)
    mean, scale = x.mean(axes, dtype=np.float64), x.std(axes, dtype=np.float64)
    change = np.diff(x, axis=1).std(axes, dtype=np.float64)
    if (scale == 0).any() or (change == 0).any():
        raise InputError("a channel does not vary", got=[str(c) for c, s in zip(coords.channels, scale) if s == 0])
    dtype = x.dtype
    mean, scale, change = (jnp.asarray(v, dtype) for v in (mean, scale, change))
    # A network made while 64-bit arrays are on would widen the state at every step.
    network = jax.tree.map(lambda v: v.astype(dtype) if eqx.is_array(v) and v.dtype.kind == "f" else v, network)
    return EmulatorModel(network, mean, scale, change, coords)


def train_emulator(
    model: EmulatorModel,
    trajectories: Float[Array, "run time channel lat lon"],
    training: Training,
    key: PRNGKeyArray,
    progress: Callable[[int, float], Any] | None = None,
) -> tuple[EmulatorModel, list[float]]:
    """Minimise the area-weighted squared error of unrolled forecasts, in units of each channel's typical change.

    Args:
        progress: called with (steps done, loss).

    Returns:
        The trained model and the loss every 20 steps.

    Raises:
        ConvergenceError: the loss is no longer finite.
    """
    wide = model._wide
    data = (jnp.asarray(trajectories) - wide(model.mean)) / wide(model.scale)
    runs, times = data.shape[:2]
    longest = max(lead for lead, _ in training.stages)
    if times <= longest:
        raise InputError("trajectories are shorter than the unrolled lead", got=times, expected=f"more than {longest}")
    total = sum(count for _, count in training.stages)
    schedule = optax.warmup_cosine_decay_schedule(0.0, training.rate, min(100, total // 10 + 1), total)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-5))
    weights = (
        np.ones(len(model.coords.channels)) if training.channel_weights is None else np.array(training.channel_weights)
    )
    area = area_weights(np.array(model.coords.lat))
    # in units of the change over a step, not of the field: a persistent channel must not look easy
    unit = np.asarray(model.scale / model.change) ** 2 * weights / weights.mean()
    loss_weights = jnp.asarray(unit[:, None, None] * area[:, None], data.dtype)
    network, frozen = eqx.partition(model.network, eqx.is_inexact_array)
    fixed = _constants(model.network)
    state = optimiser.init(network)
    history: list[float] = []
    done = 0
    chunk = 20

    @eqx.filter_jit
    def many(network, state, model, data, key, lead):
        def loss(network, x):
            full = eqx.tree_at(lambda m: m.network, model, eqx.combine(network, frozen))

            def body(carry, target):
                new = full.normal_step(carry)
                return new, jnp.mean(loss_weights * (new - target) ** 2)

            step = jax.checkpoint(body) if lead > 2 else body
            _, errors = jax.lax.scan(step, x[0], x[1:])
            return errors.mean()

        def one(carry, key):
            network, state = carry
            a, b = jax.random.split(key)
            run = jax.random.randint(a, (training.batch,), 0, runs)
            first = jax.random.randint(b, (training.batch,), 0, times - lead)
            x = data[run[None], first[None] + jnp.arange(lead + 1)[:, None]]
            value, grads = jax.value_and_grad(loss)(network, x)
            grads = jax.tree.map(lambda g, keep: jnp.where(keep, 0, g), grads, fixed)
            updates, state = optimiser.update(grads, state, network)
            updates = jax.tree.map(lambda u, keep: jnp.where(keep, 0, u), updates, fixed)
            return (optax.apply_updates(network, updates), state), value

        (network, state), values = jax.lax.scan(one, (network, state), jax.random.split(key, chunk))
        return network, state, values.mean()

    for lead, count in training.stages:
        for _ in range(-(-count // chunk)):
            key, sub = jax.random.split(key)
            network, state, value = many(network, state, model, data, sub, lead)
            history.append(float(value))
            done += chunk
            if not np.isfinite(history[-1]):
                raise ConvergenceError("the training loss is not finite", history=history, remedy="a smaller rate=")
            if progress is not None:
                progress(done, history[-1])
    return eqx.tree_at(lambda m: m.network, model, eqx.combine(network, frozen)), history


def _constants(network) -> Any:
    """A tree of booleans like the network's arrays: True for tables and static fields, which are not trained."""
    arrays = eqx.filter(network, eqx.is_inexact_array)
    marked = jax.tree.map(lambda _: False, arrays)
    for name in ("tables", "static"):
        if not hasattr(network, name):
            continue
        part = getattr(arrays, name)
        marked = eqx.tree_at(lambda m, n=name: getattr(m, n), marked, jax.tree.map(lambda _: True, part))
    return marked


def save_emulator(model: EmulatorModel, path: str | Path) -> None:
    """Weights and normalisation as plain arrays (npz); the network's shape comes from the code that loads it."""
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_array))
    arrays: dict[str, Any] = {f"leaf{i}": np.asarray(x) for i, x in enumerate(leaves)}
    np.savez(Path(path), **arrays)


def load_emulator(path: str | Path, like: EmulatorModel) -> EmulatorModel:
    """The model saved at `path`, in the shape of `like`.

    Raises:
        MissingFileError, FileFormatError: nothing there, or a model of another shape.
    """
    path = Path(path)
    if not path.exists():
        raise MissingFileError(f"no file {path}")
    arrays, static = eqx.partition(like, eqx.is_array)
    leaves, treedef = jax.tree.flatten(arrays)
    try:
        with np.load(path, allow_pickle=False) as archive:
            fresh = [archive[f"leaf{i}"] for i in range(len(leaves))]
    except (OSError, ValueError, KeyError) as error:
        raise FileFormatError(f"{path} is not a saved emulator of this shape", got=str(error)) from error
    wrong = [i for i, (a, b) in enumerate(zip(fresh, leaves)) if a.shape != b.shape]
    if wrong:
        raise FileFormatError(
            f"{path} holds a model of another shape", got=fresh[wrong[0]].shape, expected=leaves[wrong[0]].shape
        )
    return eqx.combine(jax.tree.unflatten(treedef, [jnp.asarray(x) for x in fresh]), static)
