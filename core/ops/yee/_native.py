"""The compiled CPU kernel (core/ops/native/yee.cc), where it is installed.

It takes what it can do in one pass: real fields in three dimensions, scalar permeability, permittivity diagonal (three arrays)
or one number, conducting or symmetry faces and absorbing slabs, point currents and point records. Everything else runs on XLA.
"""

import os
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.core.errors import MissingDependencyError, UnsupportedError
from sciax.core.ops.yee._step import Coefficients, State


@cache
def _module():
    """The extension with its handler registered, or None."""
    try:
        from sciax.core.ops.native import _yee  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        return None
    for name, capsule in _yee.targets().items():
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    return _yee


def native_available() -> bool:
    """Whether the compiled kernel is installed."""
    return _module() is not None


class Points(NamedTuple):
    """Currents at single entries: value x table[step, patch] is added to one component (0..2 E, 3..5 H) every step."""

    index: Any  # int32, flat
    component: Any
    patch: Any
    value: Array
    table: Array  # (steps, patches)


class Records(NamedTuple):
    """Entries read after every step."""

    index: Any
    component: Any


def no_points(dtype, steps: int) -> Points:
    none = np.zeros(0, np.int32)
    return Points(none, none, none, jnp.zeros(0, dtype), jnp.zeros((steps, 1), dtype))


NO_RECORDS = Records(np.zeros(0, np.int32), np.zeros(0, np.int32))


def native_refusal(state: State, k: Coefficients) -> str | None:
    """Why the kernel cannot take these steps, None if it can; from shapes and dtypes alone."""
    fields = (*state.e, *state.h)
    if not native_available():
        return "the compiled kernel is not installed"
    if any(f is None for f in fields):
        return "it takes three-dimensional fields with all six components"
    if fields[0].dtype not in (jnp.float32, jnp.float64):
        return f"it takes real fields, not {fields[0].dtype}"
    if any(w is not None for w in k.wrap):
        return "periodic and Bloch faces run on XLA"
    if k.poles or any(a is not None for a in (*k.ca, *k.da, *k.offdiagonal)):
        return "lossy, dispersive and off-diagonal media run on XLA"
    if any(d.ndim for d in k.db):
        return "permeability must be one number and high faces not magnetic"
    if any(v is None for v in (*k.inv_e, *k.inv_h)):
        return "it takes three axes"
    return None


def leapfrog_native(
    state: State,
    k: Coefficients,
    steps: int,
    *,
    points: Points | None = None,
    records: Records = NO_RECORDS,
    levels: int = 4,
    threads: int | None = None,
    uniform: tuple[float, tuple[bool, bool, bool]] | None = None,
) -> tuple[State, Array]:
    """`steps` leapfrog steps in one call of the compiled kernel; not differentiable.

    Args:
        state, k: as for `advance_h` and `advance_e`. Donate the state of the jitted caller, and nothing is copied.
        points: currents; None for none.
        records: entries to read after every step, in fields as they are stored.
        levels: steps that follow each other in cache.
        threads: default SCIAX_THREADS, else the cores this process may use.
        uniform: (cb, conductor at the low faces) if the medium is one number; spares reading three arrays.

    Returns:
        State after the steps, and records (steps, entries).

    Raises:
        MissingDependencyError: the extension was not built. UnsupportedError: what `native_refusal` says.
    """
    if not native_available():
        raise MissingDependencyError(
            "the compiled Yee kernel is not installed",
            remedy='install sciax from source with a C++17 compiler, or use implementation="xla"',
        )
    reason = native_refusal(state, k)
    if reason is not None:
        raise UnsupportedError(f"the compiled Yee kernel cannot take this: {reason}", remedy='implementation="xla"')
    dtype, shape = state.e[0].dtype, state.e[0].shape
    points = no_points(dtype, steps) if points is None else points
    if threads is None:
        threads = int(os.environ.get("SCIAX_THREADS", 0)) or len(os.sched_getaffinity(0))
    line = lambda v, n: jnp.broadcast_to(jnp.asarray(v, dtype), (n,))  # noqa: E731
    cb = [jnp.zeros(1, dtype)] * 3 if uniform else [jnp.broadcast_to(c, shape) for c in k.cb]
    args: list[Any] = [*state.e, *state.h, *cb]
    args += [line(v, n) for v, n in zip(k.inv_e, shape)] + [line(v, n) for v, n in zip(k.inv_h, shape)]
    args.append(jnp.asarray(k.db[0], dtype).reshape(1))
    ints = [jnp.asarray(v, jnp.int32) for v in points[:3]]
    args += [*ints, points.value.astype(dtype), points.table.astype(dtype)]
    args += [jnp.asarray(v, jnp.int32) for v in records]
    updated = list(range(6))
    for slab, e, h in zip(k.slabs, state.psi_e, state.psi_h):
        args += [slab.be, slab.ce, slab.bh, slab.ch]
        updated += list(range(len(args), len(args) + 4))
        args += [*e, *h]
    shapes = [jax.ShapeDtypeStruct(args[i].shape, dtype) for i in updated]
    shapes.append(jax.ShapeDtypeStruct((steps, len(records.index)), dtype))
    call = jax.ffi.ffi_call(
        "sciax_yee_leapfrog",
        tuple(shapes),
        input_output_aliases={i: n for n, i in enumerate(updated)},
        vmap_method="sequential",
    )
    walls = sum(1 << a for a in range(3) if uniform and uniform[1][a])
    out = call(
        *args,
        steps=np.int64(steps),
        levels=np.int64(levels),
        threads=np.int64(threads),
        walls=np.int64(walls),
        array=np.int64(0 if uniform else 1),
        cb=np.float64(uniform[0] if uniform else 0.0),
        slabs=np.array([v for s in k.slabs for v in (s.axis, s.start)], np.int64),
    )
    psi = [tuple(out[6 + 4 * q : 10 + 4 * q]) for q in range(len(k.slabs))]
    new = eqx.tree_at(
        lambda s: (s.e, s.h, s.psi_e, s.psi_h),
        state,
        (tuple(out[:3]), tuple(out[3:6]), tuple(p[:2] for p in psi), tuple(p[2:] for p in psi)),
    )
    return new, out[-1]
