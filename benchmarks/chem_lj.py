"""Lennard-Jones melt (ρ 0.8442, T 1.44, cutoff 2.5 shifted, skin 0.3, dt 0.005), float32, against jax-md: steps per CPU second.

    python benchmarks/chem_lj.py [cells] [steps]      4·cells³ atoms

One process each; jax-md rebuilds by its own displacement criterion, as sciax does.
"""

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


if __name__ == "__main__":
    cells, steps = int([*sys.argv, "10"][1]), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    mine, peer = ours(cells, steps), theirs(cells, steps)
    if peer:
        print(f"ratio {mine / peer:.1f}")
