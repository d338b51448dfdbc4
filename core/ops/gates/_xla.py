"""The portable implementation: a scan over instructions, whose compile time does not depend on their number."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex

from sciax.core.errors import ShapeError
from sciax.core.ops.gates._program import Program

_UINT = np.uint32


def _parity(values):
    return lax.population_count(values) & _UINT(1)


def _columns(program: Program):
    """Masks as scan inputs."""
    rows = program.rows[:, :4].astype(_UINT)
    masks = [jnp.asarray(rows[:, k]) for k in range(4)]
    return *masks, jnp.asarray(program.flips_parity.astype(_UINT))


def _selectors(index, x, z, cmask, cval):
    """Condition and coefficient index for every amplitude."""
    controlled = index & cmask
    inside = (controlled == cval) | (controlled == (cval ^ (x & cmask)))
    return inside, _parity(index & z).astype(bool)


def _step(psi, coefficients, index, x, z, cmask, cval):
    """One instruction on psi (..., N) with coefficients (..., 4)."""
    inside, odd = _selectors(index, x, z, cmask, cval)
    a0, a1, b0, b1 = (coefficients[..., k, None] for k in range(4))
    one, zero = jnp.ones((), psi.dtype), jnp.zeros((), psi.dtype)
    a = jnp.where(inside, jnp.where(odd, a1, a0), one)
    b = jnp.where(inside, jnp.where(odd, b1, b0), zero)
    return a * psi + b * _partner(psi, index, x)


def _partner(psi, index, x):
    # The index is in bounds by construction: telling XLA so drops a clamp per amplitude.
    return psi.at[..., index ^ x].get(mode="promise_in_bounds", unique_indices=True)


def _dagger(coefficients, flips):
    """Coefficients of the conjugate transpose of an instruction."""
    a, b = jnp.conj(coefficients[..., :2]), jnp.conj(coefficients[..., 2:])
    return jnp.concatenate([a, jnp.where(flips.astype(bool), b[..., ::-1], b)], axis=-1)


def run_plain(
    psi: Complex[Array, "*batch amplitudes"], coefficients: Complex[Array, "*batch gates 4"], *, program: Program
) -> Complex[Array, "*batch amplitudes"]:
    """Apply the program by a plain scan: ordinary autodiff, any order, needs no unitarity, stores one state a gate."""
    if program.num_instructions == 0:
        return psi
    index = lax.iota(_UINT, 1 << program.num_qubits)

    def body(state, inputs):
        coefficients, x, z, cmask, cval, _ = inputs
        return _step(state, coefficients, index, x, z, cmask, cval), None

    # Only batch axes come before the gate axis.
    leading = jnp.moveaxis(coefficients, -2, 0)
    shape = jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-2]) + psi.shape[-1:]
    return lax.scan(body, jnp.broadcast_to(psi, shape), (leading, *_columns(program)))[0]


def run_adjoint(psi_out, coefficients, cotangent, *, program: Program):
    """Transposed derivative of the run of a unitary program, from its final state: (d initial state, d coefficients).

    Walks the program backwards, undoing each gate on the state and transposing it on the cotangent, so the memory is a few
    states however long the program is.
    """
    if program.num_instructions == 0:
        return cotangent, jnp.zeros_like(coefficients)
    index = lax.iota(_UINT, 1 << program.num_qubits)

    def body(carry, inputs):
        psi, lam = carry  # lam is the conjugated cotangent, which evolves with the dagger like the state
        coefficients, x, z, cmask, cval, flips = inputs
        undo = _dagger(coefficients, flips)
        before = _step(psi, undo, index, x, z, cmask, cval)
        inside, odd = _selectors(index, x, z, cmask, cval)
        zero = jnp.zeros((), psi.dtype)
        bra = jnp.conj(jnp.where(inside, lam, zero))
        even_bra, odd_bra = jnp.where(odd, zero, bra), jnp.where(odd, bra, zero)
        other = _partner(before, index, x)
        sums = [jnp.sum(b * k, axis=-1) for k in (before, other) for b in (even_bra, odd_bra)]
        return (before, _step(lam, undo, index, x, z, cmask, cval)), jnp.stack(sums, axis=-1)

    start = (psi_out, jnp.conj(cotangent))
    (_, lam), sums = lax.scan(body, start, (jnp.moveaxis(coefficients, -2, 0), *_columns(program)), reverse=True)
    sums = jnp.where(program.active[:, None], jnp.moveaxis(sums, 0, -2), 0)
    return jnp.conj(lam), sums


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
