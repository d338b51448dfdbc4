"""Calls from converted code: user functions are converted in turn, libraries are called as they are, some builtins are ours."""

import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciax.core.graph import _iterables, _mutation
from sciax.core.graph._errors import GraphError, MissingReturnError
from sciax.core.graph._location import is_library_code, user_location
from sciax.core.graph._state import STATE, Frame, current_trace
from sciax.core.graph._text import LazyText, print_
from sciax.core.graph._transpile import NoSourceError, convert
from sciax.core.graph._values import describe, is_tracer

_DEEPEST = 24


class FunctionScope:
    """One activation of a converted function."""

    callopts = None

    def __init__(self, function_name: str, scope_name: str, options: Any):
        self.name = function_name

    def __enter__(self) -> "FunctionScope":
        caller = sys._getframe(1)
        code, depth = caller.f_code, len(STATE.regions)
        nested = {f.regions for f in STATE.frames if f.code is code}
        if len(nested) > _DEEPEST and depth > max(nested):
            raise GraphError(
                f"{self.name!r} calls itself under a traced condition, {len(nested)} levels deep: "
                "the depth depends on a traced value",
                where=user_location(caller.f_back) or (code.co_filename, caller.f_lineno),
                remedy="write it as a loop; recursion is fine where its depth follows from Python numbers",
            )
        STATE.frames.append(Frame(code, caller.f_globals, depth, (code.co_filename, code.co_firstlineno)))
        self.depth = len(STATE.frames)
        return self

    def __exit__(self, *exc: Any) -> None:
        del STATE.frames[self.depth - 1 :]

    def ret(self, value: Any, did_return: Any) -> Any:
        from malt.operators.variables import UndefinedReturnValue

        if isinstance(value, UndefinedReturnValue):
            return None
        if is_tracer(did_return) and value is not None:
            from sciax.core.graph._checks import check

            file, line = STATE.frames[-1].where
            text = f"{file}:{line}: {self.name}() ended without `return` on the path taken at run time"
            check(
                jnp.logical_not(did_return),
                lambda: MissingReturnError(
                    text, remedy="return a value on every path (in Python this call would give None)"
                ),
            )
        return value


class _Options:
    """Stands in for malt's conversion options in generated code."""

    def __init__(self, **_: Any):
        pass


def with_function_scope(thunk: Callable[[Any], Any], scope_name: str, options: Any) -> Any:
    with FunctionScope("<lambda>", scope_name, options) as scope:
        return thunk(scope)


def autograph_artifact(function: Any) -> Any:
    """Mark a function that is made by converted code: it is converted already."""
    function.ag__converted = True
    return function


def is_converted(function: Any) -> bool:
    return getattr(function, "ag__converted", False) or "ag__" in getattr(
        getattr(function, "__code__", None), "co_freevars", ()
    )


def converted(function: types.FunctionType) -> Callable[..., Any] | None:
    """The staged twin of a user function, or None where it is to be called as it is."""
    if is_converted(function) or is_library_code(function.__code__):
        return None
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    try:
        twin = convert(function, runtime())
    except NoSourceError:
        return None
    autograph_artifact(twin)
    trace = current_trace()
    if id(code) not in trace.functions:
        trace.functions[id(code)] = function
        trace.roots.extend(_mutation.cell_values(function))
        trace.foreign_roots = None
    return twin


_HIGHER_ORDER = ("jax", "equinox", "optax", "functools", "builtins", "lineax", "optimistix", "diffrax", "sciax")


def _convert_arguments(f: Any, args: tuple, kwargs: dict | None) -> tuple[tuple, dict | None]:
    """User functions handed to jax.grad, jax.vmap, lax.scan, map, ... are converted too."""
    module = (getattr(f, "__module__", None) or "").partition(".")[0]
    if module not in _HIGHER_ORDER:
        return args, kwargs

    def twin(value: Any) -> Any:
        if type(value) is types.FunctionType:
            new = converted(value)
            if new is not None:
                return functools.wraps(value)(new)
        elif type(value) is types.MethodType and type(value.__func__) is types.FunctionType:
            new = converted(value.__func__)
            if new is not None:
                return types.MethodType(new, value.__self__)
        return value

    return tuple(twin(a) for a in args), {k: twin(v) for k, v in kwargs.items()} if kwargs else kwargs


def converted_call(f: Any, args: tuple, kwargs: dict | None, scope: Any = None, options: Any = None) -> Any:
    """`f(*args, **kwargs)` from converted code."""
    if isinstance(f, functools.partial):
        merged = {**f.keywords, **(kwargs or {})}
        return converted_call(f.func, f.args + tuple(args), merged, scope)
    if type(f) in (types.BuiltinFunctionType, type) or isinstance(f, type):
        replacement = _BUILTINS.get(f) if _hashable(f) else None
        if replacement is not None:
            return replacement(*args, **(kwargs or {}))
        owner = getattr(f, "__self__", None)
        if isinstance(owner, _mutation._CONTAINERS) and f.__name__ in _mutation.MUTATORS:
            _mutation.guard(owner, f"{type(owner).__name__}.{f.__name__}()", None)
        elif f is setattr:
            _mutation.guard(args[0], f"setattr({args[1]!r})", str(args[1]))
    elif isinstance(f, types.MethodType) and type(f.__func__) is types.FunctionType:
        twin = converted(f.__func__)
        if twin is not None:
            return twin(f.__self__, *args, **(kwargs or {}))
    elif type(f) is types.FunctionType:
        twin = converted(f)
        if twin is not None:
            return twin(*args, **(kwargs or {}))
    else:
        method = getattr(type(f), "__call__", None)  # noqa: B004
        if type(method) is types.FunctionType:
            twin = converted(method)
            if twin is not None:
                return twin(f, *args, **(kwargs or {}))
    args, kwargs = _convert_arguments(f, args, kwargs)
    return f(*args, **kwargs) if kwargs else f(*args)


