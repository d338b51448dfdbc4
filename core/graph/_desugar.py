"""Rewrites of the user's syntax tree that come before malt's own passes.

malt knows `if`, `while`, `for`, `break`, `continue` and `return`. What it refuses or would miss is turned here into what it
knows: loop `else`, assignment expressions in conditions, `match` on values, item assignment on immutable arrays, `append`,
`raise` and `assert` on traced conditions, f-strings, attribute assignment, and names that an inner function rebinds.
"""

import ast
from typing import Any

from sciax.core.graph._errors import GraphError

_LOOPS = (ast.While, ast.For)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def name(identifier: str, store: bool = False) -> ast.Name:
    return ast.Name(identifier, ast.Store() if store else ast.Load())


def call(operator: str, *args: ast.expr) -> ast.Call:
    """`ag__.operator(*args)`: a call of graph mode's own runtime, which is never converted."""
    return ast.Call(ast.Attribute(name("ag__"), operator, ast.Load()), list(args), [])


def thunk(body: ast.expr) -> ast.Lambda:
    """`lambda: body`, called at once by the runtime."""
    result = ast.Lambda(ast.arguments([], [], None, [], [], None, []), body)
    result.ag__thunk = True  # type: ignore[attr-defined]
    return result


def assign(target: ast.expr, value: ast.expr) -> ast.Assign:
    return ast.Assign([target], value)


def place(new, old: ast.AST):
    """Give new nodes the position of the node they replace."""
    for root in new if isinstance(new, list) else [new]:
        for node in ast.walk(root):
            if not hasattr(node, "lineno"):
                node.lineno = old.lineno  # type: ignore[attr-defined]
                node.col_offset = getattr(old, "col_offset", 0)  # type: ignore[attr-defined]
    return new


def own_breaks(body: list[ast.stmt]) -> list[ast.Break]:
    """The `break`s that belong to the loop with this body."""
    found: list[ast.Break] = []
    for node in body:
        if isinstance(node, ast.Break):
            found.append(node)
        elif isinstance(node, _LOOPS):
            found += own_breaks(node.orelse)
        elif not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                found += own_breaks(getattr(node, field, []) or [])
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                found += own_breaks(part.body)
    return found


def bound_names(function: ast.AST) -> set[str]:
    """Names that a function binds itself, without those of functions inside it."""
    bound: set[str] = set()
    outside: set[str] = set()
    if isinstance(function, _FUNCTIONS):
        a = function.args
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *(x for x in (a.vararg, a.kwarg) if x)):
            bound.add(arg.arg)

    def visit(node: ast.AST) -> None:
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            if not isinstance(node, ast.Lambda):
                bound.add(node.name)
            return
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            return
        if isinstance(node, (ast.Nonlocal, ast.Global)):
            outside.update(node.names)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        if isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    body: Any = getattr(function, "body", None)
    body = body if isinstance(body, list) else []
    for statement in body:
        visit(statement)
    return bound - outside


