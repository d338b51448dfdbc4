"""From a Python function to its staged twin: parse, desugar, malt's passes, compile under the user's own file and lines.

malt's passes do the analysis (closures, liveness, flags for break/continue/return). Everything that runs is ours: the
generated code calls `ag__.if_stmt` and the like, and `ag__` is a namespace handed to the factory, so none of malt's
process-wide state (its transpiler, its conversion rules, its table of builtins) is read or changed.
"""

import ast
import inspect
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

from sciax.core.graph import _capture, _desugar, _rebinding
from sciax.core.graph._errors import GraphError


class NoSourceError(Exception):
    """There is no source text from which to convert (REPL, exec, a lambda in a call)."""


_LOCK = threading.RLock()
_FACTORIES: "weakref.WeakKeyDictionary[types.CodeType, tuple[types.CodeType, str, tuple[str, ...]]]" = (
    weakref.WeakKeyDictionary()
)


def _parse(fn: types.FunctionType) -> tuple[ast.FunctionDef, str, list[str]]:
    code = fn.__code__
    if code.co_name == "<lambda>":
        raise NoSourceError("a lambda has no source of its own")
    try:
        lines, start = inspect.findsource(code)
        block = inspect.getblock(lines[start:])
    except (OSError, TypeError, IndexError, SyntaxError) as error:
        raise NoSourceError(str(error)) from error
    text = "".join(block)
    indented = text[:1].isspace()
    try:
        tree = ast.parse("if 1:\n" + text if indented else text)
    except SyntaxError as error:
        raise NoSourceError(f"the source text of {fn.__qualname__} cannot be parsed on its own: {error}") from error
    node = tree.body[0].body[0] if indented else tree.body[0]  # type: ignore[attr-defined]
    if isinstance(node, ast.AsyncFunctionDef):
        raise GraphError(
            f"`async def {node.name}` cannot be a graph function", where=(code.co_filename, code.co_firstlineno)
        )
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise NoSourceError(f"the file no longer holds the source of {fn.__qualname__}")
    ast.increment_lineno(node, start - (1 if indented else 0))
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    if names != list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]):
        raise NoSourceError(f"the file no longer holds the source of {fn.__qualname__} (its arguments differ)")
    stored = _desugar.bound_names(node)
    if not {v for v in code.co_varnames if not v.startswith("@")} <= stored | set(names) | _comprehension_names(node):
        raise NoSourceError(f"the file no longer holds the source of {fn.__qualname__} (its variables differ)")
    return node, code.co_filename, block


def _comprehension_names(node: ast.AST) -> set[str]:
    """Python 3.12 inlines comprehensions: their variables appear among the function's own."""
    found: set[str] = set()
    for child in ast.walk(node):
        if isinstance(child, ast.comprehension):
            found.update(n.id for n in ast.walk(child.target) if isinstance(n, ast.Name))
        elif isinstance(child, (ast.MatchAs, ast.MatchStar)) and child.name:
            found.add(child.name)
        elif isinstance(child, ast.NamedExpr):
            found.add(child.target.id)
    return found


def _annotate(node: ast.AST, filename: str, function: str, lines: list[str]) -> None:
    from malt.pyct import anno, origin_info

    for child in ast.walk(node):
        if hasattr(child, "lineno"):
            location = origin_info.Location(filename, child.lineno, getattr(child, "col_offset", 0))  # type: ignore[attr-defined]
            anno.setanno(child, anno.Basic.ORIGIN, origin_info.OriginInfo(location, function, "", ""))


def _rebuild(node: Any, line: int, ctx: ast.expr_context) -> Any:
    """A copy without shared nodes, with the right load/store contexts and the user's line numbers.

    malt writes its result out as text and reads it back, which does both; compiling the tree itself keeps the file name and
    lines of the source, so that tracebacks, JAX's source information and our errors need no map.
    """
    from malt.pyct import anno

    if not isinstance(node, ast.AST):
        return node
    if anno.hasanno(node, anno.Basic.ORIGIN):
        line = anno.getanno(node, anno.Basic.ORIGIN).loc.lineno  # type: ignore[attr-defined]
    load, store = ast.Load(), ast.Store()
    new = type(node)()
    for field, value in ast.iter_fields(node):
        if field == "ctx":
            continue
        inner: ast.expr_context = load
        if field == "target" or (isinstance(node, ast.Assign) and field == "targets") or field == "optional_vars":
            inner = store
        elif isinstance(node, ast.Delete):
            inner = ast.Del()
        elif isinstance(node, (ast.Tuple, ast.List, ast.Starred)) and field in ("elts", "value"):
            inner = ctx
        if isinstance(value, list):
            setattr(new, field, [_rebuild(v, line, inner) for v in value])
        elif isinstance(value, tuple):
            setattr(new, field, [_rebuild(v, line, inner) for v in value])
        else:
            setattr(new, field, _rebuild(value, line, inner))
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.Starred)):
        new.ctx = ctx  # type: ignore[attr-defined]
    if isinstance(new, (ast.stmt, ast.expr, ast.ExceptHandler, ast.arg, ast.keyword, ast.alias, ast.pattern)):
        new.lineno = new.end_lineno = line  # type: ignore[attr-defined]
        new.col_offset = new.end_col_offset = 0  # type: ignore[attr-defined]
    return new


def _class_name(fn: types.FunctionType) -> str | None:
    parts = fn.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else None


