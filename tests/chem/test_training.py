"""Training: reference energies, statistics, losses that fall, refusals; relaxation; the ASE calculator; chem.train."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.chem import training
from sciax.chem.ase_calculator import ase_calculator
from sciax.chem.potentials import make_potential, predict
from sciax.chem.relax import relax
from sciax.core.errors import ConvergenceError, InputError, UnsupportedError
from sciax.datasets.atoms import Structure, from_ase, to_ase

ase = pytest.importorskip("ase")


def emt(count, seed=0, rattle=0.1):
    from sciax.chem.jobs import _emt_copper

    return _emt_copper(seed, count)


def atom(z, energy):
    return Structure(np.array([z], np.int32), np.zeros((1, 3)), energy=energy)


def test_reference_energies():
    """From isolated atoms; by least squares on compositions, which recovers additive energies."""
    e = {1: -13.5, 8: -2000.25}
    data = [
        Structure(
            np.array([8] * o + [1] * h, np.int32), np.arange(3.0 * (o + h)).reshape(-1, 3), energy=o * e[8] + h * e[1]
        )
        for o, h in ((1, 2), (1, 1), (2, 2))
    ]
    assert training.reference_energies(data) == pytest.approx(e)
    assert training.reference_energies(data, [atom(1, -1.0), atom(8, -2.0)]) == {1: -1.0, 8: -2.0}
    same = training.reference_energies(data[:1])  # one composition: any split will do, if it is exact
    assert 2 * same[1] + same[8] == pytest.approx(data[0].energy)
    with pytest.raises(InputError, match="no isolated atom of O"):
        training.reference_energies(data, [atom(1, -1.0)])
    with pytest.raises(InputError, match="without an energy"):
        training.reference_energies([atom(1, None)])
    with pytest.raises(InputError, match="one atom"):
        training.reference_energies(data, [data[0]])


def test_a_small_fit_learns_energies_forces_and_stress():
    data = emt(16)
    p = training.start_potential("schnet", data[:12], cutoff=3.5, key=jax.random.key(0), channels=8, layers=1)
    before = training.errors(p, data[12:])
    config = training.FitConfig(epochs=60, batch=12, learning_rate=2e-2, stress_weight=1.0)
    seen = []
    r = training.fit(p, data[:12], data[12:], config, report=seen.append, every=60)
    after = training.errors(r.potential, data[12:])
    assert after.force_mae < 0.5 * before.force_mae and after.stress_mae < 0.7 * before.stress_mae
    assert after.energy_mae < 50 and len(seen) == 60 and "force_mae" in seen[59]
    assert seen[-1]["loss"] < 0.2 * seen[0]["loss"]


def test_huber_equals_squares_for_small_residuals():
    data = emt(3)
    p = training.start_potential("schnet", data, cutoff=3.5, key=jax.random.key(0), channels=4, layers=1)
    from sciax.science.graph import batch_graphs

    graph = batch_graphs([training._labelled(p, s, False) for s in data])
    a, b = (eqx.filter_jit(training.loss)(p, graph, training.FitConfig(huber=h)) for h in (None, 1e3))
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_fit_refusals():
    data = emt(3)
    p = make_potential("schnet", [29], cutoff=3.5, key=jax.random.key(0), channels=4, layers=1)
    bare = Structure(data[0].numbers, data[0].positions, data[0].cell, data[0].pbc)
    with pytest.raises(InputError, match="has no an energy"):
        training.fit(p, [bare])
    with pytest.raises(InputError, match="no structures"):
        training.errors(p, [])
    no_stress = [Structure(s.numbers, s.positions, s.cell, s.pbc, s.energy, s.forces) for s in data]
    with pytest.raises(InputError, match="no structure with a stress"):
        training.fit(p, no_stress, config=training.FitConfig(stress_weight=1.0))
    with pytest.raises(InputError):
        training.FitConfig(epochs=0)
    with pytest.raises(ConvergenceError, match="not finite"):
        wild = [Structure(s.numbers, s.positions, s.cell, s.pbc, np.inf, s.forces) for s in data]
        training.fit(p, wild, config=training.FitConfig(epochs=1))


def lj_evaluate(s):
    """ASE's Lennard-Jones, smooth, as a function for `relax`."""
    from ase.calculators.lj import LennardJones

    atoms = to_ase(s)
    atoms.calc = LennardJones(sigma=1.0, epsilon=1.0, rc=3.0, smooth=True)
    strain = atoms.get_stress(voigt=False) * atoms.get_volume() if all(s.pbc) else None
    return atoms.get_potential_energy(), atoms.get_forces(), strain


@pytest.mark.parametrize("method", ["bfgs", "fire"])
def test_relaxation_finds_the_lj_tetrahedron(method):
    """Four Lennard-Jones atoms: a regular tetrahedron of energy -6 ε (with an untruncated potential at 2^(1/6) σ)."""

    def evaluate(s):
        d = s.positions[:, None] - s.positions[None]
        r2 = (d**2).sum(-1) + np.eye(4)
        i6 = r2**-3.0 * (1 - np.eye(4))
        f = (24 * (2 * i6**2 - i6) / r2)[..., None] * d
        return float((4 * (i6**2 - i6)).sum() / 2), f.sum(1), None

    start = Structure(np.zeros(4, np.int32), np.array([[0, 0, 0], [1.2, 0, 0], [0.5, 1.0, 0], [0.4, 0.3, 0.9]]))
    r = relax(evaluate, start, method=method, tolerance=1e-6, max_steps=2000)
    assert r.converged and r.structure.energy == pytest.approx(-6, abs=1e-9)
    held = relax(
        evaluate, start, method=method, tolerance=1e-3, fixed=np.array([True, True, False, False]), max_steps=2000
    )
    np.testing.assert_array_equal(held.structure.positions[:2], start.positions[:2])


