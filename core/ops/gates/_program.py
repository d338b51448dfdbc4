"""The instruction set of the state-vector kernels.

One instruction is a two-sparse linear map of the amplitudes,

    psi'[i] = A[s] psi[i] + B[s] psi[i ^ x],    s = parity(i & z),

for the indices i that meet its condition, `i & cmask` equal to `cval` or to `cval ^ (x & cmask)`; the other amplitudes stay.
This single form covers every controlled one-qubit gate (x = z = the target), n-qubit Pauli rotations (x and z the masks of
the string), diagonal gates (x = 0), swaps, Givens and fermionic excitations (cmask containing x), and Pauli channels on a
density matrix read as a vector. A diagonal instruction or a control never needs its qubit to be "local", which is what the
cache-blocked kernel lives on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sciax.core.errors import InputError

MAX_QUBITS = 31  # masks are 32-bit integers on the device; 2^31 complex64 amplitudes are 16 GiB


@dataclass(frozen=True)
class Instruction:
    """Masks of one instruction; its four complex coefficients (A0, A1, B0, B1) are arrays given at run time.

    Attributes:
        x: bits flipped between the two amplitudes that mix (0: diagonal).
        z: bits whose parity selects the coefficients.
        cmask, cval: the condition.
        active: whether derivatives with respect to the coefficients are wanted.
        real: the promise that all four coefficients are real for every parameter value, which halves the work of derivatives.
    """

    x: int
    z: int
    cmask: int = 0
    cval: int = 0
    active: bool = True
    real: bool = False


@dataclass(frozen=True)
class Program:
    """A static, hashable sequence of instructions on `num_qubits` qubits.

    Attributes:
        num_qubits: width of the register.
        table: the instructions, as `rows` in bytes.
        repeats: how often the whole sequence runs, each time with the same coefficients: scanned, never written out.
    """

    num_qubits: int
    table: bytes
    repeats: int = 1

    @classmethod
    def of(cls, num_qubits: int, instructions: Iterable[Instruction]) -> "Program":
        """From instructions.

        Raises:
            InputError: a mask outside the register, or a condition value with bits outside its mask.
        """
        rows = [(g.x, g.z, g.cmask, g.cval, int(g.active) | int(g.real) << 1) for g in instructions]
        return cls.from_rows(num_qubits, np.array(rows, np.int64).reshape(-1, 5))

    @classmethod
    def from_rows(cls, num_qubits: int, rows: np.ndarray, repeats: int = 1) -> "Program":
        """From an integer table with columns x, z, cmask, cval, flags (bit 0: active, bit 1: real).

        Raises:
            InputError: as `of`, and fewer than one repetition.
        """
        if repeats < 1:
            raise InputError("a program runs at least once", got=repeats)
        if not 0 <= num_qubits <= MAX_QUBITS:
            raise InputError("number of qubits out of range", got=num_qubits, expected=f"0..{MAX_QUBITS}")
        rows = np.ascontiguousarray(rows, np.int64)
        masks = rows[:, :4]
        if rows.size and (masks.min() < 0 or masks.max() >= 1 << num_qubits):
            raise InputError(f"an instruction touches a qubit outside the register of {num_qubits}")
        if np.any(rows[:, 3] & ~rows[:, 2]):
            raise InputError("a condition value has bits outside its mask")
        return cls(num_qubits, rows.tobytes(), repeats)

    @cached_property
    def rows(self) -> np.ndarray:
        """(G, 5) integers: x, z, cmask, cval, flags."""
        return np.frombuffer(self.table, np.int64).reshape(-1, 5)

    @property
    def once(self) -> "Program":
        """One repetition."""
        return self if self.repeats == 1 else Program(self.num_qubits, self.table)

    @property
    def num_instructions(self) -> int:
        """Instructions of one repetition."""
        return len(self.table) // 40

    @cached_property
    def flips_parity(self) -> np.ndarray:
        """(G,) parity(x & z): whether the partner amplitude has the other coefficient index."""
        return parity(self.rows[:, 0] & self.rows[:, 1])

    @cached_property
    def active(self) -> np.ndarray:
        """(G,) whether derivatives with respect to the coefficients are wanted."""
        return (self.rows[:, 4] & 1).astype(bool)

    def __hash__(self) -> int:  # bytes cache their own hash, so this is cheap however long the program
        return hash((self.num_qubits, self.table, self.repeats))


def parity(values: np.ndarray | Sequence[int]) -> np.ndarray:
    """Parity of the number of set bits of non-negative integers."""
    return (np.bitwise_count(np.asarray(values, np.int64)) & 1).astype(np.int64)
