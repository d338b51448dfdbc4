"""Variables that an inner function rebinds (`nonlocal`): made visible to the analysis of the loops and branches around its calls.

malt finds the variables of a loop from the assignments in its body. A call of an inner function that rebinds `total` assigns
`total` without saying so; a self-assignment in front of the body says it.
"""

import ast

from sciax.core.graph import _desugar
from sciax.core.graph._errors import GraphError

_BLOCKS = (ast.If, ast.While, ast.For)


def _own(function: ast.FunctionDef) -> list[ast.AST]:
    """Nodes of a function without those of the functions inside it, which are themselves included."""
    found: list[ast.AST] = []

    def visit(node: ast.AST) -> None:
        found.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            for child in ast.iter_child_nodes(node):
                visit(child)

    for statement in function.body:
        visit(statement)
    return found


def _declared(function: ast.FunctionDef) -> set[str]:
    names = set()
    for node in _own(function):
        if isinstance(node, ast.Nonlocal):
            names.update(node.names)
        elif isinstance(node, ast.FunctionDef):
            names |= _declared(node) - _desugar.bound_names(node)
    return names


def _calls(nodes: list[ast.stmt] | list[ast.expr]) -> bool:
    return any(isinstance(n, ast.Call) and not _is_ours(n) for root in nodes for n in ast.walk(root))


def _is_ours(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "ag__"
    )


def _keep(names: set[str], at: ast.AST) -> list[ast.stmt]:
    statements: list[ast.stmt] = [
        _desugar.assign(
            _desugar.name(n, True), _desugar.call("keep", _desugar.thunk(_desugar.name(n)), ast.Constant(n))
        )
        for n in sorted(names)
    ]
    return _desugar.place(statements, at)


def synchronise(function: ast.FunctionDef, filename: str, outer: frozenset[str] = frozenset()) -> None:
    """Mark, in place, every block that may rebind a variable through a call."""
    bound = _desugar.bound_names(function)
    inner = [n for n in _own(function) if isinstance(n, ast.FunctionDef)]
    rebound = set().union(*[_declared(f) for f in inner]) & bound if inner else set()
    names = (set(outer) - bound) | rebound
    rebinders = {f.name for f in inner if _declared(f)}
    if names:
        marked = False
        for node in _own(function):
            if isinstance(node, (ast.BoolOp, ast.IfExp)):
                lazy = node.values[1:] if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
                for n in (n for part in lazy for n in ast.walk(part)):
                    if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in rebinders:
                        raise GraphError(
                            f"{n.func.id}() rebinds a variable and is called only sometimes, inside an expression",
                            where=(filename, n.lineno),
                            variable=n.func.id,
                            remedy="call it in an if statement",
                        )
            if not isinstance(node, _BLOCKS):
                continue
            if isinstance(node, ast.While) and _calls([node.test]) and not isinstance(node.test, ast.Constant):
                # The test itself may rebind: it belongs into the body, where the variables are carried.
                stop = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
                node.body = [_desugar.place(stop, node), *node.body]
                node.test = _desugar.place(ast.Constant(True), node)
            for field in ("body", "orelse"):
                block = getattr(node, field)
                if block and _calls(block):
                    setattr(node, field, [*_keep(names, node), *block])
                    marked = True
        foreign = names - bound
        already = {n for node in _own(function) if isinstance(node, ast.Nonlocal) for n in node.names}
        if marked and foreign - already:
            function.body.insert(0, _desugar.place(ast.Nonlocal(sorted(foreign - already)), function))
    for f in inner:
        synchronise(f, filename, frozenset(names))
