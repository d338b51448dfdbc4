"""The `@graph` decorator: convert, compile, check, and explain every compilation."""

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, ParamSpec, TypeVar, overload

import jax
import numpy as np

from sciax.core.errors import InputError, SciaxError, did_you_mean
from sciax.core.graph import _checks
from sciax.core.graph._calls import converted, is_converted
from sciax.core.graph._errors import GraphError, StagedRaise
from sciax.core.graph._location import is_library_file, traceback_location
from sciax.core.graph._mutation import cell_values
from sciax.core.graph._signature import Compilation, Signature, Static, explain, static_token
from sciax.core.graph._state import STATE, Options, Trace, tracing
from sciax.core.graph._values import is_tracer

P = ParamSpec("P")
R = TypeVar("R")

_DYNAMIC = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)


@contextmanager
def eager() -> Iterator[None]:
    """Inside, graph functions run as the Python they were written in, line by line, uncompiled: breakpoints and pdb work."""
    STATE.eager += 1
    try:
        yield
    finally:
        STATE.eager -= 1


class GraphFunction(Generic[P, R]):
    """A compiled function; see `graph`.

    Attributes:
        compilations: one entry for each time it was compiled, with the reasons.
    """

    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        *,
        static: tuple[str | int, ...] = (),
        max_steps: int | None = None,
        reverse: str = "checkpointed",
        buckets: Mapping[str, Any] | None = None,
        donate: tuple[str, ...] = (),
    ):
        if not callable(function):
            raise InputError("@graph needs a function", got=type(function).__name__)
        if max_steps is not None and (not isinstance(max_steps, int) or isinstance(max_steps, bool) or max_steps < 1):
            raise InputError("max_steps must be a positive Python integer", got=max_steps)
        if reverse not in ("checkpointed", "bounded"):
            raise InputError(
                f"unknown loop kind {reverse!r}", remedy=did_you_mean(reverse, ("checkpointed", "bounded"))
            )
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & (
            inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
        ):
            raise GraphError(
                f"{code.co_name} is a generator or a coroutine, which cannot be a graph function",
                where=(code.co_filename, code.co_firstlineno),
                remedy="return a list, or an array",
            )
        functools.update_wrapper(self, function)
        inner = function.func if isinstance(function, functools.partial) else function
        self.__name__ = getattr(inner, "__name__", type(inner).__name__)
        self.function = function
        self.options = Options(max_steps, reverse)
        self.compilations: list[Compilation] = []
        self._watched: list[tuple[str, Callable[[], Any], Any]] = []
        self._version = 0
        self._reasons: list[str] = []
        self._last: Trace | None = None
        self._methods: weakref.WeakKeyDictionary[Any, GraphFunction] = weakref.WeakKeyDictionary()
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = None
        self._static = self._static_names(static)
        self._buckets = None
        if buckets is not None:
            from sciax.core.graph._buckets import Buckets

            self._buckets = Buckets(buckets, self._signature, self.__name__)
            self._buckets.run_untraced = lambda args, kwargs: self._traced(args, kwargs)

        def program(static: Static, dynamic: list[Any]) -> Any:
            return self._run(static, dynamic)

        program.__name__ = program.__qualname__ = self.__name__  # what profiles and XLA call it
        self._jitted: Any = jax.jit(program, static_argnums=0)

    def _static_names(self, static: Any) -> frozenset[str]:
        static = (static,) if isinstance(static, (str, int)) else tuple(static)
        names = list(self._signature.parameters) if self._signature else []
        result = set()
        for item in static:
            if isinstance(item, int) and -len(names) <= item < len(names):
                item = names[item]
            if item not in names:
                raise InputError(
                    f"static={item!r} is no argument of {self.__name__}", remedy=did_you_mean(str(item), names)
                )
            result.add(item)
        return frozenset(result)

    # -- calling
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if STATE.eager:
            return self._eagerly(args, kwargs)
        if STATE.trace is not None and STATE.frames:
            return self._inline(args, kwargs)  # called from another graph function: part of its graph
        if self._buckets is not None:
            return self._buckets.call(self._compiled, args, kwargs)
        return self._compiled(args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _eagerly(self, args: tuple, kwargs: dict) -> Any:
        from sciax.core.graph._eager import eager_twin

        def arrays(x: Any) -> Any:
            return jax.numpy.asarray(x) if isinstance(x, np.ndarray) and x.dtype.kind in "biufc" else x

        args, kwargs = jax.tree.map(arrays, (args, kwargs))
        return eager_twin(self.function)(*args, **kwargs)

    def _inline(self, args: tuple, kwargs: dict) -> Any:
        trace = STATE.trace
        assert trace is not None
        saved = trace.options
        if self.options.max_steps is not None:
            trace.options = self.options
        try:
            return self._target()(*args, **kwargs)
        finally:
            trace.options = saved

    def _target(self) -> Callable[..., Any]:
        function = self.function
        if isinstance(function, types.MethodType) and type(function.__func__) is types.FunctionType:
            return types.MethodType(converted(function.__func__) or function.__func__, function.__self__)
        if type(function) is types.FunctionType:
            return converted(function) or function
        method = getattr(type(function), "__call__", None)  # noqa: B004
        if type(method) is types.FunctionType:
            return types.MethodType(converted(method) or method, function)
        return function

    def _split(self, args: tuple, kwargs: dict) -> tuple[Static, list[Any]]:
        """Static part (structure, non-array values) and the list of arrays."""
        if self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=lambda v: v is None)
        fixed_positions: set[int] = set()
        if self._static and self._signature is not None:
            bound = self._signature.bind(*args, **kwargs)
            marked = {k: (k in self._static) for k in bound.arguments}
            flags = []
            for k, v in bound.arguments.items():
                parameter = self._signature.parameters[k]
                del parameter
                flags += [marked[k]] * len(jax.tree.leaves(v, is_leaf=lambda u: u is None))
            order = self._positions(bound)
            fixed_positions = {order[i] for i, flag in enumerate(flags) if flag}
        dynamic: list[Any] = []
        statics: list[Any] = []
        for i, leaf in enumerate(leaves):
            if (
                isinstance(leaf, _DYNAMIC)
                and i not in fixed_positions
                and not (isinstance(leaf, np.ndarray) and leaf.dtype.kind not in "biufcV")
            ):
                dynamic.append(leaf)
                statics.append(_ARRAY)
            else:
                if is_tracer(leaf):
                    raise InputError(
                        f"{self.__name__}: a static argument is traced",
                        got=str(leaf),
                        remedy="pass a Python value, or take the argument off static=",
                    )
                statics.append(static_token(leaf))
        return Static(structure, tuple(statics), self._version), dynamic

    def _positions(self, bound: inspect.BoundArguments) -> list[int]:
        """Leaf numbers in flatten order of (args, kwargs), by argument: keyword arguments are sorted by tree flattening."""
        positional, keyword = len(bound.args), sorted(bound.kwargs)
        sizes: dict[str, int] = {}
        names = list(bound.arguments)
        for k, v in bound.arguments.items():
            sizes[k] = len(jax.tree.leaves(v, is_leaf=lambda u: u is None))
        starts: dict[str, int] = {}
        at = 0
        for k in names:
            if (
                k in bound.kwargs
                and self._signature
                and self._signature.parameters[k].kind is inspect.Parameter.KEYWORD_ONLY
            ):
                continue
            starts[k] = at
            at += sizes[k]
        for k in keyword:
            if k not in starts and k in sizes:
                starts[k] = at
                at += sizes[k]
        del positional
        return [starts[k] + j for k in names for j in range(sizes[k])]

    def _compiled(self, args: tuple, kwargs: dict) -> Any:
        self._check_watched()
        static, dynamic = self._split(args, kwargs)
        try:
            result = self._jitted(static, dynamic)
            if self._last is not None and self._last.checks and not any(is_tracer(x) for x in jax.tree.leaves(result)):
                jax.block_until_ready(result)
                jax.effects_barrier()
            elif self._last is not None and self._last.prints:
                jax.effects_barrier()
        except StagedRaise as signal:
            raise signal.error from None
        except GraphError:
            raise
        except jax.errors.JaxRuntimeError as error:
            _drain()
            original = _checks.translate(error)
            if original is None:
                raise
            raise original from None
        except RecursionError as error:
            raise GraphError(
                f"{self.__name__}: the recursion has no end while tracing; its depth probably depends on a traced value",
                where=traceback_location(error),
                remedy="write it as a loop",
            ) from error
        except jax.errors.ConcretizationTypeError as error:
            raise _explain_concretization(error) from error
        except (TypeError, IndexError) as error:
            if isinstance(error, SciaxError) or "Tracer" not in str(error):
                raise
            raise _explain_concretization(error) from error
        except jax.errors.UnexpectedTracerError as error:
            raise GraphError(
                "a traced value escaped from a branch or loop through a Python side effect",
                where=traceback_location(error),
                remedy="return the value, or carry it as a variable of the loop",
            ) from error
        return result

    def _run(self, static: Static, dynamic: list[Any]) -> Any:
        """What jax.jit traces: runs once per signature."""
        leaves, stream = [], iter(dynamic)
        for token in static.values:
            leaves.append(next(stream) if token is _ARRAY else token.value)
        args, kwargs = jax.tree.unflatten(static.structure, leaves)
        self._record(args, kwargs, static, dynamic)
        trace = Trace(options=self.options)
        trace.roots = [token.value for token in static.values if token is not _ARRAY]
        with tracing(trace):
            target = self._target()
            result = target(*args, **kwargs)
        after = jax.tree.leaves((args, kwargs), is_leaf=lambda v: v is None)
        if len(after) != len(leaves) or any(a is not b for a, b in zip(after, leaves)):
            raise GraphError(
                f"{self.__name__} changes a list or dict that it was given; the caller's object would not see the change",
                where=self._where(),
                variable=self._changed(args, kwargs, leaves),
                remedy="copy it first (x = dict(x), x = list(x)) and return the copy",
            )
        self._last = trace
        self._watch(trace)
        return _plain(result, self._where())

    def _traced(self, args: tuple, kwargs: dict) -> Any:
        """The converted function under a trace that is already going on, without counting as a compilation."""
        with tracing(Trace(options=self.options)):
            return self._target()(*args, **kwargs)

    def _where(self) -> tuple[str, int] | None:
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return (code.co_filename, code.co_firstlineno) if code is not None else None

    def _changed(self, args: tuple, kwargs: dict, before: list[Any]) -> str | None:
        names = list(self._signature.parameters) if self._signature else []
        known = {id(v) for v in before}
        for name, value in [*zip(names, args), *kwargs.items()]:
            if any(id(v) not in known for v in jax.tree.leaves(value, is_leaf=lambda v: v is None)):
                return name
        return None

    # -- explaining
    def _record(self, args: tuple, kwargs: dict, static: Static, dynamic: list[Any]) -> None:
        names = list(self._signature.parameters) if self._signature else []
        signature = Signature.of(names, args, kwargs, static)
        known = [c.signature for c in self.compilations]
        reasons = tuple(self._reasons) or explain(signature, known)
        self._reasons = []
        self.compilations.append(Compilation(len(known) + 1, signature, reasons))
        if len(self.compilations) in (16, 128):
            import warnings

            warnings.warn(
                f"{self.__name__} was compiled {len(self.compilations)} times; the last because {'; '.join(reasons)}. "
                'If a size varies, @graph(buckets={"<argument>": "pow2"}) compiles once per power of two',
                stacklevel=4,
            )

    def explain(self) -> str:
        """One line for each compilation, with its reasons."""
        if not self.compilations:
            return f"{self.__name__}: not compiled yet"
        return "\n".join(f"{self.__name__} #{c.number}: {'; '.join(c.reasons)}" for c in self.compilations)

    def _watch(self, trace: Trace) -> None:
        """Remember the globals and closure variables that the trace read: a change of one compiles again."""
        watched: dict[tuple[int, str], tuple[str, Callable[[], Any], Any]] = {}
        for function in trace.functions.values():
            scope = function.__globals__
            for name in _global_names(function.__code__):
                if name in scope and _watchable(scope[name]):
                    watched[(id(scope), name)] = (f"global {name!r}", functools.partial(scope.get, name), scope[name])
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
                values = cell_values(types.SimpleNamespace(__closure__=(cell,)))
                if values and _watchable(values[0]):
                    watched[(id(cell), name)] = (
                        f"closure variable {name!r}",
                        functools.partial(getattr, cell, "cell_contents", None),
                        values[0],
                    )
        self._watched = list(watched.values())

    def _check_watched(self) -> None:
        for i, (what, read, seen) in enumerate(self._watched):
            now = read()
            if now is seen:
                continue
            self._watched[i] = (what, read, now)
            if type(now) is type(seen) and isinstance(now, (int, float, complex, str, bool)) and now == seen:
                continue
            self._version += 1
            self._reasons.append(f"{what} changed from {_short(seen)} to {_short(now)}")

    # -- inspection
    def lower(self, *args: Any, **kwargs: Any):
        """jax.jit's `lower` for these arguments (avals are allowed)."""
        static, dynamic = self._split(args, kwargs)
        return self._jitted.lower(static, dynamic)

    def clear(self) -> None:
        """Forget all compiled programs."""
        self._jitted.clear_cache()
        self.compilations.clear()

    def __repr__(self) -> str:
        return f"<graph {self.__name__}, compiled {len(self.compilations)}x>"