class _Conditionals(ast.NodeTransformer):
    """`a if c else b`; malt's own pass leaves nested ones alone."""

    def visit_IfExp(self, node: ast.IfExp):
        text = ast.unparse(node.test)
        self.generic_visit(node)
        thunk, call = _desugar.thunk, _desugar.call
        return call("if_exp", node.test, thunk(node.body), thunk(node.orelse), ast.Constant(text))


class _Names(dict):
    """malt looks a symbol's value up to find loop directives; graph mode has none."""


def _passes(node: ast.FunctionDef, fn: types.FunctionType, filename: str) -> tuple[ast.FunctionDef, str]:
    from malt.converters import (
        break_statements,
        call_trees,
        continue_statements,
        control_flow,
        functions,
        logical_expressions,
        return_statements,
        variables,
    )
    from malt.core import converter
    from malt.impl import api
    from malt.pyct import naming, transformer

    class Transpiler(api.PyToPy):
        """malt's pass manager with our order of passes."""

        def transform_ast(self, node, ctx):
            node = self.initial_analysis(node, ctx)
            for step in (
                functions,
                break_statements,
                continue_statements,
                return_statements,
                call_trees,
                control_flow,
            ):
                node = step.transform(node, ctx)
            node = _Conditionals().visit(node)
            node = logical_expressions.transform(node, ctx)
            return variables.transform(node, ctx)

    options = converter.ConversionOptions(
        recursive=True, user_requested=False, optional_features=converter.Feature.BUILTIN_FUNCTIONS
    )
    namer = naming.Namer(dict.fromkeys([*fn.__globals__, *fn.__code__.co_freevars]))
    new_name = namer.new_symbol(f"ag__{node.name}", ())
    info = transformer.EntityInfo(
        name=new_name, source_code="", source_file=filename, future_features=(), namespace=_Names()
    )
    context = transformer.Context(info, namer, converter.ProgramContext(options))
    result: Any = Transpiler().transform_ast(node, context)
    return result, new_name


def _build(fn: types.FunctionType) -> tuple[types.CodeType, str, tuple[str, ...]]:
    node, filename, lines = _parse(fn)
    code = fn.__code__
    node.decorator_list = []
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [ast.Constant(None) if d is not None else None for d in node.args.kw_defaults]
    node = _desugar.Desugar(filename, _class_name(fn), set(code.co_freevars)).visit(node)
    node = _capture.Capture(node).visit(node)
    _rebinding.synchronise(node, filename)
    ast.fix_missing_locations(node)
    _annotate(node, filename, node.name, lines)
    try:
        node, new_name = _passes(node, fn, filename)
    except GraphError:
        raise
    except Exception as error:
        raise GraphError(
            f"{fn.__qualname__} cannot be converted: {error}",
            where=(filename, code.co_firstlineno),
            remedy="rewrite the statement it names, or leave @graph off",
        ) from error
    node.name = new_name
    return link(node, fn, new_name, filename)


def link(
    node: ast.FunctionDef, fn: types.FunctionType, new_name: str, filename: str
) -> tuple[types.CodeType, str, tuple[str, ...]]:
    """Compile a rewritten function into a factory `ag__ -> function` that takes the closure cells of `fn`."""
    code = fn.__code__
    # def outer(): <closure cells>; def inner(ag__): <function>; return function    return inner
    inner = _function("ag__factory", ["ag__"], [node, ast.Return(_desugar.name(new_name))])
    cells: list[ast.stmt] = [_desugar.assign(_desugar.name(v, True), ast.Constant(None)) for v in code.co_freevars]
    outer = _function("ag__outer", [], [*cells, inner, ast.Return(_desugar.name("ag__factory"))])
    tree = ast.Module([_rebuild(outer, code.co_firstlineno, ast.Load())], [])
    flags = code.co_flags & _future_flags()
    compiled = compile(tree, filename, "exec", flags=flags, dont_inherit=True)
    namespace: dict[str, Any] = {}
    exec(compiled, namespace)
    factory = namespace["ag__outer"]()
    return factory.__code__, new_name, tuple(code.co_freevars)


def _function(name: str, arguments: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    signature = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return ast.FunctionDef(name=name, args=signature, body=body, decorator_list=[], returns=None, type_params=[])


def _future_flags() -> int:
    import __future__

    flags = 0
    for feature in __future__.all_feature_names:
        flags |= getattr(__future__, feature).compiler_flag
    return flags


def convert(fn: types.FunctionType, runtime: types.SimpleNamespace | Any) -> Callable[..., Any]:
    """The staged twin of `fn`: same signature, same closure cells, same globals.

    Raises:
        NoSourceError: no source text.
        GraphError: a statement that graph mode refuses, at its line.
    """
    code = fn.__code__
    with _LOCK:
        built = _FACTORIES.get(code)
        if built is None:
            built = _FACTORIES[code] = _build(fn)
    return instantiate(fn, built, runtime)


def instantiate(
    fn: types.FunctionType, built: tuple[types.CodeType, str, tuple[str, ...]], runtime: Any
) -> Callable[..., Any]:
    """A function from a linked factory, on the cells, globals and defaults of `fn`."""
    factory_code, new_name, freevars = built
    cells = dict(zip(freevars, fn.__closure__ or ()))
    closure = tuple(cells[v] for v in factory_code.co_freevars)
    factory = types.FunctionType(factory_code, fn.__globals__, new_name, (), closure)
    new = factory(runtime)
    new.__defaults__ = fn.__defaults__
    new.__kwdefaults__ = fn.__kwdefaults__
    new.__name__, new.__qualname__, new.__module__ = fn.__name__, fn.__qualname__, fn.__module__
    new.__doc__ = fn.__doc__
    return new
