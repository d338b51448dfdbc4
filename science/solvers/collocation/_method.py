"""Collocation on tensor grids of boxes: finite differences of any even order, Chebyshev and Fourier spectral methods."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core import default_float, require_dtype
from sciax.core.errors import ConvergenceError, InputError, SingularError, UnsupportedError
from sciax.core.ops.sparse import SolveInfo, checked
from sciax.science.geometry import BoxDomain
from sciax.science.mesh import SIDES
from sciax.science.pde import Dirichlet, Env, Initial, Neumann, Periodic, Problem, Robin, evaluate, weak_form
from sciax.science.pde._expr import Expr
from sciax.science.solvers._base import Method
from sciax.science.solvers._march import march, save_count
from sciax.science.solvers.collocation._axis import Axis, chebyshev, fourier, uniform

LIMIT = 4500
"""Most unknowns: the Jacobian is dense."""


class Collocation(Method):
    """The strong form at the nodes of a tensor grid, boundary conditions in place of it on the boundary.

    Linear problems take one dense solve, nonlinear ones Newton's method with one more, differentiated step; transient ones are
    marched by a third-order L-stable Runge-Kutta method.
    """

    def axes(self, domain: BoxDomain, periodic: tuple[int, ...]) -> list[Axis]:
        raise NotImplementedError

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        if not isinstance(problem.domain, BoxDomain):
            return "the domain is not an interval, rectangle or box"
        if problem.groups() or any(p.on for p in problem.parameters.values()):
            return "coefficients by cell group or on a mesh need a mesh"
        if any(callable(c.on) for c in problem.conditions):
            return "a condition holds on a part given by a function"
        try:
            forms = [weak_form(e, f) for e, f in zip(problem.equations, problem.fields)]
        except UnsupportedError as error:
            return error.message
        if any(not form.second_order for form in forms) and not problem.of_kind(Periodic):
            return "an equation without a flux has no place for boundary conditions on a collocated grid"
        return None

    def _prepare(self, problem: Problem, cells, dtype, newton, tol, time, steps, saves) -> None:
        domain = problem.domain
        assert isinstance(domain, BoxDomain)
        self.dtype = require_dtype(dtype, f"solve(method={self.name!r})") if dtype is not None else default_float()
        self.newton, self.tol = newton, tol or (1e-11 if self.dtype == np.float64 else 1e-5)
        self.fields, self.dim = problem.fields, problem.dim
        self.forms = tuple(weak_form(e, f) for e, f in zip(problem.equations, problem.fields))
        self.linear = all(form.linear for form in self.forms)
        self.time, self.steps = time, steps
        if problem.transient != (time is not None):
            raise InputError(
                "time=(start, end) is for problems with dt(u), and they need it",
                got=f"time={time}, transient={problem.transient}",
            )
        self.saves = save_count(steps, saves)
        periodic = problem.of_kind(Periodic)
        along = set(periodic[0].axes or range(self.dim)) if periodic else set()
        self.counts = np.broadcast_to(np.asarray(cells), (self.dim,))
        self.grid = self.axes(domain, tuple(sorted(along)))
        self.shape = tuple(len(a.nodes) for a in self.grid)
        self.components = sum(f.size for f in self.fields)
        size = int(np.prod(self.shape)) * self.components
        if size > LIMIT:
            raise UnsupportedError(
                f"method {self.name!r} uses dense matrices, for up to {LIMIT} unknowns",
                got=size,
                remedy="fewer cells, or method='fem'",
            )
        self.parameters = problem.parameters
        self.compiled = {n: v for n in problem.parameters if isinstance(v := problem.value(n), Expr) or callable(v)}
        self.initial = {c.field.name: c for c in problem.of_kind(Initial)}
        for field in self.fields if problem.transient else ():
            if field.name not in self.initial:
                raise InputError(f"{field.name} has no initial condition", remedy=f"Initial({field.name}, value)")
        self._boundary(problem, along)
        self._check_constant(problem, along)
        self._run = jax.jit(self._solve_steady if time is None else self._solve_transient)

    def _boundary(self, problem: Problem, periodic: set[int]) -> None:
        """For each component the condition at each boundary node: (component, condition, node numbers, normals)."""
        names = {name: (axis, end) for axis, pair in enumerate(SIDES[self.dim]) for end, name in enumerate(pair)}
        sides = {name: where for name, where in names.items() if where[0] not in periodic}
        index = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        self.boundary: list[tuple[int, Any, np.ndarray, np.ndarray]] = []
        start = 0
        for field in self.fields:
            for c in range(field.size):
                owner: dict[str, list[Any]] = {name: [] for name in sides}
                here = [x for x in problem.conditions if x.field.name == field.name and x.component in (None, c)
                        and isinstance(x, Dirichlet | Neumann | Robin)]  # fmt: skip
                for condition in sorted(here, key=lambda x: x.on == "rest"):
                    for name in self._names(condition.on, owner):
                        owner[name].append(condition)
                self._assign(field, c, start + c, owner, sides, index)
            start += field.size

    def _names(self, on, owner) -> list[str]:
        if on == "boundary":
            return list(owner)
        if on == "rest":
            return [name for name, held in owner.items() if not held]
        names = (on,) if isinstance(on, str) else on
        for name in names:
            if name not in owner:
                raise InputError(
                    f"{name!r} is a periodic side", remedy="take the condition away, or the axis out of Periodic"
                )
        return list(names)

    def _assign(self, field, c, row, owner, sides, index) -> None:
        label = field.name if field.components is None else f"{field.name}[{c}]"
        taken = np.zeros(index.size, dtype=bool)
        bare = [name for name, held in owner.items() if not held]
        if bare:
            raise InputError(
                f"{label} has no condition on a part of the boundary",
                got=", ".join(map(repr, bare)),
                remedy=f"state it: Neumann({field.name}, 0, on=...) insulates or frees a part; on='rest' is the rest",
            )
        order = sorted(owner, key=lambda name: not isinstance(owner[name][-1], Dirichlet))  # values win at corners
        for name in order:
            kinds = {isinstance(x, Dirichlet) for x in owner[name]}
            if len(kinds) > 1:
                raise InputError(
                    f"{label} has contradictory conditions on {name!r}", got=" and ".join(map(repr, owner[name]))
                )
            axis, end = sides[name]
            nodes = np.take(index, -end, axis=axis).ravel()
            nodes = nodes[~taken[nodes]]
            taken[nodes] = True
            normal = np.zeros(self.dim)
            normal[axis] = 1.0 if end else -1.0
            self.boundary.append((row, owner[name][-1], nodes, normal))

    def _check_constant(self, problem: Problem, periodic: set[int]) -> None:
        if problem.transient:
            return
        for form in self.forms:
            held = any(isinstance(c, Dirichlet | Robin) and c.field.name == form.test.name for c in problem.conditions)
            if form.linear and form.second_order and not held and not form.reacts():
                name = form.test.name
                raise SingularError(
                    f"{name} is determined only up to a constant",
                    remedy=f"fix its value on a part, or add a term eps*{name}",
                )

    # -- the discrete residual ---------------------------------------------------------------------------------------

    def _along(self, matrix: np.ndarray, values, axis: int):
        """A matrix on one axis of [components, *shape]."""
        return jnp.moveaxis(jnp.tensordot(jnp.asarray(matrix, values.dtype), values, axes=(1, axis + 1)), 0, axis + 1)

    def _points(self, axis: int | None):
        """[dim, N] nodes, or the midpoints along one axis."""
        sets = [a.mids if k == axis else a.nodes for k, a in enumerate(self.grid)]
        return jnp.asarray(np.stack([g.ravel() for g in np.meshgrid(*sets, indexing="ij")]), self.dtype)

    def _fields(self, value, slope):
        """name -> (value, gradient) of one point, from [components] and [components, dim]."""
        out, start = {}, 0
        for field in self.fields:
            v, g = value[start : start + field.size], slope[start : start + field.size]
            out[field.name] = (v[0], g[0]) if field.components is None else (v, g)
            start += field.size
        return out

    def _pointwise(self, function, x, value, slope, rate, values, t):
        """`function(env)` over points: x [dim, N], value [c, N], slope [c, dim, N]."""

        def at(x, value, slope, rate):
            rates = {}
            start = 0
            for field in self.fields:
                part = rate[start : start + field.size]
                rates[field.name] = part[0] if field.components is None else part
                start += field.size
            return function(Env(x, self._fields(value, slope), {**values, **self.compiled}, {}, {}, rates, None, t))

        return jax.vmap(at, in_axes=-1, out_axes=-1)(x, value, slope, rate)

    def residual(self, vector, values, t=None, previous=None, scale=None):
        """[components, N] residual of the equations inside and of the conditions on the boundary."""
        u = vector.reshape(self.components, *self.shape)
        rate = jnp.zeros_like(vector).reshape(self.components, -1) if previous is None else (
            scale * (vector - previous)).reshape(self.components, -1)  # fmt: skip
        slopes = jnp.stack([self._along(a.slope, u, k) for k, a in enumerate(self.grid)], axis=1)
        flat_u, flat_slope = u.reshape(self.components, -1), slopes.reshape(self.components, self.dim, -1)
        x = self._points(None)

        def shape_of(form):
            return () if form.test.components is None else (form.test.components,)

        def sources(env):
            parts = [form.evaluate(env, shape_of(form), self.dim)[0].reshape(form.test.size) for form in self.forms]
            return jnp.concatenate(parts)

        total = self._pointwise(sources, x, flat_u, flat_slope, rate, values, t).reshape(u.shape)
        for k, axis in enumerate(self.grid):

            def flux(env, k=k):
                parts = [
                    form.evaluate(env, shape_of(form), self.dim)[1].reshape(form.test.size, self.dim)[:, k]
                    for form in self.forms
                ]
                return jnp.concatenate(parts)

            mid = self._along(axis.to_mids, u, k)
            shifted = jnp.stack(
                [self._along(axis.slope_mids, u, k) if j == k else self._along(axis.to_mids, slopes[:, j], k)
                 for j in range(self.dim)], axis=1)  # fmt: skip
            zero = jnp.zeros((self.components, int(np.prod(mid.shape[1:]))), u.dtype)
            moved = self._pointwise(flux, self._points(k), mid.reshape(self.components, -1),
                                    shifted.reshape(self.components, self.dim, -1), zero, values, t)  # fmt: skip
            total = total - self._along(axis.from_mids, moved.reshape(mid.shape), k)
        out = total.reshape(self.components, -1)
        for row, condition, nodes, normal in self.boundary:
            out = out.at[row, nodes].set(
                self._condition(row, condition, nodes, normal, x, flat_u, flat_slope, values, t)
            )
        return out.ravel()

    def _condition(self, row, condition, nodes, normal, x, u, slope, values, t):
        start = 0
        for form in self.forms:
            if row < start + form.test.size:
                break
            start += form.test.size
        component, test = row - start, form.test

        def at(env):
            env.normal = jnp.asarray(normal, x.dtype)
            mine = u_of(env)
            wanted = evaluate(condition.value, env)
            if jnp.ndim(wanted) and condition.component is None:
                wanted = wanted[component]
            if isinstance(condition, Dirichlet):
                return mine - wanted
            shape = () if test.components is None else (test.components,)
            flux = form.evaluate(env, shape, self.dim)[1].reshape(test.size, self.dim)[component]
            natural = form.sign * jnp.sum(flux * env.normal)
            for factor in form.scale:
                natural = natural / evaluate(factor, env)
            if isinstance(condition, Robin):
                natural = natural + evaluate(condition.coefficient, env) * mine
            return natural - wanted

        def u_of(env):
            value = env.fields[test.name][0]
            return value if test.components is None else value[component]

        rate = jnp.zeros_like(u[:, nodes])
        return self._pointwise(at, x[:, nodes], u[:, nodes], slope[..., nodes], rate, values, t)

    # -- solving -----------------------------------------------------------------------------------------------------

    def _step(self, function, vector):
        """One Newton step: the solution itself for a linear problem."""
        value, along = jax.linearize(function, vector)
        jacobian = jax.vmap(along, out_axes=-1)(jnp.eye(vector.size, dtype=vector.dtype))
        # rows differ by powers of the spacing: scaled, so that the solve's pivots compare like with like
        size = jax.lax.stop_gradient(jnp.max(jnp.abs(jacobian), axis=1, keepdims=True))
        size = jnp.where(size > 0, size, 1.0)
        found = vector - jnp.linalg.solve(jacobian / size, value / size[:, 0])
        # what the linear solve left over, relative
        left = value + jacobian @ (found - vector)
        first = jnp.linalg.norm(value / size[:, 0])
        ratio = jnp.linalg.norm(left / size[:, 0]) / jnp.where(first > 0, first, 1.0)
        return found, jax.lax.stop_gradient(ratio)

    def _find(self, residual, args, guess):
        """A zero of `residual(vector, args)`, differentiable in `args`: (vector, iterations, relative residual, status)."""
        zero = jnp.zeros((), jnp.int32)
        function = lambda v: residual(v, args)  # noqa: E731
        if self.linear:
            found, ratio = self._step(function, guess)
            limit = 1e-6 if self.dtype == np.float64 else 1e-2
            return found, zero + 1, ratio, jnp.where(ratio < limit, 0, 1).astype(jnp.int32)
        frozen = jax.tree.map(jax.lax.stop_gradient, guess)
        fixed = jax.tree.map(jax.lax.stop_gradient, args)  # the loop itself is not differentiated
        held = lambda v: residual(v, fixed)  # noqa: E731
        first = jnp.linalg.norm(held(frozen))

        def size(v):
            return jnp.linalg.norm(held(v))

        def go_on(state):
            _, now, count = state
            return (now > self.tol * jnp.maximum(first, 1.0)) & (count < self.newton)

        def step(state):
            v, now, count = state
            direction = self._step(held, v)[0] - v

            def worse(search):
                factor, tries = search
                return ~(size(v + factor * direction) < (1 - 1e-4 * factor) * now) & (tries < 8)

            factor, _ = jax.lax.while_loop(worse, lambda s: (s[0] / 2, s[1] + 1), (jnp.ones((), v.dtype), zero))
            v = v + factor * direction
            return v, size(v), count + 1

        v, last, count = jax.lax.while_loop(go_on, step, (frozen, first, zero))
        reached = last <= 1e3 * self.tol * jnp.maximum(first, 1.0)
        status = jnp.where(reached, 0, 2).astype(jnp.int32)
        return self._step(function, jax.lax.stop_gradient(v))[0], count, last / jnp.maximum(first, 1.0), status

    def _solve_steady(self, values):
        guess = jnp.zeros(self.components * int(np.prod(self.shape)), self.dtype)
        vector, count, residual, status = self._find(self.residual, values, guess)
        return vector[None], SolveInfo(count, residual, status)

    def _solve_transient(self, values):
        t0, t1 = map(float, self.time)
        plain = {**values, **self.compiled}
        x, rows = self._points(None), []
        for field in self.fields:
            expr = self.initial[field.name].value

            def at(p, expr=expr, field=field):
                env = Env(p, values=plain, t=jnp.asarray(t0, self.dtype))
                return jnp.broadcast_to(evaluate(expr, env), (field.size,))

            rows.append(jax.vmap(at, in_axes=-1, out_axes=-1)(x))
        start = jnp.concatenate(rows).ravel()

        def stage(base, scale, t, guess):
            args = (values, base, t)
            v, _, _, status = self._find(lambda v, a: self.residual(v, a[0], a[2], a[1], scale), args, guess)
            return v, status

        states, status = march(stage, start, t0, t1, self.steps, self.saves)
        finite = jnp.isfinite(states).all()
        status = jnp.where(finite, status, 2).astype(jnp.int32)
        return states, SolveInfo(jnp.int32(self.steps), jnp.zeros((), self.dtype), status)

    def solve(self, problem: Problem):
        from sciax.science.solvers.collocation._solution import GridSolution

        values = {}
        for name in problem.parameters:
            value = problem.value(name)
            if name not in self.compiled:
                values[name] = jnp.asarray(value, self.dtype)
        states, info = self._run(values)
        states = self._check(info, states)
        return GridSolution(problem, self, states, info, values)

    def _check(self, info: SolveInfo, states):
        try:
            status, finite = int(info.status), bool(jnp.isfinite(states).all())
        except jax.errors.ConcretizationTypeError:
            return checked(states, info, f"method {self.name!r}")  # traced: a check at run time
        if status == 0 and finite:
            return states
        if status == 2:
            raise ConvergenceError(
                f"method {self.name!r}: Newton's method did not converge",
                history=[float(info.residual)],
                got=f"relative residual {float(info.residual):.2e} after {int(info.iterations)} steps",
                remedy="more cells, more time steps, or an easier problem to start from",
            )
        raise SingularError(
            f"method {self.name!r}: the problem has no unique solution, or a coefficient is not finite",
            remedy="look for NaN in coefficients, and for a constant that no condition fixes",
        )


class Spectral(Collocation):
    """Chebyshev collocation; Fourier along periodic axes. Exponentially accurate for smooth solutions.

    Args:
        cells: intervals along each axis.
        dtype: JAX's default float unless given.
        newton, tol: iterations and relative residual for nonlinear problems.
        time, steps, saves: of a transient problem: (start, end), time steps, states kept.
    """

    name = "spectral"

    def __init__(self, problem: Problem, *, cells: Any = None, dtype: Any = None, newton: int = 25, tol: float | None = None,
                 time: tuple[float, float] | None = None, steps: int = 100, saves: int | None = None):  # fmt: skip
        default = {1: 48, 2: 24, 3: 10}[problem.dim]
        self._prepare(problem, default if cells is None else cells, dtype, newton, tol, time, steps, saves)

    def axes(self, domain, periodic):
        return [(fourier if k in periodic else chebyshev)(a, b, int(n))
                for k, (a, b, n) in enumerate(zip(domain.lower, domain.upper, self.counts))]  # fmt: skip


class Fdm(Collocation):
    """Finite differences of even order on a uniform grid, fluxes on the midpoints.

    Args:
        order: of the differences, 2, 4, 6, ...
        cells, dtype, newton, tol, time, steps, saves: as for "spectral".
    """

    name = "fdm"

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        return "it has no periodic conditions" if problem.of_kind(Periodic) else super().refuses(problem)

    def __init__(self, problem: Problem, *, order: int = 4, cells: Any = None, dtype: Any = None, newton: int = 25,
                 tol: float | None = None, time: tuple[float, float] | None = None, steps: int = 100,
                 saves: int | None = None):  # fmt: skip
        self.order = order
        default = {1: 128, 2: 32, 3: 10}[problem.dim]
        self._prepare(problem, default if cells is None else cells, dtype, newton, tol, time, steps, saves)

    def axes(self, domain, periodic):
        return [uniform(a, b, int(n), self.order) for a, b, n in zip(domain.lower, domain.upper, self.counts)]
