"""A Gaussian process on molecules: descriptors and counted fingerprints, exact, with closed-form cross-validation."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sciax.chem.molecules._features import descriptors, fingerprints
from sciax.core.errors import InputError, ShapeError

COUNTS = 8  # counts beyond this are as good as this
LARGEST = 20_000  # of a dense kernel matrix, 3.2 GB


@dataclass(frozen=True)
class MoleculeTable:
    """What the process and the trees see of molecules: all RDKit descriptors, and counted Morgan fingerprints (radius 2)."""

    values: np.ndarray
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows) -> "MoleculeTable":
        return MoleculeTable(self.values[rows], self.counts[rows])


def molecule_table(mols: Sequence) -> MoleculeTable:
    """Descriptors and fingerprints of molecules; about 10 ms each, so make it once for a data set."""
    counts = np.minimum(fingerprints(mols, "morgan-count"), COUNTS).astype(np.uint8)
    return MoleculeTable(descriptors(mols)[0], counts)


def compress(values: np.ndarray) -> np.ndarray:
    """sign(x) log(1 + |x|): the scales of descriptors span ten decades."""
    return np.sign(values) * np.log1p(np.abs(values))


def minmax_kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Σ min(a, b) / Σ max(a, b) of counts, the Tanimoto kernel of multisets (Ralaivola et al., Neural Networks 18, 1093 (2005)).

    min(a, b) is the number of thresholds t ≥ 1 that both reach: a sum of products of sparse binary matrices.
    """
    from scipy.sparse import csr_matrix

    shared = np.zeros((len(a), len(b)))
    for t in range(1, int(max(a.max(initial=0), b.max(initial=0))) + 1):
        shared += (csr_matrix(a >= t, dtype=np.float32) @ csr_matrix(b >= t, dtype=np.float32).T).toarray()
    total = a.sum(1, dtype=float)[:, None] + b.sum(1, dtype=float)[None] - shared
    return np.divide(shared, total, out=np.zeros_like(shared), where=total > 0)


def _squared_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum((a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * a @ b.T, 0)


@dataclass(frozen=True)
class MoleculeProcess:
    """k(m, m') = a · minmax(counts) + b · Matérn-5/2(|descriptors - descriptors'| / length), plus noise.

    Attributes:
        parameters: logarithms of a, b, length, noise variance, in units where the labels have variance 1.
    """

    parameters: np.ndarray
    table: MoleculeTable
    scaling: tuple[np.ndarray, np.ndarray]
    centre: float
    spread: float
    inverse: np.ndarray
    weights: np.ndarray

    def predict(self, table: MoleculeTable) -> tuple[np.ndarray, np.ndarray]:
        """(mean, standard deviation without the noise) for molecules."""
        k = _kernel(self.parameters, *_pair(table, self.table, self.scaling))
        own = np.exp(self.parameters[0]) + np.exp(self.parameters[1])
        variance = np.maximum(own - np.einsum("ij,jk,ik->i", k, self.inverse, k, optimize=True), 0)
        return self.centre + self.spread * (k @ self.weights), self.spread * np.sqrt(variance)

    def held_out(self, parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """What `predict` would say of each part had it been fitted on the others with the same parameters.

        With A the block of the inverse that belongs to a part, the held-out residuals are A⁻¹ (K⁻¹ y) and the variances
        the diagonal of A⁻¹ (Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, eq. 5.12, for blocks).
        """
        residual, variance = np.zeros((2, len(self.table)))
        for p in parts:
            block = np.linalg.inv(self.inverse[np.ix_(p, p)])
            residual[p] = block @ self.weights[p]
            variance[p] = np.diag(block) - np.exp(self.parameters[3])
        return self.spread * residual, self.spread * np.sqrt(np.maximum(variance, 0))


def _pair(a: MoleculeTable, b: MoleculeTable, scaling) -> tuple[np.ndarray, np.ndarray]:
    centre, scale = scaling
    u, v = (((compress(t.values) - centre) * scale).clip(-6, 6) for t in (a, b))
    size = np.sqrt(max(np.count_nonzero(scale), 1))
    return _squared_distance(u / size, v / size), minmax_kernel(a.counts, b.counts)


def _kernel(p: np.ndarray, d2: np.ndarray, t: np.ndarray) -> np.ndarray:
    r = np.sqrt(5 * d2) / np.exp(p[2])
    return np.exp(p[0]) * t + np.exp(p[1]) * (1 + r + r * r / 3) * np.exp(-r)


def fit_process(table: MoleculeTable, labels: np.ndarray, *, seed: int = 0, sample: int = 800) -> MoleculeProcess:
    """Fit to labels (molecules,), all known.

    The four parameters maximise the marginal likelihood of `sample` random molecules (Nelder-Mead); the weights are exact for
    all of them. The noise is at least 1 % of the labels' variance: data sets hold the same molecule twice.

    Raises:
        ShapeError, InputError: labels that do not fit or are not finite; fewer than two molecules; more than fit in memory.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize

    y = np.asarray(labels, float)
    if y.shape != (len(table),):
        raise ShapeError("labels do not fit the molecules", got=y.shape, expected=(len(table),))
    if not 2 <= len(y) <= LARGEST or not np.isfinite(y).all():
        raise InputError("a process needs finite labels", got=f"{len(y)} molecules", expected=f"2..{LARGEST}")
    values = compress(table.values)
    spread = values.std(0)
    scaling = values.mean(0), np.divide(1, spread, out=np.zeros_like(spread), where=spread > 1e-8)
    mean, scale = float(y.mean()), float(y.std()) or 1.0
    t = (y - mean) / scale
    d2, shared = _pair(table, table, scaling)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(y))[:sample])
    part = np.ix_(chosen, chosen)

    def loss(p: np.ndarray) -> float:
        k = _kernel(p, d2[part], shared[part]) + (np.exp(p[3]) + 0.01) * np.eye(len(chosen))
        try:
            factor = cho_factor(k, lower=True)
        except np.linalg.LinAlgError:
            return np.inf
        prior = 0.5 * np.sum((p / 3) ** 2)  # weak, so that a small set cannot send a parameter to infinity
        return float(0.5 * t[chosen] @ cho_solve(factor, t[chosen]) + np.log(np.diag(factor[0])).sum() + prior)

    best = minimize(loss, np.array([-0.7, -0.7, 0.0, -3.0]), method="Nelder-Mead", options={"maxfev": 150}).x
    best[3] = np.log(np.exp(best[3]) + 0.01)
    k = _kernel(best, d2, shared) + np.exp(best[3]) * np.eye(len(y))
    inverse = np.linalg.inv(k)
    return MoleculeProcess(best, table, scaling, mean, scale, inverse, inverse @ t)
