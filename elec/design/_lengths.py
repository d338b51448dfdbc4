"""Smallest features enforced: constraints on filtered and projected densities that vanish where discs of a size fit."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError


def erosion_threshold(length: float, radius: float) -> float:
    """Threshold at which a conic-filtered density of radius `radius` still shows every solid feature of size `length`.

    The dilated pattern (threshold 1 - this) and the eroded one (this) keep the topology of the blueprint (1/2) when no
    feature is smaller than `length`:

        eta = 1/2 + (L/R)^2 / 4 for L <= R,   L/R - (L/R)^2 / 4 for R < L <= 2 R.

    Args:
        length, radius: in the same unit.

    Raises:
        InputError: length above twice the radius: the filter must reach as far as the feature.

    Source: X. Qian, O. Sigmund, Comput. Methods Appl. Mech. Eng. 253 (2013) 498.
    """
    ratio = float(length) / float(radius)
    if not 0 < ratio <= 2:
        raise InputError(
            "a length scale needs a filter that reaches it",
            got=f"length {length:g}, filter radius {radius:g}",
            expected="0 < length <= 2 radius",
            remedy="a filter radius of about the length",
        )
    return 0.5 + ratio**2 / 4 if ratio <= 1 else ratio - ratio**2 / 4


def length_violations(
    filtered: Float[Array, "nx ny"],
    projected: Float[Array, "nx ny"],
    radius: float,
    *,
    solid: float | None = None,
    void: float | None = None,
    sharpness: float = 64.0,
) -> tuple[Array, Array]:
    """Mean square by which a pattern undercuts a smallest solid and a smallest void size; zero where it does not.

        g_solid = mean( rho_bar exp(-c |grad rho~|^2) min(rho~ - eta_e, 0)^2 )
        g_void = mean( (1 - rho_bar) exp(-c |grad rho~|^2) min(eta_d - rho~, 0)^2 ),   c = sharpness radius^2

    rho~ the filtered, rho_bar the projected density, eta_e the `erosion_threshold`, eta_d = 1 - that of the void. The
    exponential picks the middle of features, where the filtered density is flat: there it must pass the threshold.

    Args:
        filtered, projected: of `conic_filter` and `project`.
        radius: of the filter, in pixels.
        solid, void: smallest sizes in pixels; None: `radius`.
        sharpness: larger picks fewer pixels as middle.

    Returns:
        (g_solid, g_void). As constraints: g / epsilon - 1 <= 0 with epsilon about 1e-6 to 1e-4 (see `length_bound`).

    Source: M. Zhou, B. S. Lazarov, F. Wang, O. Sigmund, Comput. Methods Appl. Mech. Eng. 293 (2015) 266; the scaling of c by the
    radius from A. M. Hammond et al., Opt. Express 29 (2021) 23916.
    """
    eroded = erosion_threshold(radius if solid is None else solid, radius)
    dilated = 1 - erosion_threshold(radius if void is None else void, radius)
    # central differences inside, one-sided at the edge
    dx, dy = jnp.gradient(filtered)
    middle = jnp.exp(-sharpness * radius**2 * (dx**2 + dy**2))
    g_solid = jnp.mean(projected * middle * jnp.minimum(filtered - eroded, 0.0) ** 2)
    g_void = jnp.mean((1 - projected) * middle * jnp.minimum(dilated - filtered, 0.0) ** 2)
    return g_solid, g_void


def length_bound(shape: tuple[int, int], radius: float, slack: float = 0.05) -> float:
    """A bound for `length_violations`: what `slack` in threshold costs on a border line of the pattern as long as its sides.

    The exponential does not vanish everywhere on a border, so a bound of zero could not be met: pixels on the few lines where
    the density turns contribute about slack^2 each.

    Args:
        shape: of the density; radius: of the filter in pixels.
    """
    return float(slack**2 * np.sum(shape) / np.prod(shape) / max(radius, 1.0))
