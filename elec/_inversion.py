"""Permittivity of an unknown region from signals around it: least squares with total variation, exact gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.elec._checks import one_of


def total_variation(x: Float[Array, "nx ny"], floor: float = 1e-2) -> Float[Array, ""]:
    """sum sqrt(|grad x|^2 + floor^2) - floor over pixels, forward differences in units of a pixel.

    Source: L. I. Rudin, S. Osher, E. Fatemi, Physica D 60 (1992) 259; the floor makes it smooth.
    """
    import jax.numpy as jnp

    dx = jnp.diff(x, axis=0, append=x[-1:])
    dy = jnp.diff(x, axis=1, append=x[:, -1:])
    return jnp.sum(jnp.sqrt(dx**2 + dy**2 + floor**2) - floor)


class Inversion(NamedTuple):
    """What was found: permittivity of the pixels and its quality against the truth."""

    permittivity: np.ndarray
    truth: np.ndarray
    psnr: float  # dB, over the range of the truth
    ssim: float
    misfit: float  # of the start's


def structural_similarity(a: np.ndarray, b: np.ndarray, span: float, sigma: float = 1.5) -> float:
    """Mean structural similarity of two images with Gaussian windows.

    Source: Z. Wang et al., IEEE Trans. Image Process. 13 (2004) 600 (K1 = 0.01, K2 = 0.03).
    """
    from scipy.ndimage import gaussian_filter

    def blur(v):
        return gaussian_filter(v, sigma, truncate=3.5)

    c1, c2 = (0.01 * span) ** 2, (0.03 * span) ** 2
    ma, mb = blur(a), blur(b)
    va, vb, vab = blur(a * a) - ma**2, blur(b * b) - mb**2, blur(a * b) - ma * mb
    s = (2 * ma * mb + c1) * (2 * vab + c2) / ((ma**2 + mb**2 + c1) * (va + vb + c2))
    return float(s.mean())


def invert_discs(
    data: str = "lattice",
    variation: tuple[float, ...] = (1e-4, 2e-5, 4e-6),
    iterations: int = 80,
    report: Callable[[str], None] | None = None,
) -> Inversion:
    """The two-disc inversion of `demo.inversion_scene` from a uniform start.

    Args:
        data: "lattice" (signals of the truth on the pixels' own grid) or "discs" (of two exact discs).
        variation: weights of the total variation one after the other, for a misfit of one at the start; 0 for none.
        iterations: in all, shared equally.
        report: called with a line after every weight.

    Raises:
        InputError: another kind of data, a negative weight, fewer iterations than weights.
    """
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    from sciax.elec._simulation import Simulation
    from sciax.elec.demo import inversion_scene, inversion_signals

    one_of(data, ("lattice", "discs"), "data of the inversion")
    if not variation or min(variation) < 0 or iterations < len(variation):
        raise InputError(
            "weights of the total variation", got=(variation, iterations), expected=">= 0, and an iteration for each"
        )
    truth = _two_discs()
    start = np.zeros_like(truth)
    simulation = Simulation(inversion_scene(start), gradient="reversible")

    def signals(density: Any):
        return inversion_signals(simulation, {"unknown.medium.density": density})

    if data == "lattice":
        wanted = jax.jit(signals)(truth)
    else:
        exact = Simulation(inversion_scene(None))
        wanted = jax.jit(lambda: inversion_signals(exact, {}))()
    first = jnp.sum((jax.jit(signals)(start) - wanted) ** 2)

    def value(x, weight):
        misfit = jnp.sum((signals(x.reshape(truth.shape)) - wanted) ** 2) / first
        return misfit + weight * total_variation(x.reshape(truth.shape)), misfit

    slope = jax.jit(jax.value_and_grad(value, has_aux=True))
    x, last = start.ravel(), [1.0]

    def call(x, weight):
        (v, misfit), g = slope(jnp.asarray(x, jnp.float32), weight)
        last[0] = float(misfit)
        return float(v), np.asarray(g, float)

    each = iterations // len(variation)
    for weight in variation:
        x = minimize(
            call,
            x,
            (np.float32(weight),),
            "L-BFGS-B",
            jac=True,
            bounds=[(0, 1)] * x.size,
            options={"maxiter": each, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-10},
        ).x
        if report is not None:
            report(f"variation {weight:.1e}: misfit {last[0]:.2e}, {_quality(x.reshape(truth.shape), truth)[2]:.2f} dB")
    eps, true, psnr = _quality(x.reshape(truth.shape), truth)
    return Inversion(eps, true, psnr, structural_similarity(eps, true, 3.0), last[0])


def _two_discs() -> np.ndarray:
    """Density of permittivity 4 between 1 and 6 in two discs of radius 6 cm, mean over 8 x 8 points a pixel."""
    n, fine = 40, 8
    c = ((np.arange(n * fine) + 0.5) / fine - n / 2) * 1.0
    x, y = np.meshgrid(c, c, indexing="ij")
    inside = ((x + 8) ** 2 + (y + 6) ** 2 < 36) | ((x - 8) ** 2 + (y - 7) ** 2 < 36)
    return 0.6 * inside.reshape(n, fine, n, fine).mean((1, 3))


def _quality(density: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    eps, true = 1 + 5 * density, 1 + 5 * truth
    return eps, true, float(10 * np.log10(9 / np.mean((eps - true) ** 2)))
