"""A lower bound and a good choice by message passing, before the exact solver: what cannot be in the best plan is left out.

Sequential reweighted message passing (Kolmogorov 2015, IEEE TPAMI 37:919; for pairs it is TRW-S, 2006) moves cost between
choices and the edges that join them so that the sum of all minima, a lower bound, rises.
"""

from collections.abc import Callable, Sequence

import numpy as np

SWEEPS = 10
"""Between two looks at the bound."""

Sides = list[list[tuple[int, np.ndarray]]]
"""For each choice its neighbours on one side, and the cost by its option and theirs."""

Pair = tuple[int, int, np.ndarray]
"""Two choices and the cost of each pair of their options."""


class Bound:
    """min over x of sum_i unary[i][x_i] + sum_(i, j) cost[x_i, x_j], bounded from below.

    Args:
        unary: cost of the options of each choice.
        pairs: several for one pair of choices are added up.
    """

    def __init__(self, unary: Sequence[np.ndarray], pairs: Sequence[Pair]):
        self.unary = [np.array(cost, float) for cost in unary]
        joined: dict[tuple[int, int], np.ndarray] = {}
        for i, j, cost in pairs:
            if i == j:
                self.unary[i] = self.unary[i] + np.diagonal(cost)
                continue
            key, matrix = ((i, j), cost) if i < j else ((j, i), cost.T)
            joined[key] = joined[key] + matrix if key in joined else np.array(matrix, float)
        self.pairs = joined
        self._back: Sides = [[] for _ in self.unary]
        self._ahead: Sides = [[] for _ in self.unary]
        for (i, j), matrix in joined.items():
            self._ahead[i].append((j, matrix))
            self._back[j].append((i, matrix.T))  # a view: both see every update

    @property
    def value(self) -> float:
        return sum(float(u.min()) for u in self.unary) + sum(float(m.min()) for m in self.pairs.values())

    def _sweep(self, order: Sequence[int], behind: Sides, ahead: Sides) -> None:
        """Each choice takes what the pairs behind it cost at least, and hands its cost on to those ahead."""
        for i in order:
            cost = self.unary[i]
            for _, matrix in behind[i]:
                least = matrix.min(axis=1)
                matrix -= least[:, None]
                cost = cost + least
            if ahead[i]:
                share = cost / max(len(ahead[i]), len(behind[i]))
                for _, matrix in ahead[i]:
                    matrix += share[:, None]
                cost = cost - share * len(ahead[i])
            self.unary[i] = cost

    def rise(self, sweeps: int, enough: Callable[[float], bool] = lambda bound: False) -> float:
        """Sweep to and fro until the bound is `enough` or stands still; the bound."""
        order = range(len(self.unary))
        best = self.value
        for _ in range(0, sweeps, SWEEPS):
            for _ in range(SWEEPS):
                self._sweep(order, self._back, self._ahead)
                self._sweep(order[::-1], self._ahead, self._back)
            now = self.value
            if enough(now) or now - best < 1e-5 * abs(now):
                return now
            best = now
        return best

    def decode(self) -> list[int]:
        """A choice, one after another, each the cheapest given those before."""
        chosen: list[int] = []
        for i, unary in enumerate(self.unary):
            cost = unary.copy()
            for j, matrix in self._back[i]:
                cost += matrix[:, chosen[j]]
            for _, matrix in self._ahead[i]:
                cost += matrix.min(axis=1)
            chosen.append(int(np.argmin(cost)))
        return chosen

    def excess(self) -> list[np.ndarray]:
        """By option: how far above the bound any choice with that option is at least."""
        found = []
        for i, unary in enumerate(self.unary):
            over = unary - unary.min()
            for _, matrix in (*self._ahead[i], *self._back[i]):
                over = over + matrix.min(axis=1) - matrix.min()
            found.append(over)
        return found
