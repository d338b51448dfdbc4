"""The compiled pair search, where it was built; without it the XLA and KD-tree searches do the same work."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def _register(module) -> bool:
    for name, capsule in module.targets().items():
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    return True


@functools.cache
def available() -> bool:
    """True where the pair search was built; registers its FFI targets once."""
    try:
        from sciax.core.ops.native import _neighbours  # pyright: ignore
    except ImportError:
        return False
    return _register(_neighbours)


@functools.cache
def half_available() -> bool:
    """True where half lists and the sums over them were built; registers their FFI targets once."""
    try:
        from sciax.core.ops.native import _pairforces  # pyright: ignore
    except ImportError:
        return False
    return _register(_pairforces)


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


def native_half(positions, cell, pbc: tuple[bool, bool, bool], cutoff: float, capacity: int):
    """(order, wrap, start, others, count) of a half list; count is -1 for what is not finite or degenerate, -2 for a cell
    thinner than the cutoff."""
    suffix = {"float32": "f32", "float64": "f64"}[positions.dtype.name]
    n = positions.shape[0]
    integer = functools.partial(jax.ShapeDtypeStruct, dtype=jnp.int32)
    shapes = (integer((n,)), integer((n, 3)), integer((n + 1,)), jax.ShapeDtypeStruct((capacity,), jnp.uint32))
    call = jax.ffi.ffi_call(f"sciax_half_{suffix}", (*shapes, integer((1,))), vmap_method="sequential")
    *pairs, count = call(positions, cell, np.asarray(pbc, np.int32), cutoff=np.float64(cutoff))
    return (*pairs, count[0])


def native_lennard_jones(positions, cell, order, wrap, start, others, options: dict):
    """(energies, forces, strain derivative), values only."""
    dtype, n = positions.dtype, positions.shape[0]
    suffix = {"float32": "f32", "float64": "f64"}[dtype.name]
    shapes = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape in ((n,), (n, 3), (3, 3)))
    call = jax.ffi.ffi_call(f"sciax_lennard_jones_{suffix}", shapes, vmap_method="sequential")
    numbers = {k: np.float64(options[k]) for k in ("epsilon", "sigma", "cutoff", "onset")}
    end = np.int64(("truncate", "shift", "force-shift", "smooth").index(options["end"]))
    return tuple(call(positions, cell, order, wrap, start, others, **numbers, end=end))
