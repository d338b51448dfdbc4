"""The portable implementation for large states: neighbouring instructions merged into dense blocks of a few qubits.

A block's instructions become one matrix on LOCAL qubits; the state is permuted so that these are its lowest bits, and the block
is one real matrix product, its qubits left where they are until the next block moves them. A pass over the state then serves
all gates of a block instead of one. The blocks are scanned, so that compile time does not depend on their number, and
everything is made of ordinary JAX operations: any device, any order of derivative, forward and reverse mode, vmap.

An instruction that touches more than LOCAL qubits is a block of its own, applied as it is.
"""

from dataclasses import dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Complex

from sciax.core.errors import UnsupportedError
from sciax.core.ops.gates._program import Program
from sciax.core.ops.gates._repeat import repeated
from sciax.core.ops.gates._step import adjoint_step, step

LOCAL = 4
"""Qubits of a block: the product costs 2^LOCAL operations an amplitude, a larger block saves permutations."""

SMALLEST = 12
"""Registers of fewer qubits stay with the instruction-by-instruction scan: there a block's matrix costs as much as the state."""

_UINT = np.uint32


@dataclass(frozen=True, eq=False)
class Plan:
    """The blocks of a program.

    Attributes:
        gather: (B, rows + columns) source index of amplitude (r, c) of a block's layout is gather[:, r] + gather[:, rows + c].
        scatter: the same for the way back.
        restore, start: gather tables from the last layout to the ordinary order, and back.
        members: (B, M) instructions of each block, padded by num_instructions (the identity).
        masks: (B, M, 4) their masks in the block's layout.
        wide: (B,) whether the block is one instruction on more qubits than LOCAL.
    """

    gather: np.ndarray
    scatter: np.ndarray
    restore: np.ndarray
    start: np.ndarray
    members: np.ndarray
    masks: np.ndarray
    wide: np.ndarray


def use(program: Program) -> bool:
    """Whether merging saves passes over the state."""
    if program.num_qubits < SMALLEST or program.num_instructions == 0:
        return False
    blocks = pack(program)
    return 2 * len(blocks) <= program.num_instructions


@lru_cache(maxsize=256)
def pack(program: Program) -> list[list[int]]:
    """Instructions in blocks, greedily: an instruction joins if the block stays small and it commutes with those left out."""
    rows = program.rows.tolist()
    pending, blocks = list(range(len(rows))), []
    while pending:
        taken, deferred = [], []
        local = flipped = diagonal = (
            0  # qubits of the block; where a deferred instruction is not diagonal, and where it is
        )
        for position, g in enumerate(pending):
            x, z, cmask = rows[g][:3]
            kept = (z | cmask) & ~x
            grown = local | x | z | cmask
            commutes = not (x & (flipped | diagonal) or kept & flipped)
            if commutes and (not taken or grown.bit_count() <= LOCAL):
                local = grown
                taken.append(g)
                if local.bit_count() > LOCAL:
                    deferred += pending[position + 1 :]
                    break
            else:
                flipped |= x
                diagonal |= kept
                deferred.append(g)
                if (flipped & local) == local and local.bit_count() == LOCAL:
                    deferred += pending[position + 1 :]  # nothing can pass any more
                    break
        blocks.append(taken)
        pending = deferred
    return blocks


@lru_cache(maxsize=64)
def plan(program: Program) -> Plan:
    """The blocks with their layouts and masks."""
    n, rows, blocks = program.num_qubits, program.rows, pack(program)
    width = max((len(b) for b in blocks), default=0)
    members = np.full((len(blocks), width), program.num_instructions, np.int32)
    masks = np.zeros((len(blocks), width, 4), np.int64)
    wide = np.zeros(len(blocks), bool)
    place = np.arange(n)  # qubit -> bit position
    gathers, scatters = [], []
    for b, block in enumerate(blocks):
        touched = int(np.bitwise_or.reduce(np.bitwise_or(rows[block, 0], rows[block, 1]) | rows[block, 2]))
        qubits = [q for q in range(n) if touched >> q & 1]
        wide[b] = len(qubits) > LOCAL
        before = place.copy()
        if not wide[b]:
            _bring_down(place, qubits)
        gathers.append(_table(place, before))
        scatters.append(_table(before, place))
        members[b, : len(block)] = block
        for q in range(n):
            masks[b, : len(block)] |= (rows[block, :4] >> q & 1) << place[q]
    order = np.arange(n)
    stack = lambda tables: np.array(tables, _UINT).reshape(len(blocks), -1)  # noqa: E731
    return Plan(
        stack(gathers),
        stack(scatters),
        _table(order, place),
        _table(place, order),
        members,
        masks.astype(_UINT),
        wide,
    )


