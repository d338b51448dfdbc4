"""A graph as text, in Graphviz's language, and as SVG."""

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from jax.extend.core import Literal

from sciax.core._readable import prefixed
from sciax.core.graph._count import equation_cost, inner_jaxprs, nbytes
from sciax.core.inspect._source import source_of

if TYPE_CHECKING:
    from sciax.core.graph._graph import Graph

_CALLS = ("jit", "pjit", "closed_call", "core_call")


def _shape(v: Any) -> str:
    aval = v.aval
    dtype = getattr(aval, "dtype", "?")
    return f"{dtype}[{','.join(map(str, getattr(aval, 'shape', ())))}]"


def _is_loop(eqn: Any) -> bool:
    return eqn.primitive.name in ("scan", "while", "cond") or eqn.primitive.name.startswith(
        ("custom_", "remat", "checkpoint")
    )


def text(graph: "Graph", *, costs: bool, limit: int) -> str:
    lines = [str(graph)]

    def visit(jaxpr: Any, depth: int) -> None:
        for eqn in jaxpr.eqns:
            if len(lines) > limit:
                return
            inner = inner_jaxprs(eqn)
            if eqn.primitive.name in _CALLS and inner:
                visit(inner[0], depth)
                continue
            cost = equation_cost(eqn)
            count = cost.flops + cost.transcendentals
            work = f"  {prefixed(count, 'FLOP')}" if costs and count else ""
            place = source_of(eqn)
            where = f"  {place[0].rsplit('/', 1)[-1]}:{place[1]}" if place else ""
            steps = f" x{eqn.params['length']}" if eqn.primitive.name == "scan" else ""
            outs = ", ".join(map(_shape, eqn.outvars))
            ins = ", ".join(_shape(v) for v in eqn.invars)
            lines.append(f"{'  ' * (depth + 1)}{eqn.primitive.name}{steps}: ({ins}) -> {outs}{work}{where}")
            if _is_loop(eqn):
                for body in inner:
                    visit(body, depth + 1)

    visit(graph.jaxpr.jaxpr, 0)
    if len(lines) > limit:
        lines = [*lines[:limit], f"... more than {limit} lines"]
    return "\n".join(lines)


@dataclass
class _Node:
    number: int
    label: str
    detail: str
    kind: str
    after: list[int] = field(default_factory=list)
    level: int = 0


def _nodes(graph: "Graph", limit: int) -> tuple[list[_Node], bool]:
    """Operations with their operands; loops are single nodes that carry the cost of all their steps."""
    nodes: list[_Node] = []
    jaxpr = graph.jaxpr.jaxpr
    maker: dict[Any, int] = {}
    cut = False

    def new(label: str, detail: str, kind: str) -> _Node:
        nodes.append(_Node(len(nodes), label, detail, kind))
        return nodes[-1]

    for k, v in enumerate(jaxpr.invars):
        maker[v] = new(f"argument {k}", _shape(v), "argument").number
    for v in jaxpr.constvars:
        maker[v] = new("constant", _shape(v), "constant").number

    def visit(j: Any, scope: dict[Any, Any]) -> None:
        nonlocal cut
        for eqn in j.eqns:
            inner = inner_jaxprs(eqn)
            sources = [scope[v] for v in eqn.invars if not isinstance(v, Literal) and v in scope]
            if eqn.primitive.name in _CALLS and inner:
                fresh = {
                    a: scope[b]
                    for a, b in zip(inner[0].invars, eqn.invars)
                    if not isinstance(b, Literal) and b in scope
                }
                visit(inner[0], fresh)
                for outer, own in zip(eqn.outvars, inner[0].outvars):
                    if not isinstance(own, Literal) and own in fresh:
                        scope[outer] = fresh[own]
                continue
            if len(nodes) >= limit:
                cut = True
                return
            cost = equation_cost(eqn)
            steps = f" x{eqn.params['length']}" if eqn.primitive.name == "scan" else ""
            work = cost.flops + cost.transcendentals
            detail = ", ".join(map(_shape, eqn.outvars[:2])) + (", ..." if len(eqn.outvars) > 2 else "")
            node = new(
                eqn.primitive.name + steps,
                detail + (f"  {prefixed(work, 'FLOP')}" if work else ""),
                "loop" if _is_loop(eqn) else _kind(eqn),
            )
            node.after = sorted(set(sources))
            for v in eqn.outvars:
                scope[v] = node.number

    visit(jaxpr, maker)
    for k, v in enumerate(jaxpr.outvars):
        if not isinstance(v, Literal) and v in maker:
            new(f"result {k}", _shape(v), "result").after = [maker[v]]
    for node in nodes:
        node.level = 1 + max((nodes[i].level for i in node.after), default=-1)
    return nodes, cut


