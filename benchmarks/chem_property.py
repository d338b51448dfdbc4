"""Properties from SMILES on public sets against RDKit descriptors with gradient boosting, on the same splits.

    python benchmarks/chem_property.py FOLDER SET [--seeds 5] [--parts process trees network] [--murcko]

FOLDER holds delaney-processed.csv, freesolv_database.txt.gz and lipophilicity.csv; SET is esol, freesolv or lipo. Random splits
80/10/10 by seed, or the Murcko split; both models are trained on the first two parts and tested on the third.
"""

import argparse
import csv
import gzip
import time
from pathlib import Path

import numpy as np

from sciax.chem.molecules import (
    PropertyConfig,
    boosted_trees,
    fit_blend,
    molecule_table,
    murcko_split,
    parse_smiles,
    random_split,
)


def load(folder: Path, name: str) -> tuple[list[str], np.ndarray]:
    if name == "freesolv":
        with gzip.open(folder / "freesolv_database.txt.gz", "rt") as lines:
            rows = [line.split(";") for line in lines if not line.startswith("#")]
        return [r[1].strip() for r in rows], np.array([float(r[3]) for r in rows])
    file, column = {
        "esol": ("delaney-processed.csv", "measured log solubility in mols per litre"),
        "lipo": ("lipophilicity.csv", None),
    }[name]
    with open(folder / file) as text:
        rows = list(csv.DictReader(text))
    column = column or next(c for c in reversed(list(rows[0])) if c != "smiles")
    return [r["smiles"] for r in rows], np.array([float(r[column]) for r in rows])


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ask.add_argument("folder", type=Path)
    ask.add_argument("set", choices=["esol", "freesolv", "lipo"])
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--folds", type=int, default=5)
    ask.add_argument("--epochs", type=int, default=20)
    ask.add_argument("--parts", nargs="+", default=["process", "trees"])
    ask.add_argument("--murcko", action="store_true")
    args = ask.parse_args()
    smiles, y = load(args.folder, args.set)
    mols = parse_smiles(smiles).mols
    table = molecule_table(mols)
    found = []
    for seed in range(1 if args.murcko else args.seeds):
        split = murcko_split(mols) if args.murcko else random_split(mols, seed=seed)
        rows, test = np.concatenate([split.train, split.valid]), split.test
        began = time.process_time()
        config = PropertyConfig(epochs=args.epochs, members=1)
        model = fit_blend(
            [mols[i] for i in rows], y[rows], config, folds=args.folds, parts=args.parts, table=table[rows]
        )
        mean, sigma = (a[:, 0] for a in model.predict([mols[i] for i in test], table[test]))
        spent = time.process_time() - began
        base = boosted_trees(table.values[rows], y[rows]).predict(table.values[test])
        rmse = [float(np.sqrt(np.mean((p - y[test]) ** 2))) for p in (mean, base)]
        cover = float(np.mean(np.abs(mean - y[test]) < 1.645 * sigma))
        found.append(rmse)
        print(
            f"{args.set} seed {seed}: {rmse[0]:.3f}, baseline {rmse[1]:.3f}, 90 % intervals cover {cover:.2f}, weights "
            f"{dict(zip(model.parts, np.round(model.weights[0], 2).tolist()))}, {spent:.0f} CPU s",
            flush=True,
        )
    ours, theirs = np.mean(found, 0)
    print(f"mean {ours:.3f}, baseline {theirs:.3f}: {100 * (1 - ours / theirs):.1f} % below")


if __name__ == "__main__":
    main()
