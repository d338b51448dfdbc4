"""Packing instructions into cache blocks.

The kernel applies, in one pass over memory, every instruction whose flipped bits are among the pass's local qubits. Two
instructions commute when on each shared qubit both are diagonal, so a deferred instruction only holds back those that do not
commute with it.
"""

from functools import lru_cache

import numpy as np

from sciax.core.ops.gates._program import Program

LOW = 6
"""Qubits 0..LOW-1 are local in every pass: rows of 2^LOW contiguous amplitudes are what memory likes."""


def block_bits(num_qubits: int, wide: bool, planes: int) -> int:
    """Local qubits of a pass: the scratch (2 planes forward, 4 backward) should fill half of a 1 MiB L2 cache, and medium
    states should still make four blocks for the threads to share."""
    return min(16 - int(wide) - int(planes == 4), max(12, num_qubits - 2))


@lru_cache(maxsize=256)
def schedule(program: Program, bits: int) -> np.ndarray:
    """Passes as integers: their number, then for each the local qubits (count first) and the instructions (count first)."""
    n = program.num_qubits
    bits = min(bits, n)
    low = (1 << min(LOW, bits)) - 1
    rows = program.rows.tolist()
    pending = list(range(len(rows)))
    passes: list[list[int]] = []
    while pending or not passes:
        local, taken, deferred = low, [], []
        flipped = 0  # qubits on which a deferred instruction is not diagonal
        diagonal = 0  # qubits on which a deferred instruction is diagonal
        for g in pending:
            x, z, cmask = rows[g][:3]
            kept = (z | cmask) & ~x
            grown = local | x
            if not (x & (flipped | diagonal) or kept & flipped) and (
                grown == local or grown.bit_count() <= max(bits, (x | low).bit_count() if not taken else 0)
            ):
                local = grown
                taken.append(g)
            else:
                flipped |= x
                diagonal |= kept
                deferred.append(g)
        # Fill up the block with the lowest other qubits: longer rows, and fewer blocks.
        for q in range(n):
            if local.bit_count() >= bits:
                break
            local |= 1 << q
        qubits = [q for q in range(n) if local >> q & 1]
        passes.append([len(qubits), *qubits, len(taken), *taken])
        pending = deferred
    return np.array([len(passes), *(v for p in passes for v in p)], np.int64)


def with_empty_pass(passes: np.ndarray) -> np.ndarray:
    """The same passes after one without instructions, on the first one's qubits."""
    qubits = passes[1 : 2 + passes[1]]
    return np.concatenate([[passes[0] + 1], qubits, [0], passes[1:]])
