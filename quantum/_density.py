"""The density matrix: exact simulation of noise, measurement and reset."""

from functools import partial
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex

from sciax.core.errors import InputError, ShapeError, UnsupportedError
from sciax.core.ops.gates import PauliTerms, apply_matrix, gates_run
from sciax.quantum._circuit import Circuit, Structure
from sciax.quantum._gate import Gate
from sciax.quantum._lower import Conditioned, Dense, Run, lower
from sciax.quantum._memory import require_memory
from sciax.quantum._simulate import (
    BACKENDS,
    Params,
    angles_of,
    check_options,
    check_strengths,
    complex_dtype,
    numbers_of,
)

# S[(row', column'), (row, column)] of forgetting a measurement, and of a reset; the column's bit is the low one
_DEPHASE = np.diag([1.0, 0, 0, 1.0])
_RESET = np.array([[1.0, 0, 0, 1.0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


def density_matrix(
    circuit: Circuit,
    params: Params = None,
    *,
    initial: Complex[Array, "..."] | None = None,
    dtype: Any = None,
    backend: str = "auto",
) -> Complex[Array, "rows columns"]:
    """The final density matrix rho[i, j], channels, resets and unread measurements included. Differentiable.

    Args:
        initial: a state vector or a density matrix (default |0...0>).
        others: as `statevector`.

    Raises:
        InputError, ShapeError: as `statevector`; UnsupportedError: classical control, whose outcomes a density matrix forgets.
    """
    vector = circuit.parameter_vector(params)
    kind = complex_dtype(dtype, initial, vector)
    check_options(backend, "adjoint")
    check_strengths(circuit, vector)
    n = circuit.num_qubits
    require_memory(2 * n, kind, "a density matrix", copies=2)
    if initial is not None:
        initial = jnp.asarray(initial, kind)
        if initial.shape == (1 << n,):
            initial = jnp.outer(initial, jnp.conj(initial))
        if initial.shape != (1 << n, 1 << n):
            raise ShapeError(
                "the initial state does not fit the register", got=initial.shape, expected=f"({1 << n}, {1 << n})"
            )
        if not isinstance(initial, jax.core.Tracer) and abs(float(jnp.trace(initial).real) - 1) > 1e-3:
            raise InputError("the initial density matrix has no unit trace", got=float(jnp.trace(initial).real))
    return _density(circuit.structure, kind, BACKENDS[backend], vector, numbers_of(circuit, kind), initial)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _density(structure: Structure, dtype, implementation: str, vector, values, initial):
    lowered = lower(structure, keep=True)
    angles = angles_of(lowered, vector, values, dtype)
    n = structure.num_qubits
    size = 1 << n
    rho = jnp.zeros((size, size), dtype).at[0, 0].set(1) if initial is None else initial
    for segment in lowered.segments:
        if isinstance(segment, Run):
            c = segment.coefficients(angles, dtype)
            run = lambda psi, c=c, p=segment.program: gates_run(psi, c, program=p, implementation=implementation)  # noqa: E731
            # columns: U rho; then rows: (U (U rho)^dagger)^dagger, that is conj(U) on the column index
            rho = run(rho.T).T
            rho = jnp.conj(run(jnp.conj(rho)))
        elif isinstance(segment, Dense):
            m = segment.matrix(angles, dtype)
            rho = apply_matrix(rho.T, m, targets=segment.targets).T
            rho = apply_matrix(rho, jnp.conj(m), targets=segment.targets)
        elif isinstance(segment, Conditioned):
            raise UnsupportedError(
                "a density matrix forgets the outcomes that classical control needs", remedy="use sample()"
            )
        else:
            rho = _superoperator(rho, segment, n, angles)
    return rho


def _superoperator(rho, gate: Gate, n: int, angles):
    s = {"measure": _DEPHASE, "reset": _RESET}.get(gate.kind)
    s = gate.extra.superoperator_at(angles, rho.dtype) if s is None else s
    targets = (*gate.targets, *(q + n for q in gate.targets))  # the flat index is row * 2^n + column
    return apply_matrix(rho.reshape(-1), jnp.asarray(s, rho.dtype), targets=targets).reshape(rho.shape)


def trace_terms(rho, terms: PauliTerms, coefficients):
    """tr(H rho) term by term, never making H."""
    index = jnp.arange(rho.shape[0], dtype=jnp.uint32)
    rows = terms.rows
    phases = np.array([1, -1j, -1, 1j])[rows[:, 2] & 3].astype(rho.dtype)

    def body(total, inputs):
        x, z, phase, c = inputs
        signs = 1 - 2 * (jax.lax.population_count(index & z) & 1).astype(rho.real.dtype)
        return total + c * jnp.real(phase * jnp.sum(signs * rho[index ^ x, index])), None

    columns = (
        jnp.asarray(rows[:, 0], jnp.uint32),
        jnp.asarray(rows[:, 1], jnp.uint32),
        jnp.asarray(phases),
        coefficients,
    )
    return jax.lax.scan(body, jnp.zeros((), rho.real.dtype), columns)[0]
