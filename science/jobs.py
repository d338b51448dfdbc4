"""Jobs of sciax.science."""

from typing import Any, Literal

from pydantic import Field

from sciax.core.jobs import InputFile, JobConfig, Outcome, Run, job

BRACKET_MEAN = 38.620330
"""Mean temperature of the bracket on the job's defaults, °C: third-order elements on the mesh refined four times (81 920 cells
of the same polygonal outline); tests recompute it at a lower refinement."""


class SolveConfig(JobConfig):
    """Stationary diffusion, `-div(k grad u) = f`, on a mesh with conditions on its named groups."""

    mesh: InputFile | None = Field(None, description="mesh file (Gmsh, VTU, ...); the embedded bracket if not given")
    split: bool = Field(False, description="cut quadrilaterals into triangles, to read a mesh that mixes both")
    order: int = Field(2, ge=1, le=3, description="polynomial degree of the elements")
    conductivity: dict[str, float] | float | None = Field(
        None, description="k: a number, or a table of cell groups; bracket: foot 160, arm 50 W/(m K); else 1"
    )
    source: dict[str, float] | float | None = Field(
        None, description="f: a number, or a table of cell groups; bracket: 0; 1 if no condition is given"
    )
    fixed: dict[str, float] = Field({}, description="boundary group -> value of u")
    flux: dict[str, float] = Field({}, description="boundary group -> inward flux k du/dn")
    transfer: dict[str, tuple[float, float]] = Field(
        {}, description="boundary group -> (h, u0) of k du/dn = h (u0 - u), convection for a temperature"
    )
    rest: Literal["refuse", "insulated"] = Field("refuse", description="parts of the boundary that no table names")
    solver: Literal["direct", "amg", "cg"] = Field("direct", description="linear solver")


@job("science.solve", SolveConfig, summary="Diffusion on a mesh by finite elements", tour=True)
def solve_job(config: SolveConfig, run: Run) -> Outcome:
    """Read the mesh, state the problem in strong form, solve, and write VTU, PNG, NetCDF."""
    from sciax.datasets.bracket import bracket_file
    from sciax.science import Dirichlet, Domain, Neumann, Problem, Robin, div, grad, solve
    from sciax.science import Field as Unknown

    bracket = config.mesh is None
    path = run.input(bracket_file() if config.mesh is None else config.mesh)
    with run.progress("reading the mesh"):
        domain = Domain.from_mesh(path, split=config.split)
    mesh = domain.mesh()
    run.note(f"{mesh!r} from {mesh.source}." + "".join(f" {note}." for note in mesh.notes))
    stated = config.fixed or config.flux or config.transfer
    plain = not stated and not bracket
    u = Unknown("u")
    conditions: list[Any] = [Dirichlet(u, value, on=name) for name, value in config.fixed.items()]
    conditions += [Neumann(u, value, on=name) for name, value in config.flux.items()]
    conditions += [Robin(u, h, h * u0, on=name) for name, (h, u0) in config.transfer.items()]
    k: Any = config.conductivity if config.conductivity is not None else 1.0
    f: Any = config.source if config.source is not None else (1.0 if plain else 0.0)
    unit, quantity = "", "integral of u"
    own = bracket and not stated
    if own:
        # bolts of the foot at 20 °C, a heater in the last hole of the arm, air at 20 °C along the outside
        k = config.conductivity if config.conductivity is not None else {"foot": 160.0, "arm": 50.0}
        conditions = [
            Dirichlet(u, 20.0, on=("hole1", "hole2")),
            Neumann(u, 2e4, on="hole4"),
            Neumann(u, 0.0, on=("hole0", "hole3")),
            Robin(u, 25.0, 25.0 * 20.0, on="outer"),
        ]
        unit, quantity = "°C", "mean temperature (°C)"
    elif plain:
        conditions = [Dirichlet(u, 0.0, on="boundary")]
        run.note("No conditions were given: u = 0 on the whole boundary and f = 1.")
    elif config.rest == "insulated":
        conditions.append(Neumann(u, 0.0, on="rest"))
    problem = Problem(domain, -div(k * grad(u)) == f, *conditions)
    run.note(f"{problem.equations[0]!r}; " + "; ".join(map(repr, problem.conditions)) + ".")
    with run.progress("solving"):
        solution = solve(problem, method="fem", order=config.order, solver=config.solver)
    run.metric(unknowns=solution.fem.layout.size, residual=float(solution.info.residual), order=config.order)
    solution.to_vtu(run.outputs / "solution.vtu")
    run.file(run.outputs / "solution.vtu", caption="the solution with its mesh, for ParaView and others")
    dataset = solution.to_xarray()
    dataset["u"].attrs["units"] = "degC" if unit else "1"
    run.dataset(dataset, "solution", caption="the solution at the mesh's points, UGRID")
    title = f"temperature ({unit})" if unit else "u"
    run.figure(solution.plot(title=title), "solution", caption=f"{title}, elements of order {config.order}")
    scale = 1.0 / mesh.volume if own else 1.0
    value = float(solution.integrate(u)) * scale
    run.metric(value=value, gradient_error=solution.error_estimate)
    defaults = own and config.conductivity is None and config.source is None
    if defaults:
        return Outcome(
            quantity, value, BRACKET_MEAN, source="third-order elements on a four times finer mesh", tolerance=0.05
        )
    higher = config.order + 1 if config.order < 3 else config.order - 1
    with run.progress(f"solving with order {higher} for the error"):
        other = solve(problem, method="fem", order=higher, solver=config.solver)
    reference = float(other.integrate(u)) * scale
    return Outcome(quantity, value, reference, source=f"elements of order {higher} on the same mesh")


