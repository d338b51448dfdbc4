"""One axis of a tensor grid: its nodes, its midpoints, and the matrices between them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sciax.core.errors import InputError
from sciax.core.ops.stencil import fornberg_weights


@dataclass(frozen=True, eq=False)
class Axis:
    """Nodes of one axis and linear maps on them, dense and small.

    Fluxes live on `mids`, between the nodes, so that second derivatives couple neighbours and no checkerboard slips through;
    for spectral axes the two coincide.

    Attributes:
        nodes: [n]; mids: [m].
        slope: [n, n] derivative at the nodes.
        to_mids, slope_mids: [m, n] value and derivative at the midpoints.
        from_mids: [n, m] derivative at the nodes from values at the midpoints.
        accuracy: nodes used by local interpolation; 0 for all of them (spectral).
        period: length of a periodic axis, else None.
    """

    nodes: np.ndarray
    mids: np.ndarray
    slope: np.ndarray
    to_mids: np.ndarray
    slope_mids: np.ndarray
    from_mids: np.ndarray
    accuracy: int
    period: float | None = None

    def rows(self, x: np.ndarray) -> np.ndarray:
        """[k, n] interpolation to points."""
        x = np.asarray(x, dtype=np.float64)
        if self.period is not None:
            return _trigonometric(self.nodes, x, self.period)
        if self.accuracy == 0:
            return _barycentric(self.nodes, x)
        return _matrix(self.nodes, x, 0, self.accuracy + 1)

    @cached_property
    def weights(self) -> np.ndarray:
        """Quadrature weights at the nodes: Gauss points on the interpolant, exact for it."""
        if self.period is not None:
            return np.full(len(self.nodes), self.period / len(self.nodes))
        x, w = np.polynomial.legendre.leggauss(8 if self.accuracy else len(self.nodes))
        edges = self.nodes if self.accuracy else self.nodes[[0, -1]]
        half = np.diff(edges) / 2
        points = (edges[:-1, None] + half[:, None] * (1 + x)).ravel()
        return (half[:, None] * w).ravel() @ self.rows(points)


def chebyshev(lower: float, upper: float, cells: int) -> Axis:
    """Chebyshev-Gauss-Lobatto nodes (Trefethen 2000, chapter 6), the diagonal by the negative sum."""
    if cells < 2:
        raise InputError("a Chebyshev axis needs at least 2 cells", got=cells)
    k = np.arange(cells + 1)
    x = -np.cos(np.pi * k / cells)
    c = np.where((k == 0) | (k == cells), 2.0, 1.0) * (-1.0) ** k
    # differences by the sine formula: no cancellation near the ends
    angle = np.pi * k / cells
    gap = 2 * np.sin((angle[:, None] + angle) / 2) * np.sin((angle[:, None] - angle) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = (c[:, None] / c[None]) / gap
    np.fill_diagonal(d, 0.0)
    np.fill_diagonal(d, -d.sum(axis=1))
    scale = (upper - lower) / 2
    d = d / scale
    nodes = lower + scale * (x + 1)
    eye = np.eye(cells + 1)
    return Axis(nodes, nodes, d, eye, d, d, 0)


def fourier(lower: float, upper: float, cells: int) -> Axis:
    """Equispaced nodes of a periodic axis; the first derivative of the trigonometric interpolant."""
    n, length = cells, upper - lower
    if n < 3:
        raise InputError("a periodic axis needs at least 3 cells", got=n)
    nodes = lower + length * np.arange(n) / n
    eye = np.eye(n)
    wave = 2j * np.pi / length * np.fft.fftfreq(n, 1 / n)
    if n % 2 == 0:
        wave[n // 2] = 0.0
    d = np.fft.ifft(wave[:, None] * np.fft.fft(eye, axis=0), axis=0).real
    return Axis(nodes, nodes, d, eye, d, d, 0, length)


def uniform(lower: float, upper: float, cells: int, accuracy: int) -> Axis:
    """Equispaced nodes and midpoints, differences of even order `accuracy`, one-sided of that order near the ends."""
    if accuracy < 2 or accuracy % 2:
        raise InputError("the order of finite differences is even and at least 2", got=accuracy)
    if cells < accuracy + 1:
        raise InputError("too few cells for differences of this order", got=cells, expected=f"at least {accuracy + 1}")
    nodes = np.linspace(lower, upper, cells + 1)
    mids = (nodes[1:] + nodes[:-1]) / 2
    return Axis(
        nodes,
        mids,
        _matrix(nodes, nodes, 1, accuracy + 1),
        _matrix(nodes, mids, 0, accuracy),
        _matrix(nodes, mids, 1, accuracy),
        _matrix(mids, nodes, 1, accuracy),
        accuracy,
    )


def _matrix(nodes: np.ndarray, points: np.ndarray, derivative: int, width: int) -> np.ndarray:
    """[points, nodes] weights of a derivative from the `width` nearest nodes (Fornberg 1988)."""
    out = np.zeros((len(points), len(nodes)))
    width = min(width, len(nodes))
    for i, x in enumerate(points):
        near = np.searchsorted(nodes, x - 1e-12 * (nodes[-1] - nodes[0]))
        if width % 2 and near < len(nodes) and abs(nodes[min(near, len(nodes) - 1)] - x) < 1e-9 * (nodes[1] - nodes[0]):
            start = near - width // 2
        else:
            start = near - width // 2 if width % 2 == 0 else near - (width + 1) // 2
        start = int(np.clip(start, 0, len(nodes) - width))
        out[i, start : start + width] = fornberg_weights(nodes[start : start + width], float(x), derivative)[derivative]
    return out


def _barycentric(nodes: np.ndarray, x: np.ndarray) -> np.ndarray:
    w = np.where(np.arange(len(nodes)) % 2, -1.0, 1.0)
    w[[0, -1]] /= 2
    gap = x[:, None] - nodes
    exact = np.abs(gap) < 1e-14 * (nodes[-1] - nodes[0])
    terms = w / np.where(exact, 1.0, gap)
    rows = terms / terms.sum(axis=1, keepdims=True)
    hit = exact.any(axis=1)
    rows[hit] = exact[hit]
    return rows


def _trigonometric(nodes: np.ndarray, x: np.ndarray, period: float) -> np.ndarray:
    n = len(nodes)
    waves = np.arange(-(n // 2), (n + 1) // 2)
    phase = np.exp(2j * np.pi / period * (x[:, None, None] - nodes[None, :, None]) * waves)
    if n % 2 == 0:
        phase[..., 0] = np.real(phase[..., 0])  # the highest wave of an even grid is a cosine
    return np.real(phase).sum(axis=2) / n
