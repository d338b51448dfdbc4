"""The search as a graph: what is to be chosen, and what two neighbouring choices cost.

Two kinds of choices. A *cluster* is a set of values that are computed from one another entry by entry, so share their layout. A
*node* is an operation of several operands that sums over a loop (a matrix product, say); its options are the loops that each mesh
axis splits. All other operations are edges between clusters: what layout they ask of an operand follows from that of the result.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sciax.core.graph._count import equation_cost
from sciax.core.inspect._jaxpr import scan_inputs, scan_outputs
from sciax.core.parallel._machine import Machine
from sciax.core.parallel.search._layout import Grid, Layout, Sends, layouts, reduction, resharding, seconds
from sciax.core.parallel.search._program import Block, Op, Program, Value
from sciax.core.parallel.search._rules import Loops, Rule, rule_of, whole


@dataclass(frozen=True)
class Strategy:
    """How an operation is split: layouts of its operands and results, and the mesh axes whose parts are to be summed."""

    ins: tuple[Layout, ...]
    outs: tuple[Layout, ...]
    partial: tuple[int, ...]
    parts: int


@dataclass(eq=False)
class Choice:
    """Something to choose: one of `options` (layouts of a cluster, strategies of a node), at `cost` seconds each."""

    options: list[Any]
    cost: np.ndarray
    label: Any
    shape: tuple[int, ...] = ()
    itemsize: int = 0
    op: Op | None = None


@dataclass(eq=False)
class Edge:
    """What passes from one choice to another.

    Attributes:
        left_group, right_group: option -> row and column of `cost`.
        cost: seconds, each time it is done, by row and column.
        sends: row, column -> collectives.
        times: how often.
        shared: (value, layout of each column): consumers that ask one value in one layout share its collectives.
    """

    left: Choice
    right: Choice
    left_group: np.ndarray
    right_group: np.ndarray
    cost: np.ndarray
    sends: Callable[[int, int], Sends]
    itemsize: int
    times: int
    label: Any
    shared: tuple[Value, list[Layout]] | None = None


@dataclass(eq=False)
class Graph:
    grid: Grid
    machine: Machine
    choices: list[Choice] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    cluster: dict[Value, Choice] = field(default_factory=dict)
    nodes: dict[Op, Choice] = field(default_factory=dict)
    rules: dict[Op, Rule] = field(default_factory=dict)
    reduced: dict[Op, Callable[[Layout, Layout], Strategy]] = field(default_factory=dict)
    """For an operation of one operand that sums: how it is split, by the layouts before and after."""
    costs: dict[Any, np.ndarray] = field(default_factory=dict)


def build(
    program: Program,
    grid: Grid,
    machine: Machine,
    fixed: Mapping[Value, Layout],
    roles: Mapping[Value, str],
) -> Graph:
    """The graph of a program.

    Args:
        fixed: values whose layout is given.
        roles: inputs that are unlike others of their shape ("parameter", "batch").
    """
    graph = Graph(grid, machine)
    fixed = dict(fixed)
    for op in program.ops:
        graph.rules[op] = _rule(op, grid, fixed)
    _clusters(graph, program, fixed, roles)
    for op in program.ops:
        _connect(graph, op)
    return graph


def _rule(op: Op, grid: Grid, fixed: dict[Value, Layout]) -> Rule:
    if op.name == "sharding_constraint":
        spec = getattr(op.eqn.params["sharding"], "spec", None)
        if spec is not None:
            fixed[op.outs[0]] = grid.layout(spec)
        dims = tuple(range(len(op.outs[0].shape)))
        return Rule((dims,), (dims,))
    return rule_of(op)


def _clusters(graph: Graph, program: Program, fixed: Mapping[Value, Layout], roles: Mapping[Value, str]) -> None:
    """Union of the values of elementwise operations of one shape; and of a scan's carry inside and outside."""
    parent: dict[Value, Value] = {v: v for v in program.values}

    def root(v: Value) -> Value:
        while parent[v] is not v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    def join(a: Any, b: Value) -> None:
        if isinstance(a, Value) and a.shape == b.shape and a.itemsize and b.itemsize:
            a, b = root(a), root(b)
            if a is not b and fixed_at.get(a, fixed_at.get(b)) == fixed_at.get(b, fixed_at.get(a)):
                parent[b] = a
                if b in fixed_at:
                    fixed_at[a] = fixed_at.pop(b)

    fixed_at = dict(fixed)
    for op in program.ops:
        rule = graph.rules[op]
        if op.name == "optimization_barrier":
            for a, b in zip(op.ins, op.outs, strict=True):
                join(a, b)
        elif rule.same:
            for a in op.ins:
                join(a, op.outs[0])
        elif op.body is not None:
            carry, _ = scan_outputs(op.eqn.params, op.outs)
            _, inner, _ = scan_inputs(op.eqn.params, op.body.ins)
            for a, b in zip(inner, carry, strict=True):
                join(a, b)
    members: dict[Value, list[Value]] = defaultdict(list)
    for value in program.values:
        members[root(value)].append(value)
    work: dict[Value, float] = defaultdict(float)
    for op in program.ops:
        if op.outs and op.body is None and not _is_node(op, graph.rules[op]):
            # A reduction's work is where its operand is, an elementwise operation's where its result is.
            rule = graph.rules[op]
            at = op.ins[0] if rule.sums and isinstance(op.ins[0], Value) else op.outs[0]
            if op.eqn is not None and not _is_whole(rule):
                cost = equation_cost(op.eqn)
                work[root(at)] += (cost.flops + cost.transcendentals) * op.times
    for head, values in members.items():
        shape, itemsize = head.shape, min(v.itemsize for v in values)
        if head in fixed_at:
            options = [fixed_at[head]]
        else:
            options = list(layouts(shape, graph.grid)) if itemsize and shape else [graph.grid.whole]
        cost = np.array([work[head] / graph.grid.parts(o) / graph.machine.flops for o in options])
        names = sorted({roles[v] for v in values if v in roles})
        choice = Choice(options, cost, ("cluster", shape, itemsize, tuple(names), tuple(options)), shape, itemsize)
        graph.choices.append(choice)
        graph.cluster |= dict.fromkeys(values, choice)


