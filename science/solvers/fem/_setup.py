"""Set-up of a problem on a mesh: element orders, which unknowns are fixed, where fluxes are stated, the matrix pattern."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sciax.core.errors import InputError, SingularError, UnsupportedError, did_you_mean
from sciax.core.ops.sparse import pattern
from sciax.science.mesh import Mesh
from sciax.science.pde import ByGroup, Dirichlet, Neumann, Periodic, Problem, Robin
from sciax.science.pde._expr import as_expr, walk
from sciax.science.solvers._base import Method
from sciax.science.solvers.fem._assembly import Layout
from sciax.science.solvers.fem._element import nodes, tabulate_geometry
from sciax.science.solvers.fem._space import Numbering, Patch


class Discretisation(Method):
    """What of a finite element problem depends on its structure only; made once and kept."""

    mesh: Mesh
    dtype: Any
    forms: tuple[Any, ...]
    layout: Layout
    numbers: list[Numbering]
    periodic: dict[str, tuple[int, ...]]
    _natural: list[Any]
    patch: Patch

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

    def moved_arrays(self, points: Any) -> dict[str, Any]:
        """The arrays of the compiled programs with the mesh's points elsewhere."""
        mesh, dtype = self.mesh, self.dtype
        points = jnp.asarray(points, dtype)
        if points.shape != mesh.points.shape:
            raise InputError(
                "with_points: one position for each mesh point", got=points.shape, expected=mesh.points.shape
            )
        essential = []
        for (condition, at, rows), (_, known) in zip(self.essential, self.arrays["essential"]):
            k = self.layout.index(condition.field.name)
            essential.append((self._node_positions(k, points)[self._essential_nodes[condition]], known))
            assert len(at) == len(rows)
        cell = self._geometry(self.patch, points)
        if not isinstance(points, Tracer) and not bool((cell["measure"] > 0).all()):
            raise InputError(
                "with_points folds cells (their map has a negative volume element)",
                got=f"{int((~(cell['measure'] > 0)).any(axis=0).sum())} of {len(mesh.cells)} cells",
                remedy="move the points less, or inner points with the boundary",
            )
        return {
            **self.arrays,
            "cell": cell,
            "facet": [self._geometry(p, points) for _, _, p in self._natural],
            "essential": essential,
        }

    def _node_positions(self, k: int, points: Any) -> Any:
        """[nodes, dim] positions of field k's nodes, from the mesh's points."""
        mesh, numbering = self.mesh, self.numbers[k]
        shape, _ = tabulate_geometry(mesh.kind, mesh.cells.shape[1], nodes(mesh.kind, numbering.order))
        at = jnp.einsum("qn,mnd->mqd", jnp.asarray(shape, points.dtype), points[mesh.cells])
        return jnp.zeros((numbering.count, mesh.space), points.dtype).at[numbering.cells].set(at)

    def _periodic_axes(self, problem: Problem) -> dict[str, tuple[int, ...]]:
        """Field name -> axes along which it repeats."""
        out = {}
        for condition in problem.of_kind(Periodic):
            axes = condition.axes or tuple(range(self.mesh.dim))
            if any(not 0 <= a < self.mesh.dim for a in axes):
                raise InputError(f"{condition!r}: no such axis", got=axes, expected=f"0 to {self.mesh.dim - 1}")
            out[condition.field.name] = tuple(sorted({*out.get(condition.field.name, ()), *axes}))
        return out

    def _open(self, k: int) -> np.ndarray:
        """Boundary facets of field k: the exterior without the sides that are joined."""
        mesh, axes = self.mesh, self.periodic.get(self.layout.fields[k].name, ())
        at = mesh.facet_centres[mesh.exterior]
        low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
        near = 1e-8 * float(np.max(high - low))
        joined = np.zeros(len(at), dtype=bool)
        for axis in axes:
            joined |= (np.abs(at[:, axis] - low[axis]) < near) | (np.abs(at[:, axis] - high[axis]) < near)
        return mesh.exterior[~joined]

    def _check_parts_held(self) -> None:
        """Each connected part of the mesh needs something that fixes the level of each field there."""
        mesh = self.mesh
        count = int(mesh.components.max(initial=-1)) + 1
        if count <= 1:
            return
        for k, (field, form) in enumerate(zip(self.layout.fields, self.forms)):
            if not form.second_order or form.reacts():
                continue
            numbering = self.numbers[k]
            held = np.zeros(numbering.count, dtype=bool)
            for c in range(field.size):
                held |= self.fixed[self.layout.unknowns(k, np.arange(numbering.count), c)]
            for condition, j, patch in self._natural:
                if j == k and isinstance(condition, Robin):
                    held[np.unique(numbering.facets(patch.facets))] = True
            loose = [part for part in range(count) if not held[numbering.cells[mesh.components == part]].any()]
            if loose:
                where = mesh.centres[mesh.components == loose[0]].mean(axis=0)
                raise SingularError(
                    f"the mesh has {count} unconnected parts, and nothing fixes {field.name} on {len(loose)} of them",
                    got=f"the first around {np.round(where, 6)}",
                    remedy=f"Dirichlet({field.name}, ...) on each part, or remove it",
                )

    def _rest(self, condition, covered) -> np.ndarray:
        k = self.layout.index(condition.field.name)
        components = range(condition.field.size) if condition.component is None else [condition.component]
        seen = {f for c in components for f in covered.get((k, c), {})}
        return np.setdiff1d(self._open(k), np.fromiter(seen, dtype=np.int64, count=len(seen)))

    def _check_covered(self, covered) -> None:
        mesh = self.mesh
        for k, (field, form) in enumerate(zip(self.layout.fields, self.forms)):
            if not form.second_order:
                continue
            for c in range(field.size):
                seen = covered.get((k, c), {})
                label = field.name if field.components is None else f"{field.name}[{c}]"
                bare = np.setdiff1d(self._open(k), np.fromiter(seen, dtype=np.int64, count=len(seen)))
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
                    if sum(essential) > 1:
                        raise InputError(
                            f"{label} is over-constrained: two values at {mesh.facet_centres[f]}",
                            got=" and ".join(map(repr, conditions)),
                            remedy="state each part of the boundary once; on='rest' is what the others leave",
                        )
                    if any(essential) and not all(essential):
                        raise InputError(
                            f"{label} has contradictory conditions at {mesh.facet_centres[f]}",
                            got=" and ".join(map(repr, conditions)),
                            expected="either a value or a flux",
                        )

    def _essential(self, problem: Problem) -> None:
        layout = self.layout
        self.essential = []
        self._essential_nodes: dict[Any, np.ndarray] = {}
        fixed = np.zeros(layout.size, dtype=bool)
        for condition in problem.of_kind(Dirichlet):
            k = layout.index(condition.field.name)
            held = np.unique(self.numbers[k].facets(self.parts[condition]))
            components = range(condition.field.size) if condition.component is None else (condition.component,)
            rows = np.stack([layout.unknowns(k, held, c) for c in components], axis=1)
            fixed[rows] = True
            self.essential.append((condition, self.numbers[k].points[held], rows))
            self._essential_nodes[condition] = held
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
        self._check_parts_held()
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
            partners = [
                j
                for j, other in enumerate(self.forms)
                if other.second_order and form.test.name in [f.name for f in other.flux_fields()]
            ]
            if not partners:
                continue
            free_boundary = False
            for j in partners:
                rows = self.numbers[j].facets(self._open(j))
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
                      if any(g.name == f.name for f in form.fields())]  # fmt: skip
        self.couplings: dict[tuple[int, int], Any] = {
            (i, j): self.forms[i].couples(layout.fields[j].name, self.mesh.dim) for i, j in self.pairs
        }
        local = [n.cells.T for n in self.numbers]
        rows, cols = [], []

        def add(i, j, a, b):
            for c in range(layout.fields[i].size):
                for d in range(layout.fields[j].size):
                    row, col = reduced[layout.unknowns(i, a, c)], reduced[layout.unknowns(j, b, d)]
                    shape = (len(a), len(b), a.shape[1])
                    rows.append(np.broadcast_to(row[:, None], shape).ravel())
                    cols.append(np.broadcast_to(col[None], shape).ravel())

        for i, j in self.pairs:
            add(i, j, local[i], local[j])
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
                "nodes": [jnp.asarray(n, jnp.int32) for n in local],
                "facet": [self._geometry(p) for _, _, p in self._natural],
                "facet_nodes": [jnp.asarray(n, jnp.int32) for n in boundary_nodes],
                "essential": [(jnp.asarray(x, dtype), jnp.asarray(r, jnp.int32)) for _, x, r in self.essential],
                "slots": slots,
                "free": jnp.asarray(self.free, jnp.int32),
            }

    def _geometry(self, patch: Patch, points: Any = None) -> dict[str, Any]:
        """A patch's arrays, and which cell groups its points are in."""
        named: dict[str, Any] = {"x": patch.x, "measure": patch.measure}
        named |= {"inverse": patch.inverse} if patch.normal is None else {"normal": patch.normal}
        if points is not None:
            named = patch.moved(points)
        out: dict[str, Any] = {name: jnp.asarray(array, self.dtype) for name, array in named.items()}
        out["groups"] = {
            name: jnp.asarray(member[patch.cell][None], self.dtype) for name, member in self.indicators.items()
        }
        return out
