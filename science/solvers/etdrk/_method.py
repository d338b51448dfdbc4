"""`method="etdrk"`: exponential time differencing for problems on periodic boxes."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sciax.core import default_float, require_dtype
from sciax.core.errors import ConvergenceError, InputError, UnsupportedError
from sciax.science.geometry import BoxDomain
from sciax.science.pde import Dirichlet, Expr, Field, Initial, Neumann, Periodic, Problem, Robin
from sciax.science.pde._expr import Dt, fields_of, walk
from sciax.science.solvers._base import Method
from sciax.science.solvers._march import save_count
from sciax.science.solvers.etdrk._steps import etdrk_march
from sciax.science.solvers.etdrk._terms import Evaluator, linear, split_terms, waves


class Etdrk(Method):
    """Fourier series in space, exponential Runge-Kutta (ETDRK1-4) in time, for `dt(u)` on a box with all axes periodic.

    Terms that are linear with constant coefficients, of any order of derivative, are integrated exactly; the rest is evaluated on
    the grid, its waves above the 2/3 rule dropped. Fields without `dt` (a stream function) are solved for in Fourier space,
    their mean zero. Dispersive and stiff problems (KdV, Kuramoto-Sivashinsky, Allen-Cahn, vorticity) take steps that only
    the nonlinear term limits.

    Args:
        cells: points along each axis.
        time, steps, saves: (start, end), equal steps, states kept after the start.
        order: 1 to 4.
        dealias: share of the waves that is kept: 2/3 removes all aliasing of squares, 1/2 of cubes, 1 none.
        dtype: JAX's default float unless given.

    Source: Cox & Matthews, J. Comput. Phys. 176 (2002) 430; Kassam & Trefethen, SIAM J. Sci. Comput. 26 (2005) 1214.
    """

    name = "etdrk"

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        if not isinstance(problem.domain, BoxDomain):
            return "the domain is not an interval, rectangle or box"
        if not problem.transient:
            return "nothing in it changes in time"
        if problem.groups() or any(p.on for p in problem.parameters.values()):
            return "coefficients by cell group or on a mesh need a mesh"
        rings = problem.of_kind(Periodic)
        if problem.of_kind(Dirichlet, Neumann, Robin) or any(c.axes and len(set(c.axes)) < problem.dim for c in rings):
            return "not all sides are periodic"
        moving, still = _roles(problem)
        if {f.name for f in moving} - {c.field.name for c in rings}:
            return "not all sides are periodic"
        if moving is None or len(moving) + len(still) != len(problem.fields):
            return "an equation has the rates of several fields"
        for field, equation in still:
            terms = [t for t in split_terms(equation) if any(f.name == field.name for f in fields_of(t))]
            if field.components is not None or not all(linear(t, problem) for t in terms):
                return f"{field.name} has no rate, and its own equation is not linear with constant coefficients"
        return None

    def __init__(self, problem: Problem, *, cells: Any = None, time: tuple[float, float] | None = None, steps: int = 1000,
                 saves: int | None = None, order: int = 4, dealias: float = 2 / 3, dtype: Any = None):  # fmt: skip
        if order not in (1, 2, 3, 4):
            raise InputError("ETDRK is of order 1, 2, 3 or 4", got=order)
        if not 0 < dealias <= 1:
            raise InputError("the share of waves that is kept lies in (0, 1]", got=dealias)
        if time is None or not time[1] > time[0]:
            raise InputError("time=(start, end) is needed, the end after the start", got=f"time={time}")
        self.dtype = require_dtype(dtype, "solve(method='etdrk')") if dtype is not None else default_float()
        self.time, self.steps, self.saves, self.order = time, steps, save_count(steps, saves), order
        domain: Any = problem.domain
        default = {1: 256, 2: 128, 3: 32}[problem.dim]
        self.shape = tuple(
            int(n) for n in np.broadcast_to(np.asarray(default if cells is None else cells), (problem.dim,))
        )
        if min(self.shape) < 4:
            raise InputError("at least 4 points along each axis", got=self.shape)
        self.space = waves(domain.lower, domain.extent, self.shape, dealias)
        self.problem, self.dim, self.fields = problem, problem.dim, problem.fields
        self.moving, self.still = _roles(problem)
        self.terms = {f.name: self._split(problem, f, e) for f, e in zip(self.moving, self._equations())}
        self.stills = [(f, split_terms(e)) for f, e in self.still]
        self.initial = {c.field.name: c.value for c in problem.of_kind(Initial)}
        for f in self.moving:
            if f.name not in self.initial:
                raise InputError(f"{f.name} has no initial condition", remedy=f"Initial({f.name}, value)")
        self.compiled = {n: v for n in problem.parameters if isinstance(v := problem.value(n), Expr) or callable(v)}
        self._run = jax.jit(self._advance)

    def _equations(self) -> list[Expr]:
        found = {}
        for equation in self.problem.equations:
            for f in _rates(equation.residual):
                found[f] = equation.residual
        return [found[f.name] for f in self.moving]

    def _split(self, problem: Problem, field: Field, residual: Expr):
        """(rate terms, linear terms of the field itself, all other terms)."""
        rate, own, rest = [], [], []
        for term in split_terms(residual):
            if _rates(term):
                if not linear(term, problem):
                    raise UnsupportedError(
                        f"{term!r}: the rate of {field.name} is multiplied by something that varies",
                        remedy="divide the equation by it",
                    )
                rate.append(term)
            elif linear(term, problem) and {f.name for f in fields_of(term)} == {field.name}:
                own.append(term)
            else:
                rest.append(term)
        return rate, own, rest

    # -- in Fourier space --------------------------------------------------------------------------------------------

    def _unit(self, field: Field, component: int):
        """Coefficients that are one for a component of a field: a linear term gives its symbol."""
        modes = self.space.keep.shape
        one = np.zeros((field.size, *modes))
        one[component] = 1.0
        one = one[0] if field.components is None else one
        return jnp.asarray(one, jnp.result_type(self.dtype, jnp.complex64))

    def _symbol(self, terms, field: Field, values, rates: bool):
        """[size, size, modes] response of linear terms to each component of a field."""
        columns = []
        for component in range(field.size):
            hats = {field.name: self._unit(field, component)}
            evaluator = Evaluator(self.space, {} if rates else hats, values, None, self.dtype, hats if rates else {})
            total = sum((evaluator.hat(t) for t in terms), start=jnp.zeros_like(hats[field.name]))
            columns.append(total.reshape(field.size, *total.shape[total.ndim - self.dim :]))
        return jnp.stack(columns, axis=1)

    def _tables(self, values):
        """Symbols: of what is exact, of what else is linear, of the fields without a rate; and factors of the rates."""
        exact, coupled, factors = [], {}, {}
        for f in self.moving:
            rate, own, _ = self.terms[f.name]
            factor = self._symbol(rate, f, values, True)
            factors[f.name] = jnp.stack([factor[i, i] for i in range(f.size)])
            whole = self._symbol(own, f, values, False)
            exact.append(jnp.stack([-whole[i, i] for i in range(f.size)]) / factors[f.name])
            if f.size > 1:
                eye = jnp.eye(f.size).reshape(f.size, f.size, *(1,) * self.dim)
                coupled[f.name] = whole * (1 - eye)
        stills = {}
        for f, terms in self.stills:
            mine = [t for t in terms if any(g.name == f.name for g in fields_of(t))]
            symbol = self._symbol(mine, f, values, False)[0, 0]
            held = jnp.abs(symbol) > 0
            stills[f.name] = jnp.where(held, 1.0 / jnp.where(held, symbol, 1.0), 0.0)
        return jnp.concatenate(exact), coupled, factors, stills

    def _named(self, u):
        """name -> coefficients from the stacked state [c, *modes]."""
        out, start = {}, 0
        for f in self.moving:
            part = u[start : start + f.size]
            out[f.name] = part[0] if f.components is None else part
            start += f.size
        return out

    def _with_stills(self, hats, inverses, values, t):
        """One evaluator with every field; fields without a rate solved for, in the order of their equations."""
        evaluator = Evaluator(self.space, dict(hats), values, t, self.dtype)
        for f, terms in self.stills:
            given = [term for term in terms if all(g.name != f.name for g in fields_of(term))]
            right = sum((evaluator.hat(term) for term in given[1:]), start=evaluator.hat(given[0])) if given else 0.0
            evaluator.hats[f.name] = -right * inverses[f.name]
        return evaluator

    def _nonlinear(self, tables, values):
        _, coupled, factors, inverses = tables

        def rate(u, t):
            evaluator = self._with_stills(self._named(u), inverses, values, t)
            rows = []
            for f in self.moving:
                hats = evaluator.hats[f.name]
                total = jnp.zeros_like(hats)
                rest = self.terms[f.name][2]
                if rest:  # summed before the transform: one for all products
                    values_of = [evaluator(term) for term in rest]
                    both = evaluator._sum(values_of)
                    total = total if both.hat is None else total + both.hat
                    if both.grid is not None:
                        shape = (*hats.shape[: hats.ndim - self.dim], *self.shape)
                        total = total + self.space.forward(jnp.broadcast_to(both.grid, shape))
                total = total.reshape(f.size, *total.shape[total.ndim - self.dim :])
                if f.name in coupled:
                    total = total + jnp.sum(coupled[f.name] * hats[None], axis=1)
                rows.append(-total / factors[f.name])
            return jnp.concatenate(rows) * jnp.asarray(self.space.keep, self.dtype)

        return rate

    def _advance(self, given):
        values = {**given, **self.compiled}
        t0, t1 = map(float, self.time)
        tables = self._tables(values)
        evaluator = Evaluator(self.space, {}, values, jnp.asarray(t0, self.dtype), self.dtype)
        rows = []
        for f in self.moving:
            grid = evaluator.grid(self.initial[f.name])
            rows.append(jnp.broadcast_to(grid, (f.size, *self.shape)))
        start = self.space.forward(jnp.concatenate(rows)) * jnp.asarray(self.space.keep, self.dtype)
        states = etdrk_march(self._nonlinear(tables, values), tables[0], start, t0, t1, order=self.order, steps=self.steps,
                             saves=self.saves)  # fmt: skip

        def whole(u):
            hats = self._named(u)
            evaluator = self._with_stills(hats, tables[3], values, None)
            held = [evaluator.hats[f.name].reshape(f.size, *self.space.keep.shape) for f in self.fields]
            return self.space.inverse(jnp.concatenate(held))

        return jax.lax.map(whole, states)

    def solve(self, problem: Problem):
        from sciax.science.solvers.etdrk._solution import FourierSolution

        values = {n: jnp.asarray(problem.value(n), self.dtype) for n in problem.parameters if n not in self.compiled}
        states = self._run(values)
        finite = jnp.isfinite(jax.lax.stop_gradient(states)).all()
        text = "method 'etdrk': the solution grew without bound"
        try:
            fine = bool(finite)
        except jax.errors.ConcretizationTypeError:
            states = eqx.error_if(states, ~finite, text)
            fine = True
        if not fine:
            rows = np.asarray(jnp.isfinite(jax.lax.stop_gradient(states)).reshape(len(states), -1).all(axis=1))
            raise ConvergenceError(
                text,
                got=f"steps={self.steps}, order {self.order}; not finite from save {int(np.argmin(rows))} of {self.saves} on",
                remedy="more steps: the nonlinear term limits them (Courant number of its waves below about 1)",
            )
        return FourierSolution(problem, self, states, values)


def _rates(expr: Expr) -> list[str]:
    return [n.args[0].name for n in walk(expr) if isinstance(n, Dt) and isinstance(n.args[0], Field)]


def _roles(problem: Problem) -> tuple[list[Field], list[tuple[Field, Expr]]]:
    """Fields with a rate in the order of the problem, and (field, residual) for the others."""
    moving = {name for e in problem.equations for name in _rates(e.residual)}
    still = [e.residual for e in problem.equations if not _rates(e.residual)]
    others = [f for f in problem.fields if f.name not in moving]
    return [f for f in problem.fields if f.name in moving], list(zip(others, still))
