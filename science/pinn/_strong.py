"""The strong residual of a `Problem` at points, from the values and derivatives that its fields have there."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.core.errors import UnsupportedError
from sciax.science.pde import Env, Expr, Field, Problem, evaluate
from sciax.science.pde._expr import (
    ByGroup,
    Constant,
    Div,
    Dt,
    Grad,
    Parameter,
    fields_of,
)
from sciax.science.pinn._jets import Index, closed, is_laplacian, laplacian_index, merge, plus, unit

Parts = dict[Index, Array]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _entry(index: Index, shift: tuple[Array, ...], parts: Parts) -> Array:
    """D^a u at the point; moving the point by `shift` is only for differentiation: the tangent is made of higher entries."""
    return parts[index] if index in parts else jnp.zeros_like(parts[(0,) * len(index)])


@partial(_entry.defjvp, symbolic_zeros=True)
def _entry_jvp(index, primals, tangents):
    shift, parts = primals
    moves, changes = tangents
    out = _entry(index, shift, parts)
    total = jnp.zeros_like(out)
    if index in changes and not _is_zero(changes[index]):
        total = total + changes[index]
    for axis, move in enumerate(moves):
        higher = plus(index, unit(axis, len(index)))
        if not _is_zero(move) and higher in parts:
            total = total + move * _entry(higher, shift, parts)
    return out, total


def _is_zero(tangent: Any) -> bool:
    return isinstance(tangent, jax.custom_derivatives.SymbolicZero)


class Strong:
    """Evaluates expressions in fields, with true derivatives of every order.

    Attributes:
        dim: space dimensions.
        axes: of a point (x, t): dim, or dim + 1 where time appears.
        fields: those of the problem, and the ones that stand for unknown coefficients.
    """

    def __init__(self, problem: Problem, unknown: tuple[Field, ...] = ()):
        self.problem = problem
        self.fields = (*problem.fields, *unknown)
        self.dim = problem.dim
        self.axes = problem.dim + int(problem.transient or problem.uses_time)
        if problem.groups():
            raise UnsupportedError(
                "coefficients by cell group need a mesh",
                got=problem.groups(),
                remedy="a function of x, or method='fem'",
            )

    def at(
        self,
        exprs: list[Expr],
        point: Array,
        fields: Mapping[str, Parts],
        values: Mapping[str, Any],
        normal: Array | None = None,
    ) -> Array:
        """Values of expressions at one point (x, t), one under the other.

        Args:
            point: [axes].
            fields: name -> multi-index -> derivative, of shape () or [components].
            values: of parameters.
        """
        shift = tuple(jnp.zeros((), point.dtype) for _ in range(self.axes))

        def env(shift: tuple[Array, ...]) -> Env:
            moved = point + jnp.stack(shift)
            t = moved[self.dim] if self.axes > self.dim else None
            return Env(moved[: self.dim], values=values, normal=normal, t=t)

        def along(expr: Expr, shift: tuple[Array, ...], axis: int) -> Array:
            def f(s: Array) -> Array:
                return value(expr, (*shift[:axis], s, *shift[axis + 1 :]))

            return jax.jvp(f, (shift[axis],), (jnp.ones_like(shift[axis]),))[1]

        def value(expr: Expr, shift: tuple[Array, ...]) -> Array:
            if isinstance(expr, Field):
                return _entry((0,) * self.axes, shift, fields[expr.name])
            if isinstance(expr, Grad):
                return jnp.stack([along(expr.args[0], shift, i) for i in range(self.dim)], axis=-1)
            if isinstance(expr, Div):
                return sum(along(expr.args[0], shift, i)[..., i] for i in range(self.dim))  # type: ignore[return-value]
            if isinstance(expr, Dt):
                return along(expr.args[0], shift, self.dim)
            if isinstance(expr, Parameter) and isinstance(values.get(expr.name, expr.default), Expr):
                return value(values.get(expr.name, expr.default), shift)
            if isinstance(expr, ByGroup) or not expr.args:
                return jnp.asarray(evaluate(expr, env(shift)))
            known = tuple(Constant(value(a, shift)) for a in expr.args)
            return jnp.asarray(evaluate(replace(expr, args=known), env(shift)))  # type: ignore[type-var]

        return jnp.concatenate([jnp.atleast_1d(value(e, shift)).ravel() for e in exprs])

    def over(self, exprs: list[Expr], points: Array, fields: Mapping[str, Parts], values: Any, normals=None) -> Array:
        """`at` for points [axes, n]; derivatives [n] or [components, n]; the result is [rows, n]."""
        full = {name: merge(parts, self.dim) for name, parts in fields.items()}

        def one(point, fields, normal):
            return self.at(exprs, point, fields, values, normal)

        return jax.vmap(one, in_axes=(-1, -1, -1), out_axes=-1)(points, full, normals)

    def needed(self, exprs: list[Expr], points: np.ndarray, values: Any, normals=None) -> dict[str, tuple[Index, ...]]:
        """Which derivatives of which field the expressions depend on, by their derivative at random data.

        The pure second derivatives in space become one Laplacian where only their sum matters: the residual with all of them
        equal to their mean is then the same.

        Args:
            points: [axes, n], spread over the domain: a coefficient that is zero at all of them is not seen.
        """
        order = max((_depth(e) for e in exprs), default=0)
        every = [a for a in _simplex(self.axes, order)]
        rng = np.random.default_rng(0)
        z = jnp.asarray(points)

        def shape(field: Field) -> tuple[int, ...]:
            return (points.shape[1],) if field.components is None else (field.components, points.shape[1])

        data = {f.name: {a: jnp.asarray(rng.normal(size=shape(f)), z.dtype) for a in every} for f in self.fields}

        def total(data):
            rows = self.over(exprs, z, data, values, normals)
            return jnp.sum(rows * jnp.asarray(weights, rows.dtype)), rows

        rows = jax.eval_shape(lambda d: self.over(exprs, z, d, values, normals), data)
        weights = rng.normal(size=rows.shape)
        slopes, value = jax.jit(jax.grad(total, has_aux=True))(data)
        out: dict[str, tuple[Index, ...]] = {}
        second = [tuple(2 * n for n in unit(i, self.axes)) for i in range(self.dim)]
        for field in self.fields:
            used = {a for a in every if bool(np.any(np.asarray(slopes[field.name][a]) != 0))}
            high = {a for a in used if sum(a) >= 2 and sum(a[: self.dim]) > 0}
            if self.dim >= 2 and high == set(second):
                mean = sum(data[field.name][a] for a in second) / self.dim
                same = {**data, field.name: {**data[field.name], **dict.fromkeys(second, mean)}}
                other = np.asarray(self.over(exprs, z, same, values, normals))
                here = np.asarray(value)
                if np.abs(other - here).max() <= 1e3 * np.finfo(here.dtype).eps * np.abs(here).max():
                    used = (used - set(second)) | {laplacian_index(self.dim, self.axes)}
            out[field.name] = closed(used, self.axes)
        return out


def _depth(expr: Expr) -> int:
    """The highest order of derivatives of a field."""
    if not fields_of(expr):
        return 0
    return int(isinstance(expr, Grad | Div | Dt)) + max((_depth(a) for a in expr.args), default=0)


def _simplex(axes: int, order: int) -> list[Index]:
    out: list[Index] = [()]
    for _ in range(axes):
        out = [(*head, n) for head in out for n in range(order - sum(head) + 1)]
    return out


def union(*needs: Mapping[str, tuple[Index, ...]]) -> tuple[Index, ...]:
    """One set for a network that gives all fields."""
    every = {a for need in needs for indices in need.values() for a in indices}
    axes = len(next(iter(every)))
    if any(is_laplacian(a) for a in every):
        laplacian = next(a for a in every if is_laplacian(a))
        second = {tuple(2 * n for n in unit(i, axes)) for i in range(axes) if laplacian[i] < 0}
        if every & second:  # some field needs them one by one: the Laplacian follows from them
            every = (every - {laplacian}) | second
    return closed(every, axes)
