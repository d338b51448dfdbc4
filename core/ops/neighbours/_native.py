"""The compiled pair search, where it was built; without it the XLA and KD-tree searches do the same work."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.cache
def available() -> bool:
    """True where the extension was built; registers its FFI targets once."""
    try:
        from sciax.core.ops.native import _neighbours  # pyright: ignore
    except ImportError:
        return False
    for name, capsule in _neighbours.targets().items():
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    return True


def native_pairs(positions, cell, pbc: tuple[bool, bool, bool], cutoff: float, capacity: int):
    """(centers, others, shifts, count) on the CPU; count is -1 for a degenerate cell or a position that is not finite."""
    suffix = {"float32": "f32", "float64": "f64"}[positions.dtype.name]
    integer = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.int32)
    call = jax.ffi.ffi_call(
        f"sciax_neighbours_{suffix}",
        (integer((capacity,)), integer((capacity,)), integer((capacity, 3)), integer((1,))),
        vmap_method="sequential",
    )
    centers, others, shifts, count = call(positions, cell, np.asarray(pbc, np.int32), cutoff=np.float64(cutoff))
    return centers, others, shifts, count[0]