def _bring_down(place: np.ndarray, qubits: list[int]) -> None:
    """Exchange positions so that `qubits` are among the lowest LOCAL bits, moving no others."""
    inside = set(qubits)
    free = [q for q in np.argsort(place)[:LOCAL].tolist() if q not in inside]
    for q in qubits:
        if place[q] >= LOCAL:
            other = free.pop()
            place[q], place[other] = place[other], place[q]


def _table(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """Where amplitude i of the layout `new` stands in the layout `old`: a sum of a part for the high and one for the low bits."""
    n = len(new)
    low = n // 2
    bits = np.zeros(n, np.int64)
    bits[new] = 1 << old
    parts = [np.zeros(1 << (n - low), np.int64), np.zeros(1 << low, np.int64)]
    for position, value in enumerate(bits):
        part, k = (parts[1], position) if position < low else (parts[0], position - low)
        part += (np.arange(len(part)) >> k & 1) * value
    return np.concatenate(parts).astype(_UINT)


def _permute(planes, table):
    """(..., N, 2) in another order."""
    n = (planes.shape[-2] - 1).bit_length()
    rows = 1 << (n - n // 2)
    index = (table[:rows, None] + table[None, rows:]).reshape(-1)
    return planes.at[..., index, :].get(mode="promise_in_bounds", unique_indices=True)


def _planes(psi):
    return jnp.stack([psi.real, psi.imag], -1)


def _amplitudes(planes):
    return lax.complex(planes[..., 0], planes[..., 1])


def matrices(coefficients, p: Plan):
    """(B, ..., 2K, 2K) real matrices R of the blocks for rows of interleaved re, im: new row = row @ R."""
    size = 1 << LOCAL
    dtype = coefficients.dtype
    identity = jnp.broadcast_to(jnp.array([1, 1, 0, 0], dtype), (*coefficients.shape[:-2], 1, 4))
    padded = jnp.concatenate([coefficients, identity], -2)
    # padding of wide blocks, whose matrix is not used, must not have masks outside the block
    members = np.where(p.wide[:, None], padded.shape[-2] - 1, p.members)
    masks = np.where(p.wide[:, None, None], 0, p.masks)
    index = lax.iota(_UINT, size)
    one = jax.vmap(step, in_axes=(0, -2, None, 0, 0, 0, 0))  # over blocks

    def body(m, inputs):
        where, x, z, cmask, cval = inputs
        # m[b, ..., column, row]: the columns of the matrix are the states that the instruction acts on
        c = jnp.take(padded, where, axis=-2)[..., None, :, :]
        return one(m, c, index, x, z, cmask, cval), None

    start = jnp.broadcast_to(jnp.eye(size, dtype=dtype), (len(members), *coefficients.shape[:-2], size, size))
    columns = [jnp.asarray(masks[:, :, k].T) for k in range(4)]
    m = lax.scan(body, start, (jnp.asarray(members.T), *columns))[0]
    re, im = m.real, m.imag
    top, bottom = jnp.stack([re, im], -1), jnp.stack([-im, re], -1)
    return jnp.stack([top, bottom], -3).reshape(*m.shape[:-2], 2 * size, 2 * size)


def _product(planes, matrix):
    rows = planes.reshape(*planes.shape[:-2], -1, matrix.shape[-1])
    # TF32 would destroy amplitudes on GPUs, so the precision is stated.
    return jnp.matmul(rows, matrix, precision=lax.Precision.HIGHEST).reshape(planes.shape)


def _wide_inputs(coefficients, p: Plan, program: Program):
    """Coefficients, masks and parity flips of each block's first instruction, read by blocks of one wide instruction."""
    first = p.members[:, 0]
    c = jnp.moveaxis(jnp.take(coefficients, first, axis=-2), -2, 0)
    return c, jnp.asarray(p.masks[:, 0]), jnp.asarray(program.flips_parity[first].astype(_UINT)), jnp.asarray(p.wide)


@repeated
def run_blocks(
    psi: Complex[Array, "*batch amplitudes"], coefficients: Complex[Array, "*batch gates 4"], *, program: Program
) -> Complex[Array, "*batch amplitudes"]:
    """Apply the program, unitary or not, in dense blocks of LOCAL qubits; `run_plain` chooses it where it saves time.

    Raises:
        UnsupportedError: a register smaller than a block.
    """
    if program.num_qubits < LOCAL:
        raise UnsupportedError(
            "the register is smaller than a block",
            got=f"{program.num_qubits} qubits",
            expected=f">= {LOCAL}",
            remedy="run_plain",
        )
    if program.num_instructions == 0:
        return psi
    p = plan(program)
    index = lax.iota(_UINT, 1 << program.num_qubits)
    batch = jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-2])
    planes = jnp.broadcast_to(_planes(psi), (*batch, psi.shape[-1], 2))

    def body(state, inputs):
        table, matrix, c, masks, _, wide = inputs

        def single(s):
            return _planes(step(_amplitudes(s), c, index, *masks))

        def dense(s):
            return _product(_permute(s, table), matrix)

        return (lax.cond(wide, single, dense, state) if p.wide.any() else dense(state)), None

    inputs = (jnp.asarray(p.gather), matrices(coefficients, p), *_wide_inputs(coefficients, p, program))
    planes = lax.scan(body, planes, inputs)[0]
    return _amplitudes(_permute(planes, jnp.asarray(p.restore)))


