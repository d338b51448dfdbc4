"""Evaluation: the residual of the weak form and its matrix at a state, as compiled functions of arrays."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.core.ops.sparse import assemble
from sciax.science.pde import Env, Problem, Robin, evaluate
from sciax.science.pde._expr import Expr
from sciax.science.solvers.fem._assembly import (
    block,
    facet_integrand,
    gather,
    natural_value,
    over_points,
    stack_basis,
    unpack,
)
from sciax.science.solvers.fem._setup import Discretisation
from sciax.science.solvers.fem._space import Numbering, Patch


class Assembler(Discretisation):
    """A discretisation with its residual and matrix."""

    parameters: dict[str, Any]
    compiled: dict[str, Any]
    _integrands: dict[str, Any]
    couplings: dict[tuple[int, int], Any]
    _patches: dict[int, Patch]

    def patch_of(self, degree: int) -> Patch:
        """The cells with a quadrature rule of that degree, made once."""
        if degree not in self._patches:
            self._patches[degree] = Patch.cells(self.mesh, degree)
        return self._patches[degree]

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
        rate = None if previous is None or rate_scale is None else rate_scale * (vector - previous)
        rows, data = self._rows(arrays, values, vector, rate, rate_scale, t, matrix=matrix)
        return rows[arrays["free"]], data

    def _rows(
        self, arrays, values, vector, rate=None, rate_scale=None, t=None, *, matrix: bool = False, part: str = "all"
    ):
        """Residual of every unknown's equation, the fixed ones included, and matrix data.

        Args:
            rate: time derivative of `vector`.
            rate_scale: its derivative with respect to `vector`, a number.
            part: "all", or the "linear" or "nonlinear" terms only (boundary terms go with the linear ones).
        """
        layout, dtype = self.layout, self.dtype
        values = {**values, **self.compiled}
        tables = [stack_basis(*self.patch.basis(k)) for k in layout.orders]
        z = self._at_points(arrays["nodes"], tables, vector)
        if rate is not None:
            rate = self._at_points(arrays["nodes"], [table[:, :1] for table in tables], rate)[:, 0]
        integrand = self._integrands[part]
        arrayed = {n: v for n, v in values.items() if n not in self.compiled}
        samples, plain = self._samples(arrayed, self.patch, arrays)
        plain.update(self.compiled)
        cell = {**arrays["cell"], "samples": samples}
        shape = self.patch.measure.shape
        w = over_points(integrand, shape, (z, rate, cell), (plain, t))
        residual = jnp.zeros(layout.size, dtype)
        for k, field in enumerate(layout.fields):
            rows = w[layout.starts[k] : layout.starts[k + 1]]
            table = jnp.asarray(tables[k].transpose(2, 1, 0).reshape(tables[k].shape[2], -1), dtype)
            local = jnp.stack([table @ rows[c].reshape(table.shape[1], -1) for c in range(field.size)], axis=1)
            residual = residual.at[self._global(arrays["nodes"][k], k)].add(local)
        data = []
        if matrix:
            linearised = self._linearised(integrand, rate_scale if rate is not None else None)
            parts = over_points(linearised, shape, (z, rate, cell), (plain, t))
            for (i, j), piece in zip(self.pairs, parts):
                rows, cols = self.couplings[i, j]
                for c in range(layout.fields[i].size):
                    for e in range(layout.fields[j].size):
                        data.append(block(tables[i][:, rows], tables[j][:, cols], piece[c, e]).reshape(-1))
        natural = () if part == "nonlinear" else self._natural
        for index, (condition, k, patch) in enumerate(natural):
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
        if not matrix:
            return residual, None
        return residual, assemble(jnp.concatenate(data), arrays["slots"], nnz=self.pattern.nnz)

    def _linearised(self, integrand, scale):
        """Derivatives of the integrand, for each pair of fields [test component, trial component, rows, columns]."""
        layout = self.layout
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

    def _fields_at(self, geometry, nodes, values, vector, *, degree: int):
        """What an integrand meets at the quadrature points of all cells, along one flat axis behind.

        Args:
            geometry, nodes: arrays of the patch of that degree, and of the unknowns' places in it.

        Returns:
            (name -> (value, gradient), what `Env` needs of a point, parameters that are the same at all points).
        """
        patch = self.patch_of(degree)
        tables = [stack_basis(*patch.basis(k)) for k in self.layout.orders]
        z = self._at_points(nodes, tables, vector)
        samples, plain = self._samples(values, patch, None)

        def flat(a):
            return jnp.broadcast_to(a, (*a.shape[:-2], *patch.measure.shape)).reshape(*a.shape[:-2], -1)

        z, point = jax.tree.map(flat, (z, {**geometry, "samples": samples}))
        each = jax.vmap(partial(unpack, self.layout, dtype=self.dtype, dim=self.mesh.dim), in_axes=-1, out_axes=-1)
        return each(z, point["inverse"]), point, plain

    def _global(self, nodes, k: int):
        """[n, components, m] numbers of unknowns."""
        field = self.layout.fields[k]
        return self.layout.offsets[k] + nodes[:, None, :] * field.size + jnp.arange(field.size)[None, :, None]


def _is_complex(value: Any) -> bool:
    return np.iscomplexobj(value)