def _kind(eqn: Any) -> str:
    heavy = ("dot_general", "conv_general_dilated", "fft", "cholesky", "lu", "eigh", "svd", "triangular_solve")
    if eqn.primitive.name in heavy:
        return "heavy"
    return "move" if equation_cost(eqn).flops + equation_cost(eqn).transcendentals == 0 else "plain"


_FILL = {
    "argument": "#dbe9f6",
    "constant": "#ececec",
    "result": "#d9f0d3",
    "heavy": "#fdd0a2",
    "loop": "#e3d9f2",
    "move": "#ffffff",
    "plain": "#f7f7f7",
}


def dot(graph: "Graph") -> str:
    nodes, _ = _nodes(graph, 100_000)
    lines = [
        f'digraph "{graph.name}" {{',
        '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10];',
    ]
    for n in nodes:
        label = f"{n.label}\\n{n.detail}".replace('"', "'")
        lines.append(f'  n{n.number} [label="{label}", fillcolor="{_FILL[n.kind]}"];')
    lines += [f"  n{i} -> n{n.number};" for n in nodes for i in n.after]
    return "\n".join([*lines, "}"])


def svg(graph: "Graph", *, limit: int) -> str:
    nodes, cut = _nodes(graph, limit)
    rows: dict[int, list[_Node]] = {}
    for n in nodes:
        rows.setdefault(n.level, []).append(n)
    width_of = {n.number: max(90, 7 * max(len(n.label), len(n.detail)) + 16) for n in nodes}
    at: dict[int, tuple[float, float]] = {}
    total = max(max(sum(width_of[n.number] + 24 for n in row) for row in rows.values()) + 40, 420)
    for level in sorted(rows):
        row = rows[level]
        # An operation stands below the mean of its operands.
        row.sort(key=lambda n: sum(at[i][0] for i in n.after) / len(n.after) if n.after else n.number * 100.0)
        x = (total - sum(width_of[n.number] + 24 for n in row) + 24) / 2
        for n in row:
            at[n.number] = (x + width_of[n.number] / 2, 60 + level * 72)
            x += width_of[n.number] + 24
    height = 60 + (max(rows) + 1) * 72
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total:.0f}" height="{height:.0f}" viewBox="0 0 {total:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>',
        f'<rect width="{total:.0f}" height="{height:.0f}" fill="white"/>',
        f'<text x="16" y="22" font-size="13">{escape(str(graph))}{" (cut)" if cut else ""}</text>',
    ]
    for n in nodes:
        for i in n.after:
            (x1, y1), (x2, y2) = at[i], at[n.number]
            y1, y2 = y1 + 19, y2 - 21
            bend = (y2 - y1) / 2
            path = f"M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},{y2:.0f}"
            out.append(f'<path d="{path}" fill="none" stroke="#888" marker-end="url(#a)"/>')
    for n in nodes:
        x, y = at[n.number]
        w = width_of[n.number]
        out.append(
            f'<rect x="{x - w / 2:.0f}" y="{y - 19:.0f}" width="{w:.0f}" height="38" rx="6" fill="{_FILL[n.kind]}" stroke="#666"/>'
            f'<text x="{x:.0f}" y="{y - 4:.0f}" text-anchor="middle" font-weight="bold">{escape(n.label)}</text>'
            f'<text x="{x:.0f}" y="{y + 12:.0f}" text-anchor="middle" fill="#444" font-size="11">{escape(n.detail)}</text>'
        )
    return "\n".join([*out, "</svg>"])


__all__ = ["dot", "nbytes", "svg", "text"]
