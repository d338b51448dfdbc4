"""From free densities to a pattern: conic filter, projection, symmetry."""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from sciax.core.errors import InputError, ShapeError
from sciax.elec._checks import positive


def conic_filter(density: Float[Array, "nx ny"], radius: float) -> Float[Array, "nx ny"]:
    """Weighted mean with a cone of `radius` pixels, w = max(radius - distance, 0).

    Beyond the edge the density goes on as at the edge.

    Source: T. E. Bruns, D. A. Tortorelli, Comput. Methods Appl. Mech. Eng. 190 (2001) 3443.
    """
    if np.ndim(density) != 2:
        raise ShapeError("conic_filter takes a 2-D density", got=np.shape(density))
    positive(radius, "filter radius")
    m = int(np.ceil(radius)) - 1
    density = jnp.asarray(density)
    if m < 1:
        return density
    c = np.arange(-m, m + 1)
    cone = np.maximum(radius - np.hypot(c[:, None], c[None, :]), 0.0)
    cone = jnp.asarray(cone / cone.sum(), density.dtype)
    padded = jnp.pad(density, m, mode="edge")
    return lax.conv_general_dilated(padded[None, None], cone[None, None], (1, 1), "VALID")[0, 0]


def project(density: Float[Array, "nx ny"], beta: float, threshold: float = 0.5) -> Float[Array, "nx ny"]:
    """Smooth step (tanh) that pushes densities to 0 and 1; beta is its steepness.

    Source: F. Wang, B. S. Lazarov, O. Sigmund, Struct. Multidiscip. Optim. 43 (2011) 767.
    """
    low, high = jnp.tanh(beta * threshold), jnp.tanh(beta * (1 - threshold))
    return (low + jnp.tanh(beta * (density - threshold))) / (low + high)


def mirror(density: Float[Array, "nx ny"], axis: str) -> Float[Array, "nx ny"]:
    """Mean with the mirror image: "x", "y", "diagonal" (x and y exchanged) or "antidiagonal" (x and -y; square densities)."""
    density = jnp.asarray(density)
    square = density.shape[0] == density.shape[-1]
    if axis == "x":
        return 0.5 * (density + density[::-1])
    if axis == "y":
        return 0.5 * (density + density[:, ::-1])
    if axis == "diagonal" and square:
        return 0.5 * (density + density.T)
    if axis == "antidiagonal" and square:
        return 0.5 * (density + density[::-1, ::-1].T)
    raise InputError(
        "symmetry", got=(axis, density.shape), expected="'x', 'y', or 'diagonal', 'antidiagonal' of a square density"
    )


def with_border(
    density: Float[Array, "nx ny"], width: int, low_x=None, high_x=None, low_y=None, high_y=None
) -> Float[Array, "nx+2w ny+2w"]:
    """The density in a frame of `width` pixels that shows what lies around it, for filters and sizes at the edge.

    Args:
        low_x, high_x: (ny,) densities beyond the low and high x face; low_y, high_y: (nx,); None: 0. Corners are 0.
    """
    if np.ndim(density) != 2:
        raise ShapeError("a frame is put around a 2-D density", got=np.shape(density))
    density = jnp.asarray(density)
    nx, ny = density.shape
    out = jnp.pad(density, width)
    for line, cut, size, lay in (
        (low_x, (slice(0, width), slice(width, width + ny)), ny, (1, -1)),
        (high_x, (slice(width + nx, None), slice(width, width + ny)), ny, (1, -1)),
        (low_y, (slice(width, width + nx), slice(0, width)), nx, (-1, 1)),
        (high_y, (slice(width, width + nx), slice(width + ny, None)), nx, (-1, 1)),
    ):
        if line is None:
            continue
        if np.shape(line) != (size,):
            raise ShapeError("a line of the frame", got=np.shape(line), expected=(size,))
        out = out.at[cut].set(jnp.asarray(line, density.dtype).reshape(lay))
    return out
