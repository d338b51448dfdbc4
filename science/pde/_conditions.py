"""Boundary, initial and periodicity conditions, each on a named part of the boundary."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sciax.core.errors import InputError
from sciax.science.pde._expr import Expr, Field, Index, as_expr

Part = str | tuple[str, ...] | Callable[..., Any]


def _target(u: Any) -> tuple[Field, int | None]:
    if isinstance(u, Field):
        return u, None
    if isinstance(u, Index) and isinstance(u.args[0], Field) and isinstance(u.index, int):
        return u.args[0], u.index
    raise InputError("a condition is about a field or one component of it", got=repr(u), expected="u or u[0]")


@dataclass(frozen=True, eq=False)
class Condition:
    """Base: a field (or one component of it) and where.

    Attributes:
        field, component: what it is about.
        on: a boundary name, several, a function of x that is true there, "boundary" (all of it), or "rest" (what the other
            conditions on the field leave).
    """

    field: Field
    component: int | None
    on: Part

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return ()

    def where(self) -> str:
        return (
            self.on
            if isinstance(self.on, str)
            else ", ".join(self.on)
            if isinstance(self.on, tuple)
            else "a function of x"
        )


@dataclass(frozen=True, eq=False)
class Dirichlet(Condition):
    """`u = value`."""

    value: Expr

    def __init__(self, u: Any, value: Any = 0.0, *, on: Part = "boundary"):
        _set(self, u, on, value=as_expr(value))

    @property
    def exprs(self):
        return (self.value,)

    def __repr__(self):
        return f"Dirichlet({self.field!r} = {self.value!r} on {self.where()})"


@dataclass(frozen=True, eq=False)
class Robin(Condition):
    """`flux . n + coefficient * u = value`, the flux being what the equation takes the divergence of (`k du/dn`)."""

    coefficient: Expr
    value: Expr

    def __init__(self, u: Any, coefficient: Any, value: Any = 0.0, *, on: Part = "boundary"):
        _set(self, u, on, coefficient=as_expr(coefficient), value=as_expr(value))

    @property
    def exprs(self):
        return (self.coefficient, self.value)

    def __repr__(self):
        return f"Robin(flux.n + {self.coefficient!r} {self.field!r} = {self.value!r} on {self.where()})"


@dataclass(frozen=True, eq=False)
class Neumann(Condition):
    """`flux . n = value` (`k du/dn = value` for `-div(k grad u) = f`; the traction for vector fields)."""

    value: Expr

    def __init__(self, u: Any, value: Any = 0.0, *, on: Part = "boundary"):
        _set(self, u, on, value=as_expr(value))

    @property
    def exprs(self):
        return (self.value,)

    def __repr__(self):
        return f"Neumann(flux.n of {self.field!r} = {self.value!r} on {self.where()})"


@dataclass(frozen=True, eq=False)
class Initial(Condition):
    """`u = value` at the first time."""

    value: Expr

    def __init__(self, u: Any, value: Any = 0.0):
        _set(self, u, "boundary", value=as_expr(value))

    @property
    def exprs(self):
        return (self.value,)

    def __repr__(self):
        return f"Initial({self.field!r} = {self.value!r})"


@dataclass(frozen=True, eq=False)
class Periodic(Condition):
    """The field repeats along these axes (all of them if none is named)."""

    axes: tuple[int, ...]

    def __init__(self, u: Any, axes: tuple[int, ...] = ()):
        _set(self, u, "boundary", axes=tuple(axes))

    def __repr__(self):
        return f"Periodic({self.field!r})"


def _set(condition: Condition, u: Any, on: Any, **rest: Any) -> None:
    field, component = _target(u)
    if isinstance(on, list | set):
        on = tuple(on)
    if not (isinstance(on, str) or callable(on) or (isinstance(on, tuple) and all(isinstance(n, str) for n in on))):
        raise InputError(
            "where does the condition hold?", got=repr(on), expected="a boundary name, several, or a function"
        )
    for name, value in {"field": field, "component": component, "on": on, **rest}.items():
        object.__setattr__(condition, name, value)
