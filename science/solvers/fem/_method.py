"""The finite element method: set-up of a problem on a mesh, assembly, and the solve with its adjoint."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sciax.core import default_float, require_dtype
from sciax.core.errors import ConvergenceError, InputError, SciaxError, SingularError, UnsupportedError, did_you_mean
from sciax.core.ops.sparse import SolveInfo, assemble, checked, pattern, raise_for, solve_with_info
from sciax.science.pde import ByGroup, Dirichlet, Env, Initial, Neumann, Periodic, Problem, Robin, evaluate, weak_form
from sciax.science.pde._expr import Constant, Expr, Function, as_expr, fields_of, walk
from sciax.science.solvers._base import Method
from sciax.science.solvers._march import march, save_count
from sciax.science.solvers.fem._assembly import (
    Layout,
    block,
    cell_integrand,
    facet_integrand,
    gather,
    natural_value,
    over_points,
    stack_basis,
)
from sciax.science.solvers.fem._space import Numbering, Patch

SOLVERS = ("direct", "amg", "cg", "gmres", "bicgstab")


class Fem(Method):
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
        start: coefficients to start Newton from (those of another solution).
        time, steps, saves: of a transient problem: (start, end), time steps, states kept.
    """

    name = "fem"

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        if problem.of_kind(Periodic):
            return "it has no periodic conditions"
        try:
            forms = [weak_form(e, f) for e, f in zip(problem.equations, problem.fields)]
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
    ):
        if solver not in SOLVERS:
            raise InputError(f"unknown linear solver {solver!r}", remedy=did_you_mean(solver, SOLVERS))
        self.dtype = require_dtype(dtype, "solve(method='fem')") if dtype is not None else default_float()
        self.solver, self.tol, self.newton, self.start = solver, tol, newton, start
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
        self.compiled = self._fixed_values(problem)
        given = {k: v for k, v in {"size": size, "cells": cells, "kind": kind}.items() if v is not None}
        self.mesh = mesh = problem.domain.mesh(**given)
        self.forms = tuple(weak_form(e, f) for e, f in zip(problem.equations, problem.fields))
        self.linear = all(form.linear for form in self.forms)
        orders = self._orders(problem, order)
        degree = quadrature if quadrature is not None else 2 * max(orders)
        numbers = [Numbering.of(mesh, k) for k in orders]
        self.layout = Layout(problem.fields, tuple(orders), tuple(n.count for n in numbers))
        self.numbers = numbers
        self._check_groups(problem)
        self.degree = degree
        self._integrand = cell_integrand(self.layout, self.forms, mesh.dim)
        self.patch = Patch.cells(mesh, degree)
        self._natural = self._natural_parts(problem, degree)
        self._essential(problem)
        self._build_pattern()
        self._jit_assemble = jax.jit(self._assemble, static_argnames=("matrix",))
        self._jit_newton = jax.jit(self._newton)
        self._jit_march = jax.jit(self._march)

    # -- set-up ------------------------------------------------------------------------------------------------------

    def _orders(self, problem: Problem, order) -> list[int]:
        if isinstance(order, dict):
            for name in order:
                if name not in [f.name for f in problem.fields]:
                    raise InputError(
                        f"order for an unknown field {name!r}",
                        remedy=did_you_mean(name, [f.name for f in problem.fields]),
                    )
            orders = [int(order.get(f.name, 1)) for f in problem.fields]
        else:
            orders = [int(order) - (0 if form.second_order else 1) for form in self.forms]
        if min(orders) < 1 or max(orders) > 3:
            mixed = any(not form.second_order for form in self.forms)
            raise UnsupportedError(
                "element orders 1 to 3 are offered", got=dict(zip((f.name for f in problem.fields), orders)),
                remedy="order=2 for a mixed problem (quadratic velocity, linear pressure)" if mixed else "order=1, 2 or 3",
            )  # fmt: skip
        return orders

    def _check_groups(self, problem: Problem) -> None:
        mesh = self.mesh
        exprs = problem.expressions() + [as_expr(v) for v in problem.values.values() if isinstance(v, dict)]
        for node in (n for e in exprs for n in walk(e) if isinstance(n, ByGroup)):
            count = np.zeros(len(mesh.cells), dtype=int)
            for name in node.values:
                count[mesh.region(name)] += 1
            if (count > 1).any():
                raise InputError(f"{node!r}: {int((count > 1).sum())} cells are in two of these groups")
            if node.default is None and (count == 0).any():
                raise InputError(
                    f"{node!r}: {int((count == 0).sum())} cells are in none of these groups",
                    remedy=f"add 'default', or the missing group: {', '.join(set(mesh.cell_groups) - set(node.values)) or 'none'}",
                )
        self.group_names = sorted({name for e in exprs for n in walk(e) if isinstance(n, ByGroup) for name in n.values})
        self.indicators = {}
        for name in self.group_names:
            member = np.zeros(len(mesh.cells))
            member[mesh.region(name)] = 1.0
            self.indicators[name] = member

    def facets_of(self, part: Any) -> np.ndarray:
        if callable(part):
            centres = self.mesh.facet_centres[self.mesh.exterior]
            inside = np.asarray(jax.vmap(part)(jnp.asarray(centres)))
            found = self.mesh.exterior[inside.astype(bool)]
            if len(found) == 0:
                raise InputError("no boundary facet lies where the condition's function is true", got=part)
            return found
        names = (part,) if isinstance(part, str) else part
        return np.unique(np.concatenate([self.mesh.boundary(name) for name in names]))

    def _natural_parts(self, problem: Problem, degree: int):
        mesh, parts = self.mesh, []
        covered: dict[Any, dict[int, list[Any]]] = {}
        self.parts: dict[Any, np.ndarray] = {}
        here = [c for c in problem.conditions if isinstance(c, Dirichlet | Neumann | Robin)]
        for condition in sorted(here, key=lambda c: c.on == "rest"):  # "rest" is what the others leave
            facets = self._rest(condition, covered) if condition.on == "rest" else self.facets_of(condition.on)
            self.parts[condition] = facets
            k = self.layout.index(condition.field.name)
            components = range(condition.field.size) if condition.component is None else [condition.component]
            for c in components:
                for f in facets:
                    covered.setdefault((k, c), {}).setdefault(int(f), []).append(condition)
            if isinstance(condition, Dirichlet):
                continue
            inside = facets[mesh.facet_cells[facets, 1] >= 0]
            if len(inside):
                raise UnsupportedError(
                    f"{condition!r}: {len(inside)} of its facets lie inside the domain",
                    remedy="use a group of the boundary",
                )
            form = self.forms[k]
            if not form.second_order:
                raise InputError(f"{condition!r}: the equation of {condition.field!r} has no flux")
            parts.append((condition, k, Patch.on_facets(mesh, facets, degree)))
        self._check_covered(covered)
        return parts

    def _rest(self, condition, covered) -> np.ndarray:
        k = self.layout.index(condition.field.name)
        components = range(condition.field.size) if condition.component is None else [condition.component]
        seen = {f for c in components for f in covered.get((k, c), {})}
        return np.setdiff1d(self.mesh.exterior, np.fromiter(seen, dtype=np.int64, count=len(seen)))

    def _check_covered(self, covered) -> None:
        mesh = self.mesh
        for k, (field, form) in enumerate(zip(self.layout.fields, self.forms)):
            if not form.second_order:
                continue
            for c in range(field.size):
                seen = covered.get((k, c), {})
                label = field.name if field.components is None else f"{field.name}[{c}]"
                bare = np.setdiff1d(mesh.exterior, np.fromiter(seen, dtype=np.int64, count=len(seen)))
                if len(bare):
                    named = [n for n, rows in mesh.facet_groups.items() if np.isin(rows, bare).any()]
                    rest = len(bare) - len(
                        np.intersect1d(bare, np.concatenate([mesh.facet_groups[n] for n in named]) if named else [])
                    )
                    where = ", ".join(map(repr, named)) + (f" and {rest} facets in no group" if rest else "")
                    raise InputError(
                        f"{label} has no condition on a part of the boundary",
                        got=f"{len(bare)} of {len(mesh.exterior)} boundary facets without one: {where}",
                        remedy=f"state it: Neumann({field.name}, 0, on=...) insulates or frees a part; on='rest' is the rest",
                    )
                for f, conditions in seen.items():
                    essential = [isinstance(x, Dirichlet) for x in conditions]
                    if any(essential) and not all(essential):
                        raise InputError(
                            f"{label} has contradictory conditions at {mesh.facet_centres[f]}",
                            got=" and ".join(map(repr, conditions)),
                            expected="either a value or a flux",
                        )

    def _essential(self, problem: Problem) -> None:
        layout = self.layout
        self.essential = []
        fixed = np.zeros(layout.size, dtype=bool)
        for condition in problem.of_kind(Dirichlet):
            k = layout.index(condition.field.name)
            nodes = np.unique(self.numbers[k].facets(self.parts[condition]))
            components = range(condition.field.size) if condition.component is None else (condition.component,)
            rows = np.stack([layout.unknowns(k, nodes, c) for c in components], axis=1)
            fixed[rows] = True
            self.essential.append((condition, self.numbers[k].points[nodes], rows))
        self.fixed = fixed
        self.free = np.flatnonzero(~fixed)
        if len(self.free) == 0:
            raise InputError("every unknown is fixed by a boundary condition", remedy="use a finer mesh")
        for k, form in enumerate(self.forms):
            name = form.test.name
            held = fixed[layout.offsets[k] : layout.offsets[k + 1]].any()
            robin = any(isinstance(c, Robin) and c.field.name == name for c in problem.conditions)
            if form.second_order and form.linear and not (held or robin or form.reacts()):
                raise SingularError(
                    f"{name} is determined only up to a constant: flux conditions everywhere and no reaction term",
                    remedy=f"fix its value somewhere (Dirichlet on a part, or a term eps*{name})",
                )
        self._pin_pressure()

    def _pin_pressure(self) -> None:
        """A constraint field (pressure) whose velocity is given all around is free by a constant: one value is pinned."""
        self.pinned: list[int] = []
        for k, form in enumerate(self.forms):
            if (
                form.second_order
                or form.reacts()
                or self.fixed[self.layout.offsets[k] : self.layout.offsets[k + 1]].any()
            ):
                continue
            partners = [j for j, other in enumerate(self.forms) if other.second_order and form.test in
                        [f for term in other.flux for f in fields_of(term)]]  # fmt: skip
            if not partners:
                continue
            free_boundary = False
            for j in partners:
                rows = self.numbers[j].facets(self.mesh.exterior)
                for c in range(self.layout.fields[j].size):
                    free_boundary |= not self.fixed[self.layout.unknowns(j, rows, c)].all()
            if not free_boundary:
                self.fixed[self.layout.offsets[k]] = True
                self.pinned.append(self.layout.offsets[k])
        self.free = np.flatnonzero(~self.fixed)

    def _build_pattern(self) -> None:
        layout, dtype = self.layout, self.dtype
        reduced = np.full(layout.size, -1, dtype=np.int64)
        reduced[self.free] = np.arange(len(self.free))
        self.pairs = [(i, j) for i, form in enumerate(self.forms) for j, g in enumerate(layout.fields)
                      if any(g.name == f.name for term in (*form.source, *form.flux) for f in fields_of(term))]  # fmt: skip
        self.couplings = {(i, j): self.forms[i].couples(layout.fields[j].name, self.mesh.dim) for i, j in self.pairs}
        nodes = [n.cells.T for n in self.numbers]
        rows, cols = [], []

        def add(i, j, a, b):
            for c in range(layout.fields[i].size):
                for d in range(layout.fields[j].size):
                    row, col = reduced[layout.unknowns(i, a, c)], reduced[layout.unknowns(j, b, d)]
                    shape = (len(a), len(b), a.shape[1])
                    rows.append(np.broadcast_to(row[:, None], shape).ravel())
                    cols.append(np.broadcast_to(col[None], shape).ravel())

        for i, j in self.pairs:
            add(i, j, nodes[i], nodes[j])
        boundary_nodes = []
        for condition, k, patch in self._natural:
            at = self.numbers[k].facets(patch.facets).T
            boundary_nodes.append(at)
            if isinstance(condition, Robin):
                add(k, k, at, at)
        points = np.concatenate([np.repeat(n.points, f.size, axis=0) for n, f in zip(self.numbers, layout.fields)])
        self.pattern, slots = pattern(
            np.concatenate(rows), np.concatenate(cols), (len(self.free), len(self.free)), coordinates=points[self.free]
        )
        # Arrays that the compiled programs take as arguments, so that they are not constants in them.
        with jax.ensure_compile_time_eval():
            self.arrays = {
                "cell": self._geometry(self.patch),
                "nodes": [jnp.asarray(n, jnp.int32) for n in nodes],
                "facet": [self._geometry(p) for _, _, p in self._natural],
                "facet_nodes": [jnp.asarray(n, jnp.int32) for n in boundary_nodes],
                "essential": [(jnp.asarray(x, dtype), jnp.asarray(r, jnp.int32)) for _, x, r in self.essential],
                "slots": slots,
                "free": jnp.asarray(self.free, jnp.int32),
            }

    def _geometry(self, patch: Patch) -> dict[str, Any]:
        """A patch's arrays, and which cell groups its points are in."""
        named = {"x": patch.x, "measure": patch.measure}
        named |= {"inverse": patch.inverse} if patch.normal is None else {"normal": patch.normal}
        out: dict[str, Any] = {name: jnp.asarray(array, self.dtype) for name, array in named.items()}
        out["groups"] = {
            name: jnp.asarray(member[patch.cell][None], self.dtype) for name, member in self.indicators.items()
        }
        return out

    # -- evaluation --------------------------------------------------------------------------------------------------

    def values_of(self, problem: Problem) -> dict[str, Any]:
        """The array-valued parameters of a problem, as a pytree; functions and mappings are compiled in."""
        out = {}
        for name in problem.parameters:
            value = problem.value(name)
            if isinstance(value, Expr | dict) or callable(value):
                continue
            out[name] = jnp.asarray(value, None if _is_complex(value) else self.dtype)
        return out

    def _fixed_values(self, problem: Problem) -> dict[str, Any]:
        return {n: v for n in problem.parameters if isinstance(v := problem.value(n), Expr | dict) or callable(v)}

    def _samples(self, values, patch: Patch, arrays) -> tuple[dict, dict]:
        """Parameters that lie on the mesh, as [q, m] at a patch's points; and the other values."""
        samples, plain = {}, {}
        for name, value in values.items():
            on = self.parameters[name].on
            if on is None:
                plain[name] = value
                continue
            q, m = patch.measure.shape
            if on == "cells":
                self._expect(name, value, (len(self.mesh.cells),), "a value a cell")
                samples[name] = jnp.broadcast_to(value[patch.cell], (q, m))
            elif on == "points":
                self._expect(name, value, (len(self.mesh.points),), "a value a mesh point")
                shape, _ = patch.basis(1)
                numbering = Numbering.of(self.mesh, 1)
                back = np.empty(numbering.count, dtype=np.int64)
                where = numbering.vertex_unknowns
                back[where[where >= 0]] = np.flatnonzero(where >= 0)
                samples[name] = jnp.asarray(shape, value.dtype) @ value[back[patch.unknowns(1).T]]
            elif patch.facets is None:
                self._expect(name, value, (q, m), "a value a quadrature point and cell")
                samples[name] = value
        return samples, plain

    def _expect(self, name, value, shape, what):
        if value.shape != shape:
            raise InputError(
                f"parameter {name!r} on the mesh has the wrong shape", got=value.shape, expected=f"{shape}: {what}"
            )

    def _lift(self, arrays, values, t):
        """The vector of unknowns with boundary values set and zero elsewhere."""
        out = jnp.zeros(self.layout.size, self.dtype)
        plain = {n: v for n, v in values.items() if n in self.compiled or self.parameters[n].on is None}
        for (condition, _, _), (x, rows) in zip(self.essential, arrays["essential"]):

            def at(p, c=condition, count=rows.shape[1]):
                return jnp.broadcast_to(evaluate(c.value, Env(p, values=plain, t=t)), (count,))

            out = out.at[rows].set(jax.vmap(at)(x))
        return out

    def _assemble(self, arrays, values, vector, previous=None, rate_scale=None, t=None, *, matrix: bool = True):
        """Residual on the free unknowns, and matrix data, at the state `vector`.

        `previous` and `rate_scale` make the rate `rate_scale * (vector - previous)` for a time step.
        """
        layout, dtype = self.layout, self.dtype
        values = {**values, **self.compiled}
        tables = [stack_basis(*self.patch.basis(k)) for k in layout.orders]
        z = self._at_points(arrays["nodes"], tables, vector)
        rate = (
            None
            if previous is None or rate_scale is None
            else rate_scale * (z - self._at_points(arrays["nodes"], tables, previous))[:, 0]
        )
        arrayed = {n: v for n, v in values.items() if n not in self.compiled}
        samples, plain = self._samples(arrayed, self.patch, arrays)
        plain.update(self.compiled)
        cell = {**arrays["cell"], "samples": samples}
        shape = self.patch.measure.shape
        w = over_points(self._integrand, shape, (z, rate, cell), (plain, t))
        residual = jnp.zeros(layout.size, dtype)
        for k, field in enumerate(layout.fields):
            rows = w[layout.starts[k] : layout.starts[k + 1]]
            table = jnp.asarray(tables[k].transpose(2, 1, 0).reshape(tables[k].shape[2], -1), dtype)
            local = jnp.stack([table @ rows[c].reshape(table.shape[1], -1) for c in range(field.size)], axis=1)
            residual = residual.at[self._global(arrays["nodes"][k], k)].add(local)
        data = []
        if matrix:
            linearised = self._linearised(rate_scale if rate is not None else None)
            parts = over_points(linearised, shape, (z, rate, cell), (plain, t))
            for (i, j), part in zip(self.pairs, parts):
                rows, cols = self.couplings[i, j]
                for c in range(layout.fields[i].size):
                    for e in range(layout.fields[j].size):
                        data.append(block(tables[i][:, rows], tables[j][:, cols], part[c, e]).reshape(-1))
        for index, (condition, k, patch) in enumerate(self._natural):
            facet = dict(arrays["facet"][index])
            at = arrays["facet_nodes"][index]
            facet_samples, facet_plain = self._samples(arrayed, patch, arrays)
            facet["samples"] = facet_samples
            facet_plain.update(self.compiled)
            table = patch.basis(layout.orders[k])[0]
            field = layout.fields[k]
            z = self._on_facets(k, at, table, vector)
            function = facet_integrand(self.forms[k], self._natural_of(condition, k))
            shape = patch.measure.shape
            w = over_points(function, shape, (z, facet), (facet_plain, t))
            local = jnp.tensordot(jnp.asarray(table, dtype), w, axes=(0, 1))  # n, components, m
            residual = residual.at[self._global(at, k)].add(local)
            if matrix and isinstance(condition, Robin):
                span = slice(layout.starts[k], layout.starts[k + 1])

                def robin(z, point, values, t, function=function, span=span):
                    return jax.jacfwd(lambda mine: function(z.at[span].set(mine), point, values, t))(z[span])

                d = over_points(robin, shape, (z, facet), (facet_plain, t))
                test = table[:, None, :]
                for c in range(field.size):
                    for e in range(field.size):
                        data.append(block(test, test, d[c, e][None, None]).reshape(-1))
        free = residual[arrays["free"]]
        if not matrix:
            return free, None
        return free, assemble(jnp.concatenate(data), arrays["slots"], nnz=self.pattern.nnz)

    def _linearised(self, scale):
        """Derivatives of the integrand, for each pair of fields [test component, trial component, rows, columns]."""
        layout, integrand = self.layout, self._integrand
        wanted = {
            (j, e, b) for i, j in self.pairs for e in range(layout.fields[j].size) for b in self.couplings[i, j][1]
        }

        def function(z, rate, point, values, t):
            columns = {}
            for j, e, b in sorted(wanted):  # one pass a direction: XLA drops what a constant direction makes zero
                direction = np.zeros(z.shape, z.dtype)
                direction[layout.starts[j] + e, b] = 1.0
                if rate is None:
                    moved = jax.jvp(lambda a: integrand(a, None, point, values, t), (z,), (jnp.asarray(direction),))[1]
                else:
                    pair = (jnp.asarray(direction), scale * direction[:, 0])
                    moved = jax.jvp(lambda a, r: integrand(a, r, point, values, t), (z, rate), pair)[1]
                columns[j, e, b] = moved
            out = []
            for i, j in self.pairs:
                rows, cols = self.couplings[i, j]
                entries = [[[[columns[j, e, b][layout.starts[i] + c, a] for b in cols] for a in rows]
                            for e in range(layout.fields[j].size)] for c in range(layout.fields[i].size)]  # fmt: skip
                out.append(jnp.stack([jnp.stack([jnp.stack([jnp.stack(r) for r in m]) for m in n]) for n in entries]))
            return out

        return function

    def _natural_of(self, condition, k: int):
        coefficient = getattr(condition, "coefficient", None)
        return natural_value(self.layout, k, condition.component, coefficient, condition.value, self.mesh.dim)

    def _on_facets(self, k: int, at, table, vector):
        """z [components, q, m] at a facet patch's points, with the values of field k only."""
        local = jnp.tensordot(jnp.asarray(table, self.dtype), gather(self.layout, k, at, vector), axes=(1, 0))
        z = jnp.zeros((self.layout.starts[-1], *local.shape[::2]), self.dtype)
        return z.at[self.layout.starts[k] : self.layout.starts[k + 1]].set(jnp.moveaxis(local, 1, 0))

    def _at_points(self, nodes, tables, vector):
        """z [components, 1 + dim, q, m]."""
        parts = []
        for k, table in enumerate(tables):
            flat = jnp.asarray(table.reshape(-1, table.shape[2]), self.dtype)
            local = gather(self.layout, k, nodes[k], vector)  # n, c, m
            at = jnp.tensordot(flat, local, axes=(1, 0)).reshape(table.shape[0], table.shape[1], *local.shape[1:])
            parts.append(jnp.moveaxis(at, (0, 1, 2), (2, 1, 0)))
        return jnp.concatenate(parts)

    def _global(self, nodes, k: int):
        """[n, components, m] numbers of unknowns."""
        field = self.layout.fields[k]
        return self.layout.offsets[k] + nodes[:, None, :] * field.size + jnp.arange(field.size)[None, :, None]

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
        try:
            if self.time is not None:
                states, info = self._jit_march(self.arrays, values)
                checked(states, info, "finite elements in time")
                return FemSolution(problem, self, states[-1], info, values, states)
            vector, info = self._solve(values)
        except SciaxError as error:
            self._diagnose(problem, values, error)
            raise
        return FemSolution(problem, self, vector, info, values)

    def _solve(self, values):
        lift = self._lift(self.arrays, {**values, **self.compiled}, None)
        if self.linear:
            residual, data = self._jit_assemble(self.arrays, values, lift)
            step, info = self.linear_solve(data, -residual)
            step = checked(step, info, "finite elements")
            return lift.at[self.arrays["free"]].add(step), info
        start = lift
        if self.start is not None:
            start = jnp.where(jnp.asarray(self.fixed), lift, jnp.asarray(self.start, self.dtype))
        held = jax.lax.stop_gradient((values, start))
        vector, info, history = self._jit_newton(self.arrays, *held)
        self._check_newton(info, history)
        # One more step, differentiated through: exact first derivatives by the implicit function theorem.
        vector = jnp.where(jnp.asarray(self.fixed), lift, jax.lax.stop_gradient(vector))
        residual, data = self._jit_assemble(self.arrays, values, vector)
        step, last = self.linear_solve(data, -residual)
        step = checked(step, last, "finite elements (Newton)")
        return vector.at[self.arrays["free"]].add(step), info

    def _march(self, arrays, values):
        """All saved states of a transient problem, by implicit stages of which each is a stationary problem."""
        t0, t1 = map(float, self.time)  # type: ignore[misc]
        plain = {
            n: v for n, v in {**values, **self.compiled}.items() if n in self.compiled or self.parameters[n].on is None
        }
        rows = []
        for field, numbers in zip(self.layout.fields, self.numbers):

            def at(p, field=field):
                env = Env(p, values=plain, t=jnp.asarray(t0, self.dtype))
                return jnp.broadcast_to(evaluate(self.initial[field.name].value, env), (field.size,))

            rows.append(jax.vmap(at)(jnp.asarray(numbers.points, self.dtype)).reshape(-1))
        start = jnp.concatenate(rows)
        fixed = jnp.asarray(self.fixed)

        def stage(base, scale, t, guess):
            lift = self._lift(arrays, {**values, **self.compiled}, t)
            begin = jnp.where(fixed, lift, guess)
            status = jnp.zeros((), jnp.int32)
            if not self.linear:
                held = jax.lax.stop_gradient((values, begin, base, t))
                begin, info, _ = self._newton(arrays, held[0], held[1], held[2], scale, held[3])
                begin, status = jnp.where(fixed, lift, jax.lax.stop_gradient(begin)), info.status
            residual, data = self._assemble(arrays, values, begin, base, scale, t)
            step, info = self.linear_solve(data, -residual)
            worst = jnp.maximum(status, jnp.asarray(info.status, jnp.int32))
            return begin.at[arrays["free"]].add(step), worst

        states, status = march(stage, start, t0, t1, self.steps, self.saves)
        return states, SolveInfo(jnp.int32(self.steps), jnp.zeros((), self.dtype), status)

    def _newton(self, arrays, values, start, previous=None, scale=None, t=None):
        """Newton with a backtracking line search on the residual's norm; everything inside one compiled loop."""
        tol = self.tol or (1e-10 if self.dtype == np.float64 else 1e-5)
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

    def _check_newton(self, info, history) -> None:
        if isinstance(info.status, Tracer):
            checked(info.residual, info, "Newton's method")
            return
        if int(info.status) == 2:
            steps = [float(h) for h in np.asarray(history) if np.isfinite(h)]
            raise ConvergenceError(
                "Newton's method did not converge",
                history=steps,
                got=f"residual {steps[-1]:.2e} after {int(info.iterations)} iterations, from {steps[0]:.2e}",
                remedy="start from the solution of an easier problem (start=other.coefficients), or allow more (newton=...)",
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


def _is_complex(value: Any) -> bool:
    return np.iscomplexobj(value)
