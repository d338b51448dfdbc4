"""Fitting potentials to energies, forces and stresses: reference energies, statistics, losses, the loop."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from sciax.chem.potentials import Potential, energies_and_forces, make_graph, make_potential, predict
from sciax.core.errors import ConvergenceError, InputError
from sciax.core.train import Checkpoints, CheckpointStore, soap
from sciax.datasets.atoms import Structure
from sciax.datasets.elements import SYMBOLS
from sciax.science.graph import Graph, PaddedGraph, batch_graphs, bucket_shapes, readout


def reference_energies(structures: Sequence[Structure], isolated: Sequence[Structure] = ()) -> dict[int, float]:
    """E0 of each element in eV: from one-atom frames where given, else by least squares on compositions.

    Args:
        structures: training set with energies.
        isolated: structures of one atom.

    Raises:
        InputError: an element without an isolated atom while others have one; a training set without energies.
    """
    known: dict[int, float] = {}
    for s in isolated:
        if len(s) != 1 or s.energy is None:
            raise InputError("an isolated atom is one atom with an energy", got=f"{len(s)} atoms, energy {s.energy}")
        known[int(s.numbers[0])] = float(s.energy)
    elements = sorted({int(z) for s in structures for z in s.numbers})
    if known:
        lacking = [SYMBOLS[z] for z in elements if z not in known]
        if lacking:
            raise InputError(f"no isolated atom of {', '.join(lacking)}", remedy="give all, or none (least squares)")
        return {z: known[z] for z in elements}
    energies = np.array([np.nan if s.energy is None else s.energy for s in structures], float)
    if not len(energies) or np.isnan(energies).any():
        raise InputError("structures without an energy", remedy="read them with the key of the energy")
    counts = np.array([[np.sum(s.numbers == z) for z in elements] for s in structures], float)
    # minimum norm: one composition leaves the split between elements open, and equal shares are the neutral choice
    solution = np.linalg.lstsq(counts, energies, rcond=1e-10)[0]
    return dict(zip(elements, map(float, solution)))


@dataclass(frozen=True)
class FitConfig:
    """Settings of `fit`.

    Attributes:
        epochs: passes over the training set.
        batch: structures in a batch.
        optimizer: "amsgrad", or "soap" (Adam in the eigenbasis of Shampoo's preconditioner: dearer steps, fewer of them).
        learning_rate: at the start; decays as a cosine to `final` of it, after a short rise.
        energy_weight, force_weight, stress_weight: of (ΔE/N)², |ΔF|² and |Δσ|² (all in units of the force scale; stress in eV/Å³
            times `stress_length`³/scale).
        huber: None for squares, else the residual (in units of the scale) where the loss turns linear.
        ema: decay of the exponential moving average whose weights are returned.
        clip: bound on the gradient's norm.
        max_seconds: stop early, with a note in the history, when the clock says so.
        seed: of the order of batches.
    """

    epochs: int = 50
    batch: int = 5
    optimizer: str = "amsgrad"
    learning_rate: float = 5e-3
    final: float = 0.01
    energy_weight: float = 1.0
    force_weight: float = 10.0
    stress_weight: float = 0.0
    huber: float | None = None
    ema: float = 0.99
    clip: float = 10.0
    max_seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or not self.learning_rate > 0 or not 0 <= self.ema < 1:
            raise InputError("epochs, batch >= 1, learning_rate > 0, 0 <= ema < 1 are needed", got=self)
        if min(self.energy_weight, self.force_weight, self.stress_weight) < 0:
            raise InputError("a weight of the loss is negative", got=self)
        if self.optimizer not in ("amsgrad", "soap"):
            raise InputError("unknown optimizer", got=self.optimizer, expected="amsgrad or soap")


@dataclass(frozen=True)
class Errors:
    """Errors of predictions: energies per atom in meV, forces in meV/Å, stress in meV/Å³ (None where there is none)."""

    energy_mae: float
    energy_rmse: float
    force_mae: float
    force_rmse: float
    stress_mae: float | None
    structures: int


@dataclass(frozen=True)
class FitResult:
    """A fitted potential and how it got there: per epoch the training loss and, where a validation set is given, its errors."""

    potential: Potential
    history: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def errors(potential: Potential, structures: Sequence[Structure], *, batch: int = 32) -> Errors:
    """Errors on structures with energies and forces.

    Raises:
        InputError: none given, or without energies and forces.
    """
    _need_labels(structures, forces=True)
    de, df, ds = [], [], []
    for p, s in zip(predict(potential, structures, batch=batch), structures):
        assert s.energy is not None and s.forces is not None
        de.append((p.energy - s.energy) / len(s))
        df.append((p.forces - s.forces).ravel())
        if s.stress is not None:
            ds.append((p.stress - s.stress).ravel())
    e, f = 1e3 * np.array(de), 1e3 * np.concatenate(df)
    return Errors(
        float(np.abs(e).mean()),
        float(np.sqrt((e**2).mean())),
        float(np.abs(f).mean()),
        float(np.sqrt((f**2).mean())),
        float(1e3 * np.abs(np.concatenate(ds)).mean()) if ds else None,
        len(structures),
    )


def _need_labels(structures: Sequence[Structure], forces: bool) -> None:
    if not structures:
        raise InputError("no structures")
    for k, s in enumerate(structures):
        if s.energy is None or (forces and s.forces is None):
            missing = "an energy" if s.energy is None else "forces"
            raise InputError(f"structure {k} has no {missing}", remedy="read_extxyz(..., energy=KEY, forces=KEY)")


def start_potential(
    architecture: str,
    structures: Sequence[Structure],
    *,
    cutoff: float = 5.0,
    e0: Mapping[int, float] | None = None,
    key: Array,
    dtype=jnp.float32,
    **options: Any,
) -> Potential:
    """A potential whose scale (root mean square force), shift (mean residual energy per atom) and average number of neighbours
    come from the training structures."""
    _need_labels(structures, forces=True)
    e0 = reference_energies(structures) if e0 is None else e0
    scale = float(np.sqrt(np.mean(np.concatenate([np.ravel(s.forces) for s in structures]) ** 2)))  # pyright: ignore
    rest = [(s.energy - sum(e0[int(z)] for z in s.numbers)) / len(s) for s in structures if s.energy is not None]
    probe = make_potential("schnet", list(e0), cutoff=cutoff, key=key, channels=1, layers=1)
    sample = structures[:: max(1, len(structures) // 20)]
    average = float(np.mean([len(make_graph(probe, s).senders) / len(s) for s in sample]))
    return make_potential(
        architecture,
        list(e0),
        cutoff=cutoff,
        key=key,
        e0=e0,
        scale=scale if scale > 0 else 1.0,
        shift=float(np.mean(rest)),
        dtype=dtype,
        average_neighbours=max(average, 1.0),
        **options,
    )


def _labelled(potential: Potential, s: Structure, stress: bool) -> Graph:
    g = make_graph(potential, s)
    dtype = np.dtype(potential.dtype)
    e0 = float(np.sum(np.array(potential.e0)[g.nodes["species"]]))
    assert s.energy is not None and s.forces is not None
    labels = {
        # the residual is taken in float64, before the cast
        "energy": np.asarray(s.energy - e0).astype(dtype),
        "atoms": np.asarray(len(s)).astype(dtype),
    }
    if stress:
        labels["strain"] = (np.zeros((3, 3)) if s.stress is None else s.stress * s.volume).astype(dtype)
        labels["volume"] = np.asarray(max(s.volume, 1.0)).astype(dtype)
        labels["has_stress"] = np.asarray(s.stress is not None)
    return Graph(
        g.senders, g.receivers, {**g.nodes, "forces": s.forces.astype(dtype)}, g.edges, {**g.globals, **labels}
    )


def loss(potential: Potential, graph: PaddedGraph, config: FitConfig) -> Array:
    """The weighted loss of a batch, in units of the potential's scale."""
    values, forces, strain = energies_and_forces(potential, graph, stress=config.stress_weight > 0)
    inverse = 1 / potential.scale
    atoms = jnp.maximum(graph.globals["atoms"], 1)
    de = (readout(values, graph) - graph.globals["energy"]) / atoms * inverse
    df = (forces - graph.nodes["forces"]) * inverse
    measure: Callable = (
        (lambda x: x * x) if config.huber is None else (lambda x: 2 * optax.huber_loss(x, delta=config.huber))  # pyright: ignore
    )
    graphs = jnp.maximum(jnp.sum(graph.graph_mask), 1)
    total = config.energy_weight * jnp.sum(jnp.where(graph.graph_mask, measure(de), 0)) / graphs
    mask = graph.node_mask[:, None]
    total += config.force_weight * jnp.sum(jnp.where(mask, measure(df), 0)) / (3 * jnp.maximum(jnp.sum(mask), 1))
    if strain is not None:
        keep = (graph.graph_mask & graph.globals["has_stress"])[:, None, None]
        # a stress times 20 Å³ is of the order of a force times a bond length
        ds = (strain - graph.globals["strain"]) / jnp.maximum(graph.globals["volume"], 1)[:, None, None] * 20 * inverse
        total += config.stress_weight * jnp.sum(jnp.where(keep, measure(ds), 0)) / (9 * jnp.maximum(jnp.sum(keep), 1))
    return total


def fit(
    potential: Potential,
    train: Sequence[Structure],
    valid: Sequence[Structure] = (),
    config: FitConfig = FitConfig(),
    *,
    report: Callable[[dict[str, float]], Any] | None = None,
    every: int = 10,
    checkpoint: Checkpoints | None = None,
) -> FitResult:
    """Fit by stochastic gradients with a cosine schedule and an averaged copy of the weights.

    Args:
        valid: its errors are computed every `every` epochs and at the end; never used for training.
        report: called with each epoch's entry of the history.
        checkpoint: where the training is saved and from where it goes on; its `every` counts epochs here. A resumed training
            gives the weights of an uninterrupted one, bit for bit: the order of an epoch's batches depends on its number
            alone. `epochs` and `max_seconds` (of all parts together) may differ from those it was begun with.

    Raises:
        InputError: structures without labels, a stress weight on structures without stress, a checkpoint of another training.
        FileFormatError: a checkpoint of another network.
        ConvergenceError: a loss that is not finite, naming the epoch.
    """
    _need_labels(train, forces=True)
    stress = config.stress_weight > 0
    if stress and not any(s.stress is not None for s in train):
        raise InputError(
            "a stress weight, and no structure with a stress", remedy="stress_weight=0, or read the stress"
        )
    graphs = [_labelled(potential, s, stress) for s in train]
    shapes, bucket = bucket_shapes([(g.n_nodes, len(g.senders)) for g in graphs], config.batch)
    members = [np.flatnonzero(bucket == b) for b in range(len(shapes))]
    steps = config.epochs * sum(-(-len(m) // s.graphs) for m, s in zip(members, shapes))
    schedule = optax.warmup_cosine_decay_schedule(
        config.learning_rate * 0.1,
        config.learning_rate,
        max(1, steps // 50),
        max(steps, 2),
        config.learning_rate * config.final,
    )
    # sides of 256 hold every matrix of a usual network but the stacks of one matrix a species, whose bases would cost the most
    method = soap(schedule, max_side=256) if config.optimizer == "soap" else optax.amsgrad(schedule)
    optimiser = optax.chain(optax.clip_by_global_norm(config.clip), method)
    # scale stays what the data said; everything else learns
    learns = eqx.tree_at(lambda p: p.scale, jax.tree.map(eqx.is_inexact_array, potential), False)
    weights, fixed = eqx.partition(potential, learns)
    state, average = optimiser.init(weights), weights

    @eqx.filter_jit(donate="all-except-first")
    def step(graph, weights, state, average, decay):
        value, gradient = jax.value_and_grad(lambda w: loss(eqx.combine(w, fixed), graph, config))(weights)
        updates, state = optimiser.update(gradient, state, weights)
        weights = optax.apply_updates(weights, updates)
        average = jax.tree.map(lambda a, w: decay * a + (1 - decay) * w, average, weights)
        return weights, state, average, value

    # copies: the steps donate their buffers, and no two of these may be one
    weights, state, average = jax.tree.map(jnp.array, (weights, state, average))
    with ExitStack() as closing:
        store = None
        if checkpoint is not None:
            store = closing.enter_context(CheckpointStore(checkpoint.directory, keep=checkpoint.keep))
        history: list[dict[str, float]] = []
        if store is not None and store.latest is not None:
            (weights, state, average), notes = store.load((weights, state, average))
            _same_training(notes, config, len(train))
            history = notes["history"]
        began = time.perf_counter() - (history[-1]["seconds"] if history else 0.0)
        count = len(history) * (steps // config.epochs)
        for epoch in range(len(history) + 1, config.epochs + 1):
            # of seed and epoch alone, so that a resumed training takes the same batches
            rng, batches = np.random.default_rng((config.seed, epoch)), []
            for m, shape in zip(members, shapes):
                order = rng.permutation(m)
                batches += [(order[k : k + shape.graphs], shape) for k in range(0, len(order), shape.graphs)]
            losses = []
            for k in rng.permutation(len(batches)):
                part, shape = batches[k]
                graph = batch_graphs([graphs[i] for i in part], shape)
                count += 1
                decay = jnp.asarray(min(config.ema, count / (count + 10)), potential.dtype)
                weights, state, average, value = step(graph, weights, state, average, decay)
                losses.append(value)
            entry = {"epoch": float(epoch), "loss": float(np.mean([float(v) for v in losses]))}
            if not np.isfinite(entry["loss"]):
                raise ConvergenceError(
                    f"the loss is not finite in epoch {epoch}",
                    history=[h["loss"] for h in history],
                    remedy="a smaller learning_rate",
                )
            spent = time.perf_counter() - began
            over = config.max_seconds is not None and spent > config.max_seconds
            if len(valid) and (epoch % every == 0 or epoch == config.epochs or over):
                e = errors(eqx.combine(average, fixed), valid)
                entry |= {"energy_mae": e.energy_mae, "force_mae": e.force_mae, "force_rmse": e.force_rmse}
            entry["seconds"] = spent
            history.append(entry)
            if store is not None and checkpoint is not None:
                if epoch % checkpoint.every == 0 or epoch == config.epochs or over:
                    notes = {"history": history, "config": asdict(config), "structures": len(train)}
                    store.save(epoch, (weights, state, average), notes)
            if report is not None:
                report(entry)
            if over:
                break
    return FitResult(eqx.combine(average, fixed), history, time.perf_counter() - began)


def _same_training(notes: Mapping[str, Any], config: FitConfig, structures: int) -> None:
    """Refuse a checkpoint whose settings or training set differ: it would be neither the old training nor a new one."""
    mine = {**asdict(config), "structures": structures}
    theirs = {**notes["config"], "structures": notes["structures"]}
    differing = [k for k in mine if k not in ("epochs", "max_seconds") and mine[k] != theirs.get(k)]
    if differing:
        raise InputError(
            f"the checkpoint is of a training with other {', '.join(differing)}",
            got={k: mine[k] for k in differing},
            expected={k: theirs.get(k) for k in differing},
            remedy="another folder for another training",
        )
