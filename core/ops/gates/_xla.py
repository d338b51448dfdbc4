"""The portable implementation: a scan over instructions, or over dense blocks of them where the register is large (`_blocks`).

The compile time does not depend on their number.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex

from sciax.core.errors import ShapeError
from sciax.core.ops.gates import _blocks
from sciax.core.ops.gates._program import Program
from sciax.core.ops.gates._repeat import repeated, repeated_adjoint
from sciax.core.ops.gates._step import adjoint_step, step

_UINT = np.uint32


def _columns(program: Program):
    """Masks as scan inputs."""
    rows = program.rows[:, :4].astype(_UINT)
    masks = [jnp.asarray(rows[:, k]) for k in range(4)]
    return *masks, jnp.asarray(program.flips_parity.astype(_UINT))


@repeated
def run_plain(
    psi: Complex[Array, "*batch amplitudes"], coefficients: Complex[Array, "*batch gates 4"], *, program: Program
) -> Complex[Array, "*batch amplitudes"]:
    """Apply the program by a scan: ordinary autodiff, any order, needs no unitarity; a reverse pass stores a state a step."""
    if program.num_instructions == 0:
        return psi
    if _blocks.use(program):
        return _blocks.run_blocks(psi, coefficients, program=program)
    index = lax.iota(_UINT, 1 << program.num_qubits)

    def body(state, inputs):
        coefficients, x, z, cmask, cval, _ = inputs
        return step(state, coefficients, index, x, z, cmask, cval), None

    # Only batch axes come before the gate axis.
    leading = jnp.moveaxis(coefficients, -2, 0)
    shape = jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-2]) + psi.shape[-1:]
    return lax.scan(body, jnp.broadcast_to(psi, shape), (leading, *_columns(program)))[0]


@repeated_adjoint
def run_adjoint(psi_out, coefficients, cotangent, *, program: Program):
    """Transposed derivative of the run of a unitary program, from its final state: (initial state, its derivative, that of
    the coefficients).

    Walks the program backwards, undoing each gate on the state and transposing it on the cotangent, so the memory is a few
    states however long the program is.
    """
    if program.num_instructions == 0:
        return psi_out, cotangent, jnp.zeros_like(coefficients)
    if _blocks.use(program):
        return _blocks.run_adjoint(psi_out, coefficients, cotangent, program=program)
    index = lax.iota(_UINT, 1 << program.num_qubits)

    def body(carry, inputs):
        (psi, lam), (c, x, z, cmask, cval, flips) = carry, inputs
        return adjoint_step(psi, lam, c, index, x, z, cmask, cval, flips)

    start = (psi_out, jnp.conj(cotangent))
    (psi, lam), sums = lax.scan(body, start, (jnp.moveaxis(coefficients, -2, 0), *_columns(program)), reverse=True)
    sums = jnp.where(program.active[:, None], jnp.moveaxis(sums, 0, -2), 0)
    return psi, jnp.conj(lam), sums


def run_tangent(psi, coefficients, dpsi, dcoefficients, *, program: Program):
    """Forward derivative of the run at (psi, coefficients) along (dpsi, dcoefficients): the tangent of the final state."""
    return jax.jvp(lambda p, c: run_plain(p, c, program=program), (psi, coefficients), (dpsi, dcoefficients))[1]


def zero_state(program: Program, dtype, batch: tuple[int, ...] = ()):
    """|0...0> as an array."""
    amplitudes = 1 << program.num_qubits
    return jnp.broadcast_to((lax.iota(_UINT, amplitudes) == 0).astype(dtype), (*batch, amplitudes))


def apply_matrix(
    psi: Complex[Array, "*batch amplitudes"], matrix: Complex[Array, "*batch rows rows"], *, targets: tuple[int, ...]
) -> Complex[Array, "*batch amplitudes"]:
    """Apply a dense 2^k x 2^k matrix, unitary or not, to k qubits; targets[0] is the matrix's least significant bit.

    Raises:
        ShapeError: the matrix does not fit the targets.
    """
    k, n = len(targets), (psi.shape[-1] - 1).bit_length()
    if matrix.shape[-2:] != (1 << k, 1 << k):
        raise ShapeError("the matrix does not fit its targets", got=matrix.shape, expected=f"{1 << k} x {1 << k}")
    batch = psi.shape[:-1]
    tensor = psi.reshape(*batch, *(2,) * n)
    axes = [len(batch) + n - 1 - q for q in reversed(targets)]
    front = tuple(range(len(batch), len(batch) + k))
    moved = jnp.moveaxis(tensor, axes, front)
    flat = moved.reshape(*batch, 1 << k, -1)
    # TF32 would destroy amplitudes on GPUs, so the precision is stated.
    out = jnp.matmul(matrix, flat, precision=lax.Precision.HIGHEST).reshape(moved.shape)
    return jnp.moveaxis(out, front, axes).reshape(psi.shape)