def test_cell_relaxation_finds_the_lattice_constant():
    """A sheared, stretched copper cell under EMT goes back to a = 3.59 Å (ASE's own equation of state) and zero stress."""
    from ase.build import bulk
    from ase.calculators.emt import EMT

    def evaluate(s):
        atoms = to_ase(s)
        atoms.calc = EMT()
        return atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress(voigt=False) * atoms.get_volume()

    atoms = bulk("Cu", cubic=True)
    atoms.set_cell(
        atoms.cell.array @ (np.eye(3) + np.array([[0.03, 0.02, 0], [0, -0.02, 0.01], [0, 0, 0.02]])), scale_atoms=True
    )
    atoms.positions += np.random.default_rng(0).normal(size=(4, 3)) * 0.05
    r = relax(evaluate, from_ase(atoms), cell=True, tolerance=1e-3, max_steps=200)
    assert np.abs(r.structure.stress).max() < 1e-3
    sizes = np.linspace(3.55, 3.63, 41)
    energies = []
    for a in sizes:
        cube = bulk("Cu", a=a, cubic=True)
        cube.calc = EMT()
        energies.append(cube.get_potential_energy())
    fit = np.polyfit(sizes, energies, 4)
    best = min(np.roots(np.polyder(fit)).real, key=lambda a: abs(a - 3.59))
    assert r.structure.volume ** (1 / 3) == pytest.approx(best, abs=2e-3)
    with pytest.raises(UnsupportedError, match="three directions"):
        relax(evaluate, Structure(atoms.numbers, atoms.positions), cell=True)


def test_relax_refusals():
    s = Structure(np.zeros(2, np.int32), np.array([[0.0, 0, 0], [1.5, 0, 0]]))
    with pytest.raises(InputError, match="bfgs"):
        relax(lj_evaluate, s, method="bgfs")
    with pytest.raises(ConvergenceError, match="not relaxed"):
        relax(lj_evaluate, s, max_steps=2, tolerance=1e-9)
    assert not relax(lj_evaluate, s, max_steps=2, tolerance=1e-9, throw=False).converged
    with pytest.raises(InputError, match="one bool"):
        relax(lj_evaluate, s, fixed=np.array([True]))


def test_ase_calculator():
    """Energies, forces and stress equal `predict`; ASE's finite differences agree; no stress for molecules."""
    from ase.calculators.calculator import PropertyNotImplementedError

    p = make_potential(
        "schnet", [29], cutoff=3.5, key=jax.random.key(0), channels=8, layers=1, e0={29: -100.0}, dtype=jnp.float32
    )
    s = emt(1)[0]
    atoms = to_ase(Structure(s.numbers, s.positions, s.cell, s.pbc))
    atoms.calc = ase_calculator(p)
    got = predict(p, s)[0]
    assert atoms.get_potential_energy() == got.energy
    np.testing.assert_array_equal(atoms.get_forces(), got.forces)
    np.testing.assert_allclose(atoms.get_stress(voigt=False), got.stress, atol=1e-12)
    assert atoms.get_potential_energies().sum() == pytest.approx(got.energy)
    free = ase.Atoms("Cu2", [[0, 0, 0], [2.5, 0, 0]], calculator=ase_calculator(p))
    free.get_forces()
    with pytest.raises(PropertyNotImplementedError):
        free.get_stress()


def test_train_job_on_a_file(tmp_path):
    from sciax.chem.jobs import TrainConfig, train
    from sciax.core.errors import FileFormatError
    from sciax.core.jobs import Run
    from sciax.datasets.atoms import write_extxyz

    write_extxyz(tmp_path / "cu.xyz", emt(8))
    config = TrainConfig(
        data=str(tmp_path / "cu.xyz"), stress_key="stress", architecture="schnet", channels=4, epochs=2, cutoff=3.5
    )
    outcome = train(config, Run(tmp_path / "run"))
    assert outcome.value > 0 and (tmp_path / "run/outputs/potential.sciax").is_file()
    with pytest.raises(FileFormatError, match="no energy under the key 'Energy'"):
        train(config.model_copy(update={"energy_key": "Energy"}), Run(tmp_path / "run2"))


def test_a_resumed_fit_is_the_uninterrupted_one(tmp_path):
    """Bit for bit; a checkpoint of other settings is refused."""
    from sciax.core.train import Checkpoints

    data = emt(5)
    p = training.start_potential("schnet", data, cutoff=3.5, key=jax.random.key(0), channels=4, layers=1)
    config = training.FitConfig(epochs=4, batch=2)
    whole = training.fit(p, data, config=config)

    class Stopped(Exception):
        pass

    def stop(entry):
        if entry["epoch"] == 3:
            raise Stopped

    save = Checkpoints(tmp_path / "ck", every=2)
    with pytest.raises(Stopped):
        training.fit(p, data, config=config, checkpoint=save, report=stop)
    again = training.fit(p, data, config=config, checkpoint=save)
    assert [h["loss"] for h in again.history] == [h["loss"] for h in whole.history]
    for a, b in zip(jax.tree.leaves(again.potential), jax.tree.leaves(whole.potential)):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(InputError, match="other batch, learning_rate"):
        other = training.FitConfig(epochs=4, batch=1, learning_rate=1e-2)
        training.fit(p, data, config=other, checkpoint=save)
    with pytest.raises(InputError, match="unknown optimizer"):
        training.FitConfig(optimizer="sgd")
