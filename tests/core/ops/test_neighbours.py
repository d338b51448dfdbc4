"""Neighbour lists: published counts, brute force, every periodicity, invariances, overflow."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops.neighbours import (
    NeighbourList,
    NeighbourOverflowError,
    _native,
    displacements,
    host_pairs,
    pair_forces,
    pairs,
    safe_norm,
)

METHODS = [
    pytest.param("native", marks=pytest.mark.skipif(not _native.available(), reason="compiled search not built")),
    "xla",
    "host",
]
SI = (np.array([[0.0, 0, 0], [1.3575] * 3]), 2.715 * (1 - np.eye(3)))
CU = (np.zeros((1, 3)), 1.805 * (1 - np.eye(3)))


def found(positions, cell, pbc, cutoff, method):
    """The pair set as sorted rows (i, j, S0, S1, S2)."""
    if method == "host":
        i, j, s = host_pairs(positions, cell, pbc, cutoff)
    else:
        p = pairs(jnp.asarray(positions), jnp.asarray(cell), pbc=pbc, cutoff=cutoff, method=method)
        n = int(p.count)
        assert n == int((np.asarray(p.centers) < len(positions)).sum())
        i, j, s = (np.asarray(a)[:n] for a in (p.centers, p.others, p.shifts))
    rows = np.column_stack([i, j, s])
    return rows[np.lexsort(rows.T[::-1])]


def brute(positions, cell, pbc, cutoff, images=5):
    rows = []
    ranges = [range(-images, images + 1) if p else (0,) for p in pbc]
    for s in itertools.product(*ranges):
        d = positions[None] + np.array(s) @ cell - positions[:, None]
        hit = (d**2).sum(-1) < cutoff**2
        if s == (0, 0, 0):
            np.fill_diagonal(hit, False)
        rows += [(i, j, *s) for i, j in zip(*np.nonzero(hit))]
    rows = np.array(rows).reshape(-1, 5)
    return rows[np.lexsort(rows.T[::-1])]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("crystal", "cutoff", "count"), [(SI, 5, 56), (SI, 6, 92), (SI, 12, 712), (CU, 5, 42), (CU, 6, 78)]
)
def test_published_counts(method, crystal, cutoff, count, x64):
    """ase, matscipy and vesin agree on these (diamond Si a = 5.43, fcc Cu a = 3.61, primitive cells)."""
    assert len(found(*crystal, True, float(cutoff), method)) == count


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pbc", list(itertools.product([False, True], repeat=3)))
def test_all_periodicities_against_brute_force(method, pbc, x64):
    rng = np.random.default_rng(1)
    cell = np.array([[3.0, 0.4, -0.2], [0.9, 2.5, 0.3], [-0.5, 0.6, 2.8]])
    positions = rng.uniform(-4, 6, (12, 3))  # many outside the cell
    expected = brute(positions, cell, pbc, 2.6, images=9)
    got = found(positions, cell, pbc, 2.6, method)
    np.testing.assert_array_equal(got, expected)
    if not all(pbc):  # rows of open directions mean nothing, zero included
        ignored = np.where(np.array(pbc)[:, None], cell, 0.0)
        np.testing.assert_array_equal(found(positions, ignored, pbc, 2.6, method), expected)


@pytest.mark.parametrize("method", METHODS)
def test_larger_gas_agrees_with_host(method, x64):
    rng = np.random.default_rng(0)
    cell = np.diag([11.0, 12.0, 13.0])
    positions = rng.random((170, 3)) @ cell
    np.testing.assert_array_equal(
        found(positions, cell, (True, True, False), 3.0, method),
        found(positions, cell, (True, True, False), 3.0, "host"),
    )


@pytest.mark.parametrize("method", METHODS)
def test_translation_and_wrapping_do_not_matter(method, x64):
    rng = np.random.default_rng(2)
    cell = np.array([[4.0, 0, 0], [1, 4, 0], [0, 0.5, 5]])
    base = rng.random((10, 3)) @ cell
    n = len(found(base, cell, True, 3.0, method))
    for moved in (base + 1e4, base + rng.integers(-3, 4, (10, 3)) @ cell):
        assert len(found(moved, cell, True, 3.0, method)) == n
    open_ = found(base, np.zeros((3, 3)), False, 3.0, method)
    np.testing.assert_array_equal(found(base + 1e4, np.zeros((3, 3)), False, 3.0, method), open_)


def test_displacements_and_gradients(x64):
    positions, cell = map(jnp.asarray, SI)
    nl = NeighbourList.build(positions, cell, True, cutoff=5.0)
    r = safe_norm(nl.displacements(positions))
    assert float(jnp.where(nl.mask, r, 0).max()) < 5.0
    assert nl.capacity > int(nl.count)  # padding present: the gradient below must not see it
    g = jax.grad(lambda p: jnp.sum(jnp.where(nl.mask, safe_norm(nl.displacements(p)) ** 3, 0)))(positions)
    np.testing.assert_allclose(g, 0, atol=1e-10)  # by symmetry
    assert np.isfinite(jax.hessian(lambda p: safe_norm(nl.displacements(p)).sum())(positions)).all()


def test_own_images_give_no_force(x64):
    """One atom whose neighbours are all its own images: the energy depends on the cell only."""
    nl = NeighbourList.build(jnp.zeros((1, 3)), jnp.eye(3) * 2.2, True, cutoff=4.5)
    g = jax.grad(lambda p: jnp.exp(-safe_norm(nl.displacements(p))).sum())(jnp.zeros((1, 3)) + 0.3)
    np.testing.assert_array_equal(g, 0)


def test_table_and_pair_forces_equal_autodiff(x64):
    rng = np.random.default_rng(3)
    cell = jnp.eye(3) * 4.0
    positions = jnp.asarray(rng.random((9, 3)) * 4)
    nl = NeighbourList.build(positions, cell, True, cutoff=2.5, skin=0.2)

    def phi(r2):
        inside = r2 < 6.25
        return jnp.where(inside, (r2 - 6.25) ** 2, 0), jnp.where(inside, 4 * (r2 - 6.25), 0)

    def energy(p, c):
        d = nl.displacements(p, c)
        return jnp.sum(jnp.where(nl.mask, phi((d * d).sum(-1))[0], 0)) / 2

    e, f, w = pair_forces(positions, *nl.table()[::-1], phi=phi)
    np.testing.assert_allclose(e.sum(), energy(positions, cell), rtol=1e-13)
    np.testing.assert_allclose(f, -jax.grad(energy)(positions, cell), atol=1e-11)
    strain = jax.grad(lambda s: energy(positions @ (jnp.eye(3) + s), cell @ (jnp.eye(3) + s)))(jnp.zeros((3, 3)))
    np.testing.assert_allclose(w, strain, atol=1e-10)


@pytest.mark.parametrize("method", ["auto", "xla"])
def test_overflow_cannot_be_ignored(method):
    """A gas that is compressed: grows outside jit, raises under jit, names the capacity when checked."""
    rng = np.random.default_rng(4)
    cell = jnp.eye(3) * 8
    dilute = jnp.asarray(rng.random((40, 3)) * 8, jnp.float32)
    nl = NeighbourList.build(dilute, cell, True, cutoff=2.0, headroom=1.0, method=method)
    dense = dilute * 0.3
    grown = nl.update(dense)
    assert not bool(grown.overflowed) and grown.capacity >= 1.5 * nl.capacity
    assert int(grown.count) == len(host_pairs(dense, cell, True, 2.0)[0])
    flagged = eqx.filter_jit(lambda l, p: l.update(p, on_overflow="flag"))(nl, dense)
    assert bool(flagged.overflowed)
    with pytest.raises(NeighbourOverflowError, match="too few"):
        flagged.check()
    with pytest.raises(Exception, match="overflow"):
        jax.block_until_ready(eqx.filter_jit(lambda l, p: l.update(p))(nl, dense).count)
    # later refreshes keep the flag even where the pairs fit again
    assert bool(eqx.filter_jit(lambda l, p: l.refreshed(p, on_overflow="flag"))(flagged, dilute + 1).overflowed)


def test_stale_follows_skin_and_cell(x64):
    positions, cell = map(jnp.asarray, SI)
    nl = NeighbourList.build(positions, cell, True, cutoff=4.0, skin=0.5)
    assert not bool(nl.stale(positions + jnp.array([0.2, 0, 0])))
    assert bool(nl.stale(positions.at[0, 0].add(0.26)))
    assert not bool(nl.stale(positions * 1.01, cell * 1.01))  # follows the cell
    assert bool(nl.stale(positions * 0.9, cell * 0.9))
    assert nl.refreshed(positions + 0.1) is nl


@pytest.mark.parametrize(
    ("kwargs", "error", "match"),
    [
        ({"cutoff": -1.0}, InputError, "cutoff"),
        ({"cutoff": float("nan")}, InputError, "cutoff"),
        ({"cell": np.zeros((3, 3)), "pbc": True}, InputError, "linearly dependent"),
        ({"cell": np.ones((3, 3)), "pbc": (True, True, False)}, InputError, "linearly dependent"),
        ({"positions": np.array([[0.0, np.nan, 0]])}, InputError, "not finite"),
        ({"positions": np.zeros((2, 2))}, ShapeError, "atoms, 3"),
        ({"cell": np.zeros(3)}, ShapeError, "three row"),
        ({"pbc": (True, False)}, ShapeError, "pbc"),
        ({"skin": -0.1}, InputError, "skin"),
    ],
)
def test_bad_input(kwargs, error, match):
    args = {"positions": np.zeros((2, 3), np.float32), "cell": np.eye(3), "pbc": False, "cutoff": 2.0} | kwargs
    with pytest.raises(error, match=match):
        NeighbourList.build(**args)


def test_refuses_integers_and_missing_capacity():
    with pytest.raises(DTypeError):
        pairs(jnp.zeros((2, 3), int), jnp.eye(3), cutoff=1.0)
    with pytest.raises(InputError, match="capacity"):
        jax.jit(lambda p: pairs(p, jnp.eye(3), cutoff=1.0).count)(jnp.zeros((2, 3)))
    with pytest.raises(DTypeError):
        displacements(jnp.zeros((2, 3), complex), jnp.eye(3), *np.zeros((2, 1), int), np.zeros((1, 3), int))


def test_no_atoms():
    nl = NeighbourList.build(np.zeros((0, 3), np.float32), np.eye(3), True, cutoff=1.0)
    assert int(nl.count) == 0 and not bool(nl.overflowed)
