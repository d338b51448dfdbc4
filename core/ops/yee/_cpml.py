"""Convolutional perfectly matched layer, held only in slabs.

Complex-frequency-shifted stretching s = kappa + sigma / (alpha + i w eps0) applied by a recursive convolution: in the slab
each derivative d becomes d / kappa + psi, psi <- b psi + c d.
Source: J. A. Roden, S. D. Gedney, Microw. Opt. Technol. Lett. 27 (2000) 334.
"""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Inexact

from sciax.core.errors import ShapeError
from sciax.core.ops._registry import Sample, operator


def cpml_profile(
    depth: Float[np.ndarray, " n"],
    thickness: float,
    dt_c: float,
    *,
    spacing: float,
    order: float = 3.5,
    kappa_max: float = 5.0,
    sigma_scale: float = 1.0,
    alpha_max: float = 0.05,
    index: float = 1.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients kappa, b, c at depths into the layer.

    sigma = sigma_scale * sigma_opt (depth/thickness)^order with sigma_opt = 0.8 (order + 1) / (Z0 spacing index);
    kappa = 1 + (kappa_max - 1)(depth/thickness)^order; alpha falls linearly from alpha_max at the interface to 0.

    Args:
        depth: distance into the layer (m), zero or less outside it.
        thickness: of the layer (m).
        dt_c: time step times the speed of light (m).
        spacing: of the grid in the layer (m).
        alpha_max: frequency shift, in units of 1/(Z0 spacing) as sigma is.
        index: refractive index of what fills the layer.

    Returns:
        kappa, b, c, float64 arrays; b = 1, c = 0 outside.
    """
    u = np.clip(np.asarray(depth, np.float64) / thickness, 0.0, 1.0)
    # In units where eps0 = c = Z0 = 1, conductivities are inverse lengths and the exponent is -(sigma/kappa + alpha) c dt.
    sigma = sigma_scale * 0.8 * (order + 1) / (spacing * index) * u**order
    kappa = 1.0 + (kappa_max - 1.0) * u**order
    alpha = alpha_max / spacing * (1.0 - u) * (u > 0)
    b = np.exp(-(sigma / kappa + alpha) * dt_c)
    bottom = sigma * kappa + kappa**2 * alpha
    c = np.where(bottom > 0, sigma * (b - 1.0) / np.where(bottom > 0, bottom, 1.0), 0.0)
    return kappa, b, c


def _oracle(psi, d, b, c):
    psi, d = np.asarray(psi), np.asarray(d)
    return b * psi + c * d


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    def make(shape, axis, scale=1.0):
        lay = [-1 if a == axis else 1 for a in range(3)]
        n = shape[axis]
        b, c = rng.uniform(0, 1, n).reshape(lay), -rng.uniform(0, 1, n).reshape(lay)
        return scale * rng.standard_normal(shape), scale * rng.standard_normal(shape), b, c

    yield Sample("ordinary", make((4, 5, 6), 0))
    yield Sample("last axis, odd", make((3, 5, 7), 2))
    yield Sample("size one", make((1, 1, 1), 1))
    yield Sample("empty", make((0, 2, 2), 0))
    yield Sample("badly scaled", make((4, 2, 2), 0, 1e8))


@operator("yee.cpml_memory", oracle=_oracle, samples=_samples, flops=lambda psi, d, b, c: 3.0 * np.size(psi))
def cpml_memory(
    psi: Inexact[Array, "nx ny nz"], d: Inexact[Array, "nx ny nz"], b: Inexact[Array, "..."], c: Inexact[Array, "..."]
) -> Inexact[Array, "nx ny nz"]:
    """psi <- b psi + c d in one slab; b and c lie along the slab's axis, shape (n, 1, 1), (1, n, 1) or (1, 1, n)."""
    if psi.shape != d.shape:
        raise ShapeError("cpml_memory: psi and the derivative must have one shape", got=d.shape, expected=psi.shape)
    return jnp.asarray(b) * psi + jnp.asarray(c) * d
