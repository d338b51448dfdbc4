"""The symbolic strong form: fields, parameters and coefficients joined by arithmetic, grad, div, dot and JAX functions.

An expression is a small tree. Solvers walk it; `evaluate` gives its value at one point from the values and gradients of the
fields there, so every operation is a JAX operation and everything derives.

Shapes: a scalar field has value () and gradient (dim,); a field of m components has value (m,) and gradient (m, dim) with
`grad(u)[i, j] = d u_i / d x_j`; `div` contracts the last axis.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, ShapeError, UnsupportedError


class Expr:
    """A node of the tree; `args` are its operands."""

    args: tuple["Expr", ...] = ()
    __array_ufunc__ = None  # NumPy arrays on the left leave the operation to us

    def __add__(self, other):
        return Add((self, as_expr(other)))

    def __radd__(self, other):
        return Add((as_expr(other), self))

    def __sub__(self, other):
        return Add((self, -as_expr(other)))

    def __rsub__(self, other):
        return Add((as_expr(other), -self))

    def __mul__(self, other):
        return Mul((self, as_expr(other)))

    def __rmul__(self, other):
        return Mul((as_expr(other), self))

    def __truediv__(self, other):
        return Mul((self, Apply(_reciprocal, (as_expr(other),))))

    def __rtruediv__(self, other):
        return Mul((as_expr(other), Apply(_reciprocal, (self,))))

    def __pow__(self, power):
        return Apply(_Power(power), (self,))

    def __matmul__(self, other):
        return MatMul((self, as_expr(other)))

    def __rmatmul__(self, other):
        return MatMul((as_expr(other), self))

    def __neg__(self):
        return Mul((Constant(-1.0), self))

    def __getitem__(self, index):
        return Index((self,), index)

    def __iter__(self):  # __getitem__ alone would make an endless iterator
        raise InputError("a symbolic expression cannot be iterated over", remedy="use u[0], u[1], ...")

    def __eq__(self, other):  # type: ignore[override]
        return Equation(self, as_expr(other))

    __hash__ = object.__hash__

    def __bool__(self):
        raise InputError(
            "a symbolic expression has no truth value", remedy="`lhs == rhs` makes an equation; do not test it"
        )


def _reciprocal(a):
    return 1.0 / a


@dataclass(frozen=True)
class _Power:
    power: Any

    def __call__(self, a):
        return a**self.power


@dataclass(frozen=True, eq=False)
class Constant(Expr):
    """A number or array, traced or not."""

    value: Any

    def __repr__(self):
        return f"{self.value}"


@dataclass(frozen=True, eq=False)
class Function(Expr):
    """A JAX function of one point x (shape (dim,)); of (x, t) if it takes two arguments."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))

    def __repr__(self):
        return f"{self.name}(x)"


@dataclass(frozen=True, eq=False)
class Parameter(Expr):
    """A named coefficient that `problem.with_(name=...)` replaces and that derivatives are taken with respect to.

    Attributes:
        name: unique within a problem.
        default: number, array, function of x, mapping from cell group to value, or another expression.
        on: for an array over the mesh: "cells" ([m]), "points" ([n], interpolated) or "quadrature" ([q, m]).
    """

    name: str
    default: Any = None
    on: str | None = None

    def __post_init__(self):
        if self.on not in (None, "cells", "points", "quadrature"):
            raise InputError(f"parameter {self.name!r} lies on {self.on!r}", expected="cells, points or quadrature")

    def __repr__(self):
        return self.name


@dataclass(frozen=True, eq=False)
class ByGroup(Expr):
    """A coefficient that differs from one named group of cells to the next.

    Attributes:
        values: group -> number, function, Parameter or expression.
        default: value of cells in none of the groups; None refuses such cells.
    """

    values: Mapping[str, Any]
    default: Any = None

    @property
    def args(self):  # type: ignore[override]
        return tuple(as_expr(v) for v in self.values.values()) + (
            () if self.default is None else (as_expr(self.default),)
        )

    def __repr__(self):
        return f"by group {dict(self.values)}"


@dataclass(frozen=True, eq=False)
class Field(Expr):
    """An unknown: scalar, or of `components` components."""

    name: str
    components: int | None = None

    def __repr__(self):
        return self.name

    @property
    def size(self) -> int:
        return self.components or 1


@dataclass(frozen=True, eq=False)
class Normal(Expr):
    """The outward unit normal, on a boundary."""

    def __repr__(self):
        return "n"


@dataclass(frozen=True, eq=False)
class Coordinate(Expr):
    """One coordinate of the point."""

    axis: int

    def __repr__(self):
        return "xyz"[self.axis]


@dataclass(frozen=True, eq=False)
class Time(Expr):
    """The time."""

    def __repr__(self):
        return "t"


def _node(name: str, show: str):
    @dataclass(frozen=True, eq=False)
    class Node(Expr):
        args: tuple[Expr, ...]

        def __repr__(self):
            return show.format(*self.args) if "{" in show else "(" + show.join(map(repr, self.args)) + ")"

    Node.__name__ = Node.__qualname__ = name
    return Node


