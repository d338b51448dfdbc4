"""Jobs of sciax.elec."""

from pydantic import Field

from sciax.core.jobs import JobConfig, Outcome, Run, job


class FdtdConfig(JobConfig):
    """Scattering of a plane wave by a dielectric cylinder, against the exact series."""

    index: float = Field(2.0, gt=1.0, le=4.0, description="refractive index of the cylinder")
    radius_um: float = Field(0.5, gt=0.0, le=5.0, description="radius (um)")
    cells: int = Field(25, ge=8, le=200, description="grid cells a radius")
    component: str = Field("ez", pattern="^(ez|hz)$", description="polarisation: ez (E along the cylinder) or hz")
    size_from: float = Field(1.0, gt=0.2, description="smallest size parameter 2 pi radius / wavelength")
    size_to: float = Field(3.0, gt=0.2, le=10.0, description="largest size parameter")
    points: int = Field(41, ge=3, le=500, description="points of the spectrum")


@job("elec.fdtd", FdtdConfig, summary="Light scattered by a cylinder (FDTD against the exact series)", tour=True)
def fdtd(config: FdtdConfig, run: Run) -> Outcome:
    import numpy as np

    from sciax.elec import C0, analytic
    from sciax.elec._demo import cylinder_scene, scattering_figure
    from sciax.elec._simulation import Simulation

    sizes = np.linspace(config.size_from, config.size_to, config.points)
    radius = config.radius_um * 1e-6
    frequencies = sizes * C0 / (2 * np.pi * radius)
    scene = cylinder_scene(config.index, radius, config.cells, config.component, frequencies)
    simulation = Simulation(scene)
    with run.progress("time steps", total=scene.steps) as bar:
        done = 0

        def show(now: int, total: int) -> None:
            nonlocal done
            bar.advance(now - done)
            done = now

        result = simulation.run(progress=show, decay=1e-6)
    found = np.asarray(result.flux("scattered")) / result.incident_power("light", frequencies) / (2 * radius)
    exact = np.array([analytic.cylinder_scattering(config.index, x, config.component) for x in sizes])
    error = float(np.max(np.abs(found / exact - 1)))
    for x, q, e in zip(sizes, found, exact):
        run.metric(step=float(x), q_fdtd=float(q), q_exact=float(e))
    run.figure(
        scattering_figure(result, config.component, sizes, found, exact, radius),
        "scattering",
        caption="Left: real part of the total field inside the box, scattered field outside. Right: scattering efficiency.",
    )
    run.dataset(result.dataset(), "fields")
    middle = config.points // 2
    run.note(
        f"Grid {scene.grid.cells[0]} x {scene.grid.cells[1]} cells, {scene.steps} steps of {scene.dt:.3e} s. "
        f"Largest relative error of the efficiency over the band: {error:.2%}."
    )
    return Outcome(
        quantity=f"scattering efficiency at size {sizes[middle]:.2f}",
        value=float(found[middle]),
        reference=float(exact[middle]),
        error=abs(float(found[middle] - exact[middle])),
        source="Bohren & Huffman series",
    )
