"""Rotation matrices from angles, axes, quaternions, and at random."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciax.core.errors import ShapeError


def _axis(k: int, angle: Array) -> Array:
    c, s, one, zero = jnp.cos(angle), jnp.sin(angle), jnp.ones_like(angle), jnp.zeros_like(angle)
    rows = {0: (one, zero, zero, zero, c, -s, zero, s, c), 1: (c, zero, s, zero, one, zero, -s, zero, c)}[k]
    return jnp.stack(rows, -1).reshape(*angle.shape, 3, 3)


def euler_matrix(alpha: Array, beta: Array, gamma: Array) -> Float[Array, "*batch 3 3"]:
    """R_y(α) R_x(β) R_y(γ): e3nn's Euler angles about its polar axis y."""
    a, b, g = (
        jnp.asarray(v, dtype=jnp.result_type(float)) if isinstance(v, float | int) else v for v in (alpha, beta, gamma)
    )
    return _axis(1, a) @ _axis(0, b) @ _axis(1, g)


def axis_angle_matrix(axis: Float[Array, "*batch 3"], angle: Float[Array, "*batch"]) -> Float[Array, "*batch 3 3"]:
    """Rotation by `angle` about the unit vector along `axis` (Rodrigues)."""
    if axis.shape[-1] != 3:
        raise ShapeError("an axis has three components", got=axis.shape)
    n = axis / jnp.linalg.norm(axis, axis=-1, keepdims=True)
    half = (angle / 2)[..., None]
    return quaternion_matrix(jnp.concatenate([jnp.cos(half), jnp.sin(half) * n], -1))


def quaternion_matrix(q: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3 3"]:
    """Rotation of the quaternion (w, x, y, z), normalised first."""
    if q.shape[-1] != 4:
        raise ShapeError("a quaternion has four components", got=q.shape)
    w, x, y, z = jnp.moveaxis(q / jnp.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = (
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    )  # fmt: skip
    return jnp.stack(rows, -1).reshape(*q.shape[:-1], 3, 3)


def random_rotation(key: Array, shape: tuple[int, ...] = (), dtype=jnp.float32) -> Float[Array, "*shape 3 3"]:
    """Uniformly distributed rotations (normalised Gaussian quaternions)."""
    return quaternion_matrix(jax.random.normal(key, (*shape, 4), dtype))