Add = _node("Add", " + ")
Mul = _node("Mul", "*")
MatMul = _node("MatMul", " @ ")
Dot = _node("Dot", "dot({!r}, {!r})")
Grad = _node("Grad", "grad({!r})")
Div = _node("Div", "div({!r})")
Dt = _node("Dt", "dt({!r})")


@dataclass(frozen=True, eq=False)
class Index(Expr):
    args: tuple[Expr, ...]
    index: Any = 0

    def __repr__(self):
        return f"{self.args[0]!r}[{self.index}]"


@dataclass(frozen=True, eq=False)
class Apply(Expr):
    """`function(*args)` pointwise; `linear` says that it is linear in them."""

    function: Callable[..., Any]
    args: tuple[Expr, ...]
    linear: bool = False

    def __repr__(self):
        return f"{getattr(self.function, '__name__', self.function)}({', '.join(map(repr, self.args))})"


@dataclass(frozen=True, eq=False)
class Equation:
    """`lhs == rhs`."""

    lhs: Expr
    rhs: Expr

    def __bool__(self):
        return self.lhs is self.rhs

    @property
    def residual(self) -> Expr:
        return Add((self.lhs, -self.rhs))

    def __repr__(self):
        return f"{self.lhs!r} == {self.rhs!r}"


def as_expr(thing: Any) -> Expr:
    """Number, array, function of x, or mapping by cell group, as an expression."""
    if isinstance(thing, Expr):
        return thing
    if isinstance(thing, Mapping):
        values = dict(thing)
        return ByGroup(values, values.pop("default", None))
    if callable(thing):
        return Function(thing)
    if isinstance(thing, str) or thing is None:
        raise InputError(
            "not a coefficient", got=repr(thing), expected="a number, array, function of x, or mapping by group"
        )
    return Constant(thing)


def grad(u: Any) -> Expr:
    """Gradient; the new axis is the last."""
    return Grad((as_expr(u),))


def div(flux: Any) -> Expr:
    """Divergence, contracting the last axis."""
    return Div((as_expr(flux),))


def laplace(u: Any) -> Expr:
    return div(grad(u))


def dt(u: Any) -> Expr:
    """Derivative in time."""
    return Dt((as_expr(u),))


def dot(a: Any, b: Any) -> Expr:
    """Contraction of the last axis of `a` with the last axis of `b` (`dot(b, grad(u))` is advection, of vectors too)."""
    return Dot((as_expr(a), as_expr(b)))


def apply(function: Callable[..., Any], *args: Any, linear: bool = False) -> Expr:
    """A JAX function of expressions, pointwise: `apply(jnp.exp, u)`."""
    return Apply(function, tuple(as_expr(a) for a in args), linear)


def _sym(a):
    return 0.5 * (a + a.T)


def _transpose(a):
    return a.T


def _trace(a):
    return jnp.trace(a)


def _isotropic(a, like):
    return a * jnp.eye(like.shape[-1], dtype=like.dtype)


def sym(a: Any) -> Expr:
    """Symmetric part of a matrix (the strain, for `sym(grad(u))`)."""
    return apply(_sym, a, linear=True)


def transpose(a: Any) -> Expr:
    return apply(_transpose, a, linear=True)


def trace(a: Any) -> Expr:
    return apply(_trace, a, linear=True)


def isotropic(a: Any, like: Any) -> Expr:
    """`a I`, with the identity of the matrix `like`'s size."""
    return Mul((as_expr(a), apply(_identity_like, like)))


def _identity_like(like):
    return jnp.eye(like.shape[-1], dtype=like.dtype)


def coordinates(dim: int) -> tuple[Expr, ...]:
    return tuple(Coordinate(axis) for axis in range(dim))


def walk(expr: Expr) -> Iterator[Expr]:
    """The node and all below it."""
    yield expr
    for arg in expr.args:
        yield from walk(arg)


def fields_of(expr: Expr) -> list[Field]:
    """Fields in order of appearance."""
    found: dict[str, Field] = {}
    for node in walk(expr):
        if isinstance(node, Field):
            found.setdefault(node.name, node)
    return list(found.values())


def degree(expr: Expr, but: str | None = None) -> int:
    """0 without fields (other than the one named `but`), 1 linear in them, 2 otherwise."""
    if isinstance(expr, Field):
        return int(expr.name != but)
    degrees = [degree(a, but) for a in expr.args]
    most = max(degrees, default=0)
    if isinstance(expr, Mul | Dot | MatMul):
        return min(2, sum(degrees))
    if isinstance(expr, Apply) and not expr.linear:
        # a matrix made only from the shape of its operand does not depend on the field
        return 0 if expr.function is _identity_like else 2 * min(most, 1)
    return most


