"""Item and attribute assignment, append, assert and raise in converted code."""

import operator
from typing import Any

import jax
import numpy as np

from sciax.core.graph import _mutation
from sciax.core.graph._branch import truth
from sciax.core.graph._checks import check, path_condition
from sciax.core.graph._errors import GraphError, StagedRaise
from sciax.core.graph._location import user_location
from sciax.core.graph._state import STATE
from sciax.core.graph._values import describe, is_tracer, is_undefined


def set_item(target: Any, key: Any, value: Any, name: str) -> Any:
    """`target[key] = value`; an array gives a new array, a container is changed in place."""
    if is_undefined(target):
        target.read()
    if isinstance(target, jax.Array):
        if not is_tracer(target) and STATE.regions and _mutation.outer_region(target):
            pass
        return target.at[key].set(_cast(value, target, name))
    if isinstance(target, np.ndarray) and _needs_array(key, value):
        raise GraphError(
            f"a traced value is stored into the NumPy array {name!r}",
            variable=name,
            got=describe(target),
            remedy="make it with jax.numpy, whose arrays can hold traced values",
        )
    if isinstance(target, (list, dict)) and any(is_tracer(k) for k in jax.tree.leaves(key)):
        raise GraphError(
            f"{name}[...] is a Python {type(target).__name__}, and its index is traced",
            variable=name,
            remedy="use an array (jnp.stack the items), which can be indexed at run time",
        )
    _mutation.guard(target, f"{name}[...] = ...", name)
    target[key] = value
    return target


def _needs_array(*values: Any) -> bool:
    return any(is_tracer(v) for v in jax.tree.leaves(values))


def _cast(value: Any, target: jax.Array, name: str) -> Any:
    """NumPy's rule for item assignment: the array keeps its dtype; what would lose its imaginary part is refused."""
    if hasattr(value, "dtype"):
        kinds = np.dtype(target.dtype).kind if not jax.numpy.issubdtype(target.dtype, jax.dtypes.extended) else ""
        if kinds in "biuf" and np.dtype(value.dtype).kind == "c":
            raise GraphError(
                f"a complex value is stored into the real array {name!r}", variable=name, got=describe(value)
            )
        return value.astype(target.dtype) if value.dtype != target.dtype else value
    return value


def set_item_outside(target: Any, key: Any, value: Any, name: str) -> None:
    """Item assignment to something that is not a variable of the function."""
    if isinstance(target, (jax.Array, np.ndarray)):
        raise GraphError(
            f"{name}[...] = ... changes an array that is not a variable of this function",
            variable=name,
            got=describe(target),
            remedy="make a local copy first, and return it",
        )
    set_item(target, key, value, name)


def check_attribute(owner: Any, attribute: str, text: str) -> None:
    """Before `owner.attribute = value`."""
    if STATE.trace is None:
        return
    if _mutation.is_foreign(owner):
        _mutation.guard(owner, f"{text} = ...", text)
    region = _mutation.outer_region(owner)
    if region is None:
        return
    # A branch or loop of this very function carries the attribute as one of its variables; one further out does not.
    depth = STATE.frames[-1].regions if STATE.frames else 0
    inside = STATE.regions[depth:]
    if all(text in r.names for r in inside) and not any(id(owner) in r.outer for r in STATE.regions[:depth]):
        return
    _mutation.guard(owner, f"{text} = ...", text)


def store_attribute(owner: Any, attribute: str, value: Any, text: str) -> None:
    """After `owner.attribute[key] = ...` made `value`: nothing to do where the attribute was changed in place."""
    if getattr(owner, attribute) is value:
        return
    _mutation.guard(owner, f"{text}[...] = ...", text)
    setattr(owner, attribute, value)


_UPDATES = {
    "Add": operator.iadd,
    "Sub": operator.isub,
    "Mult": operator.imul,
    "Div": operator.itruediv,
    "FloorDiv": operator.ifloordiv,
    "Mod": operator.imod,
    "Pow": operator.ipow,
    "MatMult": operator.imatmul,
    "BitAnd": operator.iand,
    "BitOr": operator.ior,
    "BitXor": operator.ixor,
    "LShift": operator.ilshift,
    "RShift": operator.irshift,
}


def update(op: str, old: Any, value: Any) -> Any:
    """`old op= value`."""
    if isinstance(old, _mutation._CONTAINERS):
        _mutation.guard(old, "an in-place operator", None)
    return _UPDATES[op](old, value)


def list_append(target: Any, value: Any, name: str) -> Any:
    """`target.append(value)`."""
    if is_undefined(target):
        target.read()
    if isinstance(target, list):
        _mutation.guard(target, f"{name}.append()", name)
    target.append(value)
    return target


def unused_after(names: tuple[str, ...]) -> None:
    """Loop variables that are kept for closures only: the loop may well not run."""
    if STATE.frames:
        STATE.frames[-1].unused_after.update(names)


def assert_stmt(test: Any, message: Any, text: str) -> None:
    """`assert test, message`, checked at run time where the test is traced or the place is."""
    if is_undefined(test):
        test.read()
    if not is_tracer(test) and test:
        return
    content = message()
    error = AssertionError() if content is None else AssertionError(content)
    if content is not None and not isinstance(content, str):
        error = AssertionError(str(content))
    if not is_tracer(test):
        if not STATE.regions:
            raise error
        mark_raise(error)
        raise StagedRaise(error)
    check(jax.numpy.logical_not(truth(test, "assert")), lambda: error)


def mark_raise(error: Any) -> Any:
    """What `raise error` raises: under a traced condition, the signal that this branch ends in `error`."""
    if isinstance(error, type):
        error = error()
    if not STATE.regions:
        return error
    if STATE.tries:
        if STATE.tries[-1] < len(STATE.regions):
            raise GraphError(
                f"`raise {type(error).__name__}` on a traced condition inside a `try`: the handler is only known at run time",
                where=user_location(),
                remedy="move the raise out of the try block, or return a flag",
            )
        # The handler is in the same branch and may catch it while tracing. If it does not, the branch ends in it.
        error._sciax_user_raise = True
        return error
    error.args = tuple(str(a) if not isinstance(a, (str, int, float)) else a for a in error.args)
    return StagedRaise(error)


class try_scope:
    """The body of a `try` that has handlers."""

    def __enter__(self) -> None:
        STATE.tries.append(len(STATE.regions))
        self.depth = len(STATE.tries)

    def __exit__(self, *exc: Any) -> None:
        del STATE.tries[self.depth - 1 :]


__all__ = ["path_condition"]
