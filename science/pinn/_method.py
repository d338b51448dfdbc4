"""Method "pinn": a network trained on the strong residual."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from sciax.core.errors import InputError
from sciax.science.pde import Problem
from sciax.science.pinn._solution import PinnSolution
from sciax.science.pinn._system import NetworkOptions, System
from sciax.science.pinn._train import Trainer, TrainOptions
from sciax.science.solvers._base import Method


class Pinn(Method):
    """A physics-informed network (Raissi, Perdikaris & Karniadakis 2019) with hard conditions, trained in float64.

    Stationary and transient problems, of any order, linear or not, on boxes, shapes and meshes. Not for coefficients by cell
    group. One training is tens of seconds: for linear problems on meshes finite elements are faster.
    """

    name = "pinn"

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        if problem.groups():
            return f"coefficients by cell group ({', '.join(problem.groups())}) need a mesh"
        meshed = [p.name for p in problem.parameters.values() if p.on is not None]
        if meshed:
            return f"parameter {meshed[0]!r} lies on a mesh"
        if any(callable(c.on) for c in problem.conditions):
            return "a condition holds on a part given by a function"
        return None

    def __init__(
        self,
        problem: Problem,
        time: tuple[float, float] | None = None,
        windows: int | tuple[float, ...] = 1,
        network: str = "mlp",
        width: int = 20,
        depth: int = 3,
        activation: str | None = None,
        fourier: int = 0,
        fourier_scale: float = 1.0,
        harmonics: int = 3,
        hard: bool = True,
        lift: Callable[..., Any] | None = None,
        features: tuple[Callable[..., Any], ...] = (),
        unknowns: dict[str, Any] | None = None,
        observations: Any = (),
        interfaces: Any = (),
        points: int = 2500,
        adam: int = 1000,
        learning_rate: float = 5e-3,
        iterations: int | None = None,
        renew: int | None = None,
        target: float = 0.0,
        seconds: float | None = None,
        weights: tuple[float, ...] | None = None,
        causal: float = 0.0,
        optimizer: str = "ssbroyden",
        warm_up: str = "adam",
        resample: str = "rad",
        balance: str = "none",
        seed: int = 0,
        watch: Callable[..., None] | None = None,
    ):
        """
        Args:
            time: (start, end), for problems with time.
            windows: of time, each with a network that starts where the one before ends; a number, or the times between them.
            network: a key of `networks.NETWORKS`, of `depth` hidden layers of `width` units.
            fourier: random Fourier features, with frequencies of standard deviation `fourier_scale`.
            harmonics: of a periodic axis.
            hard: make Dirichlet and initial values hold exactly; else all conditions join the loss.
            lift: function of x or (x, t) with the boundary and initial values, instead of the automatic one.
            features: further inputs of the network, functions of x or (x, t).
            unknowns: parameter name -> first guess, of parameters to be found from `observations`: a number, or a function of x
                for a coefficient that is a function itself.
            observations: one `Observations`, or several.
            interfaces: one `Interface` between materials, or several.
            points, adam, learning_rate, iterations, renew, target, seconds, weights, causal, optimizer, warm_up, resample,
                balance: see `TrainOptions`.
            watch: called as watch(model, iterations, loss) after each round.
        """
        self.network = NetworkOptions(network, width, depth, activation, fourier, fourier_scale, harmonics)
        self.train = TrainOptions(
            points,
            adam,
            learning_rate,
            iterations,
            renew,
            target,
            seconds,
            weights,
            causal,
            optimizer,
            warm_up,
            resample,
            balance,
        )
        self.rest = {
            "time": time,
            "hard": hard,
            "lift": lift,
            "features": tuple(features),
            "unknowns": dict(unknowns or {}),
            "observations": tuple(observations) if isinstance(observations, tuple | list) else (observations,),
            "interfaces": tuple(interfaces) if isinstance(interfaces, tuple | list) else (interfaces,),
        }
        self.seed, self.watch = seed, watch
        self.edges = _edges(time, windows)

    def solve(self, problem: Problem) -> PinnSolution:
        key = jax.random.key(self.seed)
        if self.edges is not None:
            from sciax.science.pinn._windows import march

            rest = {k: v for k, v in self.rest.items() if k != "time"}
            return march(problem, self.network, self.train, self.edges, rest, self.seed, key, self.watch)
        first, second = jax.random.split(key)
        system = System(problem, self.network, **self.rest, key=first)
        trainer = Trainer(system, self.train, self.seed)
        model, info = trainer.run(second, watch=self.watch)
        return PinnSolution(problem, system, model, info)


def _edges(time: tuple[float, float] | None, windows: int | tuple[float, ...]) -> np.ndarray | None:
    """Times between windows, with both ends; None for one window."""
    if isinstance(windows, int):
        if windows < 1:
            raise InputError("the number of windows is positive", got=windows)
        if windows == 1:
            return None
        inner = None
    else:
        inner = np.asarray(windows, float)
    if time is None:
        raise InputError("windows are of time", got=f"windows={windows}", remedy="time=(0, 1)")
    if inner is None:
        return np.linspace(time[0], time[1], int(windows) + 1)  # type: ignore[arg-type]
    edges = np.concatenate([[time[0]], inner, [time[1]]])
    if not (np.diff(edges) > 0).all():
        raise InputError("the times between windows grow, inside of the interval", got=windows, expected=f"in {time}")
    return edges