@dataclass
class Env:
    """Where and with what an expression is evaluated: all at one point.

    Attributes:
        x: the point, (dim,).
        fields: name -> (value, gradient).
        values: parameter name -> value (already an array, function or mapping).
        groups: cell group -> 0 or 1 at this point.
        samples: parameter name -> value at this point, for parameters that lie on the mesh.
        rates: name -> time derivative of the field.
    """

    x: Any
    fields: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    rates: Mapping[str, Any] = field(default_factory=dict)
    normal: Any = None
    t: Any = None

    def at(self, x: Any) -> "Env":
        return Env(x, self.fields, self.values, self.groups, self.samples, self.rates, self.normal, self.t)


def evaluate(expr: Expr, env: Env) -> Any:
    """Value of an expression at a point.

    Raises:
        UnsupportedError: second derivatives of a field, which a weak form does not have.
        ShapeError: a product of two vectors where `dot` was meant.
    """
    match expr:
        case Constant(value=value):
            return jnp.asarray(value).astype(env.x.dtype) if not _complex(value) else jnp.asarray(value)
        case Function(function=function):
            return jnp.asarray(_call(function, env)).astype(env.x.dtype)
        case Parameter():
            if expr.name in env.samples:
                return env.samples[expr.name]
            value = env.values.get(expr.name, expr.default)
            if value is None:
                raise InputError(f"parameter {expr.name!r} has no value", remedy=f"problem.with_({expr.name}=...)")
            return evaluate(as_expr(value), env)
        case ByGroup():
            return _by_group(expr, env)
        case Field():
            return env.fields[expr.name][0]
        case Coordinate(axis=axis):
            return env.x[axis]
        case Time():
            return env.t
        case Normal():
            if env.normal is None:
                raise UnsupportedError("the normal exists only on a boundary", remedy="use it in Neumann or Robin")
            return env.normal
        case Add():
            return sum((evaluate(a, env) for a in expr.args[1:]), evaluate(expr.args[0], env))
        case Mul():
            out = evaluate(expr.args[0], env)
            for arg in expr.args[1:]:
                other = evaluate(arg, env)
                if jnp.ndim(out) and jnp.ndim(other):
                    raise ShapeError(
                        f"product of two arrays in {expr!r}",
                        got=(jnp.shape(out), jnp.shape(other)),
                        remedy="use dot(a, b), or A @ b for a matrix",
                    )
                out = out * other
            return out
        case Dot():
            a, b = (evaluate(arg, env) for arg in expr.args)
            if jnp.ndim(a) and jnp.ndim(b) and jnp.shape(a)[-1] != jnp.shape(b)[-1]:
                raise ShapeError(f"{expr!r}: lengths differ", got=(jnp.shape(a), jnp.shape(b)))
            return jnp.sum(a * b, axis=-1)  # products and sums fuse under vmap, small batched matrix products do not
        case MatMul():
            a, b = (evaluate(arg, env) for arg in expr.args)
            return jnp.sum(a * b, axis=-1) if jnp.ndim(b) == 1 else jnp.sum(a[:, :, None] * b[None], axis=1)
        case Index(index=index):
            return evaluate(expr.args[0], env)[index]
        case Apply(function=function):
            return function(*(evaluate(a, env) for a in expr.args))
        case Grad():
            return _grad(expr.args[0], env)
        case Div():
            return jnp.trace(_grad(expr.args[0], env), axis1=-2, axis2=-1)
        case Dt():
            (inner,) = expr.args
            if isinstance(inner, Field) and inner.name in env.rates:
                return env.rates[inner.name]
            raise UnsupportedError(f"{expr!r}: only the rate of a field itself", remedy="write dt(u), u a Field")
    raise UnsupportedError(f"cannot evaluate {expr!r}")


def _complex(value: Any) -> bool:
    return bool(np.issubdtype(jnp.result_type(value), np.complexfloating))


def _call(function: Callable[..., Any], env: Env) -> Any:
    if takes_time(function):
        if env.t is None:
            raise InputError("a function of (x, t) in a problem without time", got=function)
        return function(env.x, env.t)
    return function(env.x)


def takes_time(function: Callable[..., Any]) -> bool:
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) >= 2


def _by_group(expr: ByGroup, env: Env) -> Any:
    total, covered = 0.0, 0.0
    for name, value in expr.values.items():
        total = total + env.groups[name] * evaluate(as_expr(value), env)
        covered = covered + env.groups[name]
    if expr.default is not None:
        total = total + (1.0 - covered) * evaluate(as_expr(expr.default), env)
    return total


def _grad(inner: Expr, env: Env) -> Any:
    """Gradient at the point: of a field from its data, of anything else along the first-order jets of what it holds."""
    if isinstance(inner, Field):
        return env.fields[inner.name][1]
    if any(isinstance(node, Grad | Div) and fields_of(node) for node in walk(inner)):
        raise UnsupportedError(
            f"second derivatives of a field outside a divergence: grad of {inner!r}",
            remedy="write the highest derivative as div(flux), or give the weak form yourself",
        )

    def along(x):
        step = x - env.x
        near = {name: (value + g @ step, g) for name, (value, g) in env.fields.items()}
        moved = Env(x, near, env.values, env.groups, env.samples, env.rates, env.normal, env.t)
        return evaluate(inner, moved)

    return jax.jacfwd(along)(env.x)
