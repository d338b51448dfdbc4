"""Toy jobs for the tests, and a command that knows them: `python toy.py run toy.root`."""

import os
import signal
import sys
import time
from typing import Literal

from pydantic import Field

from sciax.core.errors import ConvergenceError
from sciax.core.jobs import InputFile, JobConfig, Outcome, Run, job


class Solver(JobConfig):
    tolerance: float = Field(default=1e-12, gt=0, description="stop at this step length")
    method: Literal["newton", "secant"] = Field(default="newton", description="iteration")


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


class TroubleConfig(JobConfig):
    kind: Literal["bug", "tolerance", "nan", "SIGINT", "SIGTERM", "wrapped", "text", "wait", "none"] = "bug"
    tolerance: float = 1e-3


@job("toy.trouble", TroubleConfig, summary="Goes wrong in the way it is asked to", x64=False)
def trouble(config: TroubleConfig, run: Run) -> Outcome | None:
    run.metric(step=0, loss=1.0)
    if config.kind == "bug":
        raise ZeroDivisionError("a bug in the job")
    if config.kind in ("SIGINT", "SIGTERM"):
        os.kill(os.getpid(), getattr(signal, config.kind))
        time.sleep(30)
    if config.kind == "wrapped":  # as XLA does when a callback is interrupted
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        except BaseException as error:
            raise RuntimeError("INTERNAL: callback failed") from error
    if config.kind == "wait":
        print("ready", flush=True)
        for step in range(1, 600):
            time.sleep(0.1)
            run.metric(step=step, loss=1.0 / step)
    if config.kind == "text":
        return "forty-two"  # type: ignore[return-value]
    if config.kind == "none":
        return None
    value = float("nan") if config.kind == "nan" else 1.1
    return Outcome("unity (1)", value, reference=1.0, tolerance=config.tolerance)


if __name__ == "__main__":
    from sciax.core.jobs.cli import app

    app(sys.argv[1:], prog_name="sciax")