class Desugar(ast.NodeTransformer):
    """One pass over the function that is converted; see the module's docstring."""

    def __init__(self, filename: str, class_name: str | None, outer_names: set[str]):
        self.filename, self.class_name = filename, class_name
        self.outer = outer_names  # free variables of the outermost function: not ours to rebind
        self.counter = 0
        self.scopes: list[tuple[ast.AST, set[str], set[str]]] = []  # function, names bound, nonlocals to add

    # -- helpers
    def fresh(self, stem: str) -> str:
        self.counter += 1
        result = f"ag__{stem}_{self.counter}"
        if self.scopes:
            self.scopes[-1][1].add(result)
        return result

    def refuse(self, node: ast.AST, message: str, remedy: str, variable: str | None = None):
        raise GraphError(message, where=(self.filename, node.lineno), remedy=remedy, variable=variable)  # type: ignore[attr-defined]

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            if new is None:
                continue
            result.extend(new if isinstance(new, list) else [new])
        return result or [ast.Pass(lineno=statements[0].lineno, col_offset=0)] if statements else result

    # -- functions and scopes
    def visit_FunctionDef(self, node: ast.FunctionDef):
        outermost = not self.scopes
        if not outermost:
            node.decorator_list = [self.visit(d) for d in node.decorator_list]
            node.args.defaults = [self.visit(d) for d in node.args.defaults]
            node.args.kw_defaults = [self.visit(d) if d else d for d in node.args.kw_defaults]
        node.returns = None
        for arg in ast.walk(node.args):
            if isinstance(arg, ast.arg):
                arg.annotation = None
        extra: set[str] = set()
        self.scopes.append((node, bound_names(node), extra))
        doc = node.body[:1] if ast.get_docstring(node) is not None else []
        body = self.block(node.body[len(doc) :])
        self.scopes.pop()
        if extra:
            body = place([ast.Nonlocal(sorted(extra))], node) + body
        node.body = doc + (body or [place(ast.Pass(), node)])
        return node

    def visit_Lambda(self, node: ast.Lambda):
        self.scopes.append((node, bound_names(node), set()))
        node.body = self.visit(node.body)
        self.scopes.pop()
        return node

    def visit_ClassDef(self, node: ast.ClassDef):
        self.refuse(node, f"class {node.name!r} is defined inside a graph function", "define it at module level")

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef):
        self.refuse(node, f"`async def {node.name}` inside a graph function", "graph functions are synchronous")

    def visit_Global(self, node: ast.Global):
        self.refuse(
            node,
            f"`global {', '.join(node.names)}`: rebinding a global is a side effect that would happen once, while tracing",
            "return the new value instead",
            variable=node.names[0],
        )

    def visit_Nonlocal(self, node: ast.Nonlocal):
        inside = set().union(*(bound for _, bound, _ in self.scopes[:-1])) if len(self.scopes) > 1 else set()
        for n in node.names:
            if n not in inside:
                self.refuse(
                    node,
                    f"`nonlocal {n}`: it lives outside the graph function; rebinding it would happen once, while tracing",
                    "return the new value instead",
                    variable=n,
                )
        return node

    # -- loops with else
    def loop_else(self, node, extra_before: list[ast.stmt]) -> list[ast.stmt]:
        """`for/while ... else`: the else block runs unless a `break` was met."""
        orelse, node.orelse = node.orelse, []
        breaks = own_breaks(node.body)
        if not orelse:
            return [*extra_before, node]
        if not breaks:
            return [*extra_before, node, *orelse]
        flag = self.fresh("broke")

        class Mark(ast.NodeTransformer):
            def visit_Break(self, inner: ast.Break):
                if any(inner is b for b in breaks):
                    return place([assign(name(flag, True), ast.Constant(True)), ast.Break()], inner)
                return inner

            def visit_FunctionDef(self, inner):
                return inner

        node.body = [x for s in node.body for x in _as_list(Mark().visit(s))]
        guard = ast.If(ast.UnaryOp(ast.Not(), name(flag)), orelse, [])
        return [*extra_before, place(assign(name(flag, True), ast.Constant(False)), node), node, place(guard, node)]

    def visit_While(self, node: ast.While):
        before = self.loop_else(node, [])
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            # `while (x := f()) > 0: body`  ->  `while True: x = f(); if not x > 0: break; body`
            test = node.test
            stop = place(ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), node)
            node.test = place(ast.Constant(True), node)
            node.body = [stop, *node.body]
        node.test = self.visit(node.test)
        node.body = self.block(node.body)
        return [x for s in before for x in ([s] if s is node else _as_list(self.visit(s)))]

    def visit_For(self, node: ast.For):
        before = self.loop_else(node, [])
        node.iter = self.visit(node.iter)
        if not isinstance(node.target, ast.Name) and any(
            isinstance(n, (ast.Subscript, ast.Attribute)) for n in ast.walk(node.target)
        ):
            temp = self.fresh("item")
            node.body.insert(0, place(assign(node.target, name(temp)), node))
            node.target = place(name(temp, True), node)
        node.body = self.block(node.body)
        return [x for s in before for x in ([s] if s is node else _as_list(self.visit(s)))]

    def visit_AsyncFor(self, node):
        self.refuse(node, "`async for` in a graph function", "graph functions are synchronous")

    # -- assignment expressions
    def visit_If(self, node: ast.If):
        before: list[ast.stmt] = []
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.test)):
            node.test = self.hoist(node.test, before)
        node.test = self.visit(node.test)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse) if node.orelse else []
        return [*[x for s in before for x in _as_list(self.visit(s))], node]

    def hoist(self, expression: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """Move unconditionally evaluated `(x := value)` in front of the statement."""
        desugar = self

        class Hoist(ast.NodeTransformer):
            def visit_NamedExpr(self, node: ast.NamedExpr):
                node.value = self.visit(node.value)
                before.append(place(assign(node.target, node.value), node))
                return place(name(node.target.id), node)

            def lazy(self, node):
                if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
                    desugar.refuse(
                        node, "an assignment expression that is evaluated only sometimes", "assign before the statement"
                    )
                return node

            visit_IfExp = visit_Lambda = visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = lazy

            def visit_BoolOp(self, node: ast.BoolOp):
                node.values[0] = self.visit(node.values[0])
                for value in node.values[1:]:
                    self.lazy(value)
                return node

            def visit_Compare(self, node: ast.Compare):
                node.left = self.visit(node.left)
                node.comparators[0] = self.visit(node.comparators[0])
                for value in node.comparators[1:]:
                    self.lazy(value)
                return node

        return Hoist().visit(expression)

    def visit_NamedExpr(self, node: ast.NamedExpr):
        self.refuse(
            node,
            f"assignment expression `{node.target.id} := ...` outside the condition of an if or while",
            "write the assignment as a statement of its own",
            variable=node.target.id,
        )

    # -- match on values
    def visit_Match(self, node: ast.Match):
        subject = self.fresh("subject")
        chain: list[ast.stmt] = []
        for case in reversed(node.cases):
            test = self.pattern(case.pattern, subject)
            if case.guard is not None:
                test = ast.BoolOp(ast.And(), [test, case.guard]) if test is not None else case.guard
            chain = list(case.body) if test is None else [ast.If(test, list(case.body), chain)]
        before = assign(name(subject, True), node.subject)
        new = place([before, *chain], node)
        return [x for s in new for x in _as_list(self.visit(s))]

    def pattern(self, pattern: ast.pattern, subject: str) -> ast.expr | None:
        if isinstance(pattern, ast.MatchValue):
            return ast.Compare(name(subject), [ast.Eq()], [pattern.value])
        if isinstance(pattern, ast.MatchSingleton):
            return ast.Compare(name(subject), [ast.Is()], [ast.Constant(pattern.value)])
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
            return None
        if isinstance(pattern, ast.MatchOr):
            tests = [self.pattern(p, subject) for p in pattern.patterns]
            if all(t is not None for t in tests):
                return ast.BoolOp(ast.Or(), [t for t in tests if t is not None])
        self.refuse(pattern, "`match` on a structure", "match on plain values, or write if/elif")

    # -- assignment to items and attributes
    def visit_Assign(self, node: ast.Assign):
        node.value = self.visit(node.value)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return node
        if not any(_is_stored(t) for t in node.targets) and len(node.targets) == 1:
            return node
        temp = self.fresh("value")
        result: list[ast.stmt] = [assign(name(temp, True), node.value)]
        for target in node.targets:
            result += self.store(target, name(temp))
        return place(result, node)

    def visit_AnnAssign(self, node: ast.AnnAssign):
        if node.value is None:
            return None
        return self.visit(place(ast.Assign([node.target], node.value), node))

    def store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """Statements that put `value` where `target` says, item by item."""
        if isinstance(target, (ast.Tuple, ast.List)):
            if not _is_stored(target):
                return [assign(target, value)]
            temps, plain = [], []
            for element in target.elts:
                temps.append(self.fresh("part"))
                star = isinstance(element, ast.Starred)
                plain.append(ast.Starred(name(temps[-1], True), ast.Store()) if star else name(temps[-1], True))
            result: list[ast.stmt] = [assign(ast.Tuple(plain, ast.Store()), value)]
            for element, temp in zip(target.elts, temps):
                inner = element.value if isinstance(element, ast.Starred) else element
                result += self.store(inner, name(temp))
            return result
        if isinstance(target, ast.Subscript):
            before: list[ast.stmt] = []
            prepared = self.stable(target, before)
            return [*before, *self.store_item(prepared, value)]
        if isinstance(target, ast.Attribute):
            owner = self.visit(target.value)
            checked = ast.Expr(
                call(
                    "check_attribute", owner, ast.Constant(self.mangle(target.attr)), ast.Constant(ast.unparse(target))
                )
            )
            return [checked, assign(ast.Attribute(_load(target.value), self.mangle(target.attr), ast.Store()), value)]
        return [assign(target, value)]

    def stable(self, node: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """The same target with its keys evaluated, once, in `before`."""
        if isinstance(node, ast.Subscript):
            base = self.stable(node.value, before)
            key, extra = self.key(node.slice)
            before += extra
            return ast.Subscript(base, key, ast.Load())
        if isinstance(node, ast.Attribute):
            return ast.Attribute(self.stable(node.value, before), self.mangle(node.attr), ast.Load())
        if isinstance(node, ast.Name):
            return name(node.id)
        temp = self.fresh("base")
        before.append(assign(name(temp, True), self.visit(node)))
        return name(temp)

    def store_item(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        """`base[key] = value` for a prepared target: arrays are immutable, so the base receives the changed one."""
        assert isinstance(target, ast.Subscript)
        base, key = target.value, target.slice
        text = ast.Constant(ast.unparse(base))
        if isinstance(base, ast.Name):
            self.rebinds(base)
            if self.is_outer(base.id):
                return [ast.Expr(call("set_item_outside", base, key, value, text))]
            return [assign(name(base.id, True), call("set_item", base, key, value, text))]
        temp = self.fresh("base")
        result: list[ast.stmt] = [assign(name(temp, True), call("set_item", base, key, value, text))]
        if isinstance(base, ast.Subscript):
            return [*result, *self.store_item(base, name(temp))]
        assert isinstance(base, ast.Attribute)
        return [*result, ast.Expr(call("store_attribute", base.value, ast.Constant(base.attr), name(temp), text))]

    def key(self, node: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """A subscript as an expression that may be evaluated twice."""
        node = self.visit(node)

        def plain(part: ast.expr) -> ast.expr:
            if not isinstance(part, ast.Slice):
                return part
            bounds = [b if b is not None else ast.Constant(None) for b in (part.lower, part.upper, part.step)]
            return ast.Call(name("slice"), bounds, [])

        node = ast.Tuple([plain(e) for e in node.elts], ast.Load()) if isinstance(node, ast.Tuple) else plain(node)
        if isinstance(node, (ast.Constant, ast.Name)):
            return node, []
        temp = self.fresh("key")
        return name(temp), [assign(name(temp, True), node)]

    def visit_AugAssign(self, node: ast.AugAssign):
        node.value = self.visit(node.value)
        op = ast.Constant(type(node.op).__name__)
        if isinstance(node.target, ast.Subscript):
            before: list[ast.stmt] = []
            target = self.stable(node.target, before)
            temp = self.fresh("value")
            step = assign(name(temp, True), call("update", op, target, node.value))
            return place([*before, step, *self.store_item(target, name(temp))], node)
        if isinstance(node.target, ast.Attribute):
            load = ast.Attribute(_load(node.target.value), self.mangle(node.target.attr), ast.Load())
            temp = self.fresh("value")
            step = assign(name(temp, True), call("update", op, load, node.value))
            return place([step, *self.store(node.target, name(temp))], node)
        return node

    def rebinds(self, target: ast.Name) -> None:
        """An inner function that stores into an enclosing function's variable rebinds it: declare it nonlocal."""
        _, bound, extra = self.scopes[-1]
        if target.id in bound:
            return
        for _, outer_bound, _ in self.scopes[:-1]:
            if target.id in outer_bound:
                extra.add(target.id)
                return

    def is_outer(self, identifier: str) -> bool:
        return not any(identifier in bound for _, bound, _ in self.scopes)

    # -- append
    def visit_Expr(self, node: ast.Expr):
        value = node.value
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "append"
            and isinstance(value.func.value, ast.Name)
            and len(value.args) == 1
            and not value.keywords
        ):
            target = value.func.value
            if self.is_outer(target.id):
                return place(
                    ast.Expr(call("list_append", name(target.id), self.visit(value.args[0]), ast.Constant(target.id))),
                    node,
                )
            self.rebinds(target)
            new = assign(
                name(target.id, True),
                call("list_append", name(target.id), self.visit(value.args[0]), ast.Constant(target.id)),
            )
            return place(new, node)
        node.value = self.visit(node.value)
        return node

    # -- checks
    def visit_Assert(self, node: ast.Assert):
        message = self.visit(node.msg) if node.msg is not None else ast.Constant(None)
        return place(
            ast.Expr(call("assert_stmt", self.visit(node.test), thunk(message), ast.Constant(ast.unparse(node.test)))),
            node,
        )

    def visit_Raise(self, node: ast.Raise):
        if node.exc is not None:
            node.exc = place(call("mark_raise", self.visit(node.exc)), node)
        return node

    def visit_Try(self, node: ast.Try):
        node.body = self.block(node.body)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        node.orelse = self.block(node.orelse) if node.orelse else []
        node.finalbody = self.block(node.finalbody) if node.finalbody else []
        if node.handlers:
            scope = ast.With([ast.withitem(call("try_scope"), None)], node.body)
            node.body = [place(scope, node)]
        return node

    def visit_TryStar(self, node):
        self.refuse(node, "`except*` in a graph function", "use plain except")

    # -- expressions
    def visit_JoinedStr(self, node: ast.JoinedStr):
        parts: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                spec = self.visit(value.format_spec) if value.format_spec is not None else ast.Constant("")
                parts.append(ast.Tuple([self.visit(value.value), ast.Constant(value.conversion), spec], ast.Load()))
            else:
                parts.append(value)
        return place(call("format_string", *parts), node)

    def mangle(self, attribute: str) -> str:
        if self.class_name and attribute.startswith("__") and not attribute.endswith("__"):
            return f"_{self.class_name.lstrip('_')}{attribute}"
        return attribute

    def visit_Attribute(self, node: ast.Attribute):
        node.value = self.visit(node.value)
        node.attr = self.mangle(node.attr)
        return node

    def visit_Call(self, node: ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and self.scopes:
            function = self.scopes[0][0]
            first = function.args.args[0].arg if getattr(function, "args", None) and function.args.args else None  # type: ignore[attr-defined]
            if first:
                node.args = [place(name("__class__"), node), place(name(first), node)]
        self.generic_visit(node)
        return node

    def visit_Yield(self, node: Any):
        self.refuse(node, "a generator cannot be a graph function", "return a list, or an array")

    def visit_YieldFrom(self, node):
        self.visit_Yield(node)

    def visit_Await(self, node):
        self.visit_Yield(node)


def _as_list(value) -> list:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _is_stored(target: ast.expr) -> bool:
    """Whether an assignment target contains an item or an attribute."""
    if isinstance(target, (ast.Subscript, ast.Attribute)):
        return True
    if isinstance(target, ast.Starred):
        return _is_stored(target.value)
    return isinstance(target, (ast.Tuple, ast.List)) and any(_is_stored(e) for e in target.elts)


def _load(node: ast.expr) -> ast.expr:
    """The same expression, read."""
    if isinstance(node, ast.Name):
        return name(node.id)
    if isinstance(node, ast.Attribute):
        return ast.Attribute(_load(node.value), node.attr, ast.Load())
    if isinstance(node, ast.Subscript):
        return ast.Subscript(_load(node.value), node.slice, ast.Load())
    return node
