"""Bytes on one device as a linear function of the choices: what lives at the fullest moments of the program."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from sciax.core.graph._count import FUSED, REDUCTIONS
from sciax.core.parallel.search._graph import Choice, Graph
from sciax.core.parallel.search._program import Block, Value
from sciax.core.parallel.search._rules import shape_bytes

POINTS = 6
"""Moments that are bounded, besides the optimiser's step: the fullest of the program where nothing is split."""

Held = Mapping[Choice, np.ndarray]


def held(graph: Graph, block: Block, standing: Mapping[Choice, float]) -> list[Held]:
    """For the fullest moments: bytes by option of each choice.

    Args:
        standing: bytes that are there all the time (the optimiser's state), were they whole.
    """
    moments = sorted(_moments(graph, block, Counter()), key=lambda live: -sum(live.values()))
    chosen: list[Counter[Choice]] = []
    for live in moments:
        if all(live != other for other in chosen):
            chosen.append(live)
        if len(chosen) == POINTS:
            break
    return [_by_option(graph, live, standing) for live in chosen or [Counter()]]


def _by_option(graph: Graph, live: Mapping[Choice, float], standing: Mapping[Choice, float]) -> Held:
    total = Counter(live)
    total.update(standing)
    return {
        choice: np.array([size / graph.grid.parts(option) for option in choice.options])
        for choice, size in total.items()
    }


def _bytes(value: Value) -> int:
    return shape_bytes(value.shape, value.itemsize)


def _moments(graph: Graph, block: Block, outside: Counter[Choice]) -> Iterator[Counter[Choice]]:
    uses: dict[Value, int] = {}
    names: dict[Value, list[str]] = {}
    for i, op in enumerate(block.ops):
        for value in op.ins:
            if isinstance(value, Value):
                uses[value] = i
                names.setdefault(value, []).append(op.name)
    uses |= {v: len(block.ops) for v in (*block.ins, *block.outs) if isinstance(v, Value)}
    live = Counter(outside)
    for value in (*block.ins, *(v for v, _ in block.consts)):
        live[graph.cluster[value]] += _bytes(value)
    for i, op in enumerate(block.ops):
        made = [v for v in op.outs if v in uses and not _fused(op.name, names.get(v, ["", ""]))]
        for value in made:
            live[graph.cluster[value]] += _bytes(value)
        if op.body is not None:
            yield from _moments(graph, op.body, live)
        yield Counter(live)
        for value in {v for v in (*op.ins, *op.outs) if isinstance(v, Value)}:
            if uses.get(value, i) == i and (value not in op.outs or value in made):
                choice = graph.cluster[value]
                # Never below what stands outside: a fused value was not counted.
                live[choice] = max(live[choice] - _bytes(value), outside[choice])


def _fused(name: str, consumers: list[str]) -> bool:
    """XLA computes it inside its only consumer."""
    return name in FUSED and len(consumers) == 1 and (consumers[0] in FUSED or consumers[0] in REDUCTIONS)
