"""A toy job for the tests: the square root of two by Newton's method."""

from typing import Literal

from pydantic import Field

from sciax.core.errors import ConvergenceError
from sciax.core.jobs import InputFile, JobConfig, Outcome, Run, job


class Solver(JobConfig):
    tolerance: float = Field(1e-12, gt=0, description="stop at this step length")
    method: Literal["newton", "secant"] = Field("newton", description="iteration")


class ToyConfig(JobConfig):
    steps: int = Field(8, ge=1, description="iterations")
    start: float = Field(1.0, description="first guess")
    label: str = Field("two", description="words for the report")
    data: InputFile | None = Field(None, description="a file to read")
    weights: list[float] = Field([1.0, 2.0], description="numbers that do nothing")
    solver: Solver = Field(Solver(), description="how to iterate")


@job("toy.root", ToyConfig, summary="Square root of two", tour=True)
def root(config: ToyConfig, run: Run) -> Outcome:
    import jax.numpy as jnp
    import xarray as xr
    from matplotlib.figure import Figure

    x = jnp.asarray(config.start, dtype=float)
    if config.data is not None:
        run.input(config.data)
    history = []
    with run.progress("iterating", total=config.steps) as bar:
        for step in range(config.steps):
            x = 0.5 * (x + 2.0 / x)
            error = abs(float(x) - 2**0.5)
            run.metric(step=step, x=x, error=error)
            history.append(error)
            bar.advance()
    if config.steps < 2:
        raise ConvergenceError("the iteration did not converge", got=history[-1], expected=1e-12, remedy="more steps")
    figure = Figure(figsize=(5, 3))
    axes = figure.subplots()
    axes.semilogy([h + 1e-17 for h in history])
    axes.set_xlabel("step")
    axes.set_ylabel("error")
    run.figure(figure, "convergence", caption=f"Newton's method for the square root of {config.label}")
    run.dataset(xr.Dataset({"error": ("step", history), "z": ("step", [1j * h for h in history])}), "history")
    run.note("Newton's method doubles the digits in each step.")
    return Outcome("square root of two (1)", x, reference=2**0.5, source="math.sqrt")
