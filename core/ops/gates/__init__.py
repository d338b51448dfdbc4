"""State-vector kernels: two-sparse instructions on 2^n amplitudes, their derivatives, and Pauli sums by X mask.

Qubit 0 is the least significant bit of the index, everywhere.
"""

from sciax.core.ops.gates._pauli import PauliTerms as PauliTerms
from sciax.core.ops.gates._pauli import pauli_apply as pauli_apply
from sciax.core.ops.gates._pauli import pauli_overlaps as pauli_overlaps
from sciax.core.ops.gates._primitive import gates_prepare as gates_prepare
from sciax.core.ops.gates._primitive import gates_run as gates_run
from sciax.core.ops.gates._program import Instruction as Instruction
from sciax.core.ops.gates._program import Program as Program
from sciax.core.ops.gates._xla import apply_matrix as apply_matrix
from sciax.core.ops.gates._xla import run_plain as run_plain
