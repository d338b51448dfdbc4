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
    from sciax.elec._simulation import Simulation
    from sciax.elec.demo import cylinder_scene, scattering_figure

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


class DesignConfig(JobConfig):
    """Inverse design of a waveguide bend by exact gradients through FDTD."""

    pixels: int = Field(40, ge=10, le=200, description="pixels a side of the 1.6 um square")
    filter_nm: float = Field(160.0, gt=0.0, description="radius of the conic filter (nm)")
    iterations: int = Field(12, gt=0, description="iterations at each steepness")
    betas: tuple[float, ...] = Field((10.0, 30.0), description="steepness of the projection, one after the other")
    design: str = Field(
        "", description="a design to start from (CSV of densities); empty: a quarter ring between the guides"
    )


@job("elec.design", DesignConfig, summary="A waveguide bend designed by gradients through FDTD", tour=True)
def design(config: DesignConfig, run: Run) -> Outcome:
    import jax
    import jax.numpy as jnp
    import numpy as np

    from sciax.elec import design as tools
    from sciax.elec._simulation import Simulation
    from sciax.elec.demo import bend_scene, design_figure

    n = config.pixels
    pixel = 1.6e-6 / n
    c = (np.arange(n) + 0.5) * pixel
    if config.design:
        run.input(config.design)
        start = np.clip(np.loadtxt(config.design, delimiter=","), 0.0, 1.0)
        n, pixel = start.shape[0], 1.6e-6 / start.shape[0]
    else:  # half grey with a hint of a bend around the corner between the guides
        radius = np.hypot(c[:, None], c[None, ::-1])
        start = 0.45 + 0.25 * (np.abs(radius - 0.8e-6) < 0.25e-6)
    simulation = Simulation(bend_scene(start, picture=False), gradient="reversible")
    cells = config.filter_nm * 1e-9 / pixel

    def density(x, beta):
        return tools.project(tools.conic_filter(tools.mirror(x, "antidiagonal"), cells), beta)

    def powers(result):
        arriving, back = result.modes("arriving")
        leaving, _ = result.modes("leaving")
        return jnp.abs(leaving / arriving) ** 2, jnp.abs(back / arriving) ** 2

    @jax.jit
    def objective(x, beta):
        def value(x):
            through, back = powers(simulation({"design.medium.density": density(x, beta)}))
            return jnp.mean(through) - jnp.mean(back)

        return jax.value_and_grad(value)(x)

    total = config.iterations * len(config.betas)
    with run.progress("designing", total=total) as bar:

        def show(step, x) -> None:
            bar.advance()
            run.metric(step=step.iteration, objective=step.value, beta=step.beta, binarisation=step.binary)

        best, history = tools.maximise(
            objective,
            start,
            betas=config.betas,
            iterations=config.iterations,
            move=0.12,
            span=0.2,
            callback=show,
        )
    grey = np.asarray(density(jnp.asarray(best), config.betas[-1]))
    final = (grey > 0.5).astype(float)
    result = Simulation(bend_scene(final)).run(chunks=1)
    through, back = (np.asarray(p)[:, 0] for p in powers(result))
    solid, void = tools.feature_size(final, pixel)
    path = run.outputs / "design.csv"
    np.savetxt(path, final, fmt="%d", delimiter=",")
    run.file(path, caption="The design, one row an x, 0 and 1.")
    run.figure(
        design_figure(result, final, history, pixel),
        "design",
        caption="The design, the light in it, and how it came about.",
    )
    run.dataset(result.dataset(), "fields")
    worst, reflected = float(through.min()), float(back.max())
    run.note(
        f"Black and white design over 3 % of bandwidth: worst transmission {10 * np.log10(worst):.2f} dB, "
        f"worst reflection {10 * np.log10(reflected):.1f} dB; "
        f"smallest solid {solid * 1e9:.0f} nm, smallest void {void * 1e9:.0f} nm. "
        f"Gradient: {simulation.gradient_reason}."
    )
    return Outcome(
        quantity="power through the bend |S21|^2", value=float(through[len(through) // 2]), reference=None, error=None
    )
