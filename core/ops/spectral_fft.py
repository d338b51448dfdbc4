"""Fourier calculus on periodic grids: derivatives, Poisson and Helmholtz solves, 2/3 dealiasing.

The grid along an axis of n points and period L is x_j = j L / n. A field is its trigonometric interpolant
u(x) = sum over |k| <= n/2 of c_k exp(2 pi i k x / L), in which an even n shares its Nyquist coefficient equally between
k = n/2 and k = -n/2. All operators here are exact for that interpolant, for odd and even n, real and complex fields and any
number of axes. Source: Trefethen, Spectral Methods in MATLAB (2000), chapter 3.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops._registry import Sample, operator

Lengths = float | Sequence[float]
Axes = Sequence[int] | None


def wavenumbers(size: int, length: float = 2 * math.pi, *, real: bool = False) -> np.ndarray:
    """Angular wavenumbers 2 pi k / L in FFT order, float64; the Nyquist one of an even size is positive.

    Args:
        size: points along the axis. length: its period. real: only the k >= 0 that a real transform keeps.
    """
    k = np.arange(size // 2 + 1) if real else (np.arange(size) + (size - 1) // 2) % size - (size - 1) // 2
    return k * (2 * math.pi / length)


def _grid(
    field: Any, lengths: Lengths, axes: Axes, count: int | None, who: str
) -> tuple[Array, list[int], list[float]]:
    """The field as an array, its axes counted from the front, and one period an axis."""
    u = jnp.asarray(field)
    if not jnp.issubdtype(u.dtype, jnp.inexact) or jnp.finfo(u.dtype).bits < 32:
        raise DTypeError(f"{who}: FFTs are offered for float32, float64 and complex fields", got=u.dtype)
    named = list(range(-(u.ndim if count is None else count), 0)) if axes is None else [int(a) for a in axes]
    if any(not -u.ndim <= a < u.ndim for a in named) or len({a % u.ndim for a in named}) != len(named) or not named:
        raise ShapeError(f"{who}: axes that the field does not have", got=f"axes {tuple(named)}, shape {u.shape}")
    named = [a % u.ndim for a in named]
    periods = [float(lengths)] * len(named) if np.ndim(lengths) == 0 else [float(v) for v in lengths]  # type: ignore[union-attr,arg-type]
    if len(periods) != len(named):
        raise ShapeError(f"{who}: one period an axis", got=f"{len(periods)} periods, {len(named)} axes")
    if not all(math.isfinite(v) and v > 0 for v in periods):
        raise InputError(f"{who}: periods are positive", got=tuple(periods))
    if any(u.shape[a] == 0 for a in named):
        raise ShapeError(f"{who}: an axis without points", got=u.shape)
    return u, named, periods


def _filtered(
    u: Array, axes: list[int], multiplier: Callable[[list[np.ndarray]], np.ndarray], periods: list[float]
) -> Array:
    """Transform along `axes`, multiply by `multiplier(wavenumbers)`, transform back; real fields stay real.

    `multiplier` gets one float64 array of wavenumbers an axis, shaped to broadcast against the spectrum.
    """
    real = not jnp.issubdtype(u.dtype, jnp.complexfloating)
    half = axes[-1]
    size = u.shape[half]
    spectrum = jnp.fft.rfft(u, axis=half) if real else u
    others = axes[:-1] if real else axes
    groups = [others[i : i + 3] for i in range(0, len(others), 3)]  # XLA transforms at most three axes at once
    for group in groups:
        spectrum = jnp.fft.fftn(spectrum, axes=group)
    ks = []
    for axis, period in zip(axes, periods):
        k = wavenumbers(u.shape[axis], period, real=real and axis == half)
        ks.append(k.reshape([-1 if a == axis else 1 for a in range(u.ndim)]))
    spectrum = spectrum * jnp.asarray(multiplier(ks)).astype(spectrum.dtype)
    for group in groups:
        spectrum = jnp.fft.ifftn(spectrum, axes=group)
    return jnp.fft.irfft(spectrum, n=size, axis=half) if real else spectrum


def _power(k: np.ndarray, size: int, order: int) -> np.ndarray:
    """(i k)^order, where an odd order drops the Nyquist mode: its sine part vanishes at every grid point."""
    factor = (1j * k) ** order
    if order % 2 and size % 2 == 0:
        factor = np.where(np.abs(k) == np.abs(k).max(), 0, factor)
    return factor


# Oracle: the trigonometric interpolant written out as a dense matrix, with no FFT.


def _matrix(size: int, length: float, symbol: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    k = np.arange(-(size // 2), size // 2 + 1)
    weight = np.ones(k.size) / size
    if size % 2 == 0 and size > 1:
        weight[[0, -1]] /= 2
    j = np.arange(size)
    waves = np.exp(2j * np.pi * np.multiply.outer(np.subtract.outer(j, j), k) / size)
    out = waves @ (weight * symbol(2 * np.pi * k / length))
    return out.real if np.abs(out.imag).max() < 1e-9 * max(np.abs(out).max(), 1e-300) else out


def _apply(matrix: np.ndarray, field: Any, axis: int) -> np.ndarray:
    return np.moveaxis(np.tensordot(matrix, field, axes=(1, axis)), 0, axis)


def _derivative_oracle(
    field: Any, orders: tuple[int, ...], *, lengths: Lengths = 2 * math.pi, axes: Axes = None
) -> np.ndarray:
    out, count = np.asarray(field), len(orders)
    axes = range(-count, 0) if axes is None else axes
    for order, axis, length in zip(orders, axes, np.broadcast_to(lengths, count)):
        out = _apply(_matrix(out.shape[axis], length, lambda k, p=order: (1j * k) ** p), out, axis)
    return out


def _helmholtz_oracle(
    source: Any, *, lengths: Lengths = 2 * math.pi, shift: float = 0.0, axes: Axes = None
) -> np.ndarray:
    source = np.asarray(source)
    axes = [a % source.ndim for a in (range(source.ndim) if axes is None else axes)]
    sizes = [source.shape[a] for a in axes]
    total = np.zeros((math.prod(sizes),) * 2)
    for i, (n, length) in enumerate(zip(sizes, np.broadcast_to(lengths, len(axes)))):
        second = _matrix(n, length, lambda k: -(k**2))
        before, after = np.eye(math.prod(sizes[:i])), np.eye(math.prod(sizes[i + 1 :]))
        total += np.kron(np.kron(before, np.real(second)), after)
    moved = np.moveaxis(source, axes, range(len(axes)))
    # the pseudo-inverse gives the solution of zero mean
    solution = np.linalg.pinv(total - shift * np.eye(len(total)), rcond=1e-12) @ moved.reshape(len(total), -1)
    return np.moveaxis(solution.reshape(moved.shape), range(len(axes)), axes)


def _dealias_oracle(field: Any, *, fraction: float = 2 / 3, axes: Axes = None) -> np.ndarray:
    out = np.asarray(field)
    for axis in range(out.ndim) if axes is None else axes:
        n = out.shape[axis]
        keep = lambda k, n=n: (np.abs(k) < fraction * n / 2 - 1e-9).astype(float)  # noqa: E731
        out = _apply(_matrix(n, 2 * math.pi, keep), out, axis)
    return out


def _derivative_samples(rng: np.random.Generator) -> list[Sample]:
    plane = rng.standard_normal((6, 5))
    wave = rng.standard_normal(8) + 1j * rng.standard_normal(8)
    return [
        Sample("ordinary: even and odd axis", (plane, (1, 2)), {"lengths": (2.0, 3.0)}),
        Sample("complex, odd order at Nyquist", (wave, (3,))),
        Sample("size one", (np.ones((1, 1)), (2, 1))),
        Sample("badly scaled", (plane * 1e12, (1, 2)), {"lengths": (2.0, 3.0)}),
        Sample(
            "first axis of three, non-contiguous", (rng.standard_normal((7, 2, 4))[:, :, ::2], (1,)), {"axes": (0,)}
        ),
    ]


def _helmholtz_samples(rng: np.random.Generator) -> list[Sample]:
    plane = rng.standard_normal((6, 5))
    wave = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    return [
        Sample("ordinary: even and odd axis", (plane,), {"lengths": (2.0, 3.0)}),
        Sample("shifted, complex", (wave,), {"shift": 2.5}),
        Sample("size one", (np.ones((1, 1)),), {"shift": 1.0}),
        Sample("badly scaled", (plane * 1e12,), {"lengths": (2.0, 3.0)}),
        Sample("last axis only", (rng.standard_normal((2, 9)),), {"axes": (-1,)}),
    ]


def _dealias_samples(rng: np.random.Generator) -> list[Sample]:
    plane = rng.standard_normal((9, 12))
    wave = rng.standard_normal((4, 3)) + 1j * rng.standard_normal((4, 3))
    return [
        Sample("ordinary: even and odd axis", (plane,)),
        Sample("complex", (wave,), {"fraction": 0.6}),
        Sample("size one", (np.ones(1),)),
        Sample("badly scaled", (plane * 1e-12,)),
    ]


def _cost(field: Any, *_: Any, **__: Any) -> float:
    n = np.size(field)
    return 10.0 * n * max(math.log2(max(n, 1)), 1.0)  # two transforms at 5 n log2 n


@operator("spectral.derivative", oracle=_derivative_oracle, samples=_derivative_samples, flops=_cost)
def fft_derivative(
    field: Inexact[Array, "..."], orders: tuple[int, ...], *, lengths: Lengths = 2 * math.pi, axes: Axes = None
) -> Inexact[Array, "..."]:
    """Mixed partial derivative d^p u / (dx_1^p1 ... dx_d^pd) of a periodic field.

    With an even number of points an odd order has no contribution from the Nyquist mode, whose derivative vanishes at
    every grid point; an even order keeps it. (So two first derivatives differ from one second in that mode.)

    Args:
        field: real or complex, any number of axes.
        orders: order of derivative along each of `axes`, static whole numbers >= 0.
        lengths: period of each axis, or one for all.
        axes: the axes that `orders` and `lengths` speak of; default: the last `len(orders)`.

    Returns:
        Same shape and dtype as `field`.

    Raises:
        DTypeError: integers or 16-bit floats. ShapeError: axes that do not exist, an axis without points.
        InputError: negative orders, periods that are not positive.
    """
    u, named, periods = _grid(field, lengths, axes, len(orders), "fft_derivative")
    if len(orders) != len(named) or any(int(p) != p or p < 0 for p in orders):
        raise InputError(
            "fft_derivative: one whole order >= 0 an axis", got=tuple(orders), expected=f"{len(named)} orders"
        )
    # axes that are not differentiated need no transform
    active = [(axis, period, int(p)) for axis, period, p in zip(named, periods, orders) if p]
    if not active:
        return u

    def symbol(ks: list[np.ndarray]) -> np.ndarray:
        return math.prod(_power(k, u.shape[a], p) for k, (a, _, p) in zip(ks, active))  # type: ignore[return-value]

    return _filtered(u, [a for a, _, _ in active], symbol, [v for _, v, _ in active])


@operator("spectral.helmholtz", oracle=_helmholtz_oracle, samples=_helmholtz_samples, flops=_cost)
def fft_helmholtz(
    source: Inexact[Array, "..."], *, lengths: Lengths = 2 * math.pi, shift: float = 0.0, axes: Axes = None
) -> Inexact[Array, "..."]:
    """Solve laplacian(u) - shift u = source on a periodic grid; shift = 0 is the Poisson equation (inverse Laplacian).

    A periodic Poisson problem has a solution only for a source of zero mean, unique up to a constant: with shift = 0 the
    mean of the source is left out and the solution has zero mean, so laplacian(u) = source - mean(source).

    Args:
        source: real or complex. lengths, axes: as `fft_derivative`; default: all axes.
        shift: static, >= 0 (a negative shift can meet an eigenvalue).

    Raises:
        InputError: negative shift; else as `fft_derivative`.
    """
    f, named, periods = _grid(source, lengths, axes, None, "fft_helmholtz")
    if not (math.isfinite(shift) and shift >= 0):
        raise InputError(
            "fft_helmholtz: shift must be >= 0", got=shift, remedy="the operator is singular where -shift = k^2"
        )

    def symbol(ks: list[np.ndarray]) -> np.ndarray:
        total = -sum(k**2 for k in ks) - shift
        return np.divide(1.0, total, out=np.zeros_like(total), where=total != 0)

    return _filtered(f, named, symbol, periods)


@operator("spectral.dealias", oracle=_dealias_oracle, samples=_dealias_samples, flops=_cost)
def fft_dealias(field: Inexact[Array, "..."], *, fraction: float = 2 / 3, axes: Axes = None) -> Inexact[Array, "..."]:
    """Keep the modes |k| < fraction n / 2 along each axis.

    With fraction = 2/3 the product of two filtered fields, filtered again, is free of aliasing error (Orszag 1971).

    Args:
        field: real or complex. fraction: in (0, 1]; 1 keeps all but the Nyquist mode. axes: default all.

    Raises:
        InputError: fraction outside (0, 1]; else as `fft_derivative`.
    """
    u, named, periods = _grid(field, 2 * math.pi, axes, None, "fft_dealias")
    if not 0 < fraction <= 1:
        raise InputError("fft_dealias: fraction must lie in (0, 1]", got=fraction)

    def symbol(ks: list[np.ndarray]) -> np.ndarray:
        # half a ten-billionth keeps n fraction / 2 on the outer side where it is a whole number up to rounding
        kept = [np.abs(k) < fraction * u.shape[a] / 2 - 1e-9 for k, a in zip(ks, named)]
        return math.prod(k.astype(float) for k in kept)  # type: ignore[return-value]

    return _filtered(u, named, symbol, periods)
