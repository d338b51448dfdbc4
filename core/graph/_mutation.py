"""Python side effects that would silently happen once, while tracing: found when they happen, refused by name."""

import types
from collections import deque
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from sciax.core.graph._errors import GraphError
from sciax.core.graph._location import is_library_file
from sciax.core.graph._state import STATE, Region, current_trace
from sciax.core.graph._values import describe

_CONTAINERS = (list, dict, set, bytearray, deque)
_SKIPPED = (
    types.ModuleType,
    type,
    str,
    bytes,
    int,
    float,
    complex,
    types.BuiltinFunctionType,
    types.CodeType,
    jax.Array,
)
_LIMIT = 20000

MUTATORS = frozenset(
    "append extend insert pop popitem remove clear update add discard setdefault sort reverse appendleft popleft extendleft "
    "rotate __setitem__ __delitem__ __iadd__ difference_update intersection_update symmetric_difference_update".split()
)


def _is_object(value: Any) -> bool:
    """A mutable instance of a user's class."""
    return hasattr(value, "__dict__") and not isinstance(value, (*_SKIPPED, types.FunctionType, types.MethodType))


def reachable(roots: Iterable[Any], depth: int = 5) -> dict[int, Any]:
    """Mutable objects that can be reached from `roots` through containers, attributes and closures."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    frontier = list(roots)
    for _ in range(depth):
        following: list[Any] = []
        for value in frontier:
            if isinstance(value, _SKIPPED) or value is None or id(value) in seen:
                continue
            seen.add(id(value))
            if len(seen) > _LIMIT:
                return found
            if isinstance(value, (*_CONTAINERS, np.ndarray)):
                found[id(value)] = value
            if isinstance(value, dict):
                following.extend(value.values())
            elif isinstance(value, (list, tuple, set, frozenset, deque)):
                following.extend(value)
            elif isinstance(value, types.FunctionType):
                following.extend(cell_values(value))
            elif isinstance(value, types.MethodType):
                following.append(value.__self__)
            elif _is_object(value) and not is_library_file(getattr(_module_of(value), "__file__", None) or "<none>"):
                found[id(value)] = value
                following.extend(vars(value).values())
        frontier = following
    return found


def _module_of(value: Any) -> Any:
    import sys

    return sys.modules.get(type(value).__module__)


def cell_values(function: Any) -> list[Any]:
    values = []
    for cell in getattr(function, "__closure__", None) or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not yet assigned
            continue
    return values


def visible(*bodies: Any) -> dict[int, Any]:
    """The mutable objects that the body of a staged region can see from outside."""
    return reachable([v for body in bodies for v in cell_values(body)], depth=4)


def is_foreign(value: Any) -> bool:
    """Whether the object exists outside the graph function (a global, a closure's, an argument's)."""
    trace = current_trace()
    if trace.foreign_roots is None:
        trace.foreign_roots = reachable(trace.roots)
    if id(value) in trace.foreign_roots:
        return True
    for frame in STATE.frames:
        known = trace.foreign.get(id(frame.globals))
        if known is None:
            values = [v for k, v in frame.globals.items() if not k.startswith("__")]
            known = trace.foreign[id(frame.globals)] = reachable(values, depth=4)
        if id(value) in known:
            return True
    return False


def outer_region(value: Any) -> Region | None:
    """The innermost staged region in which the object is one of the outside's."""
    for region in reversed(STATE.regions):
        if id(value) in region.outer:
            return region
    return None


def refuse(what: str, value: Any, variable: str | None, why: str, remedy: str) -> None:
    raise GraphError(f"{what}: {why}", variable=variable, got=describe(value), remedy=remedy)


def guard(value: Any, what: str, variable: str | None) -> None:
    """Refuse a change of `value` that would happen once, while tracing."""
    if STATE.trace is None:
        return
    if is_foreign(value):
        refuse(
            what,
            value,
            variable,
            "the object lives outside the graph function, so it would change once, while tracing, and not on later calls",
            "return the new value, or keep a copy made inside the function",
        )
    if outer_region(value) is not None:
        refuse(
            what,
            value,
            variable,
            "it happens under a traced condition or in a traced loop, but would take place once, while tracing",
            "carry an array of fixed size and set its items (a[i] = v), or make the object inside the loop",
        )


def containers(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], Any]:
    """The lists and dicts inside a value, by their path."""
    if isinstance(value, dict):
        items: Iterable[Any] = value.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        return {}
    found = {} if isinstance(value, tuple) else {path: value}
    for key, inner in items:
        found |= containers(inner, (*path, key))
    return found


def kept_paths(start: dict[tuple[Any, ...], Any], end: dict[tuple[Any, ...], Any]) -> set[tuple[Any, ...]]:
    """Paths of containers that a body changed in place, if at all, rather than replaced."""
    return {path for path, value in end.items() if start.get(path) is value}


def keep_identity(before: Any, after: Any, kept: set[tuple[Any, ...]], path: tuple[Any, ...] = ()) -> Any:
    """After a staged region: a list or dict that the region changed in place stays the same object, for its aliases."""
    if before is after or type(before) is not type(after) or path not in kept:
        return after
    if isinstance(before, dict):
        new = {k: keep_identity(before[k], v, kept, (*path, k)) if k in before else v for k, v in after.items()}
        before.clear()
        before.update(new)
        return before
    if isinstance(before, list):
        head = [keep_identity(b, a, kept, (*path, i)) for i, (b, a) in enumerate(zip(before, after))]
        before[:] = head + after[len(head) :]
        return before
    return after
