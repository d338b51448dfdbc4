"""Training: Adam on a pool of points, then self-scaled Broyden in rounds, with points renewed and the inverse Hessian kept.

New points are drawn where the residual is large (residual-based adaptive distribution, Wu et al. 2023): from a pool of evenly
spread candidates with probability proportional to |r| / mean |r| + 1.
"""

import time
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Key

from sciax.core.errors import InputError, PrecisionError
from sciax.core.train import fit
from sciax.core.train.minimize import BroydenState, ssbroyden
from sciax.science.pinn._causal import causal_weights
from sciax.science.pinn._system import Model, Prepared, System


@dataclass(frozen=True)
class TrainOptions:
    """How to train.

    Attributes:
        points: residual points; boundary terms get a quarter of it.
        adam: steps of Adam, on minibatches of `points` from a pool four times as large.
        learning_rate: at its start; it falls tenfold.
        iterations: of self-scaled Broyden at most.
        renew: new points after so many of them.
        target: stop below this loss.
        seconds: stop (after the present round) past this many seconds.
        weights: of the terms, in the order of `system.terms`; equations first.
        causal: strength of causal weights in time; 0 for none.
    """

    points: int = 2500
    adam: int = 1000
    learning_rate: float = 5e-3
    iterations: int = 4000
    renew: int = 500
    target: float = 0.0
    seconds: float | None = None
    weights: tuple[float, ...] | None = None
    causal: float = 0.0


@dataclass
class TrainInfo:
    """What happened.

    Attributes:
        loss: (steps,) after each step of Adam and each iteration of Broyden.
        adam: how many of them are Adam's.
        iterations: of Broyden.
        value: the last loss, at the points of the last round.
        fresh: the loss at new, evenly spread points: what the error should be judged by.
        reason: "iterations", "target", "seconds" or "stalled".
        seconds, cpu_seconds: wall and processor time.
    """

    loss: np.ndarray
    adam: int
    iterations: int
    value: float
    fresh: float
    reason: str
    seconds: float
    cpu_seconds: float
    parameters: int
    notes: list[str] = field(default_factory=list)
    residual: float = 0.0


class _Objective:
    """`loss(params, batch)` of one system; kept, so that the compiled loop is found again."""

    def __init__(self, system: System):
        self.system = system

    def __call__(self, model: Model, batch: Any) -> Array:
        return self.system.loss(model, batch)


