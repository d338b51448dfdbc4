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
    """Rewrites `a[i] = v` and leaves every other statement as it is written."""

    def _keep(self, node: ast.AST) -> ast.AST:
        return self.generic_visit(node)

    visit_Global = visit_Nonlocal = visit_While = visit_For = visit_If = visit_Match = visit_NamedExpr = _keep
    visit_Expr = visit_Assert = visit_Raise = visit_Try = visit_JoinedStr = visit_ClassDef = _keep
    visit_AsyncFunctionDef = visit_AsyncFor = visit_TryStar = visit_Yield = visit_YieldFrom = visit_Await = _keep

    def store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        if isinstance(target, ast.Attribute):
            return [_desugar.assign(target, value)]
        return super().store(target, value)


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


def _build(function: types.FunctionType):
    try:
        node, filename, _ = _parse(function)
    except NoSourceError:
        return None
    if not any(isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store) for n in ast.walk(node)):
        return None
    node.decorator_list = []
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [ast.Constant(None) if d is not None else None for d in node.args.kw_defaults]
    node = _ItemsOnly(filename, _class_name(function), set(function.__code__.co_freevars)).visit(node)
    ast.fix_missing_locations(node)
    return link(node, function, node.name, filename)
