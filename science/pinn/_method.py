"""Method "pinn": a network trained on the strong residual."""

from collections.abc import Callable
from typing import Any

import jax

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
        points: int = 2500,
        adam: int = 1000,
        learning_rate: float = 5e-3,
        iterations: int = 3000,
        renew: int = 500,
        target: float = 0.0,
        seconds: float | None = None,
        weights: tuple[float, ...] | None = None,
        causal: float = 0.0,
        seed: int = 0,
        watch: Callable[..., None] | None = None,
    ):
        """
        Args:
            time: (start, end), for problems with time.
            network: a key of `networks.NETWORKS`, of `depth` hidden layers of `width` units.
            fourier: random Fourier features, with frequencies of standard deviation `fourier_scale`.
            harmonics: of a periodic axis.
            hard: make Dirichlet and initial values hold exactly; else all conditions join the loss.
            lift: function of x or (x, t) with the boundary and initial values, instead of the automatic one.
            features: further inputs of the network, functions of x or (x, t).
            unknowns: parameter name -> first guess, of parameters to be found from `observations`.
            observations: one `Observations`, or several.
            points, adam, learning_rate, iterations, renew, target, seconds, weights, causal: see `TrainOptions`.
            watch: called as watch(model, iterations, loss) after each round.
        """
        self.network = NetworkOptions(network, width, depth, activation, fourier, fourier_scale, harmonics)
        self.train = TrainOptions(points, adam, learning_rate, iterations, renew, target, seconds, weights, causal)
        self.rest = {
            "time": time,
            "hard": hard,
            "lift": lift,
            "features": tuple(features),
            "unknowns": dict(unknowns or {}),
            "observations": tuple(observations) if isinstance(observations, tuple | list) else (observations,),
        }
        self.seed, self.watch = seed, watch

    def solve(self, problem: Problem) -> PinnSolution:
        first, second = jax.random.split(jax.random.key(self.seed))
        system = System(problem, self.network, **self.rest, key=first)
        trainer = Trainer(system, self.train, self.seed)
        model, info = trainer.run(second, watch=self.watch)
        return PinnSolution(problem, system, model, info)
