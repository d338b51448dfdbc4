"""Refusing a simulation that cannot fit, with the figure."""

import os

import numpy as np

from sciax.core.errors import InputError
from sciax.core.ops.gates._program import MAX_QUBITS


def require_memory(num_qubits: int, dtype, what: str, copies: float = 1) -> None:
    """Raises:
    InputError: 2^num_qubits amplitudes, `copies` times, are more than the machine's memory (or than indices can count).
    """
    needed = copies * np.dtype(dtype).itemsize * 2.0**num_qubits
    if num_qubits < 24:
        return
    total = _total_memory()
    if num_qubits > MAX_QUBITS or (total and needed > total):
        raise InputError(
            f"{what} of {num_qubits} qubits does not fit",
            got=f"2^{num_qubits} amplitudes need {needed:.3g} bytes ({needed / 2**30:.3g} GiB)",
            expected=f"at most {total / 2**30:.3g} GiB and {MAX_QUBITS} qubits"
            if total
            else f"at most {MAX_QUBITS} qubits",
            remedy="use fewer qubits, or complex64",
        )


def _total_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):  # not a POSIX system: no limit is known
        return 0.0
