"""The graph as a mixed integer linear program, solved by HiGHS; equal parts of the program share their variables."""

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse

from sciax.core.errors import ConvergenceError
from sciax.core.parallel.search._graph import Choice, Edge, Graph

MANY = 20_000
"""Size of a program (pairs of options over its edges) above which equal parts share their variables."""

ROUNDS = 3
"""Steps that the comparison of two choices looks around."""

PERIOD = 2
"""Equal choices are tied every second one: a stack of square layers may then split columns and rows in turn."""


@dataclass(frozen=True)
class Solution:
    """Attributes:
    chosen: option of each choice.
    objective: seconds.
    gap: (objective - bound) / objective, as proved by the solver.
    variables, constraints: of the linear program.
    seconds: that building and solving took.
    """

    chosen: dict[Choice, int]
    objective: float
    gap: float
    variables: int
    constraints: int
    tied: bool
    seconds: float


Row = tuple[Mapping[Choice, np.ndarray], float]
"""Bytes by option of each choice, and their bound."""


def pairs(graph: Graph) -> int:
    return sum(edge.cost.size for edge in graph.edges if min(edge.cost.shape) > 1)


def solve(
    graph: Graph, rows: Sequence[Row] = (), *, tie: bool | None = None, gap: float = 1e-4, limit: float = 60.0
) -> Solution | None:
    """The cheapest choice under `rows`, or None where there is none.

    Raises:
        ConvergenceError: none found within `limit` seconds.
    """
    start = time.perf_counter()
    tied = pairs(graph) > MANY if tie is None else tie
    owner = _classes(graph) if tied else {choice: choice for choice in graph.choices}
    program = _Program()
    where: dict[Choice, np.ndarray] = {}
    cost: dict[Choice, np.ndarray] = {}
    for choice in graph.choices:
        head = owner[choice]
        cost[head] = cost[head] + choice.cost if head in cost else choice.cost
    for head, seconds in cost.items():
        where[head] = program.add(1e6 * seconds, integer=True)
        program.equal([(where[head], 1.0)], 1.0)
    _edges(graph, owner, where, program)
    for weights, bound in rows:
        total: dict[Choice, np.ndarray] = {}
        for choice, bytes_of in weights.items():
            head = owner[choice]
            total[head] = total[head] + bytes_of if head in total else bytes_of
        program.below([(where[head], w / bound) for head, w in total.items()], 1.0)
    result = program.run(gap, limit)
    took = time.perf_counter() - start
    if result.status == 2:
        return None
    if result.x is None:
        raise ConvergenceError(
            f"the search for a plan found none in {limit:g} s",
            got=result.message,
            remedy="a longer limit, fewer mesh axes, or more placements given beforehand",
        )
    chosen = {choice: int(np.argmax(result.x[where[owner[choice]]])) for choice in graph.choices}
    found = float(result.mip_gap) if result.mip_gap is not None else 0.0
    return Solution(chosen, 1e-6 * float(result.fun), found, program.size, program.height, tied, took)


def _classes(graph: Graph) -> dict[Choice, Choice]:
    """Choices that look alike, `ROUNDS` steps around them, share variables, every `PERIOD`-th of a kind.

    Colour refinement after Weisfeiler & Leman (1968).
    """
    colour: dict[Choice, int] = {}
    seen: dict[Any, int] = {}

    def number(label: Any) -> int:
        return seen.setdefault(label, len(seen))

    for choice in graph.choices:
        colour[choice] = number(choice.label)
    around: dict[Choice, list[tuple[Any, Choice]]] = defaultdict(list)
    for edge in graph.edges:
        label = number(("edge", edge.label, edge.times))
        around[edge.left].append(((label, 0), edge.right))
        around[edge.right].append(((label, 1), edge.left))
    for _ in range(ROUNDS):
        colour = {
            choice: number((colour[choice], tuple(sorted({(label, colour[other]) for label, other in around[choice]}))))
            for choice in graph.choices
        }
    count: Counter[int] = Counter()
    heads: dict[tuple[int, int], Choice] = {}
    owner = {}
    for choice in graph.choices:
        kind = colour[choice]
        owner[choice] = heads.setdefault((kind, count[kind] % PERIOD), choice)
        count[kind] += 1
    return owner


