"""The finite element method: set-up of a problem on a mesh, assembly, and the solve with its adjoint."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sciax.core import default_float, require_dtype
from sciax.core.errors import ConvergenceError, InputError, SciaxError, UnsupportedError, did_you_mean
from sciax.core.ops.sparse import SolveInfo, checked, raise_for, solve_with_info
from sciax.science.pde import Env, Initial, Problem, evaluate, forms_of
from sciax.science.pde._expr import Constant, Function, walk
from sciax.science.solvers._imex import march_imex
from sciax.science.solvers._march import march, save_count
from sciax.science.solvers.fem._assembly import (
    Layout,
    cell_integrand,
)
from sciax.science.solvers.fem._residual import Assembler
from sciax.science.solvers.fem._space import Numbering

SOLVERS = ("direct", "amg", "cg", "gmres", "bicgstab")
STEPPERS = ("sdirk", "imex")


@jax.jit
def _moved(vector, free, step, factor=1.0):
    return vector.at[free].add(factor * step)


class Fem(Assembler):
    """Continuous Lagrange elements P_k / Q_k on the cells of the domain's mesh.

    Args:
        order: polynomial degree, 1 to 3; or a mapping from field name. A field that only enforces a constraint (the pressure
            of a flow) takes one less, the Taylor-Hood pair.
        solver: "direct" (SuperLU), "amg" (conjugate gradients or GMRES with algebraic multigrid; extra `mesh`), or "cg",
            "gmres", "bicgstab" with Jacobi.
        tol: relative residual of the linear iteration, and of Newton.
        quadrature: degree of the quadrature rule; 2 * order unless given.
        size, cells, kind: how to mesh the domain.
        dtype: of unknowns and coefficients; JAX's default float.
        newton: iterations allowed for a nonlinear problem.
        start: coefficients to start Newton from (those of another solution), or the initial state of a transient problem.
        time, steps, saves: of a transient problem: (start, end), time steps, states kept.
        stepper: "sdirk" (third order, L-stable, Newton in every stage), or "imex": nonlinear terms explicit, second order, one
            factorisation for all steps; the step is bound by the Courant number.
        continuation: parameter name -> values to solve for on the way to the one given, each from the solution before.
    """

    name = "fem"
    takes_weak = True
    moves_points = True

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        try:
            forms = forms_of(problem)
        except UnsupportedError as error:
            return error.message
        if not any(form.second_order for form in forms):
            return "no equation has a flux: continuous elements are unstable for purely first-order problems"
        return None

    def __init__(
        self,
        problem: Problem,
        *,
        order: int | dict[str, int] = 1,
        solver: str = "direct",
        tol: float | None = None,
        quadrature: int | None = None,
        size: float | None = None,
        cells: Any = None,
        kind: str | None = None,
        dtype: Any = None,
        newton: int = 25,
        start: Any = None,
        time: tuple[float, float] | None = None,
        steps: int = 100,
        saves: int | None = None,
        stepper: str = "sdirk",
        continuation: Mapping[str, Any] | None = None,
    ):
        if solver not in SOLVERS:
            raise InputError(f"unknown linear solver {solver!r}", remedy=did_you_mean(solver, SOLVERS))
        self.dtype = require_dtype(dtype, "solve(method='fem')") if dtype is not None else default_float()
        if stepper not in STEPPERS:
            raise InputError(f"unknown stepper {stepper!r}", remedy=did_you_mean(stepper, STEPPERS))
        self.solver, self.tol, self.newton, self.start, self.stepper = solver, tol, newton, start, stepper
        self.continuation = dict(continuation or {})
        if problem.transient != (time is not None):
            raise InputError(
                "time=(start, end) is for problems with dt(u), and they need it",
                got=f"time={time}, transient={problem.transient}",
            )
        self.time, self.steps, self.saves = time, steps, save_count(steps, saves)
        self.initial = {c.field.name: c for c in problem.of_kind(Initial)}
        for field in problem.fields if problem.transient else ():
            if field.name not in self.initial:
                raise InputError(f"{field.name} has no initial condition", remedy=f"Initial({field.name}, value)")
        self.parameters = problem.parameters
        for name in self.continuation:
            if name not in problem.parameters:
                raise InputError(
                    f"continuation in an unknown parameter {name!r}", remedy=did_you_mean(name, problem.parameters)
                )
        if len({len(np.atleast_1d(v)) for v in self.continuation.values()}) > 1:
            raise InputError("continuation: as many values of each parameter", got=self.continuation)
        self.compiled = self._fixed_values(problem)
        given = {k: v for k, v in {"size": size, "cells": cells, "kind": kind}.items() if v is not None}
        self.mesh = mesh = problem.domain.mesh(**given)
        self.forms = forms_of(problem)
        self.linear = all(form.linear for form in self.forms)
        self.timed = problem.uses_time
        if self.continuation and (self.linear or time is not None):
            raise InputError("continuation is for stationary nonlinear problems", remedy="leave it out")
        orders = self._orders(problem, order)
        degree = quadrature if quadrature is not None else 2 * max(orders)
        self.periodic = self._periodic_axes(problem)
        numbers = [Numbering.of(mesh, k) for k in orders]
        numbers = [
            n.periodic(self.periodic[f.name]) if f.name in self.periodic else n for n, f in zip(numbers, problem.fields)
        ]
        self.layout = Layout(problem.fields, tuple(orders), tuple(n.count for n in numbers))
        self.numbers = numbers
        self._check_groups(problem)
        self.degree = degree
        parts = [form.split() for form in self.forms]
        named = {"all": self.forms, "linear": tuple(a for a, _ in parts), "nonlinear": tuple(b for _, b in parts)}
        self._integrands = {name: cell_integrand(self.layout, forms, mesh.dim) for name, forms in named.items()}
        self._patches = {}
        self.patch = self.patch_of(degree)
        self._natural = self._natural_parts(problem, degree)
        self._essential(problem)
        self._build_pattern()
        # One program a stage: operation by operation, a first solve would wait for a hundred small compilations.
        self._jit_start = jax.jit(self._start_of)
        self._jit_step = jax.jit(self._step_from)
        self._jit_norm = jax.jit(self._norm)
        self._jit_fields = jax.jit(self._fields_at, static_argnames=("degree",))
        self._jit_assemble = jax.jit(self._assemble, static_argnames=("matrix",))
        self._jit_rows = jax.jit(self._rows, static_argnames=("matrix", "part"))
        self._jit_newton = jax.jit(self._newton)
        self._jit_march = jax.jit(self._march)

    # -- solving -----------------------------------------------------------------------------------------------------

    def linear_solve(self, data, b):
        symmetric = all(form.symmetric() for form in self.forms) and len(self.forms) == 1
        if self.solver == "direct":
            return solve_with_info(data, b, pattern=self.pattern, definite=symmetric)
        if self.solver == "amg":
            method = "cg" if symmetric else "gmres"
            return solve_with_info(
                data, b, pattern=self.pattern, method=method, preconditioner="amg", definite=symmetric, tol=self.tol
            )
        return solve_with_info(data, b, pattern=self.pattern, method=self.solver, preconditioner="jacobi", tol=self.tol)

    def solve(self, problem: Problem):
        from sciax.science.solvers.fem._solution import FemSolution

        values = self.values_of(problem)
        arrays = self.arrays if problem.points is None else self.moved_arrays(problem.points)
        try:
            if self.time is not None:
                states, rates, info = self._jit_march(arrays, values)
                states = checked(states, info, "finite elements in time")
                return FemSolution(problem, self, states[-1], info, values, arrays, states, rates)
            vector, info = self._solve(arrays, values)
        except SciaxError as error:
            self._diagnose(problem, values, error)
            raise
        return FemSolution(problem, self, vector, info, values, arrays)

    def _start_of(self, arrays, values, vector=None):
        """The vector with the boundary's values in it, zero elsewhere or as given."""
        lift = self._lift(arrays, {**values, **self.compiled}, None)
        return lift if vector is None else jnp.where(jnp.asarray(self.fixed), lift, vector)

    def _step_from(self, arrays, values, vector):
        """What a Newton step solves at a vector: (matrix data, right side)."""
        residual, data = self._assemble(arrays, values, vector)
        return data, -residual

    def _norm(self, arrays, values, vector):
        return jnp.linalg.norm(self._assemble(arrays, values, vector, matrix=False)[0])

    def _solve(self, arrays, values):
        info, vector = None, None
        if not self.linear:
            vector, info = self._converged(*jax.lax.stop_gradient((arrays, values)))
            vector = jnp.asarray(jax.lax.stop_gradient(vector))
        # One more step, differentiated through: exact first derivatives by the implicit function theorem.
        vector = self._jit_start(arrays, values, vector)
        step, last = self.linear_solve(*self._jit_step(arrays, values, vector))
        step = checked(step, last, "finite elements" if self.linear else "finite elements (Newton)")
        return _moved(vector, arrays["free"], step), last if self.linear else info

    def _converged(self, arrays, values):
        """A root of the residual, without derivatives: Newton at each stage of the continuation, then at the values given."""
        vector, info = None if self.start is None else jnp.asarray(self.start, self.dtype), None
        for stage in [*self._stages(), {}]:
            here = {**values, **{n: jnp.asarray(v, self.dtype) for n, v in stage.items()}}
            begin = self._jit_start(arrays, here, vector)
            if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((arrays, here, begin))):
                vector, info, history = self._jit_newton(arrays, here, begin)
            else:
                vector, info, history = self._newton_on_host(arrays, here, begin)
            self._check_newton(info, history, stage)
        return vector, info

    def _stages(self) -> list[dict[str, Any]]:
        return [dict(zip(self.continuation, row)) for row in zip(*self.continuation.values())]

    def _march(self, arrays, values):
        """All saved states of a transient problem with their rates, by stages of which each is a stationary problem."""
        t0, t1 = map(float, self.time)  # type: ignore[misc]
        start = self._initial_state(arrays, values, t0)
        fixed, free = jnp.asarray(self.fixed), arrays["free"]

        def begin_at(t, guess):
            return jnp.where(fixed, self._lift(arrays, {**values, **self.compiled}, t), guess)

        def stage(base, scale, t, guess):
            begin = begin_at(t, guess)
            status = jnp.zeros((), jnp.int32)
            if not self.linear:
                held = jax.lax.stop_gradient((arrays, values, begin, base, t))
                vector, info, _ = self._newton(held[0], held[1], held[2], held[3], scale, held[4])
                begin, status = jnp.where(fixed, begin, jax.lax.stop_gradient(vector)), info.status
            residual, data = self._assemble(arrays, values, begin, base, scale, t)
            step, info = self.linear_solve(data, -residual)
            worst = jnp.maximum(status, jnp.asarray(info.status, jnp.int32))
            return begin.at[free].add(step), worst

        def prepare(scale):
            zero = jnp.zeros(self.layout.size, self.dtype)
            at = None if not self.timed else jnp.asarray(t0, self.dtype)
            return self._rows(arrays, values, start, zero, scale, at, matrix=True, part="linear")[1]

        def implicit(data, base, scale, t, guess, push):
            begin = begin_at(t, guess)
            wants = self.timed  # coefficients that change in time change the matrix
            rows, fresh = self._rows(
                arrays, values, begin, scale * (begin - base), scale, t, matrix=wants, part="linear"
            )
            step, info = self.linear_solve(fresh if wants else data, -(rows + push)[free])
            return begin.at[free].add(step), jnp.asarray(info.status, jnp.int32)

        def explicit(u, t):
            return self._rows(arrays, values, begin_at(t, u), None, None, t, part="nonlinear")[0]

        if self.stepper == "imex":
            states, rates, status = march_imex(prepare, implicit, explicit, start, t0, t1, self.steps, self.saves)
        else:
            states, rates, status = march(stage, start, t0, t1, self.steps, self.saves, rates=True)
        return states, rates, SolveInfo(jnp.int32(self.steps), jnp.zeros((), self.dtype), status)

    def _initial_state(self, arrays, values, t0: float):
        if self.start is not None:
            return jnp.asarray(self.start, self.dtype)
        plain = {
            n: v for n, v in {**values, **self.compiled}.items() if n in self.compiled or self.parameters[n].on is None
        }
        rows = []
        for field, numbers in zip(self.layout.fields, self.numbers):

            def at(p, field=field):
                env = Env(p, values=plain, t=jnp.asarray(t0, self.dtype))
                return jnp.broadcast_to(evaluate(self.initial[field.name].value, env), (field.size,))

            rows.append(jax.vmap(at)(jnp.asarray(numbers.points, self.dtype)).reshape(-1))
        return jnp.concatenate(rows)

    def _tolerance(self) -> float:
        return self.tol or (1e-10 if self.dtype == np.float64 else 1e-5)

    def _newton_on_host(self, arrays, values, start):
        """`_newton` with its loop in Python: the residual and the matrix are compiled once, and nothing else."""
        free, vector = arrays["free"], start

        def norm(vector) -> float:
            return float(self._jit_norm(arrays, values, vector))

        history = [norm(start)]
        goal, status = self._tolerance() * max(history[0], 1e-3), 0
        while status == 0 and not history[-1] <= goal and np.isfinite(history[-1]) and len(history) <= self.newton:
            delta, info = self.linear_solve(*self._jit_step(arrays, values, vector))
            status = int(info.status)
            factor = 1.0
            for _ in range(11):
                trial = _moved(vector, free, delta, factor)
                size = norm(trial)
                if size <= (1 - 1e-4 * factor) * history[-1]:
                    break
                factor /= 2
            vector = trial
            history.append(size)
        code = status or (0 if history[-1] <= goal else 2)
        residual = jnp.asarray(history[-1] / max(history[0], 1e-3), self.dtype)
        return vector, SolveInfo(jnp.int32(len(history) - 1), residual, jnp.int32(code)), history

    def _newton(self, arrays, values, start, previous=None, scale=None, t=None):
        """Newton with a backtracking line search on the residual's norm; everything inside one compiled loop."""
        tol = self._tolerance()
        free = arrays["free"]

        def norm(vector):
            return jnp.linalg.norm(self._assemble(arrays, values, vector, previous, scale, t, matrix=False)[0])

        first = norm(start)

        def go_on(state):
            _, size, count, _, status = state
            return (size > tol * jnp.maximum(first, 1e-3)) & (count < self.newton) & (status == 0)

        def step(state):
            vector, size, count, history, _ = state
            residual, data = self._assemble(arrays, values, vector, previous, scale, t)
            delta, info = self.linear_solve(data, -residual)

            def worse(search):
                factor, trial = search
                return (norm(vector.at[free].add(factor * delta)) > (1 - 1e-4 * factor) * size) & (trial < 10)

            factor, _ = jax.lax.while_loop(worse, lambda s: (s[0] / 2, s[1] + 1), (jnp.ones((), vector.dtype), 0))
            vector = vector.at[free].add(factor * delta)
            size = norm(vector)
            return vector, size, count + 1, history.at[count + 1].set(size), jnp.asarray(info.status, jnp.int32)

        history = jnp.full(self.newton + 1, jnp.nan, self.dtype).at[0].set(first)
        state = (start, first, jnp.int32(0), history, jnp.int32(0))
        vector, size, count, history, status = jax.lax.while_loop(go_on, step, state)
        reached = size <= tol * jnp.maximum(first, 1e-3)
        code = jnp.where(status != 0, status, jnp.where(reached, 0, 2)).astype(jnp.int32)
        return vector, SolveInfo(count, size / jnp.maximum(first, 1e-3), code), history

    def _check_newton(self, info, history, stage) -> None:
        if isinstance(info.status, Tracer):
            checked(info.residual, info, "Newton's method")
            return
        if int(info.status) == 2:
            steps = [float(h) for h in np.asarray(history) if np.isfinite(h)]
            raise ConvergenceError(
                "Newton's method did not converge" + (f" at {stage}" if stage else ""),
                history=steps,
                got=f"residual {steps[-1]:.2e} after {int(info.iterations)} iterations, from {steps[0]:.2e}",
                remedy="go there in steps (continuation={'parameter': (easy, harder)}), start from another solution "
                "(start=other.coefficients), or allow more (newton=...)",
            )
        raise_for(info, "Newton's method")

    def _diagnose(self, problem: Problem, values, error: SciaxError) -> None:
        """Name the coefficient that is not finite, if that is why a solve failed."""
        x = jnp.asarray(self.patch.x.reshape(self.mesh.dim, -1).T[:20000], self.dtype)
        for name, value in values.items():
            if not bool(jnp.isfinite(jax.lax.stop_gradient(value)).all()):
                raise InputError(
                    f"parameter {name!r} has a value that is not finite", remedy="look for NaN or infinity"
                ) from error
        for expr in problem.expressions():
            for node in walk(expr):
                if isinstance(node, Constant) and not bool(jnp.isfinite(jnp.asarray(node.value)).all()):
                    raise InputError(f"a coefficient is not finite: {node!r}", got=repr(expr)) from error
                if isinstance(node, Function):
                    at = jax.vmap(lambda p, n=node: jnp.asarray(n.function(p)))(x)
                    bad = ~np.isfinite(np.asarray(at)).reshape(len(x), -1).all(axis=1)
                    if bad.any():
                        raise InputError(
                            f"the function {node.name!r} is not finite on the domain",
                            got=f"{int(bad.sum())} of {len(x)} points, the first at {np.asarray(x)[bad][0]}",
                        ) from error
