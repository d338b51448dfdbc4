"""Dynamics: conservation, canonical ensembles, restarts, published melt, trajectories, observables."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.chem import md
from sciax.chem.potentials import LennardJones
from sciax.chem.units import LJ, METAL
from sciax.core.errors import ConvergenceError, FileFormatError, InputError, MissingFileError, ShapeError
from sciax.core.ops.neighbours import NeighbourList, pair_forces

SMOOTH = LennardJones(cutoff=2.5, end="smooth")


def liquid(repeats=3, temperature=0.9, density=0.8, seed=0):
    s = md.fcc_lattice(repeats, density, dtype=jnp.zeros(()).dtype)
    return md.maxwell_velocities(s, temperature, jax.random.key(seed), LJ)


@pytest.mark.parametrize("end", ["truncate", "shift", "force-shift", "smooth"])
def test_pair_potential_is_its_own_derivative(end, x64):
    lj = LennardJones(epsilon=0.7, sigma=1.1, cutoff=2.5, end=end)
    r = jnp.array([0.95, 1.2, 1.9, 2.2, 2.45, 2.6])
    slope = jax.vmap(jax.grad(lambda x: lj.phi(x * x)[0]))(r)
    np.testing.assert_allclose(lj.phi(r * r)[1] * r, slope, atol=1e-12)
    if end != "truncate":  # continuous at the cutoff
        assert abs(float(lj.phi(jnp.asarray(6.25 - 1e-12))[0])) < 1e-11
    if end in ("force-shift", "smooth"):
        assert abs(float(lj.phi(jnp.asarray(6.25 - 1e-12))[1])) < 1e-11


def test_forces_and_stress_against_finite_differences(x64):
    rng = np.random.default_rng(0)
    s = md.fcc_lattice(2, 0.9, dtype=np.float64)  # smaller than twice the cutoff
    x = s.positions + 0.05 * jnp.asarray(rng.normal(size=s.positions.shape))

    def energy(p, cell):
        nl = NeighbourList.build(p, cell, True, cutoff=2.5)
        return float(SMOOTH.evaluate(p, cell, nl, SMOOTH.prepare(nl, cell))[0].sum())

    nl = NeighbourList.build(x, s.cell, True, cutoff=2.5)
    _, forces, strain = SMOOTH.evaluate(x, s.cell, nl, SMOOTH.prepare(nl, s.cell))
    h = 1e-5
    for i, c in ((0, 0), (5, 1), (17, 2)):
        d = jnp.zeros_like(x).at[i, c].set(h)
        fd = -(energy(x + d, s.cell) - energy(x - d, s.cell)) / (2 * h)
        assert abs(fd - float(forces[i, c])) < 1e-7 * max(1, abs(fd))
    for a, b in ((0, 0), (0, 1), (2, 2)):
        e = jnp.zeros((3, 3)).at[a, b].set(h)
        up, down = jnp.eye(3) + e, jnp.eye(3) - e
        fd = (energy(x @ up, s.cell @ up) - energy(x @ down, s.cell @ down)) / (2 * h)
        assert abs(fd - float(strain[a, b])) < 1e-6 * max(1, abs(fd))


def test_nve_drift_over_ten_thousand_steps(x64):
    """Drift <= 1e-5 ε/atom per 1e4 steps at dt = 0.002 (float64)."""
    r = md.simulate(liquid(), SMOOTH, md.NVE(0.002, LJ), 10_000, block=1000, skin=0.25)
    assert abs(r.drift) < 1e-5
    assert np.std(r.conserved) / r.system.atoms < 2e-4
    momentum = np.asarray((r.system.velocities * r.system.masses[:, None]).sum(0))
    assert np.abs(momentum).max() < 1e-10


def test_verlet_is_second_order(x64):
    """Halving dt divides the energy fluctuation by four."""
    spread = [
        np.std(md.simulate(liquid(), SMOOTH, md.NVE(dt, LJ), n, block=1000).conserved)
        for dt, n in ((0.004, 250), (0.002, 500))
    ]
    assert abs(np.log2(spread[0] / spread[1]) - 2) < 0.1


def test_melt_agrees_with_lammps(x64):
    """LAMMPS: etotal/N -4.17341 after 200 steps of the bench melt (4000 atoms; 3N - 3 freedoms make 500 comparable)."""
    s = md.maxwell_velocities(md.fcc_lattice(5, 0.8442, dtype=np.float64), 1.44, jax.random.key(0), LJ)
    r = md.simulate(s, LennardJones(), md.NVE(0.005, LJ), 200, skin=0.3, block=1000)
    size = 1.5 * 1.44 * (1 / 500 - 1 / 4000)  # kinetic energy of the removed centre of mass differs with N
    assert abs(r.conserved[-1] / 500 + size + 4.17341) < 1e-3
    assert abs(r.temperature[-1] - 0.751) < 0.05


@pytest.mark.parametrize(
    "integrator",
    [md.Langevin(0.005, LJ, 0.9, 1.0), md.NoseHoover(0.005, LJ, 0.9, 0.3)],
    ids=["langevin", "nose-hoover"],
)
def test_canonical_temperature_and_fluctuations(integrator, x64):
    """Mean kinetic temperature T and variance 2T²/f of the canonical ensemble."""
    n = 3000
    r = md.simulate(liquid(), SMOOTH, integrator, n, key=jax.random.key(3), block=1000)
    t = r.temperature[500:]
    f = integrator.freedoms(r.system.atoms)
    assert abs(t.mean() / 0.9 - 1) < 0.025
    assert 0.6 < t.var() / (2 * 0.9**2 / f) < 1.5
    if isinstance(integrator, md.NoseHoover):
        assert abs(r.drift) < 5e-4  # the extended energy is conserved
        assert np.std(r.conserved) / r.system.atoms < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    "integrator",
    [md.Langevin(0.004, LJ, 0.9, 1.0), md.NoseHoover(0.004, LJ, 0.9, 0.3)],
    ids=["langevin", "nose-hoover"],
)
def test_canonical_long(integrator, x64):
    """Temperature within 1 % and variance within 5 % of canonical."""
    r = md.simulate(liquid(), SMOOTH, integrator, 100_000, key=jax.random.key(3), block=1000)
    t, f = r.temperature[2000:], integrator.freedoms(r.system.atoms)
    assert abs(t.mean() / 0.9 - 1) < 0.01
    assert abs(t.var() / (2 * 0.9**2 / f) - 1) < 0.05


@pytest.mark.parametrize("kind", ["nve", "langevin", "nose-hoover"])
def test_restart_is_bitwise_equal(kind, tmp_path):
    integrator = {
        "nve": md.NVE(0.004, LJ),
        "langevin": md.Langevin(0.004, LJ, 1.0, 1.0),
        "nose-hoover": md.NoseHoover(0.004, LJ, 1.0, 0.3),
    }[kind]
    s, key = liquid(2), jax.random.key(7)
    whole = md.simulate(s, SMOOTH, integrator, 80, key=key, block=20)
    first = md.simulate(s, SMOOTH, integrator, 40, key=key, block=20)
    again = md.Snapshot.load(first.snapshot.save(tmp_path / "state.npz"))
    second = md.simulate(s, SMOOTH, integrator, 40, snapshot=again, block=20)
    np.testing.assert_array_equal(second.system.positions, whole.system.positions)
    np.testing.assert_array_equal(second.system.velocities, whole.system.velocities)
    np.testing.assert_array_equal(np.r_[first.conserved, second.conserved], whole.conserved)
    assert second.step[0] == 41


def test_time_reversal(x64):
    s = liquid(2)
    there = md.simulate(s, SMOOTH, md.NVE(0.004, LJ), 100, block=1000).system
    back = md.simulate(
        eqx.tree_at(lambda q: q.velocities, there, -there.velocities), SMOOTH, md.NVE(0.004, LJ), 100, block=1000
    )
    np.testing.assert_allclose(back.system.positions, s.positions, atol=1e-9)


def test_overflow_during_a_run_is_repaired(x64):
    """A list without spare room on the perfect lattice: pairs come in as it melts, none may be lost."""
    s = liquid(3, temperature=2.0)
    tight = md.simulate(s, SMOOTH, md.NVE(0.004, LJ), 150, block=1000, headroom=1.0, skin=0.1)
    roomy = md.simulate(s, SMOOTH, md.NVE(0.004, LJ), 150, block=1000, headroom=2.0, skin=0.1)
    np.testing.assert_allclose(tight.conserved, roomy.conserved, rtol=1e-9)


def test_pressure_of_an_ideal_gas(x64):
    """Without interactions p = (N - 1) kT/V."""
    s = liquid(2, temperature=1.3, density=0.5)
    r = md.simulate(s, LennardJones(epsilon=0.0), md.NVE(0.001, LJ), 3, block=1000)
    np.testing.assert_allclose(r.pressure, 1.3 * 0.5 * 31 / 32, rtol=1e-12)


def test_rdf_counts_fcc_shells(x64):
    """First shell of fcc: 12 neighbours at a/√2; an r_max beyond half the cell counts images."""
    s = md.fcc_lattice(2, 4.0, dtype=np.float64)  # a = 1
    rdf = md.Rdf(1.3, 130, skip=0)
    rdf(md.Frame(0, 0.0, np.asarray(s.positions), np.asarray(s.velocities), np.zeros((32, 3)), 0.0, s))
    shells = 4 / 3 * np.pi * np.diff(rdf.edges**3) * 4.0
    counts = rdf.g * shells
    assert counts[rdf.r < 0.8].sum() == pytest.approx(12)
    assert counts[(rdf.r > 0.9) & (rdf.r < 1.1)].sum() == pytest.approx(6)
    assert counts[rdf.r > 1.1].sum() == pytest.approx(24)


def test_msd_and_vacf_closed_forms():
    t = np.arange(50.0)
    straight = t[:, None, None] * np.array([[1.0, 0, 0], [0, 2.0, 0]])
    np.testing.assert_allclose(md.msd(straight), 2.5 * t**2, atol=1e-8)
    wave = np.stack([np.cos(0.3 * t), np.sin(0.3 * t), 0 * t], -1)[:, None]
    np.testing.assert_allclose(md.vacf(wave), np.cos(0.3 * t), atol=1e-12)
    with pytest.raises(InputError):
        md.msd(np.zeros((1, 2, 3)))


def test_trajectory_files_open_in_ase(tmp_path):
    ase_io = pytest.importorskip("ase.io")
    s = md.make_system(
        np.array([[0.0, 0, 0], [3.8, 0, 0]], np.float32),
        39.95,
        numbers=[18, 18],
        cell=np.diag([20.0, 21, 22]),
        pbc=True,
    )
    s = md.maxwell_velocities(s, 40.0, jax.random.key(0), METAL)
    argon = LennardJones(epsilon=0.0104, sigma=3.4, cutoff=8.5, end="smooth")
    with md.NetcdfWriter(tmp_path / "t.nc") as nc:
        r = md.simulate(s, argon, md.NVE(2.0, METAL), 20, block=10, observers=[md.ExtxyzWriter(tmp_path / "t.xyz"), nc])
    frames = ase_io.read(tmp_path / "t.xyz", ":")
    assert len(frames) == 3 and frames[-1].get_chemical_symbols() == ["Ar", "Ar"]
    np.testing.assert_allclose(frames[-1].positions, r.system.positions, atol=1e-5)
    assert frames[-1].get_potential_energy() == pytest.approx(r.potential[-1], abs=1e-7)
    other = ase_io.read(tmp_path / "t.nc", ":", format="netcdftrajectory")
    np.testing.assert_allclose(other[-1].positions, r.system.positions, atol=1e-5)
    np.testing.assert_allclose(other[-1].cell.lengths(), [20, 21, 22])


def test_explosion_is_an_error():
    s = md.make_system(np.array([[0.0, 0, 0], [1e-4, 0, 0]], np.float32), 1.0)
    with pytest.raises(ConvergenceError, match="finite"):
        md.simulate(s, LennardJones(), md.NVE(0.5, LJ), 50, block=50)


def test_bad_input(tmp_path):
    s = liquid(2)
    with pytest.raises(InputError, match="random"):
        md.simulate(s, SMOOTH, md.Langevin(0.01, LJ, 1.0, 1.0), 1)
    with pytest.raises(InputError, match="time step"):
        md.NVE(0.0, LJ)
    with pytest.raises(InputError, match="Langevin"):
        md.Langevin(0.1, LJ, -1.0, 1.0)
    with pytest.raises(InputError, match="truncate"):
        LennardJones(end="shfit")
    with pytest.raises(InputError, match="onset"):
        LennardJones(onset=3.0)
    with pytest.raises(ShapeError):
        md.make_system(np.zeros((3, 2)))
    with pytest.raises(ShapeError, match="masses"):
        md.make_system(np.zeros((3, 3)), [1.0, 2.0])
    with pytest.raises(InputError, match="mass"):
        md.make_system(np.zeros((3, 3)), -1.0)
    with pytest.raises(InputError, match="without a cell"):
        md.make_system(np.zeros((3, 3)), pbc=True)
    with pytest.raises(InputError, match="another system"):
        small = md.simulate(liquid(2), SMOOTH, md.NVE(0.01, LJ), 0).snapshot
        md.simulate(liquid(3), SMOOTH, md.NVE(0.01, LJ), 1, snapshot=small)
    with pytest.raises(MissingFileError):
        md.Snapshot.load(tmp_path / "no.npz")
    (tmp_path / "bad.npz").write_bytes(b"PK nonsense")
    with pytest.raises(FileFormatError):
        md.Snapshot.load(tmp_path / "bad.npz")
    with pytest.raises(InputError, match="three directions"):
        open_ = md.make_system(np.zeros((1, 3)))
        md.Rdf(1.0, skip=0)(md.Frame(0, 0.0, *np.zeros((3, 1, 3)), 0.0, open_))


def test_reversed_pair_table_is_refused():
    with pytest.raises(ShapeError):
        pair_forces(jnp.zeros((3, 3)), jnp.zeros((3, 2, 4)), jnp.zeros((2, 3), int), phi=SMOOTH.phi)
