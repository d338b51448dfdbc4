"""Registration of the state-vector operators, with NumPy oracles."""

from dataclasses import replace

import numpy as np

from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.gates import _blocks, _primitive, _xla
from sciax.core.ops.gates import _pauli as _p
from sciax.core.ops.gates._program import Instruction, Program, parity


def _oracle_run(psi, coefficients, *, program: Program, implementation="auto"):
    """Amplitude by amplitude, straight from the definition."""
    psi, coefficients = np.asarray(psi, np.complex128), np.asarray(coefficients, np.complex128)
    index = np.arange(psi.shape[-1])
    for g, (x, z, cmask, cval, _) in [*enumerate(program.rows)] * program.repeats:
        a0, a1, b0, b1 = (coefficients[..., g, k, None] for k in range(4))
        odd = parity(index & z).astype(bool)
        inside = ((index & cmask) == cval) | ((index & cmask) == (cval ^ (x & cmask)))
        new = np.where(odd, a1, a0) * psi + np.where(odd, b1, b0) * psi[..., index ^ x]
        psi = np.where(inside, new, psi)
    return psi


def _oracle_prepare(coefficients, *, program: Program, implementation="auto"):
    start = np.zeros((*np.shape(coefficients)[:-2], 1 << program.num_qubits), complex)
    start[..., 0] = 1
    return _oracle_run(start, coefficients, program=program)


def _state(rng, n):
    psi = rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n)
    return psi / np.linalg.norm(psi)


def random_program(rng: np.random.Generator, n: int, gates: int) -> tuple[Program, np.ndarray]:
    """Unitary instructions of every shape: diagonal, rotations of strings, two-level pairs, with and without conditions."""
    instructions, coefficients = [], []
    for g in range(gates):
        x = 0 if g % 4 == 3 else int(rng.integers(1, 1 << n)) if n else 0
        z = int(rng.integers(0, 1 << n))
        cmask = int(rng.integers(0, 1 << n)) if g % 2 else 0
        cval = int(rng.integers(0, 1 << n)) & cmask
        phases = np.exp(1j * rng.uniform(0, 6, 2))
        if x == 0:
            c = [phases[0], phases[1], 0, 0]
        elif parity([x & z])[0]:
            q, _ = np.linalg.qr(rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)))
            c = [q[0, 0], q[1, 1], q[0, 1], q[1, 0]]
        else:
            t = rng.uniform(0, 6, 2)
            c = [*(np.cos(t) * phases), *(1j * np.sin(t) * phases)]
        instructions.append(Instruction(x, z, cmask, cval))
        coefficients.append(c)
    return Program.of(n, instructions), np.array(coefficients, complex).reshape(gates, 4)


def _run_samples(rng):
    for label, n, gates in (
        ("ordinary", 4, 6),
        ("size one", 0, 1),
        ("empty program", 2, 0),
        ("odd", 3, 5),
        ("large", 7, 9),
    ):
        program, c = random_program(rng, n, gates)
        yield Sample(label, (_state(rng, n), c), {"program": program})
    program, c = random_program(rng, 3, 5)
    yield Sample("badly scaled", (1e4 * _state(rng, 3), c), {"program": program})
    yield Sample("repeated", (_state(rng, 3), c), {"program": replace(program, repeats=3)})


def _block_samples(rng):
    """As for a plain run, on registers that hold a block."""
    for label, n, gates in (("ordinary", 5, 12), ("one block", 4, 6), ("empty program", 4, 0), ("large", 7, 20)):
        program, c = random_program(rng, n, gates)
        yield Sample(label, (_state(rng, n), c), {"program": program})
    program, c = random_program(rng, 5, 8)
    yield Sample("badly scaled", (1e4 * _state(rng, 5), c), {"program": program})


def _prepare_samples(rng):
    for label, n, gates in (("ordinary", 4, 6), ("size one", 1, 3), ("odd", 3, 5), ("large", 7, 9)):
        program, c = random_program(rng, n, gates)
        yield Sample(label, (c,), {"program": program})
    program, c = random_program(rng, 3, 4)
    yield Sample("repeated", (c,), {"program": replace(program, repeats=3)})
    # gates are unitary, so what can be badly scaled is how far they are from the identity
    program = Program.of(3, [Instruction(1, 1), Instruction(6, 2), Instruction(0, 4)])
    a, b = np.cos(1e-4), np.sin(1e-4)
    yield Sample(
        "badly scaled rotation",
        (np.array([[a, a, -b, b], [a, a, b, -b], [a - 1j * b, a + 1j * b, 0, 0]]),),
        {"program": program},
    )


