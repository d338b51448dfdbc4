"""The compiled state-vector kernel against the portable one, on every instruction set of this machine."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.gates import (
    Instruction,
    PauliTerms,
    Program,
    _native,
    gates_prepare,
    gates_run,
    pauli_apply,
    run_plain,
)
from sciax.core.ops.gates import _pauli as pauli_module
from sciax.core.ops.gates._operators import _oracle_apply, _oracle_run, random_program
from sciax.core.ops.gates._schedule import schedule

pytestmark = pytest.mark.usefixtures("x64")
SETS = ["baseline", "avx2", "avx512"]


@pytest.fixture(params=SETS)
def instruction_set(request):
    module = _native._module()
    if module is None:
        pytest.skip("the compiled kernel is not built here")
    before = module.instruction_set()
    try:
        module.choose(request.param)
    except ValueError:
        pytest.skip(f"this machine has no {request.param}")
    yield
    module.choose(before)


def _case(n, gates, seed):
    rng = np.random.default_rng(seed)
    program, c = random_program(rng, n, gates)
    psi = rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n)
    return program, c, psi / np.linalg.norm(psi), rng


@pytest.mark.parametrize("dtype, tolerance", [(np.complex64, 3e-6), (np.complex128, 1e-13)])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 6, 15])
def test_values_and_derivatives(instruction_set, n, dtype, tolerance):
    program, c, psi, rng = _case(n, 12 if n < 10 else 20, n)
    expected = _oracle_run(psi, c, program=program)
    args = jnp.asarray(psi, dtype), jnp.asarray(c, dtype)
    run = jax.jit(lambda p, k: gates_run(p, k, program=program, implementation="native"))
    np.testing.assert_allclose(run(*args), expected, atol=tolerance)
    start = np.zeros(1 << n, complex)
    start[0] = 1
    np.testing.assert_allclose(
        gates_prepare(args[1], program=program, implementation="native"),
        _oracle_run(start, c, program=program),
        atol=tolerance,
    )
    ct = jnp.asarray(rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n), dtype)
    got = jax.vjp(run, *args)[1](ct)
    if n < 10:
        want = jax.vjp(lambda p, k: run_plain(p, k, program=program), *args)[1](ct)
    else:  # against the portable reversible rule, to keep memory small
        want = jax.vjp(lambda p, k: gates_run(p, k, program=program, implementation="xla"), *args)[1](ct)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, atol=20 * tolerance)


@pytest.mark.parametrize("n", [0, 2, 5, 9])
def test_pauli_sums(instruction_set, n):
    rng = np.random.default_rng(n)
    terms = PauliTerms.of(n, np.sort(rng.integers(0, 1 << n, 30)), rng.integers(0, 1 << n, 30))
    psi, c = rng.normal(size=(3, 1 << n)) + 1j * rng.normal(size=(3, 1 << n)), rng.normal(size=(3, 30))
    got = jax.jit(lambda p, k: pauli_apply(p, k, terms=terms))(psi, c)
    np.testing.assert_allclose(got, _oracle_apply(psi, c, terms=terms), atol=1e-13)
    np.testing.assert_allclose(pauli_module._apply_xla(jnp.asarray(psi), jnp.asarray(c), terms=terms), got, atol=1e-13)


def test_batches_of_both_arguments():
    program, c, psi, rng = _case(5, 10, 3)
    states = rng.normal(size=(7, 32)) + 1j * rng.normal(size=(7, 32))
    run = lambda p, k: gates_run(p, k, program=program)  # noqa: E731
    np.testing.assert_allclose(
        jax.vmap(run, (0, None))(states, c), np.stack([_oracle_run(s, c, program=program) for s in states]), atol=1e-13
    )
    several = np.stack([random_program(np.random.default_rng(3), 5, 10)[1] * 1.0] * 4)
    np.testing.assert_allclose(
        jax.vmap(run, (None, 0))(psi, several)[2], _oracle_run(psi, several[2], program=program), atol=1e-13
    )
    grads = jax.vmap(jax.grad(lambda p: jnp.abs(run(p, c)[0]) ** 2))(jnp.asarray(states))
    one = jax.grad(lambda p: jnp.abs(run(p, c)[0]) ** 2)(jnp.asarray(states[4]))
    np.testing.assert_allclose(grads[4], one, atol=1e-13)


def test_schedule_keeps_every_gate_once_and_respects_order():
    rng = np.random.default_rng(0)
    program, _ = random_program(rng, 12, 60)
    # flips of few bits, as real gates have
    rows = program.rows.copy()
    rows[:, 0] = [(1 << rng.integers(12)) | (1 << rng.integers(12)) for _ in range(60)]
    program = Program.from_rows(12, rows)
    table = schedule(program, 7).tolist()
    passes, at, seen = table[0], 1, []
    for _ in range(passes):
        width = table[at]
        local = sum(1 << q for q in table[at + 1 : at + 1 + width])
        at += 1 + width
        count = table[at]
        taken = table[at + 1 : at + 1 + count]
        at += 1 + count
        assert width <= 8  # the low bits plus the two of a gate may exceed 7 by one
        assert all(rows[g, 0] & ~local == 0 for g in taken)
        seen += taken
    assert sorted(seen) == list(range(60))
    position = {g: k for k, g in enumerate(seen)}
    for a in range(60):
        for b in range(a + 1, 60):
            xa, xb = int(rows[a, 0]), int(rows[b, 0])
            da, db = (int(rows[g, 1] | rows[g, 2]) & ~int(rows[g, 0]) for g in (a, b))
            if xa & (xb | db) or xb & da:
                assert position[a] < position[b]


def test_program_of_one_structure_compiles_once():
    program, c, psi, _ = _case(4, 8, 1)
    again = Program(program.num_qubits, bytes(program.table))
    assert program == again and hash(program) == hash(again)
    count = 0

    def run(p, k, prog):
        nonlocal count
        count += 1
        return gates_run(p, k, program=prog)

    f = jax.jit(run, static_argnums=2)
    f(psi, c, program), f(psi, 1j * c, again)
    assert count == 1


def test_bad_input():
    program = Program.of(2, [Instruction(1, 1)])
    c = np.ones((1, 4), complex)
    for bad in ({"psi": np.ones(3, complex)}, {"coefficients": np.ones((2, 4), complex)}):
        with pytest.raises(ShapeError):
            gates_run(**{"psi": np.ones(4, complex), "coefficients": c, **bad}, program=program)
    with pytest.raises(DTypeError):
        gates_run(np.ones(4, np.complex64), c, program=program)
    with pytest.raises(DTypeError):
        gates_prepare(c.real, program=program)
    with pytest.raises(InputError, match="outside the register"):
        Program.of(2, [Instruction(4, 0)])
    with pytest.raises(InputError, match="outside its mask"):
        Program.of(2, [Instruction(1, 0, 2, 1)])
    with pytest.raises(InputError, match="unknown implementation"):
        gates_run(np.ones(4, complex), c, program=program, implementation="gpu")
    with pytest.raises(InputError, match="sorted"):
        PauliTerms.of(2, [1, 0], [0, 0])


def test_programs_run_where_compilation_is_switched_off():
    program, c, psi, _ = _case(3, 4, 0)
    terms = PauliTerms.of(3, [1], [0])
    with jax.disable_jit():
        out = gates_run(psi, c, program=program)
        moved = pauli_apply(out, jnp.ones(1), terms=terms)
    np.testing.assert_allclose(out, _oracle_run(psi, c, program=program), atol=1e-13)
    np.testing.assert_allclose(moved, np.asarray(out)[np.arange(8) ^ 1], atol=1e-15)