def _hashable(f: Any) -> bool:
    try:
        hash(f)
    except TypeError:
        return False
    return True


def _extreme(numpy_name: str, builtin: Callable[..., Any]):
    def choose(*args: Any, **kwargs: Any) -> Any:
        items = list(args[0]) if len(args) == 1 and not kwargs and not hasattr(args[0], "dtype") else list(args)
        if (
            len(args) == 1
            and isinstance(args[0], jax.Array)
            and not kwargs
            and args[0].ndim == 1
            and is_tracer(args[0])
        ):
            return getattr(jnp, numpy_name[:3])(args[0])
        if kwargs or not any(is_tracer(x) for x in items):
            return builtin(*args, **kwargs)
        if any(getattr(x, "ndim", 0) for x in items):
            raise GraphError(
                f"{builtin.__name__}() compares whole arrays",
                got=", ".join(map(describe, items)),
                remedy=f"use jnp.{numpy_name}",
            )
        return functools.reduce(getattr(jnp, numpy_name), items)

    return choose


def _all_any(builtin: Callable[..., Any], combine: Callable[..., Any]):
    def reduce(items: Any) -> Any:
        if isinstance(items, jax.Array) and is_tracer(items):
            return getattr(jnp, builtin.__name__)(items)
        values = list(items)
        if not any(is_tracer(v) for v in values):
            return builtin(values)
        return functools.reduce(combine, [jnp.asarray(v) != 0 for v in values])

    return reduce


def _number(builtin: type, what: str):
    def to_python(*args: Any, **kwargs: Any) -> Any:
        if args and is_tracer(args[0]):
            value = args[0]
            if value.size != 1:
                raise TypeError("only size-1 arrays can be converted to Python scalars")
            value = jnp.reshape(value, ())
            if builtin is bool:
                return value != 0
            if builtin is int:
                return value.astype(int) if not jnp.issubdtype(value.dtype, jnp.integer) else value
            return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(float)
        return builtin(*args, **kwargs)

    return to_python


def _sorted(items: Any, **kwargs: Any) -> Any:
    values = list(items)
    if any(is_tracer(v) for v in values):
        raise GraphError("sorted() orders Python objects; the values are traced", remedy="use jnp.sort")
    return sorted(values, **kwargs)


def _isinstance(value: Any, kinds: Any) -> bool:
    return isinstance(value, kinds)


_BUILTINS: dict[Any, Callable[..., Any]] = {
    range: _iterables.range_,
    enumerate: _iterables.enumerate_,
    zip: _iterables.zip_,
    reversed: _iterables.reversed_,
    print: print_,
    max: _extreme("maximum", max),
    min: _extreme("minimum", min),
    all: _all_any(all, jnp.logical_and),
    any: _all_any(any, jnp.logical_or),
    int: _number(int, "int"),
    float: _number(float, "float"),
    bool: _number(bool, "bool"),
    sorted: _sorted,
}


@functools.cache
def runtime() -> types.SimpleNamespace:
    """The namespace that generated code calls `ag__`."""
    from malt.operators.variables import Undefined, UndefinedReturnValue, ld, ldu

    from sciax.core.graph import _branch, _items, _loop, _text
    from sciax.core.graph._eager import eager_twin

    class Feature:
        def __getattr__(self, name: str) -> None:
            return None

    return types.SimpleNamespace(
        FunctionScope=FunctionScope,
        ConversionOptions=_Options,
        Feature=Feature(),
        STD=None,
        with_function_scope=with_function_scope,
        autograph_artifact=autograph_artifact,
        converted_call=converted_call,
        Undefined=Undefined,
        UndefinedReturnValue=UndefinedReturnValue,
        ld=ld,
        ldu=ldu,
        keep=ldu,
        if_stmt=_branch.if_stmt,
        if_exp=_branch.if_exp,
        and_=_branch.and_,
        or_=_branch.or_,
        not_=_branch.not_,
        while_stmt=_loop.while_stmt,
        for_stmt=_loop.for_stmt,
        set_item=_items.set_item,
        set_item_outside=_items.set_item_outside,
        store_attribute=_items.store_attribute,
        check_attribute=_items.check_attribute,
        update=_items.update,
        list_append=_items.list_append,
        unused_after=_items.unused_after,
        assert_stmt=_items.assert_stmt,
        mark_raise=_items.mark_raise,
        try_scope=_items.try_scope,
        format_string=_text.format_string,
        eager_twin=eager_twin,
    )


__all__ = ["LazyText", "converted", "converted_call", "runtime", "user_location"]
