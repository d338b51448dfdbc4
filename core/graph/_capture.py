"""Loop variables that functions made in the loop capture: kept in one cell, as Python does.

malt makes the loop body a function, so a variable that is not used after the loop would be a fresh one at every step, and
`fs.append(lambda: i)` would remember each step's own `i`. Python's closures see the last one. A read behind the loop keeps the
variable outside the body.
"""

import ast

from sciax.core.graph import _desugar

_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def _names(nodes: list[ast.AST], ctx: type) -> set[str]:
    return {n.id for root in nodes for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ctx)}


def _functions(node: ast.AST) -> list[ast.AST]:
    """Functions made directly in a statement or expression."""
    if isinstance(node, _FUNCTIONS):
        return [node]
    return [f for child in ast.iter_child_nodes(node) for f in _functions(child)]


def _stored(node: ast.AST) -> set[str]:
    """Names that a loop assigns itself."""
    if isinstance(node, _FUNCTIONS):
        return {node.name} if isinstance(node, ast.FunctionDef) else set()
    found = {node.id} if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else set()
    return found.union(*[_stored(child) for child in ast.iter_child_nodes(node)])


def _is_ours(function: ast.AST) -> bool:
    """Thunks that desugaring made are called at once and capture nothing for later."""
    return bool(getattr(function, "ag__thunk", False))


class Capture(ast.NodeTransformer):
    """Rewrites the loops of one function, and of the functions in it."""

    def __init__(self, function: ast.FunctionDef):
        self.function = function

    def loop(self, node: ast.For | ast.While):
        inner = [f for f in _functions(node) if not _is_ours(f)]
        captured: set[str] = set()
        for f in inner:
            captured |= _names([f], ast.Load) - _desugar.bound_names(f)
        captured &= _stored(node)
        inside = {id(n) for n in ast.walk(node)}
        self.generic_visit(node)
        if not captured:
            return node
        elsewhere = {
            n.id
            for n in ast.walk(self.function)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and id(n) not in inside
        }
        result: list[ast.stmt] = []
        unused = sorted(captured - elsewhere)
        if unused:
            # Nobody reads these after the loop, so that it is no error if the loop does not run.
            names = ast.Tuple([ast.Constant(n) for n in unused], ast.Load())
            result.append(ast.Expr(_desugar.call("unused_after", names)))
        result.append(node)
        for name in sorted(captured):
            result.append(ast.Expr(_desugar.call("keep", _desugar.thunk(_desugar.name(name)), ast.Constant(name))))
        return _desugar.place(result, node)

    visit_For = visit_While = loop

    def visit_FunctionDef(self, node: ast.FunctionDef):
        if node is self.function:
            return self.generic_visit(node)
        return Capture(node).visit(node)