def _is_whole(rule: Rule) -> bool:
    return not any(loop is not None for loops in (*rule.ins, *rule.outs) for loop in loops)


def _is_node(op: Op, rule: Rule) -> bool:
    arrays = [v for v in op.ins if isinstance(v, Value) and v.shape]
    if op.name == "optimization_barrier" or op.body is not None:
        return False
    return len(op.outs) != 1 or (bool(rule.sums) and len(arrays) > 1) or (op.eqn is not None and _is_whole(rule))


def strategies(rule: Rule, op: Op, grid: Grid) -> list[Strategy]:
    """Every way to give each mesh axis a loop, or none, that divides all that it touches."""
    loops = sorted({loop for item in (*rule.ins, *rule.outs) for loop in item if loop is not None})
    found = []
    for chosen in itertools.product((None, *loops), repeat=len(grid.sizes)):
        ins = [_place(item, chosen) for item in rule.ins]
        outs = [_place(item, chosen) for item in rule.outs]
        sizes = [v.shape for v in (*op.ins, *op.outs)]
        if all(layout in layouts(shape, grid) for layout, shape in zip((*ins, *outs), sizes, strict=True)):
            used = [i for i, loop in enumerate(chosen) if loop is not None]
            partial = tuple(i for i in used if chosen[i] in rule.sums)
            parts = int(np.prod([grid.sizes[i] for i in used]))
            found.append(Strategy(tuple(ins), tuple(outs), partial, parts))
    return found


def _place(loops: Loops, chosen: Iterable[int | None]) -> Layout:
    return tuple(loops.index(loop) if loop is not None and loop in loops else -1 for loop in chosen)


