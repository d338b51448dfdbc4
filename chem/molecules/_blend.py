"""Property prediction by a blend: message-passing networks, a Gaussian process and boosted trees, weighted on held-out folds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sciax.chem.molecules._features import FeatureOptions
from sciax.chem.molecules._process import MoleculeProcess, MoleculeTable, fit_process, molecule_table
from sciax.chem.molecules._property import PropertyConfig, PropertyModel, calibrate, check_labels, fit_properties
from sciax.core.errors import InputError, optional_import

DEFAULT = PropertyConfig()
PARTS = ("network", "process", "trees")


@dataclass(frozen=True)
class BlendedModel:
    """A fitted blend; `predict` gives means and calibrated standard deviations in the units of the labels.

    Attributes:
        parts: names of what is blended.
        weights: (tasks, parts), not negative, each row summing to 1; chosen on the held-out folds.
        held_out: (tasks, parts + 1), root mean square error of each part, and of the blend, on the held-out folds. The blend's
            is a little low, for its weights saw the same folds.
    """

    parts: tuple[str, ...]
    weights: np.ndarray
    held_out: np.ndarray
    networks: tuple[PropertyModel, ...]
    processes: tuple[MoleculeProcess, ...]
    trees: tuple[tuple[Any, ...], ...]
    calibration: np.ndarray
    spread: np.ndarray

    def predict(self, mols: Sequence, table: MoleculeTable | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(mean, standard deviation), each (molecules, tasks); `table` where `molecule_table(mols)` is at hand."""
        means, doubt = self.components(mols, table)
        mean = np.einsum("pmt,tp->mt", means, self.weights)
        sigma = np.sqrt((self.calibration[0] * doubt / self.spread) ** 2 + self.calibration[1] ** 2) * self.spread
        return mean, sigma

    def components(self, mols: Sequence, table: MoleculeTable | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(predictions of each part (parts, molecules, tasks), raw spread (molecules, tasks))."""
        table = molecule_table(mols) if table is None else table
        means, doubts = [], []
        for part in self.parts:
            if part == "network":
                runs = np.stack([m.predict(mols, table.values)[0] for m in self.networks])
                means.append(runs.mean(0))
            elif part == "process":
                mean, std = (np.stack(a, 1) for a in zip(*(p.predict(table) for p in self.processes)))
                means.append(mean)
                doubts.append(std)
            else:
                means.append(np.stack([np.mean([t.predict(table.values) for t in ts], 0) for ts in self.trees], 1))
        stacked = np.stack(means)
        return stacked, _doubt(stacked, doubts)


def _doubt(means: np.ndarray, doubts: list[np.ndarray]) -> np.ndarray:
    """Disagreement of the parts and the process's own variance, added."""
    return np.sqrt(means.var(0) + sum((d * d for d in doubts), np.zeros(means.shape[1:])))


def fit_blend(
    mols: Sequence,
    labels: np.ndarray,
    config: PropertyConfig = DEFAULT,
    *,
    folds: int = 5,
    parts: Sequence[str] = PARTS,
    options: FeatureOptions | None = None,
    table: MoleculeTable | None = None,
    report: Callable[[dict[str, float]], Any] | None = None,
) -> BlendedModel:
    """Fit to labels (molecules,) or (molecules, tasks); NaN is a missing label.

    For each of `folds` random parts of the molecules (equal ones together), networks and trees are fitted on the others and the
    process gives its closed-form held-out residuals; the weights of the blend and the calibration of its spread come from these
    held-out predictions alone. All fold models stay, so every molecule is used, and the average over folds is the ensemble.

    Args:
        config: of the networks; `config.members` networks a fold.
        parts: some of "network" (D-MPNN with descriptors), "process" (Gaussian process), "trees" (histogram gradient boosting;
            needs scikit-learn).
        table: `molecule_table(mols)` where it is at hand.

    Raises:
        ShapeError, InputError: as `fit_properties`; unknown parts; fewer different molecules than folds.
        MissingDependencyError: trees without scikit-learn.
    """
    chosen = tuple(p for p in PARTS if p in parts)
    if not chosen or set(parts) - set(PARTS) or folds < 2:
        raise InputError("a blend has at least one part and two folds", got=(parts, folds), expected=PARTS)
    y = check_labels(mols, labels)
    table = molecule_table(mols) if table is None else table
    held = _folds(mols, folds, config.seed)
    known = ~np.isnan(y)
    tasks = y.shape[1]
    spread = np.where(np.nanstd(y, 0) > 0, np.nanstd(y, 0), 1.0)
    predictions, doubts = [], []
    networks, processes, trees = (), (), ()
    if "network" in chosen:
        models, out = [], np.zeros_like(y)
        for k, part in enumerate(held):
            rest = np.setdiff1d(np.arange(len(mols)), part)
            models.append(
                fit_properties(
                    [mols[int(i)] for i in rest],
                    y[rest],
                    ([mols[int(i)] for i in part], y[part]),
                    replace(config, seed=config.seed + 1000 * k),
                    options=options,
                    values=(table.values[rest], table.values[part]),
                    keep="last",  # choosing an epoch on the fold would flatter its held-out error
                    report=report,
                )
            )
            out[part] = models[-1].predict([mols[i] for i in part], table.values[part])[0]
        networks = tuple(models)
        predictions.append(out)
    if "process" in chosen:
        found, out, doubt = [], np.zeros_like(y), np.zeros_like(y)
        for t in range(tasks):
            rows = np.flatnonzero(known[:, t])
            process = fit_process(table[rows], y[rows, t], seed=config.seed)
            place = np.full(len(mols), -1)
            place[rows] = np.arange(len(rows))
            blocks = [b for b in (place[p][place[p] >= 0] for p in held) if len(b)]
            residual, doubt[rows, t] = process.held_out(blocks)
            out[rows, t] = y[rows, t] - residual
            found.append(process)
        processes = tuple(found)
        predictions.append(out)
        doubts.append(doubt)
    if "trees" in chosen:
        trees, out = _trees(table.values, y, held, config.seed)
        predictions.append(out)
    stacked = np.stack(predictions)
    weights = np.stack([_simplex(stacked[:, known[:, t], t].T, y[known[:, t], t]) for t in range(tasks)])
    residual = np.einsum("pmt,tp->mt", stacked, weights) - y
    errors = np.sqrt(np.nanmean(np.concatenate([stacked - y, residual[None]]) ** 2, 1)).T
    calibration = calibrate(residual / spread, _doubt(stacked, doubts) / spread)
    return BlendedModel(chosen, weights, errors, networks, processes, trees, calibration, spread)


def boosted_trees(values: np.ndarray, y: np.ndarray, *, seed: int = 0):
    """Histogram gradient boosting on descriptors: the baseline that a network has to beat."""
    made = optional_import("sklearn.ensemble", "chem").HistGradientBoostingRegressor
    return made(max_iter=300, learning_rate=0.05, random_state=seed).fit(values, y)


def _trees(values: np.ndarray, y: np.ndarray, held: list[np.ndarray], seed: int):
    out, found = np.zeros_like(y), []
    for t in range(y.shape[1]):
        models = []
        for part in held:
            rest = np.setdiff1d(np.flatnonzero(~np.isnan(y[:, t])), part)
            models.append(boosted_trees(values[rest], y[rest, t], seed=seed))
            out[part, t] = models[-1].predict(values[part])
        found.append(tuple(models))
    return tuple(found), out


def _folds(mols: Sequence, count: int, seed: int) -> list[np.ndarray]:
    """Random parts of nearly equal size; molecules with one canonical SMILES stay together."""
    chem = optional_import("rdkit.Chem", "chem")
    same: dict[str, list[int]] = {}
    for k, m in enumerate(mols):
        same.setdefault(chem.MolToSmiles(m), []).append(k)
    groups = list(same.values())
    if len(groups) < count:
        raise InputError(f"{len(groups)} different molecules do not fill {count} folds", remedy="fewer folds")
    order = np.random.default_rng(seed).permutation(len(groups))
    return [np.array(sorted(i for g in order[k::count].tolist() for i in groups[g]), int) for k in range(count)]


def _simplex(columns: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Weights >= 0 with sum 1 of the least squared error, drawn slightly to equal weights."""
    from scipy.optimize import nnls

    n, parts = columns.shape
    size = np.sqrt(np.mean((columns - target[:, None]) ** 2))
    pull = np.sqrt(0.05 * n) * size  # as strong as 5 % of the rows
    heavy = 1e4 * np.sqrt(n) * size  # keeps the sum
    # with the sum kept, the error is that of the weighted residuals
    a = np.concatenate([columns - target[:, None], pull * np.eye(parts), heavy * np.ones((1, parts))])
    b = np.concatenate([np.zeros(n), np.full(parts, pull / parts), [heavy]])
    w = nnls(a, b)[0]
    return w / w.sum()
