"""Property prediction: an ensemble of D-MPNNs with descriptors, several tasks, missing labels, calibrated spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from sciax.chem.molecules._dmpnn import Dmpnn, reverse_edges
from sciax.chem.molecules._features import FeatureOptions, descriptors, molecule_graph
from sciax.chem.molecules._process import compress
from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.science.graph import BatchShape, Graph, batch_graphs


@dataclass(frozen=True)
class PropertyConfig:
    """Settings of `fit_properties`.

    Attributes:
        hidden, depth: of the network.
        members: networks of the ensemble, differing in weights and order of batches.
        epochs, batch, learning_rate: of Adam with a cosine schedule.
        use_descriptors: give all RDKit descriptors to the head.
        weight_decay: of AdamW.
        seed: of weights and batches.
    """

    hidden: int = 96
    depth: int = 3
    members: int = 2
    epochs: int = 40
    batch: int = 50
    learning_rate: float = 2e-3
    use_descriptors: bool = True
    weight_decay: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.members, self.epochs, self.batch) < 1 or not self.learning_rate > 0:
            raise InputError("members, epochs, batch >= 1 and learning_rate > 0 are needed", got=self)


@dataclass(frozen=True)
class PropertyModel:
    """A fitted ensemble. `predict` gives means and calibrated standard deviations in the units of the labels."""

    members: tuple[Dmpnn, ...]
    options: FeatureOptions
    use_descriptors: bool
    centre: np.ndarray
    spread: np.ndarray
    extra_centre: np.ndarray
    extra_spread: np.ndarray
    calibration: np.ndarray
    """Factor and floor (in standardised units) of each task: σ² = (factor · σ_ensemble)² + floor²."""

    def predict(self, mols: Sequence, values: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(mean, standard deviation), each (molecules, tasks); `values` where `descriptors(mols)` are at hand."""
        means, stds = _raw(self, mols, values)
        sigma = np.sqrt((self.calibration[0] * stds) ** 2 + self.calibration[1] ** 2)
        return means * self.spread + self.centre, sigma * self.spread


def _extra(mols: Sequence, use: bool, values: np.ndarray | None = None) -> np.ndarray:
    if not use:
        return np.zeros((len(mols), 0))
    return compress(descriptors(mols)[0] if values is None else values)


def _batches(graphs: list[Graph], order: np.ndarray, size: int):
    """Padded batches of one shape: twice the mean size of a molecule for each, or the largest batch if that is more."""
    parts = [order[k : k + size] for k in range(0, len(order), size)]
    nodes = max(sum(graphs[i].n_nodes for i in p) for p in parts)
    edges = max(sum(len(graphs[i].senders) for i in p) for p in parts)
    # rounded up, so that another order of the molecules has the same shape nearly always
    shape = BatchShape(size, int(np.ceil(nodes * 1.05 / 128)) * 128, max(int(np.ceil(edges * 1.05 / 256)) * 256, 2))
    for p in parts:
        g = batch_graphs([graphs[i] for i in p], shape)
        yield p, g, reverse_edges(g)


@eqx.filter_jit
def _forward(member, graph, reverse, extra):
    return member(graph, reverse, extra)


