"""Fourier calculus: closed forms, the Nyquist mode, aliasing, errors."""

import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core import x64
from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.spectral_fft import fft_dealias, fft_derivative, fft_helmholtz, wavenumbers


def _axis(n: int, length: float) -> np.ndarray:
    return np.arange(n) * length / n


@pytest.mark.parametrize("n", [15, 16])
@pytest.mark.parametrize("order", [1, 2, 3, 6])
def test_derivative_of_a_wave(n: int, order: int) -> None:
    length = 3.7
    k = 2 * np.pi * 4 / length
    x = _axis(n, length)
    turns = [np.sin, np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v)]
    with x64():
        got = fft_derivative(np.sin(k * x), (order,), lengths=length)
        np.testing.assert_allclose(got, k**order * turns[order % 4](k * x), atol=1e-10 * k**order)
        wave = np.exp(1j * k * x)
        np.testing.assert_allclose(
            fft_derivative(wave, (order,), lengths=length), (1j * k) ** order * wave, atol=1e-10 * k**order
        )


def test_derivative_of_an_analytic_field_is_exact_to_rounding() -> None:
    x = _axis(48, 2 * np.pi)
    with x64():
        got = fft_derivative(np.exp(np.sin(x)), (1,))
    np.testing.assert_allclose(got, np.cos(x) * np.exp(np.sin(x)), atol=2e-13)


def test_mixed_derivative_in_four_dimensions() -> None:
    sizes, lengths = (4, 6, 5, 8), (1.0, 2.0, 3.0, 4.0)
    grids = np.meshgrid(*(_axis(n, v) for n, v in zip(sizes, lengths)), indexing="ij")
    phase = sum(2 * np.pi * g / v for g, v in zip(grids, lengths))
    with x64():
        got = fft_derivative(np.sin(phase), (1, 2, 0, 1), lengths=lengths)
        want = np.sin(phase) * (2 * np.pi) ** 4 / (1.0 * 2.0**2 * 4.0)  # four derivatives of a sine give the sine
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-8)


def test_nyquist_mode() -> None:
    saw = np.array([1.0, -1.0] * 4)
    assert not np.abs(fft_derivative(saw, (1,))).max()
    np.testing.assert_allclose(fft_derivative(saw, (2,)), -16 * saw, rtol=1e-6)


def test_poisson_inverts_the_laplacian() -> None:
    rng = np.random.default_rng(1)
    with x64():
        u = rng.standard_normal((9, 7, 5))
        laplacian = sum(fft_derivative(u, tuple(2 * (i == j) for j in range(3)), lengths=(1, 2, 3)) for i in range(3))
        np.testing.assert_allclose(fft_helmholtz(laplacian, lengths=(1, 2, 3)), u - u.mean(), atol=1e-12)
        np.testing.assert_allclose(fft_helmholtz(laplacian - 4.0 * u, lengths=(1, 2, 3), shift=4.0), u, atol=1e-12)


def test_dealiased_product_is_the_exact_convolution() -> None:
    rng, n = np.random.default_rng(2), 18
    x = _axis(n, 2 * np.pi)
    top = 5  # the largest k < n / 3
    a, b = (rng.standard_normal(2 * top + 1) + 1j * rng.standard_normal(2 * top + 1) for _ in range(2))
    k = np.arange(-top, top + 1)
    field = lambda c: np.exp(1j * np.multiply.outer(x, k)) @ c  # noqa: E731
    exact = np.convolve(a, b)[top : 3 * top + 1]
    with x64():
        got = fft_dealias(field(a) * field(b))
    np.testing.assert_allclose(got, field(exact), atol=1e-11)
    assert np.abs(field(a) * field(b) - field(exact)).max() > 1  # without the filter it is not
    kept = np.asarray(fft_dealias(np.eye(9)[0]))
    assert np.count_nonzero(np.abs(np.fft.fft(kept)) > 1e-6) == 5  # |k| < 3: the mode on the edge goes


def test_wavenumbers() -> None:
    assert wavenumbers(6).tolist() == [0, 1, 2, 3, -2, -1]
    assert wavenumbers(5, np.pi).tolist() == [0, 2, 4, -4, -2]
    assert wavenumbers(6, real=True).tolist() == [0, 1, 2, 3]


def test_errors() -> None:
    u = jnp.zeros((4, 4))
    for call, error in (
        (lambda: fft_derivative(jnp.zeros(4, int), (1,)), DTypeError),
        (lambda: fft_derivative(jnp.zeros(4, jnp.float16), (1,)), DTypeError),
        (lambda: fft_derivative(u, (-1,)), InputError),
        (lambda: fft_derivative(u, (1,), lengths=-1.0), InputError),
        (lambda: fft_derivative(u, (1,), lengths=(1.0, 2.0)), ShapeError),
        (lambda: fft_derivative(u, (1, 1, 1)), ShapeError),
        (lambda: fft_derivative(u, (1, 1), axes=(0, -2)), ShapeError),
        (lambda: fft_derivative(jnp.zeros((0, 3)), (1, 1)), ShapeError),
        (lambda: fft_helmholtz(u, shift=-1.0), InputError),
        (lambda: fft_dealias(u, fraction=1.5), InputError),
    ):
        with pytest.raises(error):
            call()