class PinnConfig(JobConfig):
    """Burgers' equation `u_t + u u_x = nu u_xx` on [-1, 1] with `u = -sin(pi x)` at first: a shock forms at x = 0."""

    viscosity: float = Field(0.01 / 3.141592653589793, ge=0.002, le=1.0, description="nu")
    end: float = Field(1.0, gt=0.0, le=1.0, description="the last time")
    width: int = Field(20, ge=4, le=64, description="units of a layer")
    depth: int = Field(3, ge=1, le=6, description="hidden layers")
    points: int = Field(1500, ge=100, description="residual points")
    adam: int = Field(600, ge=0, description="steps of Adam")
    iterations: int = Field(1500, ge=1, description="iterations of self-scaled Broyden")


@job("science.pinn", PinnConfig, summary="Burgers' shock by a physics-informed network", tour=True)
def pinn_job(config: PinnConfig, run: Run) -> Outcome:
    """Train a network on the equation alone, and compare with the Cole-Hopf solution."""
    import jax.numpy as jnp
    import numpy as np

    from sciax.science import Dirichlet, Initial, Interval, Problem, dt, grad, laplace, solve
    from sciax.science import Field as Unknown
    from sciax.science.pinn import burgers_truth, report_figure

    u, nu = Unknown("u"), config.viscosity
    problem = Problem(
        Interval(-1, 1),
        dt(u) + u * grad(u)[0] - nu * laplace(u) == 0.0,
        Dirichlet(u, 0.0),
        Initial(u, lambda x: -jnp.sin(jnp.pi * x[0])),
    )
    run.note(
        f"{problem.equations[0]!r} with {'; '.join(map(repr, problem.conditions))}, which the network fulfils exactly."
    )
    total = config.adam + config.iterations
    with run.progress("training", total=total) as bar:
        seen = 0

        def watch(model, iterations, loss):
            nonlocal seen
            run.metric(iterations=iterations, loss=loss)
            bar.advance(config.adam + iterations - seen)
            seen = config.adam + iterations

        solution = solve(
            problem,
            method="pinn",
            time=(0.0, config.end),
            width=config.width,
            depth=config.depth,
            points=config.points,
            adam=config.adam,
            iterations=config.iterations,
            renew=250,
            seed=run.seed,
            watch=watch,
        )
    data = solution.to_xarray(count=201, times=101)
    x, t = np.meshgrid(data["x"].values, data["t"].values, indexing="ij")
    exact = burgers_truth(x.ravel(), t.ravel(), nu).reshape(x.shape)
    data["exact"] = (("x", "t"), exact, {"long_name": "Cole-Hopf solution"})
    error = float(np.linalg.norm(data["u"].values - exact) / np.linalg.norm(exact))
    for name in ("u", "exact"):
        data[name].attrs["units"] = "1"
    run.metric(relative_error=error, loss_at_new_points=solution.info.fresh)
    run.dataset(data, "solution", caption="the network and the exact solution on a grid")
    run.figure(
        report_figure(solution, exact, x[:, 0], t[0]),
        "solution",
        caption="the network, where it is wrong, and the loss",
    )
    run.note(f"{solution.info.parameters} parameters; ended by {solution.info.reason}.")
    return Outcome(
        "relative L2 error of u", error, 0.0, source="Cole-Hopf solution by Gauss-Hermite quadrature", tolerance=2e-3
    )
