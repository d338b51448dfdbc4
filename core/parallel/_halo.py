"""Halo exchange for stencils on a split grid: only neighbours talk."""

import jax
import jax.numpy as jnp
from jaxtyping import Array

from sciax.core.errors import InputError, ShapeError


def exchange_halo(block: Array, axis_name: str, width: int, *, axis: int = 0, periodic: bool = True) -> Array:
    """Inside `jax.shard_map`: the device's block with `width` layers of each neighbour's attached along `axis`.

    Two permutations, one to each side, move `width` layers; nothing else is sent. At the ends of a grid that is not periodic
    the halo is zero.

    Args:
        block: (..., n, ...) this device's part.
        axis_name: the mesh axis that splits `axis`.

    Returns:
        (..., n + 2 width, ...).

    Raises:
        ShapeError: a halo wider than a block (it would need the neighbour's neighbour).
    """
    if width < 0:
        raise InputError("the halo's width is not negative", got=width)
    if width > block.shape[axis]:
        raise ShapeError(
            "the halo is wider than a block",
            got=f"width {width}, block {block.shape}",
            remedy="use fewer devices along this axis",
        )
    if width == 0:
        return block
    devices = jax.lax.axis_size(axis_name)
    wrap = range(devices) if periodic else range(devices - 1)
    forward = [(i, (i + 1) % devices) for i in wrap]
    backward = [((i + 1) % devices, i) for i in wrap]
    first = jax.lax.slice_in_dim(block, 0, width, axis=axis)
    last = jax.lax.slice_in_dim(block, block.shape[axis] - width, block.shape[axis], axis=axis)
    # Who receives from nobody receives zeros.
    before = jax.lax.ppermute(last, axis_name, forward)
    after = jax.lax.ppermute(first, axis_name, backward)
    return jnp.concatenate([before, block, after], axis=axis)