_ARRAY = static_token(...)


def _drain() -> None:
    """Wait for callbacks of an aborted program, so that their errors do not surface later."""
    try:
        jax.effects_barrier()
    except Exception:
        return


def _plain(result: Any, where: tuple[str, int] | None) -> Any:
    """The result as arrays and Python constants; what cannot leave a compiled program is refused."""
    from malt.operators.variables import Undefined

    from sciax.core.graph._iterables import Columns, TracedRange
    from sciax.core.graph._text import LazyText

    def leaf(value: Any) -> Any:
        if isinstance(value, Undefined):
            value.read()
        if value is None or isinstance(value, _DYNAMIC):
            return value
        if isinstance(value, (Columns, TracedRange, LazyText)):
            raise GraphError(f"a {type(value).__name__} cannot be returned", where=where, remedy="return arrays")
        raise GraphError(
            f"a graph function returns {type(value).__name__}, which a compiled program cannot",
            where=where,
            got=repr(value)[:80],
            expected="arrays, numbers, None and containers of them",
            remedy="return it from the code around the graph function",
        )

    return jax.tree.map(leaf, result)


def _explain_concretization(error: Exception) -> GraphError:
    where = traceback_location(error)
    if isinstance(error, jax.errors.TracerBoolConversionError):
        return GraphError(
            "a traced value decides a branch in code that is not converted (a lambda, code without a source file, a generator, "
            "a condition inside a comprehension, or a library's own code)",
            where=where,
            got=str(error).splitlines()[0],
            remedy="move the branch into a `def` in a source file, or use jnp.where",
        )
    first = str(error).splitlines()[0]
    return GraphError(
        "a value that is only known at run time is needed while tracing",
        where=where,
        got=first,
        remedy='mark the argument as static: @graph(static=("name",)), or keep shapes and Python indices free of traced values',
    )


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _watchable(value: Any) -> bool:
    """Immutable or identity-compared things whose replacement changes what a trace means."""
    if isinstance(value, types.ModuleType):
        return False
    if isinstance(value, type):
        return not is_library_file(getattr(inspect.getmodule(value), "__file__", None) or "<none>")
    return True


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{type(value).__name__}"


