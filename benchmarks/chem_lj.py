"""Lennard-Jones melt (ρ 0.8442, T 1.44, cutoff 2.5 shifted, skin 0.3, dt 0.005), float32, against jax-md and LAMMPS.

    python benchmarks/chem_lj.py [cells] [steps] [steps of jax-md]      4·cells³ atoms

Steps per CPU second of one thread, after as many steps of melting. sciax and jax-md rebuild their lists by displacement, LAMMPS
(float64, the executable `lmp` on the path) every 20 steps as its own benchmark does. A peer that is not installed is passed over.
"""

import os
import re
import shutil
import subprocess
import tempfile

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import sys
import time

import jax
import numpy as np

from sciax.chem import md
from sciax.chem.potentials import LennardJones
from sciax.chem.units import LJ


def ours(cells: int, steps: int) -> float:
    s = md.maxwell_velocities(md.fcc_lattice(cells, 0.8442, dtype=np.float32), 1.44, jax.random.key(0), LJ)
    run = lambda s: md.simulate(s, LennardJones(), md.NVE(0.005, LJ), steps, skin=0.3)  # noqa: E731
    warm = run(s).system
    run(warm)  # its list has another size than the crystal's: another compilation
    c = time.process_time()
    r = run(warm)
    rate = steps / (time.process_time() - c)
    print(
        f"sciax: {s.atoms} atoms, {rate:.1f} steps per CPU s, {r.rebuilds} lists, E/N {r.conserved[-1] / s.atoms:.4f}",
        flush=True,
    )
    return rate


def theirs(cells: int, steps: int) -> float | None:
    try:
        from jax_md import energy, partition, simulate, space
    except ImportError:
        print("skipped: the peer jax-md is not installed here")
        return None
    s = md.maxwell_velocities(md.fcc_lattice(cells, 0.8442, dtype=np.float32), 1.44, jax.random.key(0), LJ)
    warm = md.simulate(
        s, LennardJones(), md.NVE(0.005, LJ), steps, skin=0.3
    ).system  # a melt: its list does not overflow
    side = float(s.cell[0, 0])
    displacement, shift = space.periodic(side)
    make, e = energy.lennard_jones_neighbor_list(
        displacement, side, r_onset=2.0, r_cutoff=2.5, dr_threshold=0.3, format=partition.Dense
    )
    x = warm.positions % side
    nb = make.allocate(x)
    init, apply = simulate.nve(e, shift, 5e-3)
    state = init(jax.random.PRNGKey(0), x, kT=0.75, neighbor=nb)

    def body(_, c):
        state, nb = c
        nb = nb.update(state.position)
        return apply(state, neighbor=nb), nb

    run = jax.jit(lambda state, nb: jax.lax.fori_loop(0, steps, body, (state, nb)))
    jax.block_until_ready(run(state, nb))
    c = time.process_time()
    _, nb = jax.block_until_ready(run(state, nb))
    rate = steps / (time.process_time() - c)
    print(f"jax-md: {rate:.1f} steps per CPU s, overflow {bool(nb.did_buffer_overflow)}", flush=True)
    return rate


def lammps(cells: int, steps: int) -> float | None:
    program = shutil.which("lmp")
    if program is None:
        print("skipped: the peer LAMMPS (lmp) is not on the path")
        return None
    script = f"""
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
pair_modify shift yes
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo_style custom step temp etotal
timestep 0.005
run {steps}
run {steps}
"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.melt")
        with open(path, "w") as out:
            out.write(script)
        text = subprocess.run(
            [program, "-in", path, "-log", "none"],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        ).stdout
    wall = [float(w) for w in re.findall(r"Loop time of (\S+)", text)]
    busy = [float(w) / 100 for w in re.findall(r"(\S+)% CPU use", text)]
    if len(wall) < 2 or len(busy) < 2:
        print("skipped: LAMMPS did not run:", text[-300:])
        return None
    rate = steps / (wall[1] * busy[1])
    print(f"LAMMPS: {rate:.1f} steps per CPU s", flush=True)
    return rate


if __name__ == "__main__":
    cells, steps, few = (int(a) for a in (*sys.argv[1:4], *("10", "200", "50")[len(sys.argv[1:4]) :]))
    mine = ours(cells, steps)
    for name, peer in (("LAMMPS", lammps(cells, steps)), ("jax-md", theirs(cells, few))):
        if peer:
            print(f"sciax / {name}: {mine / peer:.2f}")
