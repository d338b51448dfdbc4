"""Jobs of sciax.chem."""

from typing import Literal

from pydantic import Field

from sciax.core.jobs import JobConfig, Outcome, Run, job


class MdConfig(JobConfig):
    """Lennard-Jones liquid in reduced units."""

    repeats: int = Field(10, ge=3, le=40, description="face-centred cubic cells along each side; 4 repeats³ atoms")
    density: float = Field(0.8442, gt=0, description="number density, σ⁻³")
    temperature: float = Field(1.44, gt=0, description="of the initial velocities (and of the thermostat), ε/k")
    thermostat: Literal["none", "langevin", "nose-hoover"] = Field("none", description="none: constant energy")
    steps: int = Field(400, gt=0, description="time steps")
    dt: float = Field(0.005, gt=0, description="time step, τ")
    cutoff: float = Field(2.5, gt=0, description="σ; the potential is shifted to 0 there")
    skin: float = Field(0.3, gt=0, description="extra reach of the neighbour list, σ")
    trajectory: bool = Field(False, description="write outputs/trajectory.xyz, a frame every 50 steps")


@job("chem.md", MdConfig, summary="Molecular dynamics of a Lennard-Jones liquid", tour=True)
def md(config: MdConfig, run: Run) -> Outcome:
    import jax
    import numpy as np
    import xarray as xr

    from sciax.chem import md as dynamics
    from sciax.chem.potentials import LennardJones
    from sciax.chem.units import LJ

    system = dynamics.fcc_lattice(config.repeats, config.density, dtype=np.float64)
    keys = jax.random.split(jax.random.key(run.seed))
    system = dynamics.maxwell_velocities(system, config.temperature, keys[0], LJ)
    integrator = {
        "none": lambda: dynamics.NVE(config.dt, LJ),
        "langevin": lambda: dynamics.Langevin(config.dt, LJ, config.temperature, 1.0),
        "nose-hoover": lambda: dynamics.NoseHoover(config.dt, LJ, config.temperature, 100 * config.dt),
    }[config.thermostat]()
    side = float(system.cell[0, 0])
    rdf = dynamics.Rdf(min(4.0, side / 2), 120, skip=max(1, config.steps // 150))
    observers: list = [rdf]
    if config.trajectory:
        observers.append(dynamics.ExtxyzWriter(run.outputs / "trajectory.xyz"))
    with run.progress("molecular dynamics", total=config.steps) as bar:
        result = dynamics.simulate(
            system,
            LennardJones(cutoff=config.cutoff),
            integrator,
            config.steps,
            key=keys[1],
            block=50,
            skin=config.skin,
            observers=observers,
            progress=bar.advance,
        )
    n = system.atoms
    for k in range(0, config.steps, max(1, config.steps // 40)):
        run.metric(
            step=int(result.step[k]),
            temperature=float(result.temperature[k]),
            energy=float(result.conserved[k] / n),
            pressure=float(result.pressure[k]) if result.pressure is not None else 0.0,
        )
    if config.trajectory:
        run.file(run.outputs / "trajectory.xyz", "Every 50th step, extended XYZ")
    per_step = {"dims": ["step"]}
    series = {
        "temperature": (per_step["dims"], result.temperature, {"units": "1", "long_name": "temperature, epsilon/k"}),
        "potential": (
            per_step["dims"],
            result.potential / n,
            {"units": "1", "long_name": "potential energy per atom, epsilon"},
        ),
        "conserved": (
            per_step["dims"],
            result.conserved / n,
            {"units": "1", "long_name": "conserved energy per atom, epsilon"},
        ),
        "pressure": (per_step["dims"], result.pressure, {"units": "1", "long_name": "pressure, epsilon/sigma^3"}),
    }
    coords = (
        {"step": result.step, "r": ("r", rdf.r, {"units": "1", "long_name": "distance, sigma"})}
        if rdf.frames
        else {"step": result.step}
    )
    if rdf.frames:
        series["g"] = (["r"], rdf.g, {"units": "1", "long_name": "radial distribution function"})
    run.dataset(xr.Dataset(series, coords=coords), "thermodynamics", "Series of the run")
    _md_figures(run, config, result, rdf, n)
    run.note(
        f"{n} atoms, {result.rebuilds} neighbour lists built, drift of the conserved energy {result.drift:.1e} ε per atom "
        "over the run. The melt's energy is set by lattice and temperature, so any seed gives it."
    )
    standard = config == MdConfig() or config == MdConfig(trajectory=config.trajectory)  # pyright: ignore
    if standard:
        value = float(result.conserved[199] / n)
        return Outcome("energy after 200 steps (ε/atom)", value, -4.17341, source="LAMMPS, same melt", tolerance=1e-3)
    return Outcome("conserved energy (ε/atom)", float(result.conserved[-1] / n))


def _md_figures(run: Run, config: MdConfig, result, rdf, n: int) -> None:
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = fig.subplots(1, 2)
    time = result.time
    left.plot(time, result.temperature, color="tab:red", label="temperature")
    left.set(xlabel="time (τ)", ylabel="temperature (ε/k)", title="Melting of the lattice")
    if rdf.frames:
        right.axhline(1, color="0.7", lw=0.8)
        right.plot(rdf.r, rdf.g)
        right.set(xlabel="distance r (σ)", ylabel="g(r)", title="Radial distribution function", xlim=(0, rdf.r[-1]))
    run.figure(fig, "liquid", "Temperature as the crystal melts, and the structure of the liquid at the end")
    fig = Figure(figsize=(6, 3), layout="constrained")
    axes = fig.subplots()
    axes.plot(time, (result.conserved - result.conserved[0]) / n)
    axes.set(xlabel="time (τ)", ylabel="change of energy (ε/atom)", title="Energy conservation")
    run.figure(fig, "energy", "Conserved energy per atom relative to the first step")


class TrainConfig(JobConfig):
    """A machine-learned potential. Without `data`, copper with ASE's effective-medium potential as the teacher."""

    data: str = Field("", description="extended XYZ file with energies and forces; empty: embedded copper data")
    test: str = Field("", description="held-out extended XYZ file; empty: every fifth structure of data")
    isolated: str = Field(
        "", description="extended XYZ file of single atoms for the reference energies; empty: least squares"
    )
    energy_key: str = Field("energy", description="header entry of the total energy, eV")
    forces_key: str = Field("forces", description="per-atom column of the forces, eV/Å")
    stress_key: str = Field("", description="header entry of the stress, nine numbers, eV/Å³; empty: not used")
    architecture: Literal["mace", "nequip", "painn", "schnet"] = Field("schnet", description="network")
    cutoff: float = Field(4.5, gt=0, description="Å")
    channels: int = Field(24, gt=0, description="width of the network")
    epochs: int = Field(100, gt=0, description="passes over the training set")
    batch: int = Field(8, gt=0, description="structures in a batch")
    learning_rate: float = Field(1e-2, gt=0, description="at the start")
    max_seconds: float = Field(600.0, gt=0, description="training stops after so long")


@job("chem.train", TrainConfig, summary="Train a potential on energies and forces", x64=False)
def train(config: TrainConfig, run: Run) -> Outcome:
    import jax
    import numpy as np

    from sciax.chem import training
    from sciax.chem.potentials import predict, save_potential
    from sciax.datasets.atoms import read_extxyz

    keys = {"energy": config.energy_key, "forces": config.forces_key, "stress": config.stress_key or None}
    if config.data:
        run.input(config.data)
        data = read_extxyz(config.data, **keys)
    else:
        data = _emt_copper(run.seed)
    if config.test:
        run.input(config.test)
        train_set, test_set = data, read_extxyz(config.test, **keys)
    else:
        test_set = data[::5]
        train_set = [s for k, s in enumerate(data) if k % 5]
    isolated = read_extxyz(config.isolated, energy=config.energy_key, forces=None) if config.isolated else []
    stress = 1.0 if all(s.stress is not None for s in train_set) else 0.0
    potential = training.start_potential(
        config.architecture,
        train_set,
        cutoff=config.cutoff,
        e0=training.reference_energies(train_set, isolated),
        key=jax.random.key(run.seed),
        channels=config.channels,
        layers=2,
    )
    before = training.errors(potential, test_set)
    settings = training.FitConfig(
        epochs=config.epochs,
        batch=config.batch,
        learning_rate=config.learning_rate,
        stress_weight=stress,
        max_seconds=config.max_seconds,
        seed=run.seed,
    )
    with run.progress("training", total=config.epochs) as bar:

        def report(entry):
            run.metric(**entry)
            bar.advance()

        result = training.fit(potential, train_set, config=settings, report=report)
    after = training.errors(result.potential, test_set)
    path = save_potential(run.outputs / "potential.sciax", result.potential)
    run.file(path, "The trained potential: sciax.chem.potentials.load_potential")
    run.note(
        f"{len(train_set)} training and {len(test_set)} held-out structures, {len(result.history)} epochs in "
        f"{result.seconds:.0f} s. Held-out errors: energy {after.energy_mae:.2f} meV/atom, forces {after.force_mae:.1f} meV/Å "
        f"(untrained: {before.force_mae:.0f})."
    )
    _train_figure(run, result, predict(result.potential, test_set), test_set)
    if config.data:
        return Outcome("held-out force MAE (meV/Å)", after.force_mae)
    size = float(1e3 * np.mean(np.abs(np.concatenate([s.forces for s in test_set if s.forces is not None]))))
    return Outcome(
        "held-out force error / mean force",
        after.force_mae / size,
        0.0,
        source="ASE effective-medium potential",
        tolerance=0.15 if config.model_fields_set == set() else None,  # other settings may be shorter
    )


def _emt_copper(seed: int, count: int = 80):
    """Strained and rattled four-atom copper cells with ASE's EMT energies, forces and stresses."""
    import numpy as np

    from sciax.core.errors import optional_import
    from sciax.datasets.atoms import from_ase

    emt = optional_import("ase.calculators.emt", "chem").EMT
    bulk = optional_import("ase.build", "chem").bulk
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        atoms = bulk("Cu", cubic=True)
        atoms.set_cell(atoms.cell.array @ (np.eye(3) + rng.normal(size=(3, 3)) * 0.02), scale_atoms=True)
        atoms.positions += rng.normal(size=(4, 3)) * 0.12
        atoms.calc = emt()
        out.append(from_ase(atoms, with_results=True))
    return out


def _train_figure(run: Run, result, predictions, test_set) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = fig.subplots(1, 2)
    left.semilogy([h["epoch"] for h in result.history], [h["loss"] for h in result.history], ".-", ms=3)
    left.set(xlabel="epoch", ylabel="loss", title="Training")
    true = np.concatenate([s.forces.ravel() for s in test_set])
    guess = np.concatenate([p.forces.ravel() for p in predictions])
    span = [true.min(), true.max()]
    right.plot(span, span, color="0.6", lw=1)
    right.plot(true, guess, ".", ms=3)
    right.set(xlabel="reference force (eV/Å)", ylabel="predicted force (eV/Å)", title="Held-out structures")
    run.figure(fig, "training", "Loss over the epochs, and forces on structures that were not trained on")


class PropertyJobConfig(JobConfig):
    """Property prediction from SMILES. Without `data`, activities of a ChEMBL series (CHEMBL2321810) that RDKit ships."""

    data: str = Field("", description="CSV file; empty: the embedded series")
    smiles_column: str = Field("smiles", description="column of the SMILES")
    target_column: str = Field("", description="column of the property; needed with data")
    skip_bad_rows: bool = Field(
        False, description="leave rows out that cannot be read (they are listed) instead of stopping"
    )
    split: Literal["random", "murcko"] = Field("random", description="how the held-out part is chosen")
    rows: int = Field(
        360, ge=20, description="at most so many molecules, chosen at random; the default keeps the job short"
    )
    folds: int = Field(2, ge=2, description="parts for cross-validation; a network and trees are fitted without each")
    members: int = Field(1, gt=0, description="networks for each fold")
    epochs: int = Field(20, gt=0, description="passes over the training set")
    hidden: int = Field(64, gt=0, description="width of the network")


@job(
    "chem.property",
    PropertyJobConfig,
    summary="Property prediction from SMILES, beside a baseline",
    tour=True,
    x64=False,
)
def property_(config: PropertyJobConfig, run: Run) -> Outcome:
    import numpy as np
    import xarray as xr

    from sciax.chem.molecules import (
        PropertyConfig,
        boosted_trees,
        fit_blend,
        molecule_table,
        murcko_split,
        parse_smiles,
        random_split,
    )
    from sciax.core.errors import FileFormatError

    smiles, target, name = _property_rows(config, run)
    # every row is read before some are drawn: the numbers in a message are those of the file
    found = parse_smiles(smiles, on_error="skip")
    bad = {row: f"{text!r}: {why}" for row, text, why in found.failures}
    bad |= {int(row): f"{name} is not a finite number" for row in np.flatnonzero(~np.isfinite(target))}
    if bad and not config.skip_bad_rows:
        shown = "; ".join(f"row {row}: {bad[row]}" for row in sorted(bad)[:5])
        raise FileFormatError(
            f"{len(bad)} of {len(smiles)} rows cannot be used (rows count from 0, without the header): {shown}",
            remedy="correct them, or --set skip_bad_rows=true (they are listed in the report)",
        )
    for row in sorted(bad):
        run.note(f"row {row} left out: {bad[row]}")
    good = np.flatnonzero([int(row) not in bad for row in found.rows])
    chosen = np.sort(np.random.default_rng(run.seed).permutation(good)[: config.rows])
    mols, y = [found.mols[k] for k in chosen.tolist()], target[found.rows[chosen]]
    parts = (random_split if config.split == "random" else murcko_split)(
        mols,
        seed=run.seed if config.split == "random" else None,  # pyright: ignore
    )
    # what the blend decides by itself it decides by cross-validation: the validation part trains too, for it and the baseline
    train, test = np.concatenate(parts[:2]), parts[2]
    table = molecule_table(mols)
    settings = PropertyConfig(hidden=config.hidden, members=config.members, epochs=config.epochs, seed=run.seed)
    with run.progress("training", total=config.folds * config.members * max(1, -(-config.epochs // 5))) as bar:

        def report(entry):
            run.metric(**entry)
            bar.advance()

        model = fit_blend(
            [mols[k] for k in train], y[train], settings, folds=config.folds, table=table[train], report=report
        )
    held = [mols[k] for k in test]
    mean, sigma = (a[:, 0] for a in model.predict(held, table[test]))
    truth = y[test]

    def rmse(guess) -> float:
        return float(np.sqrt(np.mean((guess - truth) ** 2)))

    trees = boosted_trees(table.values[train], y[train], seed=run.seed).predict(table.values[test])
    names = {"network": "D-MPNN with descriptors", "process": "Gaussian process", "trees": "boosted trees, bagged"}
    rows = {
        "blend": rmse(mean),
        **{names[p]: rmse(c[:, 0]) for p, c in zip(model.parts, model.components(held, table[test])[0])},
        "baseline: descriptors + gradient boosting": rmse(trees),
        "mean of the training set": rmse(y[train].mean()),
    }
    error, baseline, trivial = rows["blend"], rows["baseline: descriptors + gradient boosting"], rmse(y[train].mean())
    run.note("; ".join(f"{k}: RMSE {v:.3f}" for k, v in rows.items()))
    run.note(f"RMSE {100 * (1 - error / baseline):.1f} % below the baseline on {len(test)} held-out molecules")
    run.note("weights of the blend: " + ", ".join(f"{p} {w:.2f}" for p, w in zip(model.parts, model.weights[0])))
    covered = float(np.mean(np.abs(mean - truth) < 1.645 * sigma))
    run.note(f"90 % intervals cover {covered:.0%} of the held-out molecules")
    data = xr.Dataset(
        {"measured": ("molecule", truth), "predicted": ("molecule", mean), "uncertainty": ("molecule", sigma)},
        coords={"smiles": ("molecule", np.array([smiles[found.rows[chosen[k]]] for k in test], object))},
    )
    run.dataset(data, "predictions", f"{name}: held-out molecules")
    _property_figure(run, truth, mean, sigma, name, rows)
    # the mean of the training set is what any model must beat; the baseline's number is in the notes
    return Outcome(
        f"held-out RMSE of {name}", error, trivial, error / trivial, source="predicting the mean", tolerance=1.0
    )


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def _property_rows(config: PropertyJobConfig, run: Run):
    import csv

    import numpy as np

    from sciax.core.errors import ConfigError, FileFormatError, did_you_mean, optional_import

    if not config.data:
        from pathlib import Path

        folder = Path(optional_import("rdkit.RDConfig", "chem").RDContribDir) / "FreeWilson" / "data"
        lines = [line.split() for line in (folder / "CHEMBL2321810.smi").read_text().splitlines()]
        with open(folder / "CHEMBL2321810_act.csv", newline="") as handle:
            activity = {row["Name"]: float(row["Act"]) for row in csv.DictReader(handle)}
        pairs = [(w[0], activity[w[1]]) for w in lines if len(w) > 1 and w[1] in activity]
        return [s for s, _ in pairs], np.array([a for _, a in pairs]), "activity (-log10 M)"
    run.input(config.data)
    if not config.target_column:
        raise ConfigError("data without the name of its target column", remedy="--set target_column=NAME")
    with open(config.data, newline="") as handle:
        rows = list(csv.DictReader(handle))
    for column in (config.smiles_column, config.target_column):
        if not rows or column not in rows[0]:
            raise FileFormatError(
                f"{config.data} has no column {column!r}", remedy=did_you_mean(column, rows[0] if rows else [])
            )
    values = np.array([_number(r[config.target_column]) for r in rows])
    if not np.isfinite(values).any():
        raise FileFormatError(
            f"{config.data}: column {config.target_column!r} holds no number", got=rows[0][config.target_column]
        )
    return [r[config.smiles_column] for r in rows], values, config.target_column


def _property_figure(run: Run, truth, mean, sigma, name: str, rows) -> None:
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2, width_ratios=[1, 1])
    span = [min(truth.min(), mean.min()), max(truth.max(), mean.max())]
    left.plot(span, span, color="0.6", lw=1)
    left.errorbar(truth, mean, sigma, fmt="o", ms=3, lw=0.7, color="tab:blue", ecolor="0.75")
    left.set(xlabel=f"measured {name}", ylabel="predicted", title="Held-out molecules")
    right.barh(
        range(len(rows)), list(rows.values()), color=["tab:blue", *["lightsteelblue"] * (len(rows) - 3), "0.5", "0.8"]
    )
    right.set_yticks(
        range(len(rows)), [k.replace(" with ", "\nwith ").replace(": ", ":\n").replace(" + ", "\n+ ") for k in rows]
    )
    right.invert_yaxis()
    right.set(xlabel="RMSE", title="Beside the baselines")
    run.figure(fig, "predictions", "Predictions with their uncertainty, and the error beside what is simple")