def _flops(psi, coefficients, *, program: Program, **_):
    return 14.0 * np.size(psi) * program.num_instructions * program.repeats


def _prepare_flops(coefficients, *, program: Program, **_):
    return 14.0 * (1 << program.num_qubits) * program.num_instructions * program.repeats


def _oracle_apply(psi, coefficients, *, terms: _p.PauliTerms):
    psi = np.asarray(psi, np.complex128)
    index, out = np.arange(psi.shape[-1]), np.zeros_like(psi)
    for k, (x, z, y) in enumerate(terms.rows):
        out = out + coefficients[..., k, None] * (-1j) ** y * (1 - 2 * parity(index & z)) * psi[..., index ^ x]
    return out


def _oracle_overlaps(bra, psi, *, terms: _p.PauliTerms):
    one = [_p.PauliTerms(terms.num_qubits, row.tobytes()) for row in terms.rows]
    parts = [np.sum(bra * _oracle_apply(psi, np.ones(1), terms=t), -1).real for t in one]
    return np.stack(parts, -1) if parts else np.zeros((*np.shape(psi)[:-1], 0))


def _terms(rng, n, count):
    x = np.sort(rng.integers(0, 1 << n, count))
    return _p.PauliTerms.of(n, x, rng.integers(0, 1 << n, count))


def _apply_samples(rng):
    for label, n, count in (
        ("ordinary", 4, 9),
        ("size one", 0, 1),
        ("no terms", 2, 0),
        ("odd", 3, 5),
        ("large", 7, 40),
    ):
        yield Sample(label, (_state(rng, n), rng.normal(size=count)), {"terms": _terms(rng, n, count)})
    yield Sample("badly scaled", (1e4 * _state(rng, 3), 1e-4 * rng.normal(size=5)), {"terms": _terms(rng, 3, 5)})


def _overlap_samples(rng):
    for label, n, count in (("ordinary", 4, 9), ("size one", 0, 1), ("no terms", 2, 0), ("odd", 3, 5)):
        yield Sample(label, (_state(rng, n), _state(rng, n)), {"terms": _terms(rng, n, count)})
    yield Sample("badly scaled", (1e4 * _state(rng, 3), 1e-4 * _state(rng, 3)), {"terms": _terms(rng, 3, 5)})


def _oracle_matrix(psi, matrix, *, targets):
    n = (psi.shape[-1] - 1).bit_length()
    index, out = np.arange(1 << n), np.zeros(psi.shape, complex)
    local = sum((index >> q & 1) << k for k, q in enumerate(targets))
    rest = index & ~sum(1 << q for q in targets)
    for column in range(1 << len(targets)):
        source = rest | sum((column >> k & 1) << q for k, q in enumerate(targets))
        out += matrix[..., local, column] * psi[..., source]
    return out


def _matrix_samples(rng):
    for label, n, targets in (("ordinary", 4, (2, 0)), ("size one", 1, (0,)), ("all qubits, any order", 3, (1, 2, 0))):
        m = rng.normal(size=(1 << len(targets),) * 2) + 1j * rng.normal(size=(1 << len(targets),) * 2)
        yield Sample(label, (_state(rng, n), m), {"targets": targets})
    yield Sample("badly scaled", (1e4 * _state(rng, 3), 1e-4 * rng.normal(size=(2, 2)) + 0j), {"targets": (1,)})


operator("gates.run", oracle=_oracle_run, samples=_run_samples, flops=_flops)(_primitive.gates_run)
operator("gates.prepare", oracle=_oracle_prepare, samples=_prepare_samples, flops=_prepare_flops)(
    _primitive.gates_prepare
)
operator("gates.run_blocks", oracle=_oracle_run, samples=_block_samples, flops=_flops)(_blocks.run_blocks)
operator("gates.run_plain", oracle=_oracle_run, samples=_run_samples, flops=_flops)(_xla.run_plain)
operator(
    "gates.pauli_apply",
    oracle=_oracle_apply,
    samples=_apply_samples,
    flops=lambda psi, c, *, terms: 4.0 * np.size(psi) * terms.count,
)(_p.pauli_apply)
operator(
    "gates.pauli_overlaps",
    oracle=_oracle_overlaps,
    samples=_overlap_samples,
    flops=lambda bra, psi, *, terms: 10.0 * np.size(psi) * terms.count,
)(_p.pauli_overlaps)
operator(
    "gates.apply_matrix",
    oracle=_oracle_matrix,
    samples=_matrix_samples,
    flops=lambda psi, m, *, targets: 8.0 * np.size(psi) * (1 << len(targets)),
)(_xla.apply_matrix)