def run_adjoint(psi_out, coefficients, cotangent, *, program: Program):
    """As `_xla.run_adjoint` of one repetition: the derivative in a block's matrix is one product, carried to the coefficients
    after all blocks."""
    p = plan(program)
    index = lax.iota(_UINT, 1 << program.num_qubits)
    all_matrices, transpose = jax.vjp(lambda c: matrices(c, p), coefficients)

    def body(carry, inputs):
        table, matrix, c, masks, flips, wide = inputs

        def single(carry):
            psi, lam = (_amplitudes(s) for s in carry)
            (psi, lam), sums = adjoint_step(psi, lam, c, index, masks[0], masks[1], masks[2], masks[3], flips)
            return (_planes(psi), _planes(lam)), (jnp.zeros_like(matrix), sums)

        def dense(carry):
            undo = jnp.swapaxes(matrix, -1, -2)
            before, lam = (_product(s, undo) for s in carry)
            shape = (*before.shape[:-2], -1, matrix.shape[-1])
            change = jnp.matmul(
                jnp.swapaxes(before.reshape(shape), -1, -2), carry[1].reshape(shape), precision=lax.Precision.HIGHEST
            )
            return (_permute(before, table), _permute(lam, table)), (change, jnp.zeros_like(c))

        return lax.cond(wide, single, dense, carry) if p.wide.any() else dense(carry)

    start = jnp.asarray(p.start)
    carry = tuple(_permute(_planes(s), start) for s in (psi_out, jnp.conj(cotangent)))
    inputs = (jnp.asarray(p.scatter), all_matrices, *_wide_inputs(coefficients, p, program))
    (psi, lam), (changes, sums) = lax.scan(body, carry, inputs, reverse=True)
    (total,) = transpose(changes)
    if p.wide.any():
        total = total.at[..., p.members[p.wide, 0], :].add(jnp.moveaxis(sums[p.wide], 0, -2))
    total = jnp.where(program.active[:, None], total, 0)
    return _amplitudes(psi), jnp.conj(_amplitudes(lam)), total