def _connect(graph: Graph, op: Op) -> None:
    rule = graph.rules[op]
    if op.body is not None:
        _connect_scan(graph, op)
    elif _is_node(op, rule):
        _connect_node(graph, op, rule)
    elif rule.sums and isinstance(op.ins[0], Value):
        _connect_reduction(graph, op, rule)
    else:
        for port, value in enumerate(op.ins):
            if isinstance(value, Value):
                out = op.outs[port] if op.name == "optimization_barrier" else op.outs[0]
                loops = rule.outs[port] if op.name == "optimization_barrier" else rule.outs[0]
                require(
                    graph, value, out, lambda t, p=port, o=loops: project(t, o, rule.ins[p]), op.times, op.name, port
                )


def project(layout: Layout, source: Loops, target: Loops) -> Layout:
    """The layout of an array with loops `target` that goes with `layout` of one with loops `source`."""
    return tuple(
        target.index(source[dim]) if dim >= 0 and source[dim] is not None and source[dim] in target else -1
        for dim in layout
    )


def _groups(items: Iterable[Any]) -> tuple[np.ndarray, list[Any]]:
    """Number of each item among the distinct ones, and these."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(item, len(seen)) for item in items]), list(seen)


def _edge(
    graph: Graph,
    left: Choice,
    right: Choice,
    rows: tuple[np.ndarray, list[Any]],
    columns: tuple[np.ndarray, list[Any]],
    sends: Callable[[Any, Any], Sends],
    itemsize: int,
    times: int,
    label: Any,
    shared: Value | None = None,
) -> None:
    # The layers of a deep model ask the same again and again.
    kind = (label, tuple(rows[1]), tuple(columns[1]), itemsize, left.shape, right.shape)
    if kind not in graph.costs:
        graph.costs[kind] = np.array(
            [[seconds(sends(a, b), itemsize, graph.machine) for b in columns[1]] for a in rows[1]]
        )
    cost = graph.costs[kind]
    if left is right and shared is not None and not cost[rows[0], columns[0]].any():
        return
    if not cost.any():
        return
    graph.edges.append(
        Edge(
            left,
            right,
            rows[0],
            columns[0],
            cost,
            lambda i, j: sends(rows[1][i], columns[1][j]),
            itemsize,
            times,
            (label, tuple(rows[1]), tuple(columns[1]), itemsize),
            None if shared is None else (shared, columns[1]),
        )
    )


def require(
    graph: Graph, value: Value, out: Value, need: Callable[[Layout], Layout], times: int, name: str, port: int
) -> None:
    """`value` must be in the layout that follows from that of `out`."""
    left, right = graph.cluster[value], graph.cluster[out]
    grid, shape = graph.grid, value.shape
    if not shape or not value.itemsize:
        return
    wanted = [need(option) for option in right.options]
    # What does not divide (a reshape's major dimension) is asked for whole.
    known = set(layouts(shape, grid))
    columns = _groups(layout if layout in known else grid.whole for layout in wanted)
    if columns[1] == left.options and left is right:
        return
    _edge(
        graph,
        left,
        right,
        _groups(left.options),
        columns,
        lambda s, t: resharding(shape, s, t, grid),
        value.itemsize,
        times,
        (name, port),
        value,
    )


def _connect_node(graph: Graph, op: Op, rule: Rule) -> None:
    grid = graph.grid
    options = (
        strategies(rule, op, grid)
        if not _is_whole(rule)
        else strategies(whole([v.shape for v in op.ins], [v.shape for v in op.outs]), op, grid)
    )
    spent = equation_cost(op.eqn) if op.eqn is not None else None
    flops = 0.0 if spent is None else (spent.flops + spent.transcendentals) * op.times
    cost = np.array([flops / s.parts / graph.machine.flops for s in options])
    node = Choice(options, cost, ("node", op.name, rule, op.times, tuple(v.shape for v in op.ins)), op=op)
    graph.choices.append(node)
    graph.nodes[op] = node
    for port, value in enumerate(op.ins):
        if isinstance(value, Value) and value.shape and value.itemsize:
            left, shape = graph.cluster[value], value.shape
            _edge(
                graph,
                left,
                node,
                _groups(left.options),
                _groups(s.ins[port] for s in options),
                lambda s, t, shape=shape: resharding(shape, s, t, grid),
                value.itemsize,
                op.times,
                (op.name, port),
                value,
            )
    for port, value in enumerate(op.outs):
        if value.shape and value.itemsize:
            right, shape = graph.cluster[value], value.shape
            _edge(
                graph,
                node,
                right,
                _groups((s.outs[port], s.partial) for s in options),
                _groups(right.options),
                lambda s, t, shape=shape: reduction(shape, s[0], s[1], t, grid, graph.machine.reduce_scatter),
                value.itemsize,
                op.times,
                (op.name, "out", port),
            )
        elif value.itemsize:
            # A scalar: partial sums are added up, whatever the layout.
            node.cost = node.cost + np.array(
                [
                    op.times
                    * seconds(
                        reduction((), grid.whole, s.partial, grid.whole, grid, False), value.itemsize, graph.machine
                    )
                    for s in options
                ]
            )


def _connect_reduction(graph: Graph, op: Op, rule: Rule) -> None:
    """One operand, so no choice of its own: the best way between each pair of layouts is known beforehand."""
    grid, machine = graph.grid, graph.machine
    value, out = op.ins[0], op.outs[0]
    left, right = graph.cluster[value], graph.cluster[out]
    options = strategies(rule, op, grid)
    scatter = machine.reduce_scatter

    def sends(s: Layout, t: Layout, way: Strategy) -> Sends:
        before = resharding(value.shape, s, way.ins[0], grid)
        return before + reduction(out.shape, way.outs[0], way.partial, t, grid, scatter)

    def best(s: Layout, t: Layout) -> Strategy:
        # Ties: the operand stays as it is.
        return min(
            options,
            key=lambda way: (seconds(sends(s, t, way), max(value.itemsize, out.itemsize), machine), way.ins[0] != s),
        )

    known: dict[tuple[Layout, Layout], Strategy] = {}

    def way(s: Layout, t: Layout) -> Strategy:
        if (s, t) not in known:
            known[s, t] = best(s, t)
        return known[s, t]

    graph.reduced[op] = way
    _edge(
        graph,
        left,
        right,
        _groups(left.options),
        _groups(right.options),
        lambda s, t: sends(s, t, way(s, t)),
        out.itemsize,
        op.times,
        (op.name, rule),
    )


def _connect_scan(graph: Graph, op: Op) -> None:
    p, body = op.eqn.params, op.body
    assert body is not None
    outside, inside = scan_inputs(p, op.ins), scan_inputs(p, body.ins)
    _, stacked = scan_outputs(p, op.outs)
    carried, made = scan_outputs(p, body.outs)
    inner_times = op.times * p["length"]

    def same(layout: Layout) -> Layout:
        return layout

    def stack(layout: Layout) -> Layout:
        return tuple(dim + 1 if dim >= 0 else -1 for dim in layout)

    for kind, change in ((0, same), (1, same), (2, stack)):
        for port, (value, inner) in enumerate(zip(outside[kind], inside[kind], strict=True)):
            if isinstance(value, Value):
                require(graph, value, inner, change, op.times, f"scan {kind}", port)
    for port, (value, inner) in enumerate(zip(carried, inside[1], strict=True)):
        if isinstance(value, Value):
            require(graph, value, inner, same, inner_times, "carry", port)
    for port, (value, out) in enumerate(zip(made, stacked, strict=True)):
        if isinstance(value, Value) and out.itemsize:
            left, right, shape = graph.cluster[value], graph.cluster[out], out.shape
            _edge(
                graph,
                left,
                right,
                _groups(map(stack, left.options)),
                _groups(right.options),
                lambda s, t, shape=shape: resharding(shape, s, t, graph.grid),
                out.itemsize,
                op.times,
                ("stack", port),
            )


__all__ = ["Block", "Choice", "Edge", "Graph", "Strategy", "build", "project", "require", "strategies"]
