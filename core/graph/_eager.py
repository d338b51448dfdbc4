"""The uncompiled twin of a graph function: its own lines, with only the item assignment that JAX arrays lack."""

import ast
import types
import weakref
from collections.abc import Callable
from typing import Any

from sciax.core.graph import _desugar
from sciax.core.graph._calls import runtime
from sciax.core.graph._location import is_library_code
from sciax.core.graph._transpile import NoSourceError, _class_name, _parse, instantiate, link

_TWINS: "weakref.WeakKeyDictionary[types.CodeType, Any]" = weakref.WeakKeyDictionary()


class _ItemsOnly(_desugar.Desugar):
    """Rewrites `a[i] = v`, and calls of helpers that do such a thing; leaves every other statement as it is written."""

    helpers: frozenset[str] = frozenset()

    def visit_Call(self, node: ast.Call):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.helpers:
            node.func = _desugar.place(_desugar.call("eager_twin", _desugar.name(node.func.id)), node)
        return node

    def store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Attribute):
            return [_desugar.assign(target, value)]
        return super().store(target, value)


def _as_written(self: ast.NodeTransformer, node: ast.AST) -> ast.AST:
    return self.generic_visit(node)


for _kind in (
    "Global Nonlocal While For If Match NamedExpr Expr Assert Raise Try JoinedStr ClassDef AsyncFunctionDef AsyncFor TryStar "
    "Yield YieldFrom Await"
).split():
    setattr(_ItemsOnly, f"visit_{_kind}", _as_written)


def eager_twin(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` itself, or, where it assigns to items, a twin whose arrays accept that."""
    if isinstance(function, types.MethodType):
        twin = eager_twin(function.__func__)
        return types.MethodType(twin, function.__self__) if twin is not function.__func__ else function
    if type(function) is not types.FunctionType or is_library_code(function.__code__):
        return function
    code = function.__code__
    built = _TWINS.get(code)
    if built is None:
        built = _TWINS[code] = _build(function) or ()
    if not built:
        return function
    return instantiate(function, built, runtime())


def _called(function: types.FunctionType, node: ast.AST) -> dict[str, types.FunctionType]:
    """User functions that a function calls by a plain name."""
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    names = {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    found = {name: scope[name] for name in names if type(scope.get(name)) is types.FunctionType}
    return {name: f for name, f in found.items() if not is_library_code(f.__code__)}


def _stores(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in ast.walk(node))


def _needs_twin(function: types.FunctionType, seen: set[types.CodeType]) -> bool:
    if function.__code__ in seen:
        return False
    seen.add(function.__code__)
    try:
        node, _, _ = _parse(function)
    except NoSourceError:
        return False
    return _stores(node) or any(_needs_twin(f, seen) for f in _called(function, node).values())


def _build(function: types.FunctionType):
    try:
        node, filename, _ = _parse(function)
    except NoSourceError:
        return None
    helpers = frozenset(name for name, f in _called(function, node).items() if _needs_twin(f, {function.__code__}))
    if not _stores(node) and not helpers:
        return None
    node.decorator_list = []
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [ast.Constant(None) if d is not None else None for d in node.args.kw_defaults]
    rewriter = _ItemsOnly(filename, _class_name(function), set(function.__code__.co_freevars))
    rewriter.helpers = helpers
    node = rewriter.visit(node)
    ast.fix_missing_locations(node)
    return link(node, function, node.name, filename)
