"""A solved graph written down: placements by number of value and operation, and what they send."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from sciax.core.errors import InputError
from sciax.core.inspect._jaxpr import scan_inputs
from sciax.core.parallel._hlo import Collective
from sciax.core.parallel.search._graph import Choice, Graph, project
from sciax.core.parallel.search._layout import Layout, layouts, moves
from sciax.core.parallel.search._program import Op, Program, Value, evaluate, trace

Specs = tuple[PartitionSpec, ...]


@dataclass(frozen=True)
class Inside:
    """Placements inside one program.

    Attributes:
        signature: of the program they are for.
        values: number of a value -> its placement.
        operands: (operation, operand) -> placements it goes through, the last being the one the operation wants.
        results: (operation, result) -> the same for what it gives, up to the value's own.
    """

    signature: tuple[Any, ...]
    values: dict[int, PartitionSpec]
    operands: dict[tuple[int, int], Specs]
    results: dict[tuple[int, int], Specs]

    def apply(self, function: Callable[..., Any], mesh: Mesh) -> Callable[..., Any]:
        """`function` with every array inside where the plan has it.

        Raises:
            InputError: at the call, if the function is another than the one that was searched.
        """

        def place(array: Any, spec: PartitionSpec) -> Any:
            return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, spec))

        def follow(array: Any, specs: Specs) -> Any:
            for spec in specs:
                array = place(array, spec)
            return array

        def read(op: Op, port: int, array: Any) -> Any:
            return follow(array, self.operands.get((op.index, port), ()))

        def write(value: Value, array: Any) -> Any:
            spec = self.values.get(value.index)
            return array if spec is None else place(array, spec)

        def between(op: Op, arrays: list[Any]) -> list[Any]:
            return [follow(a, self.results.get((op.index, port), ())) for port, a in enumerate(arrays)]

        def placed(*args: Any) -> Any:
            program, shape = trace(function, *args)
            if program.signature != self.signature:
                raise InputError(
                    "the plan was searched for another program",
                    got=_difference(program.signature, self.signature),
                    remedy="give Plan.auto the batch as `fit` has it (a part of it with accumulate=) and the same loss and "
                    "precision; or keep the placements of parameters and batch only: plan.outside()",
                )
            outs = evaluate(program.block, jax.tree.leaves(args), read, write, between)
            return jax.tree.unflatten(jax.tree.structure(shape), outs)

        return placed


def _difference(got: tuple[Any, ...], expected: tuple[Any, ...]) -> str:
    for i, (a, b) in enumerate(zip(got, expected)):
        if a != b:
            return f"operation {i} is {a[0]} giving {a[1]}, in the plan {b[0]} giving {b[1]}"
    return f"{len(got)} operations, in the plan {len(expected)}"


def emit(graph: Graph, program: Program, chosen: Mapping[Choice, int]) -> Inside:
    """Placements of a solution."""
    grid, specs = graph.grid, {}
    values: dict[int, PartitionSpec] = {}
    operands: dict[tuple[int, int], Specs] = {}
    results: dict[tuple[int, int], Specs] = {}

    def layout(value: Value) -> Layout:
        choice = graph.cluster[value]
        return choice.options[chosen[choice]]

    def spec(at: Layout, rank: int) -> PartitionSpec:
        if (at, rank) not in specs:
            specs[at, rank] = grid.spec(at, rank)
        return specs[at, rank]

    def path(shape: tuple[int, ...], a: Layout, b: Layout) -> Specs:
        return tuple(spec(move.layout, len(shape)) for move in moves(shape, a, b, grid))

    def ask(op: Op, port: int, want: Layout) -> None:
        value = op.ins[port]
        if isinstance(value, Value) and value.shape and value.itemsize:
            want = want if want in layouts(value.shape, grid) else grid.whole
            steps = path(value.shape, layout(value), want)
            if steps:
                operands[op.index, port] = steps

    def give(op: Op, port: int, raw: Layout, partial: tuple[int, ...]) -> None:
        value = op.outs[port]
        if value.shape and value.itemsize:
            at = list(raw)
            for axis in partial:
                wanted = (*at[:axis], layout(value)[axis], *at[axis + 1 :])
                minor = layout(value)[axis] >= 0 and all(at[i] != layout(value)[axis] for i in range(axis + 1, len(at)))
                if minor and wanted in layouts(value.shape, grid):
                    at = list(wanted)
            summed = tuple(at)
            results[op.index, port] = (
                spec(summed, len(value.shape)),
                *path(value.shape, summed, layout(value)),
            )

    for value in program.values:
        if value.shape and value.itemsize:
            values[value.index] = spec(layout(value), len(value.shape))
    for op in program.ops:
        rule = graph.rules[op]
        if op.body is not None:
            p = op.eqn.params
            numbers = scan_inputs(p, list(range(len(op.ins))))
            for kind, inner in enumerate(scan_inputs(p, op.body.ins)):
                for port, value in zip(numbers[kind], inner, strict=True):
                    want = layout(value)
                    ask(op, port, tuple(d + 1 if d >= 0 else -1 for d in want) if kind == 2 else want)
        elif op in graph.nodes:
            strategy = graph.nodes[op].options[chosen[graph.nodes[op]]]
            for port, want in enumerate(strategy.ins):
                ask(op, port, want)
            for port, raw in enumerate(strategy.outs):
                give(op, port, raw, strategy.partial)
        elif op in graph.reduced:
            strategy = graph.reduced[op](layout(op.ins[0]), layout(op.outs[0]))
            ask(op, 0, strategy.ins[0])
            give(op, 0, strategy.outs[0], strategy.partial)
        elif op.outs and op.name != "optimization_barrier":
            out = layout(op.outs[0])
            for port, loops in enumerate(rule.ins):
                ask(op, port, project(out, rule.outs[0], loops))
            raw = tuple(d if d >= 0 and rule.outs[0][d] is not None else -1 for d in out)
            if raw != out:
                give(op, 0, raw, ())
    return Inside(program.signature, values, operands, results)


def sent(graph: Graph, chosen: Mapping[Choice, int]) -> list[Collective]:
    """The collectives of a solution, as the compiled program will show them."""
    found: list[Collective] = []
    seen: set[Any] = set()
    for edge in graph.edges:
        i = int(edge.left_group[chosen[edge.left]])
        j = int(edge.right_group[chosen[edge.right]])
        if edge.shared is not None:
            once = edge.shared[0], edge.shared[1][j]
            if once in seen:
                continue
            seen.add(once)
        found += [Collective(kind, size * edge.itemsize, n, edge.times) for kind, size, n in edge.sends(i, j)]
    for op, node in graph.nodes.items():
        # Scalars are summed too.
        strategy = node.options[chosen[node]]
        for value in op.outs:
            if not value.shape and value.itemsize and strategy.partial:
                found.append(_scalar(graph, value, strategy.partial, op.times))
    return found


def _scalar(graph: Graph, value: Value, partial: tuple[int, ...], times: int) -> Collective:
    devices = 1
    for axis in partial:
        devices *= graph.grid.sizes[axis]
    return Collective("all-reduce", value.itemsize, devices, times)
