"""Inverse design of densities: filter, projection, symmetry, feature sizes, a bounded optimiser.

rho = project(conic_filter(x, radius), beta)      # x: free densities in [0, 1]
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import ndimage

from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.elec._checks import positive


def conic_filter(density: Float[Array, "nx ny"], radius: float) -> Float[Array, "nx ny"]:
    """Weighted mean with a cone of `radius` pixels; beyond the edge the density goes on as at the edge.

    Source: T. E. Bruns, D. A. Tortorelli, Comput. Methods Appl. Mech. Eng. 190 (2001) 3443.
    """
    if np.ndim(density) != 2:
        raise ShapeError("conic_filter takes a 2-D density", got=np.shape(density))
    positive(radius, "filter radius")
    m = int(np.ceil(radius)) - 1
    if m < 1:
        return jnp.asarray(density)
    density = jnp.asarray(density)
    padded = jnp.pad(density, m, mode="edge")
    nx, ny = density.shape
    total: Any = 0.0
    weight = 0.0
    for i in range(-m, m + 1):
        for j in range(-m, m + 1):
            w = radius - np.hypot(i, j)
            if w > 0:
                total = total + w * padded[m + i : m + i + nx, m + j : m + j + ny]
                weight += w
    return total / weight


def project(density: Float[Array, "nx ny"], beta: float, threshold: float = 0.5) -> Float[Array, "nx ny"]:
    """Smooth step (tanh) that pushes densities to 0 and 1; beta is its steepness.

    Source: F. Wang, B. S. Lazarov, O. Sigmund, Struct. Multidiscip. Optim. 43 (2011) 767.
    """
    low, high = jnp.tanh(beta * threshold), jnp.tanh(beta * (1 - threshold))
    return (low + jnp.tanh(beta * (density - threshold))) / (low + high)


def mirror(density: Float[Array, "nx ny"], axis: str) -> Float[Array, "nx ny"]:
    """Mean with the mirror image: "x", "y", or "diagonal" (transposed; square densities)."""
    density = jnp.asarray(density)
    if axis == "x":
        return 0.5 * (density + density[::-1])
    if axis == "y":
        return 0.5 * (density + density[:, ::-1])
    if axis == "diagonal" and density.shape[0] == density.shape[1]:
        return 0.5 * (density + density.T)
    raise InputError("symmetry", got=(axis, density.shape), expected="'x', 'y', or 'diagonal' of a square density")


def binarisation(density) -> float:
    """0 for all grey, 1 for black and white: mean of (2 rho - 1)^2."""
    return float(np.mean((2 * np.asarray(density) - 1) ** 2))


def feature_size(density, pixel: float, threshold: float = 0.5) -> tuple[float, float]:
    """Smallest solid and smallest void feature (m): the largest disc whose opening leaves the pattern as it is.

    A feature counts when opening loses more than isolated border pixels of it (an erosion of what is lost survives). Resolution
    is one pixel.
    """
    solid = np.asarray(density) > threshold

    def smallest(pattern: np.ndarray) -> float:
        if not pattern.any() or pattern.all():
            return float("inf")
        padded = np.pad(pattern, max(pattern.shape), mode="edge")
        inner = (
            slice(max(pattern.shape), max(pattern.shape) + pattern.shape[0]),
            slice(max(pattern.shape), max(pattern.shape) + pattern.shape[1]),
        )
        for diameter in range(2, max(pattern.shape)):
            r = diameter / 2
            c = np.arange(diameter) - (diameter - 1) / 2
            disc = c[:, None] ** 2 + c[None, :] ** 2 <= r * r
            lost = padded & ~np.asarray(ndimage.binary_opening(padded, disc), bool)
            # corners of a pixel pattern are lost to every disc; a feature is lost as a whole
            if ndimage.binary_erosion(lost, np.ones((2, 2)))[inner].any():
                return (diameter - 1) * pixel
        return max(pattern.shape) * pixel

    return smallest(solid), smallest(~solid)


@dataclass(frozen=True)
class Step:
    """One iteration: value of the objective, steepness, how black and white."""

    iteration: int
    value: float
    beta: float
    binary: float


def maximise(
    objective: Callable[[Any, float], tuple[Any, Any]],
    start: Float[np.ndarray, "..."],
    *,
    betas: tuple[float, ...] = (4.0, 8.0, 16.0, 32.0),
    iterations: int = 10,
    move: float = 0.2,
    callback: Callable[[Step, np.ndarray], None] | None = None,
) -> tuple[np.ndarray, list[Step]]:
    """Method of moving asymptotes for bounds only, with a schedule of steepness.

    Args:
        objective: (x, beta) -> (value, gradient); x in [0, 1].
        betas: steepness of the projection, one after the other; `iterations` at each.
        move: largest change of a variable in one iteration.

    Returns:
        The best x of the last steepness, and the history.

    Raises:
        ConvergenceError: a value or gradient that is not finite.

    Source: K. Svanberg, Int. J. Numer. Methods Eng. 24 (1987) 359; without constraints its subproblem has a closed form.
    """
    x = np.array(start, float)
    if np.any(x < 0) or np.any(x > 1) or not np.all(np.isfinite(x)):
        raise InputError("start of the optimisation must lie in [0, 1]")
    history: list[Step] = []
    count = 0
    best_x = x
    for beta in betas:
        before = older = x
        span = np.full(x.shape, 0.5)
        best = -np.inf
        for n in range(iterations):
            value, gradient = objective(x, beta)
            g, v = -np.asarray(gradient, float), float(value)
            if not np.isfinite(v) or not np.all(np.isfinite(g)):
                raise ConvergenceError("the objective is not finite", got=v, history=[s.value for s in history])
            count += 1
            step = Step(count, v, beta, binarisation(x))
            history.append(step)
            if callback is not None:
                callback(step, x)
            if v > best:
                best, best_x = v, x
            if n >= 2:  # asymptotes draw in where a variable oscillates, move out where it goes on
                turn = (x - before) * (before - older)
                span = np.clip(span * np.where(turn > 0, 1.2, np.where(turn < 0, 0.7, 1.0)), 0.01, 2.0)
            upper, lower = x + span, x - span
            scale = np.abs(g).max() or 1.0
            p = span**2 * (1.001 * np.maximum(g, 0) + 0.001 * np.maximum(-g, 0) + 1e-5 * scale)
            q = span**2 * (0.001 * np.maximum(g, 0) + 1.001 * np.maximum(-g, 0) + 1e-5 * scale)
            new = (np.sqrt(p) * lower + np.sqrt(q) * upper) / (np.sqrt(p) + np.sqrt(q))
            reach = np.minimum(move, 0.9 * span)
            new = np.clip(np.clip(new, x - reach, x + reach), 0.0, 1.0)
            older, before, x = before, x, new
        x = best_x
    return best_x, history
