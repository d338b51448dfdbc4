"""Potentials trained on public data, errors on held-out structures: the figures of docs/accuracy/chem.md.

    python benchmarks/chem_training.py FOLDER SET [--epochs N] [--checkpoint DIR] [option=value ...]

FOLDER holds the files of BOTNet-datasets (acac, ethanol), mace-jax (aspirin) and mlearn (Si, Ge, Li, Mo); SET is one of those
names. Options go to the network; those of `FitConfig` to the training. One thread; CPU time is reported. A run that was stopped
goes on from its checkpoint.
"""

import argparse
import ast
import dataclasses
import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
from pathlib import Path

import jax

from sciax.chem import training
from sciax.chem.potentials import save_potential
from sciax.core.train import Checkpoints
from sciax.datasets.atoms import read_extxyz, read_mlearn

DEFAULTS = {
    # name: (architecture, cutoff, options of the network, of the training)
    "acac": ("nequip", 4.0, {"channels": 32, "hidden": "0e+1o", "lmax": 1, "width": 32}, {"epochs": 900}),
    "ethanol": ("nequip", 4.0, {"channels": 32, "hidden": "0e+1o", "lmax": 1, "width": 32}, {"epochs": 600}),
    "aspirin": ("nequip", 4.0, {"channels": 32, "hidden": "0e+1o", "lmax": 1, "width": 32}, {"epochs": 150}),
    "mlearn": ("nequip", 5.0, {"channels": 16, "hidden": "0e+1o", "lmax": 1, "width": 32, "layers": 2}, {"epochs": 60}),
}


def load(folder: Path, name: str):
    """(training, validation, {test name: structures}, isolated atoms)."""
    keys = {"energy": "energy", "forces": "forces"}
    if name in ("acac", "ethanol"):
        stem = {"acac": "acac_train_300K", "ethanol": "ethanol_train"}[name]
        data = read_extxyz(folder / f"{stem}.xyz", **keys)
        isolated = read_extxyz(folder / f"{name}_isolated_atoms.xyz", energy="energy", forces=None)
        tests = {"acac": ["acac_test_MD_300K", "acac_train_600K"], "ethanol": ["ethanol_test_MD"]}[name]
        found = {t: read_extxyz(folder / f"{t}.xyz", **keys) for t in tests}
        return *split(data, 10 if name == "acac" else 20), found, isolated
    if name == "aspirin":
        data = read_extxyz(folder / "rmd17_aspirin_train.xyz.gz", **keys)[:1000]
        return *split(data, 20), {"test": read_extxyz(folder / "rmd17_aspirin_test.xyz.gz", **keys)}, []
    data = read_mlearn(folder / f"mlearn_{name}_training.json.gz")
    return *split(data, 20), {"test": read_mlearn(folder / f"mlearn_{name}_test.json.gz")}, []


def split(data, every: int):
    return [s for k, s in enumerate(data) if k % every], data[::every]


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("folder", type=Path)
    ask.add_argument("set")
    ask.add_argument("--architecture")
    ask.add_argument("--cutoff", type=float)
    ask.add_argument("--checkpoint", type=Path)
    ask.add_argument("options", nargs="*")
    args = ask.parse_intermixed_args()
    architecture, cutoff, network, settings = DEFAULTS.get(args.set, DEFAULTS["mlearn"])
    if args.architecture:
        architecture, network = args.architecture, {}
    fields = {f.name for f in dataclasses.fields(training.FitConfig)}
    for option in args.options:
        key, _, text = option.partition("=")
        try:
            value = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            value = text
        (settings if key in fields else network)[key] = value
    train, valid, tests, isolated = load(args.folder, args.set)
    potential = training.start_potential(
        architecture,
        train,
        cutoff=args.cutoff or cutoff,
        e0=training.reference_energies(train, isolated),
        key=jax.random.key(0),
        **network,
    )
    config = training.FitConfig(**{"ema": 0.999, "energy_weight": 0.1, "force_weight": 10.0, **settings})
    size = sum(x.size for x in jax.tree.leaves(potential) if hasattr(x, "size"))
    print(f"{args.set}: {len(train)} structures, {architecture} {network}, {size} parameters, {config}", flush=True)
    began, last = time.process_time(), [0.0]

    def report(entry):
        if entry["epoch"] == 1 or time.process_time() - last[0] > 60:
            last[0] = time.process_time()
            shown = {k: float(f"{v:.4g}") for k, v in entry.items()}
            print(f"  {shown}, {time.process_time() - began:.0f} CPU s", flush=True)

    save = None if args.checkpoint is None else Checkpoints(args.checkpoint, every=10, keep=2)
    result = training.fit(potential, train, valid, config, report=report, every=20, checkpoint=save)
    print(f"  done: {time.process_time() - began:.0f} CPU s in this part, loss {result.history[-1]['loss']:.3g}")
    if args.checkpoint is not None:
        save_potential(args.checkpoint / "potential.sciax", result.potential)
    for name, structures in tests.items():
        print(f"  {name}: {training.errors(result.potential, structures)}", flush=True)


if __name__ == "__main__":
    main()
