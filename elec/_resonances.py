"""Resonances of a ring-down: frequencies and quality factors by the matrix pencil."""

from typing import NamedTuple

import numpy as np

from sciax.core.errors import InputError, ShapeError


class Resonances(NamedTuple):
    """Complex frequencies f of exp(-2 pi i f t) (Hz, decaying: negative imaginary part), complex amplitudes at the first
    sample, and the relative residual of the fit."""

    frequency: np.ndarray
    amplitude: np.ndarray
    residual: float

    @property
    def quality(self) -> np.ndarray:
        """Q = -Re f / (2 Im f)."""
        return -np.real(self.frequency) / (2 * np.imag(self.frequency))


def resonances(
    signal, dt: float, band: tuple[float, float], *, tolerance: float = 1e-6, samples: int = 600
) -> Resonances:
    """Decaying oscillations in a real or complex signal recorded after its sources have ended.

    The signal is shifted to the middle of the band, filtered by a Gaussian-edged window, decimated, and fitted by
    exponentials (matrix pencil with the small singular values cut off).

    Args:
        signal: equally spaced samples, 1-D.
        dt: their spacing (s).
        band: frequencies looked for (Hz).
        tolerance: singular values below this fraction of the largest are noise.
        samples: about how many samples the pencil sees.

    Raises:
        InputError, ShapeError: band beyond the sampling, too short a signal, nothing but zeros.

    Source: Y. Hua, T. K. Sarkar, IEEE Trans. Acoust. Speech Signal Process. 38 (1990) 814.
    """
    y = np.asarray(signal)
    if y.ndim != 1:
        raise ShapeError("a signal is one-dimensional", got=y.shape)
    lo, hi = band
    if not 0 <= lo < hi or hi * dt > 0.5:
        raise InputError("band of the resonances", got=band, expected=f"0 <= low < high <= {0.5 / dt:.4g} Hz")
    if (hi - lo) * y.size * dt < 2:
        raise InputError(
            "the signal is too short for this band", got=f"{y.size * dt:.4g} s", expected=f">= {2 / (hi - lo):.4g} s"
        )
    if not np.all(np.isfinite(y)) or np.max(np.abs(y)) == 0:
        raise InputError("the signal is zero or not finite")
    n = np.arange(y.size)
    middle, width = 0.5 * (lo + hi), hi - lo
    z = y * np.exp(2j * np.pi * middle * n * dt)  # exp(-2 pi i f t) moves to f - middle
    # A short smooth kernel keeps every exponential an exponential: only its amplitude changes.
    length = int(np.ceil(4 / (width * dt))) | 1
    if length < y.size // 2:
        kernel = np.blackman(length + 2)[1:-1]
        z = np.convolve(z, kernel / kernel.sum(), mode="valid")
    step = max(1, min(int(0.4 / (width * dt)), z.size // 40), z.size // samples)
    step = min(step, max(1, int(0.45 / (width * dt))))
    z = z[::step]
    rows = z.size // 2
    hankel = np.lib.stride_tricks.sliding_window_view(z, rows + 1)
    _, s, vh = np.linalg.svd(hankel, full_matrices=False)
    keep = max(int(np.sum(s > tolerance * s[0])), 1)
    v = vh[:keep].T  # columns span the signal: rows of the shift-invariant subspace
    poles = np.linalg.eigvals(np.linalg.lstsq(v[:-1], v[1:], rcond=None)[0])
    frequency = middle + np.log(poles) / (-2j * np.pi * step * dt)
    powers = poles[None, :] ** np.arange(z.size)[:, None]
    amplitude, *_ = np.linalg.lstsq(powers, z, rcond=None)
    residual = float(np.linalg.norm(powers @ amplitude - z) / np.linalg.norm(z))
    inside = (frequency.real >= lo) & (frequency.real <= hi) & (np.abs(amplitude) > 1e-6 * np.abs(amplitude).max())
    order = np.argsort(-np.abs(amplitude[inside]))
    return Resonances(frequency[inside][order], amplitude[inside][order], residual)
