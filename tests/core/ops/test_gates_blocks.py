"""Dense blocks and repetitions of the portable state-vector path: values and derivatives as instruction by instruction.

Second derivatives and batches of `gates.run_blocks` are the conformance grid's.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops.gates import Instruction, Program, _blocks, _native, _xla, gates_run, run_plain
from sciax.core.ops.gates._operators import _oracle_run, random_program

pytestmark = pytest.mark.usefixtures("x64")


def _rotation(x, t):
    c = np.cos(t), 1j * np.sin(t)
    return Instruction(x, 0), [c[0], c[0], c[1], c[1]]


def _chain(n, layers, rng):
    """Rotations on every qubit, then a controlled flip of each neighbour."""
    pairs = []
    for _ in range(layers):
        pairs += [_rotation(1 << q, rng.uniform(0, 6)) for q in range(n)]
        pairs += [(Instruction(2 << q, 0, 1 << q, 1 << q, active=False), [0, 0, 1, 1]) for q in range(n - 1)]
    return Program.of(n, [i for i, _ in pairs]), np.array([c for _, c in pairs], complex)


def _state(rng, n):
    psi = rng.normal(size=1 << n) + 1j * rng.normal(size=1 << n)
    return psi / np.linalg.norm(psi)


@pytest.fixture
def always(monkeypatch):
    """Blocks for every register that holds one."""
    monkeypatch.setattr(_blocks, "use", lambda program: program.num_instructions > 0)


def test_chains_are_merged_and_long_strings_are_not():
    rng = np.random.default_rng(0)
    program, _ = _chain(16, 10, rng)
    assert _blocks.use(program)
    assert len(_blocks.pack(program)) <= program.num_instructions // 5
    strings = Program.of(16, [Instruction((1 << 16) - 1 - (1 << k), 1) for k in range(12)])
    assert not _blocks.use(strings)
    assert not _blocks.use(_chain(_blocks.SMALLEST - 1, 2, rng)[0])


@pytest.mark.parametrize("seed", range(4))
def test_packing_reorders_only_what_commutes(seed):
    rng = np.random.default_rng(seed)
    program, _ = random_program(rng, 7, 40)
    position = {g: k for k, g in enumerate(g for block in _blocks.pack(program) for g in block)}
    assert sorted(position) == list(range(40))
    x, kept = program.rows[:, 0], (program.rows[:, 1] | program.rows[:, 2]) & ~program.rows[:, 0]
    for a in range(40):
        for b in range(a):
            if position[a] < position[b]:
                assert not (x[a] & (x[b] | kept[b]) or kept[a] & x[b])


@pytest.mark.parametrize("kind", ["chain", "random"])
def test_reverse_derivatives(always, kind):
    """Against the instruction-by-instruction walk, with instructions wider than a block among the random ones."""
    rng = np.random.default_rng(3)
    program, c = _chain(6, 2, rng) if kind == "chain" else random_program(rng, 6, 12)
    if kind == "random":
        assert _blocks.plan(program).wide.any()
    psi, ct = _state(rng, 6), _state(rng, 6)
    out = _oracle_run(psi, c, program=program)
    arrays = jnp.asarray(out), jnp.asarray(c), jnp.asarray(ct)
    got = jax.jit(partial(_blocks.run_adjoint, program=program))(*arrays)
    with pytest.MonkeyPatch.context() as m:
        m.setattr(_blocks, "use", lambda program: False)
        expected = jax.jit(partial(_xla.run_adjoint, program=program))(*arrays)
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a, b, atol=1e-13)


def test_large_register_takes_blocks_by_itself():
    """The public path on a register large enough, one precision each, against the definition."""
    rng = np.random.default_rng(8)
    program, c = _chain(_blocks.SMALLEST, 2, rng)
    psi = _state(rng, _blocks.SMALLEST)
    expected = _oracle_run(psi, c, program=program)
    for dtype, tolerance in ((np.complex64, 2e-6), (np.complex128, 1e-13)):
        out = jax.jit(lambda p, k: run_plain(p, k, program=program))(jnp.asarray(psi, dtype), jnp.asarray(c, dtype))
        np.testing.assert_allclose(out, expected, atol=tolerance)


def test_equations_do_not_grow_with_the_circuit(always):
    def size(layers):
        program, c = _chain(6, layers, np.random.default_rng(0))
        psi = jnp.asarray(_state(np.random.default_rng(1), 6))
        trace = jax.make_jaxpr(lambda k: _blocks.run_blocks(psi, k, program=program))(jnp.asarray(c))
        return str(trace).count("\n")

    assert size(20) == size(5)


def test_small_register_is_refused():
    program, c = random_program(np.random.default_rng(0), 3, 4)
    with pytest.raises(UnsupportedError, match="smaller than a block"):
        _blocks.run_blocks(jnp.ones(8) + 0j, jnp.asarray(c), program=program)


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_repetitions_are_the_program_written_out(implementation):
    """Values, derivatives and batches of a scanned program, on a register that the compiled kernel walks in several blocks."""
    if implementation == "native" and not _native.available():
        pytest.skip("the compiled kernel is not built here")
    rng = np.random.default_rng(2)
    n = 13 if implementation == "native" else 5
    program, c = random_program(rng, n, 6)
    thrice, long = replace(program, repeats=3), Program.from_rows(n, np.tile(program.rows, (3, 1)))
    psi, ct = jnp.asarray(_state(rng, n)), jnp.asarray(_state(rng, n))

    def pulled(p, k):
        run = lambda s, m: gates_run(s, m, program=p, implementation=implementation)  # noqa: E731
        out, back = jax.vjp(run, psi, k)
        return out, *back(ct)

    out, dpsi, dc = jax.jit(lambda k: pulled(thrice, k))(jnp.asarray(c))
    expected, dpsi_long, dc_long = pulled(long, jnp.asarray(np.tile(c, (3, 1))))
    np.testing.assert_allclose(out, expected, atol=1e-13)
    np.testing.assert_allclose(dpsi, dpsi_long, atol=1e-13)
    np.testing.assert_allclose(dc, dc_long.reshape(3, 6, 4).sum(0), atol=1e-12)


def test_fewer_than_one_repetition_is_refused():
    with pytest.raises(InputError, match="at least once"):
        Program.from_rows(1, np.zeros((1, 5)), 0)
