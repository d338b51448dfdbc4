"""`Problem`: a domain, equations in strong form, and conditions on named parts of the boundary."""

from collections.abc import Callable, Mapping
from typing import Any

from sciax.core.errors import InputError, did_you_mean
from sciax.science.geometry import Domain
from sciax.science.mesh import Mesh
from sciax.science.pde._conditions import Condition, Initial, Periodic
from sciax.science.pde._expr import (
    ByGroup,
    Dt,
    Equation,
    Expr,
    Field,
    Function,
    Parameter,
    Time,
    as_expr,
    fields_of,
    takes_time,
    walk,
)
from sciax.science.pde._weak import TEST


def _size(field: Any) -> int | None:
    if not isinstance(field, Field):
        raise InputError("weak forms are given by field", got=repr(field), expected="weak={u: lambda v: ...}")
    return field.components


class Problem:
    """A boundary (or initial) value problem, stated once for every method.

        p = Problem(Rectangle(), -div(k * grad(u)) == f, Dirichlet(u, 0, on=("left", "right")), Neumann(u, 0, on=("bottom", "top")))

    Where a weak form cannot be derived, or another one is wanted, it is given for the field, with a test function v (for
    finite elements; `natural v` on the boundary is what `Neumann` states):

        Problem(Rectangle(), Dirichlet(u, 0), weak={u: lambda v: dot(k * grad(u), grad(v)) - f * v})

    Attributes:
        domain: a `Domain`.
        equations: one for each field, tested with the fields in their order of appearance.
        weak: field name -> weak form, for the fields that have no equation.
        points: positions [n, dim] of the mesh's points that `with_points` has set, or None.
        conditions: boundary and initial conditions.
        fields: the unknowns.
        values: parameter name -> value, for those that `with_` has set.

    Raises:
        InputError: as many equations as fields are needed; conditions on unknown fields; two parameters of one name.
    """

    def __init__(
        self,
        domain: Any,
        *items: Any,
        weak: Mapping[Any, Callable[[Field], Any]] | None = None,
        values: dict[str, Any] | None = None,
    ):
        if not isinstance(domain, Domain | Mesh | str) and not hasattr(domain, "__fspath__"):
            raise InputError("the first argument of a Problem is its domain", got=repr(domain))
        self.domain: Domain = domain if isinstance(domain, Domain) else Domain.from_mesh(domain)
        self.equations = tuple(item for item in items if isinstance(item, Equation))
        self.conditions: tuple[Condition, ...] = tuple(item for item in items if isinstance(item, Condition))
        strange = [item for item in items if not isinstance(item, Equation | Condition)]
        if strange:
            raise InputError(
                "a Problem takes equations and conditions",
                got=repr(strange[0]),
                expected="lhs == rhs, Dirichlet(...), ...",
            )
        self.weak = {f.name if isinstance(f, Field) else str(f): form for f, form in (weak or {}).items()}
        self.points: Any = None
        self._weak_terms = [as_expr(form(Field(TEST, _size(f)))) for f, form in (weak or {}).items()]
        fields: dict[str, Field] = {}
        for term in [e.residual for e in self.equations] + self._weak_terms:
            for field in fields_of(term):
                if field.name == TEST:
                    continue
                if (
                    fields.setdefault(field.name, field) is not field
                    and fields[field.name].components != field.components
                ):
                    raise InputError(f"two fields are named {field.name!r}")
        self.fields = tuple(fields.values())
        for name in self.weak:
            if name not in fields:
                raise InputError(
                    f"a weak form for {name!r}, which no equation mentions", remedy=did_you_mean(name, fields)
                )
        if len(self.equations) + len(self.weak) != len(self.fields) or not self.fields:
            raise InputError(
                "a problem needs one equation for each field",
                got=f"{len(self.equations) + len(self.weak)} equations, fields: {', '.join(fields) or 'none'}",
                remedy="under-determined: add equations; over-determined: join or drop some",
            )
        for condition in self.conditions:
            if condition.field.name not in fields:
                raise InputError(
                    f"{condition!r} is about a field of no equation", remedy=did_you_mean(condition.field.name, fields)
                )
            if condition.component is not None and not 0 <= condition.component < condition.field.size:
                raise InputError(
                    f"{condition!r}: the field has {condition.field.size} components", got=condition.component
                )
        self.parameters: dict[str, Parameter] = {}
        for expr in self.expressions():
            for node in walk(expr):
                if isinstance(node, Parameter):
                    known = self.parameters.setdefault(node.name, node)
                    if known is not node and (known.default is not node.default or known.on != node.on):
                        raise InputError(f"two parameters are named {node.name!r}", remedy="make one and use it twice")
        self.values = dict(values or {})
        self.cache: dict[Any, Any] = {}
        self._check_parts()

    def _check_parts(self) -> None:
        known = [*self.domain.boundaries, "boundary", "rest"]
        for condition in self.conditions:
            if isinstance(condition, Initial | Periodic) or callable(condition.on):
                continue
            for name in (condition.on,) if isinstance(condition.on, str) else condition.on:
                if name not in known:
                    raise InputError(
                        f"{condition!r}: the domain has no boundary {name!r}", remedy=did_you_mean(str(name), known)
                    )

    def expressions(self) -> list[Expr]:
        """Every expression of the problem, and the expressions that parameters default to."""
        out = [e.residual for e in self.equations] + self._weak_terms + [x for c in self.conditions for x in c.exprs]
        for expr in list(out):
            out += [
                as_expr(n.default)
                for n in walk(expr)
                if isinstance(n, Parameter) and isinstance(n.default, dict | Expr)
            ]
        return out

    @property
    def dim(self) -> int:
        return self.domain.dim

    @property
    def transient(self) -> bool:
        """Whether a time derivative appears."""
        terms = [e.residual for e in self.equations] + self._weak_terms
        return any(isinstance(n, Dt) for term in terms for n in walk(term))

    @property
    def uses_time(self) -> bool:
        return any(isinstance(n, Time) or (isinstance(n, Function) and takes_time(n.function))
                   for e in self.expressions() for n in walk(e))  # fmt: skip

    def of_kind(self, *kinds: type) -> list[Any]:
        return [c for c in self.conditions if isinstance(c, kinds)]

    def groups(self) -> list[str]:
        """Cell groups that coefficients refer to."""
        found: dict[str, None] = {}
        exprs = self.expressions() + [as_expr(v) for v in self.values.values() if isinstance(v, dict)]
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, ByGroup):
                    found.update(dict.fromkeys(node.values))
        return list(found)

    def with_(self, **values: Any) -> "Problem":
        """The problem with parameters set; what a solver compiled for it is kept.

        Raises:
            InputError: no such parameter, with the nearest name.
        """
        for name in values:
            if name not in self.parameters:
                raise InputError(f"the problem has no parameter {name!r}", remedy=did_you_mean(name, self.parameters))
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.values = {**self.values, **values}
        return other

    def with_points(self, points: Any) -> "Problem":
        """The problem on the same mesh with its points elsewhere: solutions are differentiable in them (method "fem").

        Args:
            points: [n, dim], in the order of `solution.mesh.points`.
        """
        other = self.with_()
        other.points = points
        return other

    def value(self, name: str) -> Any:
        """The present value of a parameter."""
        if name not in self.parameters:
            raise InputError(f"the problem has no parameter {name!r}", remedy=did_you_mean(name, self.parameters))
        value = self.values.get(name, self.parameters[name].default)
        if value is None:
            raise InputError(f"parameter {name!r} has no value", remedy=f"problem.with_({name}=...)")
        return value

    def __repr__(self) -> str:
        lines = [repr(self.domain), *map(repr, self.equations), *map(repr, self.conditions)]
        return "Problem(\n  " + ",\n  ".join(lines) + "\n)"
