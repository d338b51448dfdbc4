"""`Conservation`: a conservation law on a box, with its initial state and what happens at the sides."""

from dataclasses import dataclass
from typing import Any

from sciax.core.errors import InputError, did_you_mean
from sciax.science.geometry import BoxDomain
from sciax.science.pde import Dirichlet, Expr, Initial, Parameter, Periodic, Problem
from sciax.science.pde._expr import as_expr, walk
from sciax.science.solvers.fvm._law import Law


@dataclass(frozen=True)
class Side:
    """Base: a condition on the whole state at named sides."""

    on: str | tuple[str, ...] = "boundary"

    @property
    def exprs(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True)
class Transmissive(Side):
    """Waves leave: the state behind the side is that before it."""


@dataclass(frozen=True)
class Reflecting(Side):
    """A wall without friction, or a plane of symmetry."""


@dataclass(frozen=True, eq=False)
class NoSlip(Side):
    """A wall that the fluid sticks to, insulated, moving with `velocity` (`[dim]`, or a number in one dimension)."""

    velocity: Any = 0.0

    @property
    def exprs(self):
        return (as_expr(self.velocity),)


class Conservation(Problem):
    """A conservation law to be followed in time.

        gas = Euler()
        tube = Conservation(Interval(0, 1), gas,
            Initial(gas.density, lambda x: jnp.where(x[0] < 0.5, 1.0, 0.125)), Initial(gas.velocity, 0),
            Initial(gas.pressure, lambda x: jnp.where(x[0] < 0.5, 1.0, 0.1)), Transmissive())
        s = solve(tube, method="fvm", cells=200, time=(0, 0.2), scheme="weno5")

    Args:
        domain: Interval, Rectangle or Box of the law's dimension.
        law: Euler, NavierStokes, ShallowWater, ScalarLaw.
        items: an `Initial` for every field of the law; for every side a `Transmissive`, `Reflecting`, `NoSlip`, a `Dirichlet`
            for every field (an inflow), or a `Periodic` of any field for both sides of an axis.

    Raises:
        InputError: a side or a field without a condition, or with two.
    """

    law: Law

    def __init__(self, domain: Any, law: Law, *items: Any):
        if not isinstance(domain, BoxDomain) or not isinstance(law, Law) or domain.dim != law.dim:
            raise InputError(
                "a conservation law needs an interval, rectangle or box of its own dimension",
                got=f"{domain!r}, {type(law).__name__} of dimension {getattr(law, 'dim', None)}",
            )
        strange = [x for x in items if not isinstance(x, Side | Initial | Dirichlet | Periodic)]
        if strange:
            raise InputError(
                "unknown item of a conservation problem",
                got=repr(strange[0]),
                expected="Initial, Dirichlet, Periodic, Transmissive, Reflecting, NoSlip",
            )
        self.domain, self.law, self.fields = domain, law, law.fields
        self.equations = ()
        self.conditions = tuple(x for x in items if not isinstance(x, Side))
        self.sides = tuple(x for x in items if isinstance(x, Side))
        self.values, self.cache, self.weak, self.points = {}, {}, {}, None
        self._weak_terms = []
        self.parameters = {}
        for expr in self.expressions():
            for node in walk(expr):
                if isinstance(node, Parameter) and self.parameters.setdefault(node.name, node) is not node:
                    raise InputError(f"two parameters are named {node.name!r}", remedy="make one and use it twice")
        self._check()

    def expressions(self) -> list[Expr]:
        laws = [*self.law.constants.values(), *self.law.extra.values()]
        return laws + [e for x in (*self.conditions, *self.sides) for e in x.exprs]

    @property
    def transient(self) -> bool:
        return True

    def _check(self) -> None:
        names = [f.name for f in self.fields]
        for condition in self.conditions:
            if condition.field not in self.fields or condition.component is not None:
                raise InputError(
                    f"{condition!r} is not about a whole field of the law",
                    remedy=did_you_mean(condition.field.name, names),
                )
        given = [c.field.name for c in self.of_kind(Initial)]
        for name in names:
            if given.count(name) != 1:
                raise InputError(
                    f"{name} needs one initial condition", got=given.count(name), remedy=f"Initial({name}, value)"
                )
        self.at_sides: dict[str, Any] = {}
        for end in self.domain.boundaries:
            self.at_sides[end] = self._at(end)

    def _at(self, side: str) -> Any:
        """The condition at a side: a Side, a Periodic, or {field: Dirichlet}."""
        axis = self.domain.side(side)[0]  # type: ignore[attr-defined]
        for name in (n for x in (*self.sides, *self.of_kind(Dirichlet)) for n in _names(x.on)):
            if name not in (*self.domain.boundaries, "boundary", "rest"):
                raise InputError(f"no side is named {name!r}", remedy=did_you_mean(name, self.domain.boundaries))
        rings = [x for x in self.of_kind(Periodic) if axis in (x.axes or range(self.dim))]
        fixed = {
            x.field.name: x for x in self.of_kind(Dirichlet) if _names(x.on) == ("boundary",) or side in _names(x.on)
        }
        found: list[Any] = [*rings[:1], *([fixed] if fixed else [])]
        found += [x for x in self.sides if _names(x.on) == ("boundary",) or side in _names(x.on)]
        if not found:
            found = [x for x in self.sides if _names(x.on) == ("rest",)]
        if len(found) != 1:
            raise InputError(
                f"the side {side!r} needs one condition",
                got=f"{len(found)} of them",
                remedy=f"Transmissive(on={side!r}), Reflecting(...), Periodic(...); on='rest' is the rest",
            )
        if fixed and set(fixed) != {f.name for f in self.fields}:
            raise InputError(f"an inflow at {side!r} states every field", got=", ".join(sorted(fixed)))
        if isinstance(found[0], NoSlip) and "viscosity" not in self.law.constants:
            raise InputError("a fluid without friction slips along walls", remedy="Reflecting, or NavierStokes")
        return found[0]

    def __repr__(self) -> str:
        return f"Conservation({self.domain!r}, {type(self.law).__name__})"


def _names(on: Any) -> tuple[str, ...]:
    return (on,) if isinstance(on, str) else tuple(on)