class Trainer:
    """Trains the model of a system; calls go on where the last one ended."""

    def __init__(self, system: System, options: TrainOptions, seed: int):
        self.system, self.options = system, options
        self.rng = np.random.default_rng(seed)
        self.objective = _Objective(system)
        self._magnitude = jax.jit(
            lambda model, data: jnp.sqrt(jnp.sum(system.residual(system.terms[0], model, data) ** 2, axis=0))
        )

    def counts(self) -> list[int]:
        quarter = max(32, self.options.points // 4)
        return [self.options.points] + [quarter] * (len(self.system.terms) - 1)

    def weights(self) -> Array:
        given = self.options.weights or (1.0,) * len(self.system.terms)
        return jnp.asarray(given, self.system.dtype)

    def even(self, factor: int = 1) -> tuple[Prepared, ...]:
        """New points, evenly spread."""
        return tuple(
            self.system.prepare(term, *term.draw(factor * count, self.rng))
            for term, count in zip(self.system.terms, self.counts(), strict=True)
        )

    def adapted(self, model: Model, pool: int = 8) -> tuple[Prepared, ...]:
        """New points, the equations' by their residual."""
        term, count = self.system.terms[0], self.counts()[0]
        candidates, _ = term.draw(pool * count, self.rng)
        size = np.asarray(self._magnitude(model, self.system.prepare(term, candidates, None)))
        chance = size / size.mean() + 1
        keep = self.rng.choice(candidates.shape[1], count, replace=False, p=chance / chance.sum())
        rest = [
            self.system.prepare(t, *t.draw(n, self.rng))
            for t, n in zip(self.system.terms[1:], self.counts()[1:], strict=True)
        ]
        weights = None
        if self.options.causal:
            frame, times = self.system.frame, jnp.asarray(candidates[-1])
            span = float(frame.lower[-1]), float(frame.upper[-1])
            weights = causal_weights(jnp.asarray(size) ** 2, times, *span, self.options.causal)[keep]
        return (self.system.prepare(term, candidates[:, keep], None, weights), *rest)

    def warm_up(self, model: Model, key: Key[Array, ""]) -> tuple[Model, np.ndarray]:
        """Adam; every step takes its own points from the pool of the equations."""
        o, system = self.options, self.system
        pool = self.even(4)
        count, weights = o.points, self.weights()

        def draw(key: Key[Array, ""], step: Array) -> Any:
            start = jax.random.randint(key, (), 0, pool[0].points.shape[1] - count + 1)
            first = jax.tree.map(lambda v: jax.lax.dynamic_slice_in_dim(v, start, count, axis=-1), pool[0])
            return (first, *pool[1:]), weights

        def loss(model: Model, batch: Any, key: Any) -> Array:
            if not o.causal:
                return system.loss(model, batch)
            (first, *rest), term_weights = batch
            square = self._magnitude(model, first) ** 2
            span = float(system.frame.lower[-1]), float(system.frame.upper[-1])
            now = causal_weights(square, first.points[-1], *span, o.causal)
            return system.loss(model, ((eqx.tree_at(lambda p: p.weights, first, now), *rest), term_weights))

        schedule = optax.exponential_decay(o.learning_rate, max(1, o.adam), 0.1)
        result = fit(
            model,
            loss,
            draw,
            optax.adam(schedule),
            o.adam,
            key=key,
            label="Adam",
        )
        return result.model, np.asarray(result.history["loss"])

    def run(self, key: Key[Array, ""], *, watch: Any = None) -> tuple[Model, TrainInfo]:
        """Train from the system's first model.

        Args:
            watch: called as watch(model, iterations, loss) after each round.

        Raises:
            PrecisionError: quasi-Newton in less than float64.
        """
        o, system = self.options, self.system
        if o.iterations and system.dtype != jnp.float64:
            raise PrecisionError(
                "self-scaled Broyden needs float64",
                got=str(system.dtype),
                remedy="solve inside `with sciax.core.x64():`, or iterations=0 for Adam alone",
            )
        if o.causal and not system.frame.timed:
            raise InputError("causal weights need a problem in time", got=f"causal={o.causal}")
        wall, cpu = time.perf_counter(), time.process_time()
        model, losses = system.model, []
        if o.adam:
            model, history = self.warm_up(model, key)
            losses.append(history)
        params, static = eqx.partition(model, eqx.is_inexact_array)
        state: BroydenState | None = None
        done, reason, value = 0, "iterations", float(losses[0][-1]) if losses else np.inf
        objective = self.objective
        if watch is not None:
            watch(model, 0, value)
        while done < o.iterations:
            batch = (self.adapted(model), self.weights())
            result = ssbroyden(
                objective,
                params,
                batch,
                iterations=min(o.renew, o.iterations - done),
                state=state,
                max_parameters=20000,
            )
            params, state = result.params, result.state
            model = eqx.combine(params, static)
            taken = int(result.taken)
            losses.append(np.asarray(result.history)[:taken])
            done, value = done + taken, float(result.value)
            if watch is not None:
                watch(model, done, value)
            if value <= o.target:
                reason = "target"
                break
            if bool(result.stalled) and taken < o.renew // 10:
                reason = "stalled"
                break
            if o.seconds is not None and time.perf_counter() - wall > o.seconds:
                reason = "seconds"
                break
        fresh = float(jax.jit(system.loss)(model, (self.even(), self.weights())))
        info = TrainInfo(
            loss=np.concatenate(losses) if losses else np.zeros(0),
            adam=o.adam,
            iterations=done,
            value=value,
            fresh=fresh,
            reason=reason,
            seconds=time.perf_counter() - wall,
            cpu_seconds=time.process_time() - cpu,
            parameters=sum(leaf.size for leaf in jax.tree.leaves(params)),
            notes=list(system.notes),
            residual=float(np.sqrt(fresh)),
        )
        return model, info