@overload
def graph(function: Callable[P, R], /) -> GraphFunction[P, R]: ...
@overload
def graph(
    *,
    static: str | int | tuple[str | int, ...] = (),
    max_steps: int | None = None,
    reverse: str = "checkpointed",
    buckets: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], GraphFunction[P, R]]: ...
def graph(function: Any = None, /, **options: Any) -> Any:
    """Compile ordinary Python, with `if`, `while` and `for` on arrays, into one graph.

    The function's source is rewritten so that control flow on traced values becomes `lax.cond`, `lax.scan` and
    `lax.while_loop`; user functions that it calls are rewritten too, libraries are not. What cannot be expressed is refused
    with the line, the variable and a way out (`GraphError`).

    Args:
        static: names (or positions) of arguments that are Python values known when compiling. Strings, None and functions
            are static anyway; numbers and arrays are traced unless named here.
        max_steps: bound on data-dependent loops, which makes them differentiable in reverse mode. `loop_bound` does the same
            for one loop.
        reverse: how bounded loops are differentiated: "checkpointed", or "bounded" for forward over reverse.
        buckets: argument name -> "pow2", or a sequence of sizes: the leading axis is padded to the next size and the rest is
            masked, so that few programs serve all sizes. See `docs/graph.md`.

    Returns:
        A `GraphFunction`, called like the original.
    """
    if function is None:
        return functools.partial(_make, options)
    return _make(options, function)


def _make(options: dict[str, Any], function: Callable[..., Any]) -> GraphFunction:
    if isinstance(function, GraphFunction):
        return function
    if isinstance(function, (staticmethod, classmethod)):
        raise InputError("put @staticmethod or @classmethod outside @graph", got=type(function).__name__)
    return GraphFunction(function, **options)


__all__ = ["GraphFunction", "eager", "graph", "is_converted"]