def _raw(model: PropertyModel, mols: Sequence, values: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    graphs = [molecule_graph(m, model.options) for m in mols]
    extra = (
        ((_extra(mols, model.use_descriptors, values) - model.extra_centre) / model.extra_spread)
        .clip(-6, 6)
        .astype(np.float32)
    )
    out = np.zeros((len(model.members), len(mols), len(model.centre)))
    size = min(64, len(mols))
    for part, g, reverse in _batches(graphs, np.arange(len(mols)), size):
        e = np.zeros((size, extra.shape[1]), np.float32)
        e[: len(part)] = extra[part]
        for k, member in enumerate(model.members):
            out[k, part] = np.asarray(
                _forward(member, jax.tree.map(jnp.asarray, g), jnp.asarray(reverse), jnp.asarray(e))
            )[: len(part)]
    return out.mean(0), out.std(0, ddof=1) if len(model.members) > 1 else np.zeros(out.shape[1:])


def check_labels(mols: Sequence, labels: np.ndarray) -> np.ndarray:
    """Labels as (molecules, tasks).

    Raises:
        ShapeError, InputError: labels that do not fit the molecules, none, a task without any, infinite ones.
    """
    y = np.asarray(labels, float)
    y = y.reshape(len(y), -1)
    if len(y) != len(mols):
        raise ShapeError("labels do not fit the molecules", got=y.shape, expected=len(mols))
    if not len(mols):
        raise InputError("training needs molecules", got=0)
    if np.isinf(y).any():
        raise InputError("a label is infinite", remedy="NaN marks a missing label")
    if np.isnan(y).all(0).any():
        raise InputError(f"task {int(np.flatnonzero(np.isnan(y).all(0))[0])} has no label in the training set")
    return y


def fit_properties(
    mols: Sequence,
    labels: np.ndarray,
    valid: tuple[Sequence, np.ndarray],
    config: PropertyConfig = PropertyConfig(),
    *,
    options: FeatureOptions | None = None,
    values: tuple[np.ndarray, np.ndarray] | None = None,
    keep: str = "best",
    report: Callable[[dict[str, float]], Any] | None = None,
) -> PropertyModel:
    """Fit an ensemble to labels (molecules,) or (molecules, tasks); NaN is a missing label and counts in no loss.

    Args:
        valid: molecules and labels that choose each member's best epoch and calibrate the spread.
        values: descriptors of both sets, where they are at hand.
        keep: "best" (epoch on the validation set) or "last".

    Raises:
        ShapeError, InputError: labels that do not fit the molecules, a task without labels, infinite labels.
        ConvergenceError: a loss that is not finite.
    """
    options = FeatureOptions() if options is None else options
    y, yv = check_labels(mols, labels), np.asarray(valid[1], float).reshape(len(valid[1]), -1)
    if len(yv) != len(valid[0]) or y.shape[1] != yv.shape[1]:
        raise ShapeError("labels do not fit the molecules", got=yv.shape, expected=(len(valid[0]), y.shape[1]))
    if not len(valid[0]) or keep not in ("best", "last"):
        raise InputError("the validation set needs molecules, keep is 'best' or 'last'", got=(len(valid[0]), keep))
    if np.isinf(yv).any():
        raise InputError("a label is infinite", remedy="NaN marks a missing label")
    centre, spread = np.nanmean(y, 0), np.nanstd(y, 0)  # of the training part only
    spread = np.where(spread > 0, spread, 1.0)
    graphs = [molecule_graph(m, options) for m in mols]
    extra = _extra(mols, config.use_descriptors, None if values is None else values[0])
    probes = None if values is None else values[1]
    ec, es = extra.mean(0), np.where(extra.std(0) > 1e-8, extra.std(0), 1.0)
    scaled = ((extra - ec) / es).clip(-6, 6).astype(np.float32)
    target = ((y - centre) / spread).astype(np.float32)
    known = ~np.isnan(target)
    target = np.where(known, target, 0)
    sizes = graphs[0].nodes["x"].shape[1], graphs[0].edges["e"].shape[1]
    size = min(config.batch, len(mols))
    per_epoch = -(-len(mols) // size)
    schedule = optax.warmup_cosine_decay_schedule(
        config.learning_rate * 0.1,
        config.learning_rate,
        2 * per_epoch,
        max(config.epochs, 3) * per_epoch,
        config.learning_rate * 0.02,
    )
    optimiser = optax.adamw(schedule, weight_decay=config.weight_decay)

    @eqx.filter_jit
    def step(member, state, g, reverse, e, t, k):
        def objective(m):
            d = m(g, reverse, e) - t
            return jnp.sum(jnp.where(k, d * d, 0)) / jnp.maximum(jnp.sum(k), 1)

        value, grad = eqx.filter_value_and_grad(objective)(member)
        updates, state = optimiser.update(grad, state, eqx.filter(member, eqx.is_inexact_array))
        return eqx.apply_updates(member, updates), state, value

    def pad(a: np.ndarray) -> np.ndarray:
        return np.pad(a, [(0, size - len(a)), (0, 0)])

    members = []
    for number in range(config.members):
        key = jax.random.fold_in(jax.random.key(config.seed), number)
        member = Dmpnn(*sizes, scaled.shape[1], y.shape[1], hidden=config.hidden, depth=config.depth, key=key)
        state = optimiser.init(eqx.filter(member, eqx.is_inexact_array))
        rng = np.random.default_rng([config.seed, number])
        best: tuple[float, Any] = (np.inf, member)
        for epoch in range(1, config.epochs + 1):
            total = 0.0
            for p, g, reverse in _batches(graphs, rng.permutation(len(mols)), size):
                member, state, value = step(member, state, g, reverse, pad(scaled[p]), pad(target[p]), pad(known[p]))
                total += float(value) * len(p)
            if not np.isfinite(total):
                raise ConvergenceError(f"the loss is not finite in epoch {epoch}", remedy="a smaller learning_rate")
            if keep == "last":
                best = (0.0, member)
            if (keep == "best" or report is not None) and (epoch % 5 == 0 or epoch == config.epochs):
                probe = PropertyModel(
                    (member,), options, config.use_descriptors, centre, spread, ec, es, np.ones((2, y.shape[1]))
                )
                d = _raw(probe, valid[0], probes)[0] - (yv - centre) / spread
                error = float(np.sqrt(np.nanmean(d**2)))
                if keep == "best" and error < best[0]:
                    best = (error, member)
                if report is not None:
                    report({"member": number, "epoch": epoch, "loss": total / len(mols), "valid_rmse": error})
        members.append(best[1])
    bare = PropertyModel(
        tuple(members), options, config.use_descriptors, centre, spread, ec, es, np.zeros((2, y.shape[1]))
    )
    mean, std = _raw(bare, valid[0], probes)
    return PropertyModel(
        tuple(members),
        options,
        config.use_descriptors,
        centre,
        spread,
        ec,
        es,
        calibrate(mean - (yv - centre) / spread, std),
    )


def calibrate(residual: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Per task the factor and floor of largest likelihood on the validation residuals, from a small grid."""
    out = np.ones((2, residual.shape[1]))
    for t in range(residual.shape[1]):
        keep = ~np.isnan(residual[:, t])
        r, s = residual[keep, t], std[keep, t]
        if not len(r):
            continue
        rms = float(np.sqrt(np.mean(r**2))) or 1e-6
        grid = [(a, b * rms) for a in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0) for b in (0.2, 0.4, 0.6, 0.8, 0.9, 1.0, 1.1)]
        score = [np.sum(r**2 / v + np.log(v)) for v in ((a * s) ** 2 + b**2 for a, b in grid)]
        out[:, t] = grid[int(np.argmin(score))]
    return out
