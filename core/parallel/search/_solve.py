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
from sciax.core.parallel.search._bound import Bound
from sciax.core.parallel.search._graph import Choice, Edge, Graph

MANY = 20_000
"""Size of a program (pairs of options over its edges) above which equal parts share their variables."""

FEW = 5_000
"""Size above which message passing narrows the options first."""

KEPT = 25_000
"""Size that is left to the exact solver."""

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
    problem = _Problem(graph, owner, rows)
    bound, keep = -np.inf, {head: np.ones(len(head.options), bool) for head in problem.cost}
    if pairs(graph) > FEW:
        bound, keep = problem.narrowed()
    result, where, program = problem.exact(keep, gap, max(limit - (time.perf_counter() - start), 1.0))
    if result.status == 2 and np.isfinite(bound):
        # What was left out may be what fits in memory.
        problem.left_out, keep = np.inf, {head: np.ones(len(head.options), bool) for head in problem.cost}
        result, where, program = problem.exact(keep, gap, max(limit - (time.perf_counter() - start), 1.0))
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
    found = float(result.fun)
    least = float(result.mip_dual_bound) if result.mip_dual_bound is not None else found
    if np.isfinite(bound):
        # Options were left out: what was left out costs at least `bound`.
        least = max(min(least, problem.left_out), bound)
    return Solution(
        chosen, 1e-6 * found, max(found - least, 0.0) / max(found, 1e-30), program.size, program.height, tied, took
    )


