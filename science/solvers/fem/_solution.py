"""A finite element solution: values anywhere, integrals, fluxes, errors, and files."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.science.mesh import Mesh, write_mesh
from sciax.science.mesh._cells import geometry_nodes
from sciax.science.pde import Dirichlet, Env, Expr, evaluate
from sciax.science.solvers._solution import Solution, as_points, expression
from sciax.science.solvers.fem._assembly import over_points
from sciax.science.solvers.fem._element import lattice, nodes, tabulate
from sciax.science.solvers.fem._locate import locate
from sciax.science.solvers.fem._space import Numbering, Patch


class FemSolution(Solution):
    """Continuous piecewise polynomials.

    Attributes:
        coefficients: all unknowns, [n]; `values(u)` takes one field's out of it.
        mesh: the mesh.
        info: of the linear solve, or of Newton.
    """

    method = "fem"

    def __init__(self, problem, fem, coefficients, info, values, arrays, states=None, rates=None, row=-1):
        self.problem, self.fem, self.coefficients, self.info = problem, fem, coefficients, info
        self.parameter_values = values
        self.arrays = arrays
        self.states, self.rates = states, rates
        self.times = None if fem.time is None else np.linspace(fem.time[0], fem.time[1], fem.saves + 1)
        self.row = row

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh, with its points where `Problem.with_points` has put them."""
        if self.problem.points is None:
            return self.fem.mesh
        return replace(self.fem.mesh, points=np.asarray(self.problem.points, dtype=np.float64), cache={})

    def snapshot(self, row: int) -> "FemSolution":
        """The solution of a transient problem at `times[row]`; the solution itself is the last."""
        if self.states is None:
            raise InputError("a stationary solution has no snapshots")
        return FemSolution(
            self.problem,
            self.fem,
            self.states[row],
            self.info,
            self.parameter_values,
            self.arrays,
            self.states,
            self.rates,
            row,
        )

    def __repr__(self) -> str:
        names = ", ".join(f"{f.name} (order {k})" for f, k in zip(self.problem.fields, self.fem.layout.orders))
        return f"FemSolution({names}, {self.fem.layout.size} unknowns on {self.mesh!r})"

    def values(self, field: Any = None):
        """Coefficients of a field at its nodes, [nodes] or [nodes, components]; `nodes(field)` are their places."""
        return self.fem.layout.part(self.coefficients, self.fem.layout.index(self.field(field).name))

    def nodes(self, field: Any = None) -> np.ndarray:
        k = self.fem.layout.index(self.field(field).name)
        if self.problem.points is None:
            return self.fem.numbers[k].points
        return np.asarray(self.fem._node_positions(k, jnp.asarray(self.problem.points)))

    def at_mesh_points(self, field: Any = None):
        """Values at the mesh's points (at the middle nodes of quadratic cells by evaluation)."""
        k = self.fem.layout.index(self.field(field).name)
        where = self.fem.numbers[k].vertex_unknowns
        values = self.values(field)
        if (where >= 0).all():
            return values[where]
        mesh = self.mesh
        table, _ = tabulate(mesh.kind, self.fem.layout.orders[k], geometry_nodes(mesh.kind, mesh.cells.shape[1]))
        local = jnp.tensordot(jnp.asarray(table, values.dtype), values[self.fem.numbers[k].cells.T], axes=(1, 0))
        out = jnp.zeros((len(mesh.points), *values.shape[1:]), values.dtype)
        return out.at[mesh.cells.T].set(local)

    def __call__(self, points: Any, field: Any = None, *, outside: str = "raise"):
        """Values at points.

        Args:
            points: [k, dim], on the host.
            field: which, the first by default.
            outside: "raise" or "nearest" (the polynomial of the nearest cell, continued) for points outside the mesh.

        Raises:
            InputError: a point outside the mesh.
        """
        if outside not in ("raise", "nearest"):
            raise InputError("outside is 'raise' or 'nearest'", got=outside)
        at, single = as_points(points, self.fem.mesh.dim)
        at = np.asarray(at, dtype=np.float64)
        cell, xi = locate(self.mesh, at, outside == "nearest")
        if (cell < 0).any():
            raise InputError(
                "points lie outside the mesh",
                got=f"{int((cell < 0).sum())} of {len(at)}, the first {at[cell < 0][0]}",
                remedy="outside='nearest' continues the solution a little beyond a curved boundary",
            )
        k = self.fem.layout.index(self.field(field).name)
        table, _ = tabulate(self.mesh.kind, self.fem.layout.orders[k], xi)
        values = self.values(field)
        local = values[self.fem.numbers[k].cells[cell]]
        weights = jnp.asarray(table, values.dtype)
        out = jnp.sum(local * (weights if local.ndim == 2 else weights[..., None]), axis=1)
        return out[0] if single else out

    def sample_points(self, count: int = 2000) -> np.ndarray:
        """Points inside the domain: cell centres, thinned to `count`."""
        rows = np.linspace(0, len(self.mesh.cells) - 1, min(count, len(self.mesh.cells))).astype(int)
        return self.mesh.centres[rows]

    # -- integrals ---------------------------------------------------------------------------------------------------

    def _on_cells(self, function, degree: int | None = None):
        """`function(env)` at the quadrature points of all cells: (values [..., q m], measure [q m])."""
        fem = self.fem
        degree = fem.degree if degree is None else degree
        geometry = self.arrays["cell"]
        if degree != fem.degree:
            geometry = fem._geometry(fem.patch_of(degree), self.problem.points)
        values = dict(self.parameter_values)
        fields, point, plain = fem._jit_fields(geometry, fem.arrays["nodes"], values, self.coefficients, degree=degree)
        plain.update(fem.compiled)

        def at(fields, point):
            return function(Env(point["x"], fields, plain, point["groups"], point["samples"]))

        return jax.vmap(at, in_axes=-1, out_axes=-1)(fields, point), point["measure"]

    def integrate(self, what: Any = None, *, over: str | None = None):
        """Integral over the domain (or one cell group) of a field, an expression in fields, or a function of x."""
        expr = expression(what, self.field())
        values, measure = self._on_cells(lambda env: evaluate(expr, env))
        if over is not None:
            member = np.zeros(len(self.fem.mesh.cells))
            member[self.fem.mesh.region(over)] = 1.0
            measure = measure * jnp.asarray(np.tile(member, len(measure) // len(member)), measure.dtype)
        return values @ measure

    def flux(self, on: Any = "boundary", field: Any = None):
        """Integral of the natural flux (`k du/dn`, or the traction) over a boundary part, outward.

        Computed from the residual of the equations that Dirichlet conditions replaced, which is conservative and converges
        twice as fast as differentiating the solution.
        """
        fem = self.fem
        chosen = self.field(field)
        k = fem.layout.index(chosen.name)
        facets = fem.facets_of(on)
        total = jnp.zeros(chosen.size, self.coefficients.dtype)
        for condition, j, patch in fem._natural:  # where a flux is stated, it is that
            shared = np.isin(patch.facets, facets)
            if j == k and shared.any():
                total = total + self._stated_flux(
                    condition, Patch.on_facets(fem.mesh, patch.facets[shared], fem.degree), j
                )
        at = (
            (None, None)
            if self.rates is None
            else (self.rates[self.row], None if self.times is None else self.times[self.row])
        )
        residual, _ = fem._jit_rows(self.arrays, self.parameter_values, self.coefficients, at[0], None, at[1])
        residual = fem.layout.part(residual, k).reshape(-1, chosen.size) * fem.forms[k].sign
        plain: dict[str, Any] = {**self.parameter_values, **fem.compiled}
        env = Env(jnp.zeros(self.fem.mesh.dim, fem.dtype), values=plain)
        for factor in fem.forms[k].scale:
            residual = residual / evaluate(factor, env)
        for c in range(chosen.size):  # elsewhere, what holds the fixed values: shared out where two parts meet
            held = [rows for x, rows in fem.parts.items()
                    if isinstance(x, Dirichlet) and x.field.name == chosen.name and x.component in (None, c)]  # fmt: skip
            if not held:
                continue
            everywhere = np.unique(np.concatenate(held))
            here = np.intersect1d(everywhere, facets)
            if len(here):
                numbering = fem.numbers[k]
                whole = np.bincount(numbering.facets(everywhere).ravel(), minlength=numbering.count)
                part = np.bincount(numbering.facets(here).ravel(), minlength=numbering.count)
                share = jnp.asarray(part / np.maximum(whole, 1), residual.dtype)
                total = total.at[c].add(jnp.sum(residual[:, c] * share))
        return total[0] if chosen.components is None else total

    def _stated_flux(self, condition, patch, k):
        fem = self.fem
        at = jnp.asarray(fem.numbers[k].facets(patch.facets).T)
        z = fem._on_facets(k, at, patch.basis(fem.layout.orders[k])[0], self.coefficients)
        samples, plain = fem._samples(dict(self.parameter_values), patch, None)
        plain.update(fem.compiled)
        point = {**fem._geometry(patch, self.problem.points), "samples": samples}
        natural = fem._natural_of(condition, k)
        values = over_points(lambda *args: natural(*args)[0], patch.measure.shape, (z, point), (plain, None))
        return values.sum(axis=(-2, -1))

    def error(self, exact: Any, norm: str = "L2", field: Any = None, *, degree: int | None = None):
        """Norm of the difference to an exact solution, a function of x: "L2", or "H1" for the L2 norm of the gradient's.

        `degree` is that of the quadrature; 2 * order + 2, which makes its own error small beside the one measured.
        """
        chosen = self.field(field)
        if norm not in ("L2", "H1"):
            raise InputError("norm is 'L2' or 'H1'", got=norm)

        def square(env):
            value, slope = env.fields[chosen.name]
            function = (lambda x: evaluate(exact, env.at(x))) if isinstance(exact, Expr) else exact
            wanted = function(env.x) if norm == "L2" else jax.jacfwd(function)(env.x)
            return jnp.sum((jnp.asarray(wanted) - (value if norm == "L2" else slope)) ** 2)

        order = self.fem.layout.orders[self.fem.layout.index(chosen.name)]
        values, measure = self._on_cells(square, 2 * order + 2 if degree is None else degree)
        return jnp.sqrt(values @ measure)

    # -- error estimate ----------------------------------------------------------------------------------------------

    @cached_property
    def error_indicators(self) -> np.ndarray:
        """Estimated error of the gradient on each cell, `|G u - grad u|` in L2, with G the averaged gradient.

        Recovery by averaging at the nodes (Zienkiewicz and Zhu 1987): asymptotically exact on regular meshes of linear
        elements, of the right order on others.
        """
        fem, mesh = self.fem, self.mesh
        k = fem.layout.index(self.field().name)
        order = fem.layout.orders[k]
        numbering = fem.numbers[k]
        values = np.asarray(jax.device_get(self.values()), dtype=np.float64).reshape(numbering.count, -1)
        local = values[numbering.cells]  # m, n, c
        at = nodes(mesh.kind, order)
        _, slope = tabulate(mesh.kind, order, at)
        from sciax.science.solvers.fem._element import tabulate_geometry
        from sciax.science.solvers.fem._space import _inverse

        _, map_slope = tabulate_geometry(mesh.kind, mesh.cells.shape[1], at)
        jacobian = np.einsum("qna,mnd->daqm", map_slope, mesh.points[mesh.cells])
        _, inverse = _inverse(jacobian)
        gradient = np.einsum("qna,mnc,adqm->mqcd", slope, local, inverse, optimize=True)
        weight = np.repeat(mesh.volumes[:, None], numbering.cells.shape[1], axis=1)
        # averaged within each material only: across an interface the gradient does jump
        member = np.array([fem.indicators[name] for name in fem.group_names], dtype=np.int64).reshape(
            -1, len(mesh.cells)
        )
        material = (
            np.unique(member.T, axis=0, return_inverse=True)[1].reshape(-1)
            if len(member)
            else np.zeros(len(mesh.cells), int)
        )
        owner, place = np.unique(material[:, None] * numbering.count + numbering.cells, return_inverse=True)
        place = place.reshape(numbering.cells.shape)
        total = np.zeros((len(owner), *gradient.shape[2:]))
        np.add.at(total, place, gradient * weight[..., None, None])
        share = np.bincount(place.ravel(), weights=weight.ravel(), minlength=len(owner))
        recovered = total / share[:, None, None]
        patch = Patch.cells(mesh, 2 * order)
        table, slope = patch.basis(order)
        inverse = np.broadcast_to(patch.inverse, (mesh.dim, mesh.dim, *patch.measure.shape))  # type: ignore[arg-type]
        here = np.einsum("qna,mnc,adqm->qmcd", slope, local, inverse, optimize=True)
        smooth = np.einsum("qn,mncd->qmcd", table, recovered[place], optimize=True)
        return np.sqrt((((smooth - here) ** 2).sum(axis=(2, 3)) * patch.measure).sum(axis=0))

    @property
    def error_estimate(self) -> float:
        """Estimated L2 norm of the gradient's error (see `error_indicators`)."""
        return float(np.sqrt((self.error_indicators**2).sum()))

    # -- files and pictures ------------------------------------------------------------------------------------------

    def to_xarray(self):
        """The fields at the mesh's points as an xarray Dataset with UGRID topology."""
        import xarray as xr

        mesh = self.mesh
        data: dict[str, Any] = {}
        for field in self.problem.fields:
            values = np.asarray(jax.device_get(self.at_mesh_points(field)))
            dims = ("node",) if field.components is None else ("node", f"{field.name}_component")
            data[field.name] = (dims, values, {"mesh": "mesh", "location": "node", "long_name": field.name})
        names = "xyz"[: mesh.dim]
        coords = {f"node_{a}": ("node", mesh.points[:, i], {"long_name": f"{a} of the mesh point", "axis": a.upper()})
                  for i, a in enumerate(names)}  # fmt: skip
        topology = {
            "cf_role": "mesh_topology",
            "topology_dimension": mesh.dim,
            "node_coordinates": " ".join(coords),
            {1: "edge", 2: "face", 3: "volume"}[mesh.dim] + "_node_connectivity": "cell_nodes",
        }
        data["mesh"] = ((), np.int32(0), topology)
        data["cell_nodes"] = (
            ("cell", "cell_node"),
            mesh.cells.astype(np.int32),
            {"cf_role": "face_node_connectivity", "start_index": 0},
        )
        for name, rows in mesh.cell_groups.items():
            member = np.zeros(len(mesh.cells), dtype=np.int8)
            member[rows] = 1
            data[f"group_{name}"] = (("cell",), member, {"long_name": f"cells of group {name}"})
        attributes = {
            "Conventions": "CF-1.8 UGRID-1.0",
            "method": f"finite elements, orders {list(self.fem.layout.orders)}",
            "residual": float(np.max(np.asarray(self.info.residual))),
            "iterations": int(np.max(np.asarray(self.info.iterations))),
            "source": mesh.source,
        }
        return xr.Dataset(data, coords, attributes)

    def to_vtu(self, path: Any) -> Path:
        """Write the fields with their mesh; quadratic fields on quadratic cells. The suffix may be any that meshio writes."""
        orders = set(self.fem.layout.orders)
        mesh = self.mesh
        if max(orders) == 2 and mesh.cells.shape[1] == mesh.shape.count:
            mesh = _quadratic(mesh)
        data = {}
        for field in self.problem.fields:
            k = self.fem.layout.index(field.name)
            values = np.asarray(jax.device_get(self.values(field)), dtype=np.float64)
            relabel = self.fem.numbers[k].relabel
            if mesh is not self.mesh and relabel is not None and self.fem.layout.orders[k] == 2:
                values = values[relabel]
            if mesh is self.mesh:
                values = np.asarray(jax.device_get(self.at_mesh_points(field)), dtype=np.float64)
            elif self.fem.layout.orders[k] == 1:  # linear fields at the middle nodes
                table, _ = tabulate(mesh.kind, 1, geometry_nodes(mesh.kind, mesh.cells.shape[1]))
                full = np.zeros((len(mesh.points), *values.shape[1:]))
                full[mesh.cells.T] = np.tensordot(table, values[self.fem.numbers[k].cells.T], axes=(1, 0))
                values = full
            if values.ndim == 2 and values.shape[-1] == 2:
                values = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
            data[field.name] = values
        return write_mesh(path, mesh, data)

    def plot(self, field: Any = None, path: Any = None, title: str | None = None):
        """A matplotlib figure: a curve (1-D), filled contours (2-D) or the coloured surface (3-D); magnitude for vectors."""
        from sciax.science.solvers.fem._plot import plot

        return self._save(plot(self, self.field(field), title), path)


def _quadratic(mesh: Mesh) -> Mesh:
    """The mesh with the nodes of the quadratic space."""
    numbering = Numbering.of(mesh, 2)
    count = len(lattice(mesh.kind, 2))
    wanted, have = geometry_nodes(mesh.kind, count), nodes(mesh.kind, 2)
    order = np.abs(wanted[:, None] - have[None]).sum(axis=2).argmin(axis=1)
    return Mesh(numbering.points, numbering.cells[:, order], mesh.kind, {}, mesh.cell_groups, source=mesh.source)
