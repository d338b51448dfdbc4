# ruff: noqa: E731
"""Potentials: derivatives, symmetries, supercells, slabs, molecules, padding, precision, files."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.chem import md
from sciax.chem.potentials import (
    Ensemble,
    PotentialField,
    energies_and_forces,
    load_potential,
    make_graph,
    make_potential,
    predict,
    save_potential,
)
from sciax.chem.units import METAL
from sciax.core.errors import FileFormatError, InputError, MissingFileError, UnsupportedError
from sciax.core.ops.neighbours import NeighbourList
from sciax.core.ops.so3 import random_rotation
from sciax.datasets.atoms import Structure
from sciax.science.graph import BatchShape, batch_graphs

OPTIONS = {
    "mace": {"channels": 2, "hidden": "0e+1o", "lmax": 1, "order": 3, "width": 4},
    "nequip": {"channels": 2, "hidden": "0e+1o+2e", "lmax": 2, "layers": 2, "width": 4},
    "painn": {"channels": 8, "layers": 2},
    "schnet": {"channels": 8, "layers": 2},
}
ALL = sorted(OPTIONS)


def potential(kind, dtype=jnp.float64, elements=(6, 8), cutoff=3.0, **extra):
    return make_potential(
        kind, elements, cutoff=cutoff, key=jax.random.key(1), dtype=dtype, scale=0.8, **OPTIONS[kind], **extra
    )


def molecule(n=6, seed=0):
    """Atoms about 1.4 Å apart: a rattled lattice."""
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[rng.permutation(27)[:n]]
    return Structure(rng.choice([6, 8], n).astype(np.int32), 1.4 * grid + rng.normal(size=(n, 3)) * 0.1)


def crystal(pbc=(True, True, True)):
    rng = np.random.default_rng(3)
    cell = np.array(
        [[2.9, 0.1, 0], [0.4, 2.7, 0.2], [-0.2, 0.3, 3.1]]
    )  # smaller than the cutoff: own images are neighbours
    return Structure(np.array([6, 8, 6], np.int32), rng.random((3, 3)) @ cell * [1, 1, 0.8], cell, pbc)


@pytest.mark.parametrize("kind", ALL)
def test_forces_against_finite_differences(kind, x64):
    """<= 1e-7 relative, float64."""
    p, s = potential(kind), molecule()
    f = predict(p, s)[0].forces
    h = 2e-5
    direction = np.random.default_rng(1).normal(size=s.positions.shape)
    e = [predict(p, Structure(s.numbers, s.positions + k * h * direction))[0].energy for k in (-2, -1, 1, 2)]
    slope = (e[0] - 8 * e[1] + 8 * e[2] - e[3]) / (12 * h)
    assert abs(slope + (f * direction).sum()) < 1e-7 * max(1, abs(slope))


@pytest.mark.parametrize(
    ("kind", "pbc"), [("mace", (True, True, True)), ("painn", (True, True, False))], ids=["bulk", "slab"]
)
def test_strain_derivative_against_finite_differences(kind, pbc, x64):
    """<= 1e-6 relative, bulk and slab."""
    p, s = potential(kind), crystal(pbc)
    got = predict(p, s)[0]
    h = 1e-4

    def energy(strain):
        d = np.eye(3) + strain
        return predict(p, Structure(s.numbers, s.positions @ d, s.cell @ d, pbc))[0].energy

    scale = np.abs(got.strain_derivative).max()
    for a, b in ((0, 0), (1, 1), (0, 1), (2, 2)):
        e = np.zeros((3, 3))
        e[a, b] += 0.5
        e[b, a] += 0.5
        slope = (energy(-2 * h * e) - 8 * energy(-h * e) + 8 * energy(h * e) - energy(2 * h * e)) / (12 * h)
        assert abs(slope - got.strain_derivative[a, b]) < 1e-6 * max(1, scale)
    if all(pbc):
        np.testing.assert_allclose(got.stress, got.strain_derivative / s.volume)
    else:
        with pytest.raises(UnsupportedError, match="surface_stress"):
            _ = got.stress
        area = np.linalg.norm(np.cross(s.cell[0], s.cell[1]))
        np.testing.assert_allclose(got.surface_stress * area, got.strain_derivative)


def test_no_stress_of_a_molecule():
    got = predict(potential("schnet", jnp.float32), molecule())[0]
    assert got.strain_derivative is None
    with pytest.raises(UnsupportedError, match="bulk"):
        _ = got.stress
    with pytest.raises(UnsupportedError, match="slab"):
        _ = got.surface_stress


@pytest.mark.parametrize("kind", ALL)
def test_symmetries(kind, x64):
    """Rotation and inversion (1e-12), translation by 1e4 Å, permutation."""
    p, s = potential(kind), molecule()
    base = predict(p, s)[0]
    size = np.abs(base.forces).max()
    r = np.asarray(random_rotation(jax.random.key(2), (), jnp.float64))
    for turn in (r, -r):
        got = predict(p, Structure(s.numbers, s.positions @ turn.T))[0]
        assert abs(got.energy - base.energy) < 1e-12 * max(1, abs(base.energy))
        assert np.abs(got.forces - base.forces @ turn.T).max() < 1e-12 * max(1, size)
    far = predict(p, Structure(s.numbers, s.positions + 1e4))[0]
    assert abs(far.energy - base.energy) < 1e-9 * max(1, abs(base.energy))
    order = np.random.default_rng(0).permutation(len(s))
    mixed = predict(p, Structure(s.numbers[order], s.positions[order]))[0]
    np.testing.assert_allclose(mixed.forces, base.forces[order], atol=1e-12 * max(1, size))
    assert abs(mixed.energy - base.energy) < 1e-12 * max(1, abs(base.energy))


@pytest.mark.parametrize("kind", ["nequip"])
def test_equivariance_in_single_precision(kind):
    p, s = potential(kind, jnp.float32), molecule()
    base = predict(p, s)[0]
    r = np.asarray(random_rotation(jax.random.key(2)), float)
    got = predict(p, Structure(s.numbers, s.positions @ -r.T))[0]
    assert abs(got.energy - base.energy) < 1e-5 * max(1, abs(base.energy))
    assert np.abs(got.forces + base.forces @ r.T).max() < 1e-5 * max(1, np.abs(base.forces).max())


@pytest.mark.parametrize("kind", ["mace"])
def test_supercell_scales_exactly(kind, x64):
    """E of n cells is n E to 1e-10, for a cell smaller than the cutoff."""
    p, s = potential(kind), crystal()
    shifts = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), -1).reshape(-1, 3)
    big = Structure(np.tile(s.numbers, 8), (s.positions + (shifts @ s.cell)[:, None]).reshape(-1, 3), 2 * s.cell, s.pbc)
    one, eight = predict(p, [s, big])
    assert abs(eight.energy / 8 - one.energy) < 1e-10 * abs(one.energy)
    np.testing.assert_allclose(eight.stress, one.stress, atol=1e-10)
    wrapped = Structure(s.numbers, s.positions + np.array([[3, -2, 0], [0, 1, 0], [5, 5, 5]]) @ s.cell, s.cell, s.pbc)
    assert abs(predict(p, wrapped)[0].energy - one.energy) < 1e-10 * abs(one.energy)


@pytest.mark.parametrize("kind", ["schnet", pytest.param("nequip", marks=pytest.mark.slow)])
def test_energy_is_smooth_across_the_cutoff(kind, x64):
    """Force of a dimer as one atom crosses the cutoff: continuous to 1e-6."""
    p = potential(kind)
    line = lambda r: Structure(np.array([6, 8], np.int32), np.array([[0.0, 0, 0], [r, 0, 0]]))
    inside, outside = predict(p, [line(3.0 - 1e-6), line(3.0 + 1e-6)])
    assert np.abs(inside.forces - outside.forces).max() < 1e-6
    assert abs(inside.energy - outside.energy) < 1e-9


@pytest.mark.parametrize(
    "kind", ["schnet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("painn", "nequip"))]
)
def test_padding_changes_nothing(kind):
    """Padded and tight batches agree; gradients of a force loss stay finite."""
    p, structures = potential(kind, jnp.float32), [molecule(5), molecule(1, 2), molecule(4, 1)]
    graphs = [make_graph(p, s) for s in structures]
    tight = batch_graphs(graphs)
    loose = batch_graphs(graphs, BatchShape(5, 17, tight.senders.shape[0] + 23))
    run = eqx.filter_jit(energies_and_forces)
    a, b = run(p, tight), run(p, loose)
    for tight_values, loose_values in zip(a[:2], b[:2]):
        size = float(np.abs(tight_values).max())
        np.testing.assert_allclose(tight_values, loose_values[:10], atol=1e-5 * max(1, size))
    assert not np.asarray(b[0][10:]).any() and not np.asarray(b[1][10:]).any()
    grads = eqx.filter_jit(eqx.filter_grad(lambda q: (energies_and_forces(q, loose)[1] ** 2).sum()))(p)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(eqx.filter(grads, eqx.is_array)))


def test_wide_painn_starts_finite():
    """64 channels, three blocks, bonds of 1.1 Å in a cutoff of 5: products of features must not overflow before any step."""
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*(np.arange(3),) * 3), -1).reshape(-1, 3) * 1.1
    s = Structure(np.full(27, 6, np.int32), grid + rng.normal(size=(27, 3)) * 0.05)
    p = make_potential("painn", [6], cutoff=5.0, key=jax.random.key(0), channels=64, average_neighbours=20.0)
    assert abs(predict(p, s)[0].atomic_energies).max() < 100


def test_isolated_atom_and_mixed_batch(x64):
    p = potential("painn", e0={6: -1026.8538996116154, 8: -2037.796869412825})
    lone, pair = predict(p, [molecule(1), molecule(3)])
    assert lone.forces.tolist() == [[0, 0, 0]]
    assert pair.energy == pytest.approx(pair.atomic_energies.sum())


def test_totals_keep_digits_in_single_precision():
    """Differences of a few meV on 1e4 eV survive: E0 is added in float64."""
    e0 = {6: -1026.8538996116154, 8: -2037.796869412825}
    p, bare = potential("schnet", jnp.float32, e0=e0), potential("schnet", jnp.float32)
    s = molecule(12)
    expected = sum(e0[int(z)] for z in s.numbers)
    assert predict(p, s)[0].energy - predict(bare, s)[0].energy == pytest.approx(expected, abs=1e-9)


def test_files_round_trip(tmp_path):
    p = potential("nequip", jnp.float32, e0={6: -1.5, 8: 2.5})
    s = molecule()
    again = load_potential(save_potential(tmp_path / "p.sciax", p))
    assert predict(again, s)[0].energy == predict(p, s)[0].energy and again.e0 == p.e0
    (tmp_path / "bad").write_bytes(b"{}\nxx")
    with pytest.raises(FileFormatError):
        load_potential(tmp_path / "bad")
    with pytest.raises(MissingFileError):
        load_potential(tmp_path / "absent")


def test_ensemble_spread():
    members = tuple(
        make_potential("schnet", [6, 8], cutoff=3.0, key=jax.random.key(k), channels=8, layers=1) for k in range(3)
    )
    mean, spread, per_atom = Ensemble(members).predict([molecule()])[0]
    energies = [predict(m, molecule())[0].energy for m in members]
    assert mean.energy == pytest.approx(np.mean(energies)) and spread == pytest.approx(np.std(energies, ddof=1))
    assert per_atom.shape == (6,)
    with pytest.raises(InputError):
        Ensemble(members[:1])


def test_dynamics_with_a_network_conserves_energy(x64):
    p = potential("schnet")
    s = molecule(6)
    system = md.maxwell_velocities(md.from_structure(s), 50.0, jax.random.key(0), METAL)
    field = PotentialField(p, s.numbers)
    nl = NeighbourList.build(system.positions, cutoff=3.0)
    forces = eqx.filter_jit(field.evaluate)(system.positions, system.cell, nl, None)[1]
    expected = predict(p, s)[0].forces
    np.testing.assert_allclose(forces, expected, atol=1e-10 * max(1, np.abs(expected).max()))
    r = md.simulate(system, field, md.NVE(0.25, METAL), 200, block=100)
    assert np.ptp(r.conserved) < 1e-3 * max(np.ptp(r.kinetic), 1e-3)
    assert r.pressure is None


def test_bad_input():
    with pytest.raises(InputError, match="mace"):
        make_potential("mac", [1], key=jax.random.key(0))
    with pytest.raises(InputError, match="does not take"):
        make_potential("schnet", [1], key=jax.random.key(0), lmax=2)
    with pytest.raises(InputError, match="no reference energy for O"):
        make_potential("schnet", [6, 8], key=jax.random.key(0), e0={6: 1.0})
    p = potential("schnet", jnp.float32)
    with pytest.raises(InputError, match="does not know H"):
        predict(p, Structure(np.array([1], np.int32), np.zeros((1, 3))))
    with pytest.raises(InputError, match="one place"):
        predict(p, Structure(np.array([6, 8], np.int32), np.zeros((2, 3))))
    with pytest.raises(InputError, match="not finite"):
        predict(p, Structure(np.array([6], np.int32), np.array([[np.nan, 0, 0]])))