class _Problem:
    """Choices that are tied merged, equal edges merged; in microseconds."""

    def __init__(self, graph: Graph, owner: Mapping[Choice, Choice], rows: Sequence[Row]):
        self.cost: dict[Choice, np.ndarray] = {}
        for choice in graph.choices:
            head = owner[choice]
            self.cost[head] = self.cost.get(head, 0.0) + 1e6 * choice.cost
        self.rows: list[tuple[dict[Choice, np.ndarray], float]] = []
        for weights, bound in rows:
            total: dict[Choice, Any] = {}
            for choice, sizes in weights.items():
                total[owner[choice]] = total.get(owner[choice], 0.0) + sizes / bound
            self.rows.append((total, 1.0))
        self.edges: dict[Any, Edge] = {}
        asked: dict[Any, set[Any]] = defaultdict(set)
        self.alone: Counter[Any] = Counter()
        for edge in graph.edges:
            key = owner[edge.left], owner[edge.right], edge.label
            self.edges.setdefault(key, edge)
            if edge.shared is None:
                self.alone[key] += edge.times
            else:
                asked[edge.shared[0], edge.times].add(key)
        self.together: Counter[Any] = Counter()
        for (_, times), keys in asked.items():
            if len(keys) == 1:
                self.alone[next(iter(keys))] += times
            else:
                self.together[frozenset(keys)] += times
        self.left_out = np.inf

    def narrowed(self) -> tuple[float, dict[Choice, np.ndarray]]:
        """A lower bound, and the options that may be in a plan as cheap as one already found.

        Costs that several consumers share are split among them, and a bound on memory becomes a price: both only lower the
        bound. If too many options are left the dearest go too, and the gap tells.
        """
        heads = list(self.cost)
        number = {head: i for i, head in enumerate(heads)}
        weight: dict[Any, float] = defaultdict(float, self.alone)
        for keys, times in self.together.items():
            for key in keys:
                weight[key] += times / len(keys)
        factors = [
            (number[key[0]], number[key[1]], 1e6 * weight[key] * edge.cost[np.ix_(edge.left_group, edge.right_group)])
            for key, edge in self.edges.items()
        ]
        price, floor = 0.0, -np.inf
        best = (np.inf, -np.inf, [np.zeros(len(h.options)) for h in heads], [0] * len(heads))
        scale = sum(float(cost.min()) for cost in self.cost.values()) + 1.0
        for _ in range(12 if self.rows else 1):
            # The price of the memory of the fullest moment, that is where the bound is violated.
            unary = [self.cost[head].copy() for head in heads]
            for total, _ in self.rows:
                for head, sizes in total.items():
                    unary[number[head]] += price / len(self.rows) * sizes
            dual = Bound(unary, factors)
            reached = dual.rise(300) - price
            chosen = self._improved(heads, dual.decode(), unary, factors)
            fits = all(sum(float(s[chosen[number[h]]]) for h, s in t.items()) <= 1 for t, _ in self.rows)
            found = self._true(heads, number, chosen) if fits else np.inf
            if found < best[0] or (not np.isfinite(best[0]) and reached > best[1]):
                best = (found, max(reached, best[1]), dual.excess(), chosen)
                floor = reached
            if fits:
                break
            price = 4 * price if price else 0.05 * scale
        upper, bound, excess, chosen = best
        room = (upper - floor) * (1 + 1e-9) + 1e-9 if np.isfinite(upper) else np.inf
        for over, option in zip(excess, chosen, strict=True):
            over[option] = -1.0  # stays, so that the best choice so far remains possible
        together = np.concatenate(excess)
        order = np.argsort(together, kind="stable")
        ordered = together[order]
        ranked = np.split(np.argsort(order), np.cumsum([len(over) for over in excess])[:-1])

        def kept(count: int) -> dict[Choice, np.ndarray]:
            return {head: rank < count for head, rank in zip(heads, ranked, strict=True)}

        least, most = len(heads), int(np.searchsorted(ordered, room, side="right"))
        if self._size(kept(most)) > KEPT:
            # The dearest go too, equally dear ones by their order.
            while most - least > 1:
                middle = (most + least) // 2
                most, least = (middle, least) if self._size(kept(middle)) > KEPT else (most, middle)
            most = least
            self.left_out = floor + max(float(ordered[most]), 0.0)
        return bound, kept(most)

    def _size(self, keep: Mapping[Choice, np.ndarray]) -> int:
        """Pairs of options of the exact program."""
        total = 0
        for (left, right, _), edge in self.edges.items():
            total += len(np.unique(edge.left_group[keep[left]])) * len(np.unique(edge.right_group[keep[right]]))
        return total

    def _true(self, heads: Sequence[Choice], number: Mapping[Choice, int], chosen: Sequence[int]) -> float:
        """The cost of a choice, shared costs counted once."""

        def at(key: Any) -> tuple[Edge, int, int]:
            edge = self.edges[key]
            return edge, int(edge.left_group[chosen[number[key[0]]]]), int(edge.right_group[chosen[number[key[1]]]])

        total = sum(float(self.cost[head][x]) for head, x in zip(heads, chosen, strict=True))
        for key, times in self.alone.items():
            edge, i, j = at(key)
            total += 1e6 * times * float(edge.cost[i, j])
        for keys, times in self.together.items():
            once: dict[Any, float] = {}
            for key in keys:
                edge, i, j = at(key)
                assert edge.shared is not None
                once[edge.shared[1][j]] = float(edge.cost[i, j])
            total += 1e6 * times * sum(once.values())
        return total

    @staticmethod
    def _improved(
        heads: Sequence[Choice], chosen: list[int], unary: Sequence[np.ndarray], factors: Sequence[Any]
    ) -> list[int]:
        """One choice after another changed for the better, until none is."""
        around: list[list[tuple[int, np.ndarray]]] = [[] for _ in heads]
        own = [cost.copy() for cost in unary]
        for i, j, cost in factors:
            if i == j:
                own[i] += np.diagonal(cost)
            else:
                around[i].append((j, cost))
                around[j].append((i, cost.T))
        for _ in range(20):
            before = list(chosen)
            for i, cost in enumerate(own):
                total = cost + sum((m[:, chosen[j]] for j, m in around[i]), np.zeros(len(cost)))
                if total.min() < total[chosen[i]] - 1e-9:
                    chosen[i] = int(np.argmin(total))
            if chosen == before:
                break
        return chosen

    def exact(self, keep: Mapping[Choice, np.ndarray], gap: float, limit: float) -> tuple[Any, Any, "_Program"]:
        """The mixed integer program over the kept options."""
        program = _Program()
        where: dict[Choice, np.ndarray] = {}
        for head, cost in self.cost.items():
            where[head] = program.add(cost, integer=True, upper=keep[head])
            program.equal([(where[head], 1.0)], 1.0)
        flows: dict[Any, np.ndarray] = {}
        for key, edge in self.edges.items():
            left, right = keep[key[0]], keep[key[1]]
            possible = np.ix_(
                [left[edge.left_group == i].any() for i in range(edge.cost.shape[0])],
                [right[edge.right_group == j].any() for j in range(edge.cost.shape[1])],
            )
            flow = np.full(edge.cost.shape, -1)
            flow[possible] = program.add(1e6 * self.alone[key] * edge.cost[possible].ravel()).reshape(
                edge.cost[possible].shape
            )
            flows[key] = flow
            for head, group, sums in ((key[0], edge.left_group, flow), (key[1], edge.right_group, flow.T)):
                for i, part in enumerate(sums):
                    if (part >= 0).any():
                        program.equal([(part[part >= 0], 1.0), (where[head][group == i], -1.0)], 0.0)
        for keys, times in self.together.items():
            paid: dict[Any, np.ndarray] = {}
            for key in keys:
                edge, flow = self.edges[key], flows[key]
                assert edge.shared is not None
                for j, layout in enumerate(edge.shared[1]):
                    column, used = edge.cost[:, j], flow[:, j] >= 0
                    if not column.any() or not used.any():
                        continue
                    if layout not in paid:
                        paid[layout] = program.add(1e6 * times * column)
                    program.dominate(paid[layout][used], flow[used, j])
        for total, most in self.rows:
            program.below([(where[head], sizes) for head, sizes in total.items()], most)
        return program.run(gap, limit), where, program


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


class _Program:
    """A linear program in the making."""

    def __init__(self) -> None:
        self.size = self.height = 0
        self._cost: list[np.ndarray] = []
        self._upper: list[np.ndarray] = []
        self._integer: list[np.ndarray] = []
        self._entries: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._low: list[np.ndarray] = []
        self._high: list[np.ndarray] = []

    def add(self, cost: np.ndarray, integer: bool = False, upper: Any = 1.0) -> np.ndarray:
        """New variables in [0, upper]; their numbers."""
        numbers = np.arange(self.size, self.size + len(cost))
        self.size += len(cost)
        self._cost.append(np.asarray(cost, float))
        self._upper.append(np.broadcast_to(np.asarray(upper, float), (len(cost),)))
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
            bounds=scipy.optimize.Bounds(0, np.concatenate(self._upper)),  # type: ignore[arg-type]
            constraints=(matrix, np.concatenate(self._low), np.concatenate(self._high)),
            options={"mip_rel_gap": gap, "time_limit": limit},
        )
