"""Passes over a traced program before XLA sees it: large constants become arguments, dead code and repeated code go."""

from dataclasses import dataclass
from typing import Any

import jax
from jax.extend.core import Literal, Primitive

from sciax.core.graph._count import nbytes

LARGE = 1 << 16
"""Bytes from which a closed-over array becomes an argument: XLA would else fold it, and what is computed from it."""


@dataclass(frozen=True)
class Pass:
    """What one pass did.

    Attributes:
        name: "lift constants", "dead code", "common subexpressions".
        before, after: number of equations (bytes of constants for the first).
    """

    name: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.name}: {self.before} -> {self.after}"


@dataclass
class Plan:
    """A program as a list of equations to run: what is left, and which variable stands for which."""

    eqns: list[Any]
    replaced: dict[Any, Any]


def dead(jaxpr: Any) -> list[Any]:
    """Equations whose results are needed, or which have effects."""
    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(v in needed for v in eqn.outvars):
            kept.append(eqn)
            needed.update(v for v in eqn.invars if not isinstance(v, Literal))
    return kept[::-1]


def common(eqns: list[Any]) -> Plan:
    """Equal equations on equal operands once."""
    seen: dict[Any, list[Any]] = {}
    replaced: dict[Any, Any] = {}
    kept = []
    for eqn in eqns:
        key = _key(eqn, replaced)
        if key is None:
            kept.append(eqn)
            continue
        first = seen.get(key)
        if first is None:
            seen[key] = eqn.outvars
            kept.append(eqn)
        else:
            replaced.update(zip(eqn.outvars, first))
    return Plan(kept, replaced)


def _key(eqn: Any, replaced: dict[Any, Any]) -> Any:
    if eqn.effects or any(hasattr(p, "eqns") or hasattr(p, "jaxpr") for p in eqn.params.values()):
        return None
    atoms = []
    for v in eqn.invars:
        if isinstance(v, Literal):
            atoms.append(("literal", str(v.val), str(v.aval)))
        else:
            atoms.append(id(replaced.get(v, v)))
    try:
        params = tuple(sorted((k, repr(v)) for k, v in eqn.params.items()))
    except Exception:
        return None
    return eqn.primitive.name, tuple(atoms), params, tuple(str(v.aval) for v in eqn.outvars)


def prepare(closed: Any) -> tuple[Any, list[Any], list[Pass]]:
    """A function `run(large constants, arguments)` for a closed jaxpr, the constants, and what the passes did."""
    jaxpr, consts = closed.jaxpr, list(closed.consts)
    large = [i for i, c in enumerate(consts) if hasattr(c, "dtype") and nbytes(jax.typeof(c)) >= LARGE]
    lifted = [consts[i] for i in large]
    total = sum(nbytes(jax.typeof(c)) for c in consts if hasattr(c, "dtype"))
    alive = dead(jaxpr)
    plan = common(alive)
    passes = [
        Pass("lift constants (bytes folded)", total, total - sum(nbytes(jax.typeof(c)) for c in lifted)),
        Pass("dead code (operations)", len(jaxpr.eqns), len(alive)),
        Pass("common subexpressions (operations)", len(alive), len(plan.eqns)),
    ]

    def run(tables: list[Any], args: list[Any]) -> list[Any]:
        values = list(consts)
        for i, table in zip(large, tables):
            values[i] = table
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, values)) | dict(zip(jaxpr.invars, args))

        def read(v: Any) -> Any:
            return v.val if isinstance(v, Literal) else env[plan.replaced.get(v, v)]

        for eqn in plan.eqns:
            out = bind(eqn.primitive, eqn.params, [read(v) for v in eqn.invars])
            env.update(zip(eqn.outvars, out))
        return [read(v) for v in jaxpr.outvars]

    return run, lifted, passes


def bind(primitive: Primitive, params: dict[str, Any], inputs: list[Any]) -> list[Any]:
    """Apply one equation's primitive."""
    bound = primitive.get_bind_params(params)
    subfuns, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair before jax 0.12
    out = primitive.bind(*subfuns, *inputs, **params)
    return list(out) if primitive.multiple_results else [out]
