"""Failures that users reported of other programs, tried on this one; each test names where it was reported."""

import jax
import jax.numpy as jnp
import numpy as np

from sciax.chem.molecules import parse_smiles
from sciax.chem.potentials import make_potential, predict
from sciax.core.ops.so3 import spherical_harmonics
from sciax.datasets.atoms import Structure


def hydrogen(cell, pbc, place=0.0):
    return Structure(np.array([1], np.int32), np.full((1, 3), place), cell, pbc)


def schnet(cutoff, dtype=jnp.float32):
    return make_potential("schnet", [1], cutoff=cutoff, key=jax.random.key(0), channels=4, layers=1, dtype=dtype)


def test_forces_of_an_atom_among_its_own_images(x64):
    """librascal#351, FeNNol#11: fcc hydrogen, one atom, cutoff of two lattice constants: no force, and an energy of its own."""
    fcc = 1.1 * (1 - np.eye(3))
    p = schnet(4.5, jnp.float64)
    alone, crystal = predict(p, [hydrogen(np.zeros((3, 3)), (False,) * 3), hydrogen(fcc, (True,) * 3)])
    assert np.abs(crystal.forces).max() < 1e-10
    assert abs(crystal.energy - alone.energy) > 1e-3
    assert np.isfinite(crystal.stress).all()


def test_a_molecule_far_from_the_origin(x64):
    """mace#1541: edges of an open system must not come from a made-up cell."""
    x = np.array([[0.0, 0, 0], [0.8, 0.1, 0]])
    p = schnet(3.0, jnp.float64)
    here, there = predict(p, [Structure(np.array([1, 1], np.int32), x + shift) for shift in (0.0, 100.0)])
    np.testing.assert_allclose(here.energy, there.energy, rtol=1e-10)


def test_harmonics_at_the_pole_and_at_zero():
    """AutoForce#5, schnetpack PR#87: first and second derivatives along every axis, and at a zero vector, are finite."""
    f = lambda v: jnp.sum(spherical_harmonics(v, lmax=3) ** 3)  # noqa: E731
    points = jnp.concatenate([jnp.eye(3), -jnp.eye(3), jnp.zeros((1, 3))])
    first = jax.jit(jax.grad(f))
    assert np.isfinite(first(points)).all()
    assert np.isfinite(jax.jit(jax.grad(lambda v: jnp.sum(first(v) ** 2)))(points)).all()


def test_a_valence_that_cannot_be_is_named():
    """chemprop#1122, deepchem#3512."""
    found = parse_smiles(["CCO", "CC1=CC=C[NH+2]([O-])C1", "C"], on_error="skip")
    assert len(found.mols) == 2 and [row for row, *_ in found.failures] == [1]


def test_the_tail_of_an_extended_smiles_is_read():
    """chemprop#976."""
    mols = parse_smiles(["C[C@H](F)Cl |&1:1|", "C[C@H](F)Cl"]).mols
    assert [m.GetNumAtoms() for m in mols] == [4, 4]
