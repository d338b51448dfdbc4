"""`method="fvm"`: conservation laws, marched; and ordinary problems on boxes, solved on cells."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sciax.core import default_float, require_dtype
from sciax.core.errors import ConvergenceError, InputError, UnphysicalStateError, did_you_mean
from sciax.core.ops.volume import LIMITERS
from sciax.science.pde import Expr, Initial, Problem
from sciax.science.solvers._base import Method
from sciax.science.solvers._march import save_count
from sciax.science.solvers.fvm._cells import Cells
from sciax.science.solvers.fvm._march import march
from sciax.science.solvers.fvm._problem import Conservation
from sciax.science.solvers.fvm._solution import CellSolution
from sciax.science.solvers.fvm._space import Space

SCHEMES = ("weno5", "muscl", "constant")
STABLE = 1.0
"""Courant number (summed over axes) beyond which three-stage SSP steps are not to be trusted."""


@dataclass(frozen=True)
class FlowInfo:
    """steps: done; courant: the largest Courant number met, summed over axes."""

    steps: Any
    courant: Any


class Fvm(Method):
    """Finite volumes on a uniform grid of an interval, rectangle or box.

    A `Conservation` problem is marched by Shu and Osher's three-stage SSP Runge-Kutta method. An ordinary `Problem` takes
    averages at cell centres and two-point fluxes at faces, of second order, implicit in time, nonlinear terms by Newton.

    Args:
        cells: along each axis.
        time, saves: (start, end) and how many states are kept after the start.
        steps: equal time steps. None, for conservation laws, chooses them by the Courant number; derivatives are then forward
            ones only.
        scheme: "weno5" (fifth order in one dimension; second in more for nonlinear laws, with small errors), "muscl", or
            "constant" (first order). Shallow water takes muscl.
        limiter: of muscl: "mc", "minmod", "vanleer", "none".
        variables: what is reconstructed: "primitive" (muscl's default), "conserved", "characteristic" (WENO's, where a law
            has waves).
        flux: Riemann solver, "hllc", "roe", "rusanov"; the law's first one unless given.
        courant: number of the free time step, summed over axes.
        limit: most free time steps.
        dtype, newton, tol: JAX's default float unless given; Newton's method of ordinary problems.
    """

    name = "fvm"
    laws = True

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        return None if isinstance(problem, Conservation) else Cells.refuses(problem)

    def __init__(self, problem: Problem, *, cells: Any = None, time: tuple[float, float] | None = None,
                 steps: int | None = None, saves: int | None = None, scheme: str | None = None, limiter: str | None = None,
                 variables: str | None = None, flux: str | None = None, courant: float | None = None,
                 limit: int | None = None, dtype: Any = None, newton: int | None = None, tol: float | None = None):  # fmt: skip
        laws = {
            "scheme": scheme,
            "limiter": limiter,
            "variables": variables,
            "flux": flux,
            "courant": courant,
            "limit": limit,
        }
        if not isinstance(problem, Conservation):
            _refuse(laws, "a Conservation problem; this one is solved implicitly, by two-point fluxes")
            self._cells = Cells(problem, cells=cells, dtype=dtype, newton=25 if newton is None else newton, tol=tol, time=time,
                                steps=100 if steps is None else steps, saves=saves)  # fmt: skip
            return
        _refuse({"newton": newton, "tol": tol}, "ordinary problems; a Conservation problem is marched explicitly")
        self._cells = None
        if time is None or not time[1] > time[0]:
            raise InputError("time=(start, end) is needed, the end after the start", got=f"time={time}")
        law = problem.law
        self.law = law
        scheme = scheme or ("muscl" if law.variables == ("primitive",) else "weno5")
        fallback = law.variables[-1 if scheme == "weno5" else 0]
        self.scheme, self.limiter = _one_of("scheme", scheme, SCHEMES), _one_of("limiter", limiter or "mc", LIMITERS)
        self.variables = _one_of("variables", variables or fallback, law.variables)
        self.flux = _one_of("flux", flux or law.schemes[0], law.schemes)
        self.courant = 0.4 if courant is None else float(courant)
        if not 0 < self.courant <= STABLE:
            raise InputError(f"the Courant number lies in (0, {STABLE}]", got=courant)
        self.dtype = require_dtype(dtype, "solve(method='fvm')") if dtype is not None else default_float()
        counts = np.broadcast_to(
            np.asarray(cells if cells is not None else {1: 200, 2: 64, 3: 24}[law.dim]), (law.dim,)
        )
        if (counts < 6).any():
            raise InputError("at least 6 cells along each axis", got=counts.tolist())
        self.time, self.steps, self.limit = time, steps, 100_000 if limit is None else limit
        self.saves = (saves or 1) if steps is None else save_count(steps, saves)
        self.space = Space(problem, counts, self.scheme, self.limiter, self.variables, self.flux, self.dtype)
        self.compiled = {n: v for n in problem.parameters if isinstance(v := problem.value(n), Expr) or callable(v)}
        self.initial = {c.field.name: c for c in problem.of_kind(Initial)}
        self._run = jax.jit(self._advance)

    def _advance(self, given):
        values = {**given, **self.compiled}
        space, (t0, t1) = self.space, map(float, self.time)
        c = space.constants(values)
        extra = space.extra(values)
        start = space.start(self.initial, values, c, jnp.asarray(t0, self.dtype))
        states, times, track = march(
            lambda q, t: space.rate(q, extra, values, c, t), lambda q: space.positive(q, c),
            lambda q: space.courant_rate(q, c), start, t0, t1, steps=self.steps, saves=self.saves, courant=self.courant,
            limit=self.limit)  # fmt: skip
        return states, times, extra, c, track, jnp.min(space.positive(start, c))

    def solve(self, problem: Problem):
        if self._cells is not None:
            return self._cells.solve(problem)
        assert isinstance(problem, Conservation)
        given = {n: jnp.asarray(problem.value(n), self.dtype) for n in problem.parameters if n not in self.compiled}
        states, times, extra, c, track, first = self._run(given)
        states = self._check(states, times, track, first)
        return CellSolution(problem, self, states, times, extra, c, FlowInfo(track.steps, track.courant), given)

    def _check(self, states, times, track, first):
        held = jax.lax.stop_gradient((track, first, times))
        try:
            bad, steps, courant = int(held[0].bad), int(held[0].steps), float(held[0].courant)
        except jax.errors.ConcretizationTypeError:
            wrong = (held[0].bad > 0) | (held[1] <= 0)
            wrong = wrong | (held[0].courant > STABLE) | ~jnp.isfinite(held[0].courant)
            if self.steps is None:
                wrong = wrong | (held[0].steps >= self.limit)
            text = "method 'fvm': a state that is none (negative density, pressure or depth), or time steps that are too long"
            return eqx.error_if(states, wrong, text)
        if float(held[1]) <= 0:
            raise InputError("the initial state is none: " + " or ".join(self.law.quantities) + " not positive")
        if courant > STABLE or (self.steps is not None and not np.isfinite(courant)):
            wanted = "" if not np.isfinite(courant) else f", about {int(np.ceil((self.steps or 1) * courant / 0.8))}"
            raise ConvergenceError(
                "method 'fvm': the time steps are too long",
                got=f"Courant number {courant:.3g} with steps={self.steps}",
                expected=f"at most {STABLE:g}",
                remedy=f"more steps{wanted}; steps=None chooses them",
            )
        if bad:
            cell = tuple(int(i) for i in np.unravel_index(int(held[0].cell), self.space.shape))
            quantity = self.law.quantities[int(held[0].quantity)]
            point = [float(x[i]) for x, i in zip(self.space.centres, cell)]
            raise UnphysicalStateError(
                f"method 'fvm': {quantity} is not positive",
                got=f"step {bad}, cell {cell} at x = {point}",
                remedy="a smaller Courant number (more steps), flux='rusanov', scheme='muscl' with limiter='minmod'",
                step=bad,
                cell=cell,
                quantity=quantity,
            )
        if self.steps is None and steps >= self.limit:
            raise ConvergenceError(
                f"method 'fvm' took {steps} time steps without arriving", remedy="limit=, or fewer cells"
            )
        return states


def _one_of(what: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        raise InputError(f"unknown {what} {name!r} for this law", remedy=did_you_mean(name, known))
    return name


def _refuse(options: dict[str, Any], what: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name!r} is an option of {what}", got=value)
