"""A MACE-class step and inference against mace-torch: aspirin, 5 molecules, one thread, float32. Prints ratios.

    python benchmarks/chem_mace.py [FOLDER] [--peers PYTHON]

FOLDER holds rmd17_aspirin_train.xyz.gz; without it the molecules are rattled benzenes of ASE.
PYTHON is an interpreter with mace-torch (torch and jax do not share an environment).
Both: cutoff 5 Å, two layers, 32x0e + 32x1o, l 3, order 3; a step is energies, forces, the gradient of a loss of both, and Adam.
CPU time, best of several, after warming up.
"""

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import equinox as eqx
import jax
import numpy as np
import optax
from ase.build import molecule

from sciax.chem import training
from sciax.chem.potentials import energies_and_forces
from sciax.datasets.atoms import Structure, read_extxyz, write_extxyz
from sciax.science.graph import batch_graphs

PEER = """
import sys, time
import numpy as np, torch
torch.set_num_threads(1); torch.set_default_dtype(torch.float32)
import ase.io
torch.serialization.add_safe_globals([slice])  # what the constants of e3nn 0.4.4 are saved with
from e3nn import o3
from mace import data, modules, tools
frames = ase.io.read(sys.argv[1], ":")
numbers = sorted({int(z) for f in frames for z in f.numbers})
table = tools.AtomicNumberTable(numbers)
keys = data.KeySpecification(info_keys={"energy": "REF_energy"}, arrays_keys={"forces": "REF_forces"})
set_ = [data.AtomicData.from_config(data.config_from_atoms(f, key_specification=keys), z_table=table, cutoff=5.0) for f in frames]
batch = next(iter(tools.torch_geometric.dataloader.DataLoader(set_, batch_size=len(set_), shuffle=False)))
model = modules.MACE(r_max=5.0, num_bessel=8, num_polynomial_cutoff=5, max_ell=3,
    interaction_cls=modules.interaction_classes["RealAgnosticResidualInteractionBlock"],
    interaction_cls_first=modules.interaction_classes["RealAgnosticResidualInteractionBlock"], num_interactions=2,
    num_elements=len(numbers), hidden_irreps=o3.Irreps("32x0e + 32x1o"), MLP_irreps=o3.Irreps("16x0e"),
    gate=torch.nn.functional.silu, atomic_energies=np.zeros(len(numbers)), avg_num_neighbors=15.0, atomic_numbers=numbers,
    correlation=3)
adam = torch.optim.Adam(model.parameters(), 1e-3)
d = batch.to_dict()
def step():
    adam.zero_grad(); out = model(d, training=True, compute_force=True)
    loss = ((out["energy"] / 21) ** 2).mean() + 10 * (out["forces"] ** 2).mean()
    loss.backward(); adam.step()
def infer():
    model(d, training=False, compute_force=True)
best = []
for f in (step, infer):
    [f() for _ in range(2)]
    t = []
    for _ in range(6):
        c = time.process_time(); f(); t.append(time.process_time() - c)
    best.append(min(t))
print("RESULT", batch.edge_index.shape[1], sum(p.numel() for p in model.parameters()), *best)
"""


def best_of(f, count: int = 10) -> float:
    for _ in range(2):
        jax.block_until_ready(f())
    times = []
    for _ in range(count):
        c = time.process_time()
        jax.block_until_ready(f())
        times.append(time.process_time() - c)
    return min(times)


def molecules(folder: Path | None) -> list[Structure]:
    if folder is not None:
        return read_extxyz(folder / "rmd17_aspirin_train.xyz.gz", energy="energy", forces="forces")[:5]
    ring, rng = molecule("C6H6"), np.random.default_rng(0)
    places = [ring.positions + rng.normal(size=ring.positions.shape) * 0.05 for _ in range(5)]
    return [Structure(ring.numbers, x, energy=float(i), forces=np.zeros_like(x)) for i, x in enumerate(places)]


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("folder", type=Path, nargs="?")
    ask.add_argument("--peers")
    args = ask.parse_args()
    data = molecules(args.folder)
    options = {"channels": 32, "hidden": "0e+1o", "lmax": 3, "order": 3, "layers": 2}
    p = training.start_potential("mace", data, cutoff=5.0, key=jax.random.key(0), **options)
    graph = jax.tree.map(jax.numpy.asarray, batch_graphs([training._labelled(p, s, False) for s in data]))
    config = training.FitConfig()
    adam = optax.adam(1e-3)
    weights, fixed = eqx.partition(p, eqx.is_inexact_array)
    carry = [weights, adam.init(weights)]

    @jax.jit
    def step(weights, state, graph):
        g = jax.grad(lambda w: training.loss(eqx.combine(w, fixed), graph, config))(weights)
        updates, state = adam.update(g, state)
        return optax.apply_updates(weights, updates), state

    infer = jax.jit(lambda w, g: energies_and_forces(eqx.combine(w, fixed), g)[:2])

    def advance():
        carry[:] = step(*carry, graph)
        return carry

    mine = [best_of(advance), best_of(lambda: infer(weights, graph))]
    count = sum(x.size for x in jax.tree.leaves(weights))
    print(f"sciax: {len(graph.senders)} edges, {count} parameters, step {mine[0]:.3f}, inference {mine[1]:.4f} CPU s")
    if args.peers is None:
        print("skipped: no interpreter with mace-torch given (--peers)")
        return
    with tempfile.TemporaryDirectory() as folder:
        path = write_extxyz(Path(folder) / "a.xyz", data)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS")}
        run = subprocess.run(
            [args.peers, "-c", PEER, str(path)],
            env={**clean, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
        )
    line = next((line for line in run.stdout.splitlines() if line.startswith("RESULT")), None)
    if line is None:
        print("skipped: mace-torch did not run:", run.stderr[-400:])
        return
    edges, size, step_s, infer_s = (float(v) for v in line.split()[1:])
    print(f"mace-torch: {edges:.0f} edges, {size:.0f} parameters, step {step_s:.3f}, inference {infer_s:.4f} CPU s")
    print(f"ratio: step {step_s / mine[0]:.1f}, inference {infer_s / mine[1]:.1f}")


if __name__ == "__main__":
    main()
