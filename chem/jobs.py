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
    standard = config == MdConfig() or config == MdConfig(trajectory=config.trajectory)
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
