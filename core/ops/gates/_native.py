"""The compiled CPU kernel (core/ops/native/gates.cc), where it is installed."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import MissingDependencyError
from sciax.core.ops.gates import _schedule
from sciax.core.ops.gates._program import Program


@cache
def _module():
    """The extension with its handlers registered, or None."""
    try:
        from sciax.core.ops.native import _gates  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError:
        return None
    for name, capsule in _gates.targets().items():
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")
    return _gates


def available() -> bool:
    """Whether the compiled kernel can be used."""
    return _module() is not None


def require() -> None:
    """Raises:
    MissingDependencyError: the extension was not built.
    """
    if not available():
        raise MissingDependencyError(
            "the compiled state-vector kernel is not installed",
            remedy='install sciax from source with a C++17 compiler, or use implementation="xla"',
        )


def instruction_set() -> str:
    """The instruction set the kernel runs with: "avx512", "avx2", "baseline", or "none" without the extension."""
    module = _module()
    return module.instruction_set() if module else "none"


def _attributes(program: Program, dtype, planes: int):
    wide = np.dtype(dtype).itemsize == 16
    return {
        "n": np.int64(program.num_qubits),
        "rows": program.rows.reshape(-1),
        "schedule": _schedule.schedule(program, _schedule.block_bits(program.num_qubits, wide, planes)),
    }


def run(psi, coefficients, *, program: Program):
    """Final states; psi None means |0...0>."""
    out = jax.ShapeDtypeStruct((*coefficients.shape[:-2], 1 << program.num_qubits), coefficients.dtype)
    attributes = _attributes(program, coefficients.dtype, 2)
    if psi is None:
        return jax.ffi.ffi_call("sciax_gates_prepare", out)(coefficients, **attributes)
    return jax.ffi.ffi_call("sciax_gates_run", out)(psi, coefficients, **attributes)


def adjoint(psi_out, coefficients, cotangent, *, program: Program):
    """(d initial state, d coefficients), as `_xla.run_adjoint`."""
    state = jax.ShapeDtypeStruct(psi_out.shape, psi_out.dtype)
    outs = (state, jax.ShapeDtypeStruct(coefficients.shape, coefficients.dtype), state)
    attributes = _attributes(program, coefficients.dtype, 4)
    ct_psi, ct_c, _ = jax.ffi.ffi_call("sciax_gates_adjoint", outs)(psi_out, coefficients, cotangent, **attributes)
    return ct_psi, jnp.where(program.active[:, None], ct_c, 0)


def pauli(psi, coefficients, *, num_qubits: int, terms: np.ndarray):
    """H psi for terms (x, z, y) sorted by x."""
    out = jax.ShapeDtypeStruct(psi.shape, psi.dtype)
    call = jax.ffi.ffi_call("sciax_gates_pauli", out)
    return call(psi, coefficients, n=np.int64(num_qubits), terms=np.ascontiguousarray(terms, np.int64).reshape(-1))
