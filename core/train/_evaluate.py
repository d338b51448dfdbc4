"""Evaluation between chunks, and the best model so far."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key, PyTree

from sciax.core.errors import InputError
from sciax.core.train._step import TrainState


@dataclass(frozen=True)
class Evaluation:
    """Evaluate `fn(model, key) -> scalar or {name: scalar}` every `every` steps (compiled; the averaged model if there is one).

    With `keep_best` the model of the lowest `metric` so far is kept and returned as `FitResult.best`.
    """

    fn: Callable[[Any, Key[Array, ""]], Any]
    every: int = 100
    metric: str = "loss"
    maximize: bool = False
    keep_best: bool = True


class Evaluator:
    """Runs an `Evaluation` and remembers.

    Attributes:
        results: one dict an evaluation, with "step".
        best_value, best_params: of the best evaluation so far, None before the first.
    """

    def __init__(self, evaluation: Evaluation, static: PyTree):
        self.evaluation = evaluation
        self.results: list[dict[str, float]] = []
        self.best_value: float | None = None
        self.best_params: PyTree = None

        @jax.jit
        def score(params, key):
            values = evaluation.fn(eqx.combine(params, static), key)
            return values if isinstance(values, dict) else {evaluation.metric: values}

        self._score = score

    def __call__(self, state: TrainState, key: Key[Array, ""], step: int) -> dict[str, float]:
        """Evaluate the averaged parameters, or the parameters where there is no average."""
        params = state.params if state.ema is None else state.ema
        values = {
            name: float(value) for name, value in self._score(params, jax.random.fold_in(key, state.step)).items()
        }
        metric = self.evaluation.metric
        if metric not in values:
            raise InputError(f"the evaluation gives no {metric!r}", got=sorted(values))
        self.results.append({"step": step, **values})
        value = -values[metric] if self.evaluation.maximize else values[metric]
        if self.evaluation.keep_best and (self.best_value is None or value < self.best_value):
            self.best_value, self.best_params = value, jax.tree.map(jnp.array, params)
        return values
