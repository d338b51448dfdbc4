"""From the strong to the weak form: divergences of fluxes are integrated by parts against the test function.

A residual `R = s - sum of c div(F)` becomes `integral of s v + c F . grad v` minus `boundary integral of c F.n v`, and
`c F.n` is the natural boundary quantity that Neumann and Robin conditions state. In a vector equation the gradient of a scalar
field is a flux too (`grad p = div(p I)`), which gives flow problems their traction `nu du/dn - p n`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from sciax.core.errors import InputError, UnsupportedError
from sciax.science.pde._expr import (
    Add,
    ByGroup,
    Constant,
    Coordinate,
    Div,
    Env,
    Equation,
    Expr,
    Field,
    Function,
    Grad,
    Mul,
    Parameter,
    degree,
    evaluate,
    fields_of,
    walk,
)


@dataclass(frozen=True)
class WeakForm:
    """`integral of source * v + flux : grad v`, before boundary terms.

    Attributes:
        test: the field whose equation this is.
        source: terms that multiply the test function.
        flux: terms that multiply its gradient (the sign of `natural` taken in).
        scale: what the divergence is multiplied by in the equation, without its sign.
        sign: `flux . n = sign * scale * natural`, where `natural` is the normal part of what the divergence is taken of:
            conditions speak of `k du/dn` whichever way the equation was signed or scaled.
        linear: whether both are at most linear in the fields.
    """

    test: Field
    source: tuple[Expr, ...]
    flux: tuple[Expr, ...]
    sign: float
    scale: tuple[Expr, ...]
    linear: bool

    @property
    def second_order(self) -> bool:
        return bool(self.flux)

    def fields(self) -> list[Field]:
        """The fields it depends on."""
        return [f for term in (*self.source, *self.flux) for f in fields_of(term)]

    def flux_fields(self) -> list[Field]:
        """The fields its flux depends on."""
        return [f for term in self.flux for f in fields_of(term)]

    def split(self) -> "tuple[WeakForm, WeakForm]":
        """The terms that are linear in the fields, and those that are not."""
        keep = [[t for t in terms if degree(t) <= 1] for terms in (self.source, self.flux)]
        rest = [[t for t in terms if degree(t) > 1] for terms in (self.source, self.flux)]
        first, second = (replace(self, source=tuple(s), flux=tuple(f)) for s, f in (keep, rest))
        return first, second

    def reacts(self) -> bool:
        """Whether the field itself, not only its gradient, appears in the source: then a constant is not in the kernel."""
        return any(_bare(term, self.test.name) for term in self.source)

    def couples(self, name: str, dim: int) -> tuple[list[int], list[int]]:
        """Which entries of (source, flux) depend on which of (value, gradient) of a field; 0 stands for the first of each."""
        inside = [any(f.name == name for term in terms for f in fields_of(term)) for terms in (self.source, self.flux)]
        terms = (*self.source, *self.flux)
        value = any(_bare(term, name) for term in terms)
        slope = any(
            isinstance(n, Grad | Div) and any(f.name == name for f in fields_of(n)) for t in terms for n in walk(t)
        )
        axes = list(range(1, dim + 1))
        return [0] * inside[0] + axes * inside[1], [0] * value + axes * slope

    def symmetric(self) -> bool:
        """Whether the matrix is certainly symmetric: fluxes of the gradient only, sources of the value only."""
        fluxes = all(not _bare(term, self.test.name) for term in self.flux)
        sources = all(not any(isinstance(n, Grad | Div) and fields_of(n) for n in walk(term)) for term in self.source)
        matrix = any(type(n).__name__ == "MatMul" for term in self.flux for n in walk(term))
        return self.linear and fluxes and sources and not matrix

    def evaluate(self, env: Env, shape: tuple[int, ...], dim: int):
        """(source, flux) at a point, of shapes `shape` and `shape + (dim,)`."""
        dtype = env.x.dtype
        source, flux = jnp.zeros(shape, dtype), jnp.zeros((*shape, dim), dtype)
        for term in self.source:
            source = source + _fit(evaluate(term, env), shape, term)
        for term in self.flux:
            flux = flux + _fit(evaluate(term, env), (*shape, dim), term)
        return source, flux


def _fit(value, shape, term):
    if jnp.shape(value) in ((), shape):
        return value
    from sciax.core.errors import ShapeError

    raise ShapeError(
        f"the term {term!r} does not fit its equation",
        got=jnp.shape(value),
        expected=shape,
        remedy="check vectors and scalars",
    )


def _bare(expr: Expr, name: str) -> bool:
    """Whether the field appears other than under a gradient or divergence."""
    if isinstance(expr, Field):
        return expr.name == name
    if isinstance(expr, Grad | Div) and isinstance(expr.args[0], Field):
        return False
    return any(_bare(a, name) for a in expr.args)


def _by_parts(node: Expr, test: Field) -> bool:
    if isinstance(node, Div):
        return any(isinstance(n, Grad) and fields_of(n) for n in walk(node.args[0]))
    # the gradient of a scalar field in a vector equation
    return (
        isinstance(node, Grad)
        and test.components is not None
        and isinstance(node.args[0], Field)
        and node.args[0].components is None
    )


def _holds(expr: Expr, test: Field) -> bool:
    return _by_parts(expr, test) or any(_holds(a, test) for a in expr.args)


def _terms(expr: Expr, factors: tuple[Expr, ...], test: Field):
    """(factors, node) for each term: products are distributed only over sums that hold something to integrate by parts."""
    if isinstance(expr, Add):
        for arg in expr.args:
            yield from _terms(arg, factors, test)
    elif isinstance(expr, Mul):
        holding = [a for a in expr.args if _holds(a, test)]
        if len(holding) == 1:
            others = tuple(a for a in expr.args if a is not holding[0])
            yield from _terms(holding[0], factors + others, test)
        else:
            yield factors, expr
    else:
        yield factors, expr


def _spatial(expr: Expr) -> bool:
    return any(isinstance(n, Function | Coordinate | ByGroup | Field) or (isinstance(n, Parameter) and n.on)
               for n in walk(expr))  # fmt: skip


def _number(factors) -> tuple[float, tuple[Expr, ...]]:
    """Sign of a product of factors, and the factors without it (traced ones are taken as positive)."""
    sign, rest = 1.0, []
    for factor in factors:
        value = factor.value if isinstance(factor, Constant) else None
        if value is None or isinstance(value, Tracer):
            rest.append(factor)
            continue
        sign *= float(np.sign(value))
        rest.append(Constant(abs(value)))
    return sign, tuple(rest)


def weak_form(equation: Equation, test: Field) -> WeakForm:
    """The weak form of one equation, tested with `test`.

    Raises:
        UnsupportedError: a coefficient that varies in space outside a divergence, where by-parts would differentiate it.
    """
    source, flux, signs, scales = [], [], [], []
    for factors, node in _terms(equation.residual, (), test):
        if not _by_parts(node, test):
            source.append(Mul((*factors, node)) if factors else node)
            continue
        varying = [f for f in factors if _spatial(f)]
        if varying:
            raise UnsupportedError(
                f"{node!r} is multiplied by {varying[0]!r}, which varies in space",
                remedy="divide the equation by it, or take it inside the divergence",
            )
        inner = node.args[0]
        if isinstance(node, Grad):
            from sciax.science.pde._expr import _identity_like, apply

            inner = Mul((inner, apply(_identity_like, Grad((test,)))))
        else:
            sign, scale = _number(factors)
            signs.append(-sign)
            scales.append(scale)
        flux.append(Mul((Constant(-1.0), *factors, inner)))
    if _holds_second_order_left(source):
        raise UnsupportedError(
            f"second derivatives of {test!r} remain in {equation!r}", remedy="write them as div(flux): div(k * grad(u))"
        )
    if len(set(signs)) > 1:
        raise UnsupportedError(f"divergence terms of opposite sign in {equation!r}", remedy="join them in one div(...)")
    linear = all(degree(term) <= 1 for term in (*source, *flux))
    return WeakForm(test, tuple(source), tuple(flux), signs[0] if signs else 1.0, scales[0] if scales else (), linear)


def _holds_second_order_left(source) -> bool:
    return any(isinstance(n, Div) and any(isinstance(m, Grad) and fields_of(m) for m in walk(n.args[0]))
               for term in source for n in walk(term))  # fmt: skip


TEST = "test"


@dataclass(frozen=True)
class GivenForm:
    """A weak form written by hand: `integral of expr = integral over the boundary of natural v`, for every test function v.

    Made by `Problem(..., weak={u: lambda v: ...})`; its interface is `WeakForm`'s.

    Attributes:
        test: the field whose equation this is.
        expr: linear in the test function, the field named `TEST`, and its gradient.
    """

    test: Field
    expr: Expr
    sign: float = 1.0
    scale: tuple[Expr, ...] = ()

    @staticmethod
    def of(test: Field, function: Callable[[Field], Any]) -> "GivenForm":
        from sciax.science.pde._expr import as_expr

        expr = as_expr(function(Field(TEST, test.components)))
        if not _linear_in_test(expr):
            raise InputError(
                f"the weak form of {test!r} is not linear in its test function",
                got=repr(expr),
                expected="every term holds the test function once",
                remedy="lambda v: dot(k * grad(u), grad(v)) - f * v",
            )
        return GivenForm(test, expr)

    @property
    def second_order(self) -> bool:
        return any(isinstance(n, Grad | Div) and _has_test(n) for n in walk(self.expr))

    @property
    def linear(self) -> bool:
        return degree(self.expr, TEST) <= 1

    def fields(self) -> list[Field]:
        return [f for f in fields_of(self.expr) if f.name != TEST]

    flux_fields = fields

    def reacts(self) -> bool:
        return _bare(self.expr, self.test.name)

    def couples(self, name: str, dim: int) -> tuple[list[int], list[int]]:
        axes = list(range(1, dim + 1))
        slope = any(isinstance(n, Grad | Div) and any(f.name == name for f in fields_of(n)) for n in walk(self.expr))
        rows = [0] * _bare(self.expr, TEST) + axes * self.second_order
        return rows, [0] * _bare(self.expr, name) + axes * slope

    def symmetric(self) -> bool:
        return False  # not known without looking at the numbers

    def split(self) -> "tuple[GivenForm, GivenForm]":
        terms = list(_summands(self.expr))
        keep, rest = ([t for t in terms if (degree(t, TEST) <= 1) is low] for low in (True, False))
        first, second = (replace(self, expr=Add(tuple(t)) if t else Constant(0.0)) for t in (keep, rest))
        return first, second

    def evaluate(self, env: Env, shape: tuple[int, ...], dim: int):
        """What multiplies the test function and its gradient: the form at each unit test function."""
        dtype = env.x.dtype
        size = shape[0] if shape else 1
        source, flux = [], []
        for c in range(size):
            for slot in range(dim + 1):
                value = np.zeros(size)
                slope = np.zeros((size, dim))
                if slot == 0:
                    value[c] = 1.0
                else:
                    slope[c, slot - 1] = 1.0
                unit = (jnp.asarray(value, dtype), jnp.asarray(slope, dtype))
                fields = {**env.fields, TEST: unit if shape else (unit[0][0], unit[1][0])}
                entry = _fit(evaluate(self.expr, replace(env, fields=fields)), (), self.expr)
                (source if slot == 0 else flux).append(jnp.asarray(entry, dtype))
        return jnp.stack(source).reshape(shape), jnp.stack(flux).reshape(*shape, dim)


def _summands(expr: Expr):
    if isinstance(expr, Add):
        for arg in expr.args:
            yield from _summands(arg)
    else:
        yield expr


def _has_test(expr: Expr) -> bool:
    return any(isinstance(n, Field) and n.name == TEST for n in walk(expr))


def _linear_in_test(expr: Expr) -> bool:
    """Whether the expression is linear and homogeneous in the test function, as far as its tree shows."""
    from sciax.science.pde._expr import Apply

    if isinstance(expr, Field):
        return expr.name == TEST
    if isinstance(expr, Add):
        return all(_linear_in_test(a) for a in expr.args)
    holding = [a for a in expr.args if _has_test(a)]
    if len(holding) != 1 or (isinstance(expr, Apply) and not expr.linear):
        return False
    return _linear_in_test(holding[0])


def forms_of(problem: Any) -> tuple[WeakForm | GivenForm, ...]:
    """The weak form of each field's equation, derived or given."""
    strong = iter(problem.equations)
    return tuple(
        GivenForm.of(f, problem.weak[f.name]) if f.name in problem.weak else weak_form(next(strong), f)
        for f in problem.fields
    )
