"""Observables of trajectories: radial distribution, mean squared displacement, velocity autocorrelation."""

import numpy as np

from sciax.chem.md._run import Frame
from sciax.core.errors import InputError
from sciax.core.ops.neighbours import host_pairs, pairs


class Rdf:
    """Radial distribution g(r), gathered frame by frame: an observer for `simulate`.

    g(r) = V/(N² 4πr² Δr) <pairs in the shell>; 1 in an ideal gas. Several images are counted, so r_max may exceed the cell.
    """

    def __init__(self, r_max: float, bins: int = 100, *, skip: int = 1):
        if not (r_max > 0 and bins > 0):
            raise InputError("an RDF needs r_max > 0 and bins > 0", got=(r_max, bins))
        self.edges = np.linspace(0, r_max, bins + 1)
        self.skip, self.frames, self._seen = skip, 0, 0
        self._sum = np.zeros(bins)

    def __call__(self, frame: Frame) -> None:
        self._seen += 1
        if self._seen <= self.skip:
            return
        s = frame.system
        if not all(s.pbc):
            raise InputError("g(r) is defined for a bulk, periodic in three directions", got=f"pbc={s.pbc}")
        cell = np.asarray(s.cell, np.float64)
        found = pairs(frame.positions, s.cell, pbc=s.pbc, cutoff=float(self.edges[-1]), capacity=self._capacity(frame))  # pyright: ignore
        n = int(found.count)
        if n > len(found.centers):
            i, j, shift = host_pairs(frame.positions, cell, s.pbc, float(self.edges[-1]))
        else:
            i, j, shift = (np.asarray(a)[:n] for a in (found.centers, found.others, found.shifts))
        r = np.linalg.norm(frame.positions[j] - frame.positions[i] + shift @ cell, axis=1)
        counts = np.histogram(r, self.edges)[0]
        shells = 4 / 3 * np.pi * np.diff(self.edges**3)
        density = s.atoms / abs(np.linalg.det(cell))
        self._sum += counts / (s.atoms * density * shells)
        self.frames += 1

    def _capacity(self, frame: Frame) -> int:
        volume = abs(np.linalg.det(np.asarray(frame.system.cell, np.float64)))
        return int(1.5 * frame.system.atoms**2 / volume * 4.2 * self.edges[-1] ** 3) + 64

    @property
    def r(self) -> np.ndarray:
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def g(self) -> np.ndarray:
        if not self.frames:
            raise InputError("no frame has reached the RDF", remedy="fewer skipped frames, or a smaller block")
        return self._sum / self.frames


class Recorder:
    """Keeps positions and velocities of all frames in memory: an observer for `msd` and `vacf`."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.positions: list[np.ndarray] = []
        self.velocities: list[np.ndarray] = []

    def __call__(self, frame: Frame) -> None:
        self.times.append(frame.time)
        self.positions.append(frame.positions)
        self.velocities.append(frame.velocities)


def _correlation(x: np.ndarray) -> np.ndarray:
    """Σ_t x(t)·x(t + lag) / (number of terms) along axis 0, summed over the last axis, by FFT."""
    n = len(x)
    f = np.fft.rfft(x, 2 * n, axis=0)
    c = np.fft.irfft(f * f.conj(), axis=0)[:n].sum(-1)
    return c / np.arange(n, 0, -1).reshape(-1, *(1,) * (c.ndim - 1))


def msd(positions: np.ndarray) -> np.ndarray:
    """Mean squared displacement by lag from unwrapped positions (frames, atoms, 3), all origins averaged.

    The centre of mass is not removed. FFT method: Kneller et al., Comput. Phys. Commun. 91, 191 (1995).
    """
    x = np.asarray(positions, np.float64)
    if x.ndim != 3 or len(x) < 2:
        raise InputError("msd needs at least two frames", got=x.shape, expected="(frames, atoms, 3)")
    x = x - x[0]
    square = np.concatenate([(x**2).sum(-1), np.zeros((1, x.shape[1]))])
    n = len(x)
    total = 2 * square.sum(0)
    out = np.empty((n, x.shape[1]))
    for lag in range(n):
        total = total - square[lag - 1] - square[n - lag]
        out[lag] = total / (n - lag)
    return (out - 2 * _correlation(x)).mean(1)


def vacf(velocities: np.ndarray, *, normalise: bool = True) -> np.ndarray:
    """Velocity autocorrelation <v(0)·v(t)> by lag, (frames, atoms, 3), all origins averaged."""
    v = np.asarray(velocities, np.float64)
    if v.ndim != 3 or len(v) < 1:
        raise InputError("vacf needs frames", got=v.shape, expected="(frames, atoms, 3)")
    c = _correlation(v).mean(1)
    return c / c[0] if normalise and c[0] > 0 else c