def _edges(
    graph: Graph, owner: Mapping[Choice, Choice], where: Mapping[Choice, np.ndarray], program: "_Program"
) -> None:
    """A flow for each pair of options; its sums are the choices at both ends.

    A value that several ask for in one layout is sent once.
    """
    alike: dict[Any, list[Edge]] = defaultdict(list)
    for edge in graph.edges:
        alike[owner[edge.left], owner[edge.right], edge.label].append(edge)
    # Consumers of each value, by kind of edge.
    asked: dict[Any, set[Any]] = defaultdict(set)
    for key, edges in alike.items():
        for edge in edges:
            if edge.shared is not None:
                asked[edge.shared[0], edge.times].add(key)
    together: Counter[Any] = Counter()
    for (_, times), keys in asked.items():
        together[frozenset(keys)] += times
    alone: Counter[Any] = Counter()
    for keys, weight in together.items():
        if len(keys) == 1:
            alone[next(iter(keys))] += weight
    for key, edges in alike.items():
        if edges[0].shared is None:
            alone[key] += sum(edge.times for edge in edges)
    flows: dict[Any, np.ndarray] = {}
    for key, edges in alike.items():
        edge = edges[0]
        flow = program.add(1e6 * alone[key] * edge.cost.ravel()).reshape(edge.cost.shape)
        flows[key] = flow
        for side, group, sums in ((key[0], edge.left_group, flow), (key[1], edge.right_group, flow.T)):
            for i, part in enumerate(sums):
                options = where[side][group == i]
                program.equal([(part, 1.0), (options, -1.0)], 0.0)
    for keys, weight in together.items():
        if len(keys) == 1:
            continue
        paid: dict[Any, np.ndarray] = {}
        for key in keys:
            edge = alike[key][0]
            assert edge.shared is not None
            for j, layout in enumerate(edge.shared[1]):
                column = edge.cost[:, j]
                if not column.any():
                    continue
                if layout not in paid:
                    paid[layout] = program.add(1e6 * weight * column)
                program.dominate(paid[layout], flows[key][:, j])


class _Program:
    """A linear program in the making."""

    def __init__(self) -> None:
        self.size = self.height = 0
        self._cost: list[np.ndarray] = []
        self._integer: list[np.ndarray] = []
        self._entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._low: list[np.ndarray] = []
        self._high: list[np.ndarray] = []

    def add(self, cost: np.ndarray, integer: bool = False) -> np.ndarray:
        """New variables in [0, 1]; their numbers."""
        numbers = np.arange(self.size, self.size + len(cost))
        self.size += len(cost)
        self._cost.append(np.asarray(cost, float))
        self._integer.append(np.full(len(cost), int(integer)))
        return numbers

    def _row(self, terms: Sequence[tuple[np.ndarray, Any]], low: float, high: float) -> None:
        columns = np.concatenate([numbers for numbers, _ in terms])
        values = np.concatenate([np.broadcast_to(weight, numbers.shape) for numbers, weight in terms])
        self._entries.append((np.full(len(columns), self.height), columns, values))
        self._low.append(np.array([low]))
        self._high.append(np.array([high]))
        self.height += 1

    def equal(self, terms: Sequence[tuple[np.ndarray, Any]], value: float) -> None:
        self._row(terms, value, value)

    def below(self, terms: Sequence[tuple[np.ndarray, Any]], value: float) -> None:
        self._row(terms, -np.inf, value)

    def dominate(self, large: np.ndarray, small: np.ndarray) -> None:
        """large >= small, entry by entry."""
        n = len(large)
        rows = np.arange(self.height, self.height + n)
        self._entries.append((np.tile(rows, 2), np.concatenate([large, small]), np.repeat([1.0, -1.0], n)))
        self._low.append(np.zeros(n))
        self._high.append(np.full(n, np.inf))
        self.height += n

    def run(self, gap: float, limit: float) -> Any:
        rows, columns, values = (np.concatenate(parts) for parts in zip(*self._entries, strict=True))
        matrix = scipy.sparse.csr_array((values, (rows, columns)), shape=(self.height, self.size))
        return scipy.optimize.milp(
            np.concatenate(self._cost),
            integrality=np.concatenate(self._integer),
            bounds=scipy.optimize.Bounds(0, 1),
            constraints=scipy.optimize.LinearConstraint(matrix, np.concatenate(self._low), np.concatenate(self._high)),
            options={"mip_rel_gap": gap, "time_limit": limit},
        )
