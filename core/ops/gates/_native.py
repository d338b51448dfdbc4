"""The compiled CPU kernel (core/ops/native/gates.cc), where it is installed."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import MissingDependencyError
from sciax.core.ops.gates import _schedule
from sciax.core.ops.gates._program import Program
from sciax.core.ops.gates._repeat import repeated, repeated_adjoint


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


def _state(coefficients, program: Program):
    return jax.ShapeDtypeStruct((*coefficients.shape[:-2], 1 << program.num_qubits), coefficients.dtype)


@repeated
def run(psi, coefficients, *, program: Program):
    """Final states."""
    call = jax.ffi.ffi_call("sciax_gates_run", _state(coefficients, program))
    return call(psi, coefficients, **_attributes(program, coefficients.dtype, 2))


def prepare(coefficients, *, program: Program):
    """Final states from |0...0>, one repetition."""
    call = jax.ffi.ffi_call("sciax_gates_prepare", _state(coefficients, program))
    return call(coefficients, **_attributes(program, coefficients.dtype, 2))


def adjoint(psi_out, coefficients, cotangent, *, program: Program, undo: bool = False):
    """(initial state if `undo`, d initial state, d coefficients) of one repetition, as `_xla.run_adjoint`."""
    state = jax.ShapeDtypeStruct(psi_out.shape, psi_out.dtype)
    outs = (state, jax.ShapeDtypeStruct(coefficients.shape, coefficients.dtype), state)
    attributes = _attributes(program, coefficients.dtype, 4)
    if undo:
        # The kernel does not write the state of the last pass it undoes, so an empty one is put there.
        attributes["schedule"] = _schedule.with_empty_pass(attributes["schedule"])
    ct_psi, ct_c, before = jax.ffi.ffi_call("sciax_gates_adjoint", outs)(psi_out, coefficients, cotangent, **attributes)
    return before, ct_psi, jnp.where(program.active[:, None], ct_c, 0)


adjoint_repeated = repeated_adjoint(partial(adjoint, undo=True))


def pauli(psi, coefficients, *, num_qubits: int, terms: np.ndarray):
    """H psi for terms (x, z, y) sorted by x."""
    out = jax.ShapeDtypeStruct(psi.shape, psi.dtype)
    call = jax.ffi.ffi_call("sciax_gates_pauli", out)
    return call(psi, coefficients, n=np.int64(num_qubits), terms=np.ascontiguousarray(terms, np.int64).reshape(-1))
