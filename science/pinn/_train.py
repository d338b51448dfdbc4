"""Training: a first-order method on a pool of points, then a second-order one in rounds: new points, kept curvature."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Key

from sciax.core.errors import InputError, PrecisionError, did_you_mean
from sciax.core.train import fit, soap
from sciax.science.pinn._balance import BALANCES, Saddle, check_balance
from sciax.science.pinn._causal import causal_weights
from sciax.science.pinn._resample import resampling
from sciax.science.pinn._stages import Functions, stage
from sciax.science.pinn._system import Model, Prepared, System

WARM_UPS: dict[str, Callable[[Any], optax.GradientTransformation]] = {"adam": optax.adam, "soap": soap}
BALANCE_EVERY = 250  # steps of the warm-up between two computations of the weights
BALANCE_KEEP = 0.5  # of the former weights


@dataclass(frozen=True)
class TrainOptions:
    """How to train.

    Attributes:
        points: residual points; boundary terms get a quarter of it.
        adam: steps of the warm-up, on minibatches of `points` from a pool four times as large.
        learning_rate: at its start; it falls tenfold.
        iterations: of the optimizer at most; None for its own number (`STAGES`).
        renew: new points after so many of them; None for its own number.
        target: stop below this loss.
        seconds: stop (after the present round) past this many seconds.
        weights: of the terms, in the order of `system.terms`; equations first.
        causal: strength of causal weights in time; 0 for none.
        optimizer: a key of `STAGES`.
        warm_up: a key of `WARM_UPS`.
        resample: a key of `RESAMPLING`.
        balance: a key of `BALANCES`: weights of the terms found in training, times `weights`.

    Raises:
        InputError: an unknown key, or counts below zero.
    """

    points: int = 2500
    adam: int = 1000
    learning_rate: float = 5e-3
    iterations: int | None = None
    renew: int | None = None
    target: float = 0.0
    seconds: float | None = None
    weights: tuple[float, ...] | None = None
    causal: float = 0.0
    optimizer: str = "ssbroyden"
    warm_up: str = "adam"
    resample: str = "rad"
    balance: str = "none"

    def __post_init__(self) -> None:
        stage(self.optimizer)
        resampling(self.resample)
        check_balance(self.balance)
        if self.warm_up not in WARM_UPS:
            raise InputError(f"unknown warm-up {self.warm_up!r}", remedy=did_you_mean(str(self.warm_up), WARM_UPS))
        if (
            self.points < 1
            or self.adam < 0
            or (self.iterations or 0) < 0
            or (self.renew is not None and self.renew < 1)
        ):
            raise InputError(
                "counts of points, steps and iterations",
                got=f"points={self.points}, adam={self.adam}, iterations={self.iterations}, renew={self.renew}",
            )


@dataclass
class TrainInfo:
    """What happened.

    Attributes:
        loss: (steps,) after each step of the warm-up and each iteration of the optimizer.
        adam: how many of them are the warm-up's.
        iterations: of the optimizer.
        value: the last loss, at the points of the last round.
        fresh: the loss at new, evenly spread points: what the error should be judged by.
        reason: "iterations", "target", "seconds" or "stalled".
        seconds, cpu_seconds: wall and processor time.
        optimizer: its name in words.
        balance: weights of the terms that training found.
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
    optimizer: str = ""
    balance: tuple[float, ...] = ()


class Trainer:
    """Trains the model of a system; calls go on where the last one ended."""

    def __init__(self, system: System, options: TrainOptions, seed: int):
        self.system, self.options = system, options
        self.rng = np.random.default_rng(seed)
        self.functions = Functions(system)
        self.balance = jnp.ones(len(system.terms), system.dtype)
        self._now: np.ndarray | None = None
        self._magnitude = jax.jit(
            lambda model, data: jnp.sqrt(jnp.sum(system.residual(system.terms[0], model, data) ** 2, axis=0))
        )
        balance = BALANCES[options.balance]
        self._balance = None if balance is None else jax.jit(lambda m, prepared: balance(system, m, prepared))
        if options.weights is not None and len(options.weights) != len(system.terms):
            raise InputError(
                "one weight for each term",
                got=len(options.weights),
                expected=", ".join(term.name for term in system.terms),
            )

    def counts(self) -> list[int]:
        quarter = max(32, self.options.points // 4)
        return [self.options.points] + [quarter] * (len(self.system.terms) - 1)

    def weights(self) -> Array:
        given = self.options.weights or (1.0,) * len(self.system.terms)
        return jnp.asarray(given, self.system.dtype) * self.balance

    def rebalance(self, model: Model, prepared: tuple[Prepared, ...]) -> None:
        """Weights of the terms at the present model, averaged with those of before."""
        if self._balance is not None:
            self.balance = BALANCE_KEEP * self.balance + (1 - BALANCE_KEEP) * self._balance(model, prepared)

    def even(self, factor: int = 1) -> tuple[Prepared, ...]:
        """New points, evenly spread."""
        return tuple(
            self.system.prepare(term, *term.draw(factor * count, self.rng))
            for term, count in zip(self.system.terms, self.counts(), strict=True)
        )

    def adapted(self, model: Model) -> tuple[Prepared, ...]:
        """New points, the equations' as `resample` says."""
        system, term, count = self.system, self.system.terms[0], self.counts()[0]

        def size(points: np.ndarray) -> np.ndarray:
            return np.asarray(self._magnitude(model, system.prepare(term, points, None)))

        draw = lambda n: term.draw(n, self.rng)[0]  # noqa: E731
        self._now = points = resampling(self.options.resample)(draw, size, self._now, count, self.rng)
        rest = [
            system.prepare(t, *t.draw(n, self.rng)) for t, n in zip(system.terms[1:], self.counts()[1:], strict=True)
        ]
        weights = None
        if self.options.causal:
            # The bins' means come from evenly spread points: those drawn by residual are biased.
            frame = system.frame
            span = float(frame.lower[-1]), float(frame.upper[-1])
            spread = draw(2 * count)
            at = np.concatenate([spread, points], axis=1)
            square = jnp.asarray(size(at)) ** 2
            weights = causal_weights(square, jnp.asarray(at[-1]), *span, self.options.causal, judges=2 * count)[
                2 * count :
            ]
        return (system.prepare(term, points, None, weights), *rest)

    def warm_up(self, model: Model, key: Key[Array, ""]) -> tuple[Model, np.ndarray]:
        """The first-order method; every step takes its own points from the pool of the equations."""
        o, system = self.options, self.system
        pool = self.even(4)
        schedule = optax.exponential_decay(o.learning_rate, max(1, o.adam), 0.1)
        method = WARM_UPS[o.warm_up](schedule)
        if o.balance == "self-adaptive":
            # The weights belong to points: all of them take part in every step.
            pool = self.even()
            weights = self.weights()
            saddle = lambda s, batch, key: s.loss(system, *batch)  # noqa: E731
            result = fit(
                Saddle.start(model, pool),
                saddle,
                lambda key, step: (pool, weights),
                method,
                o.adam,
                key=key,
                label=o.warm_up,
            )
            self.balance = result.model.terms()
            return result.model.model, np.asarray(result.history["loss"])
        count = o.points
        span = (float(system.frame.lower[-1]), float(system.frame.upper[-1])) if o.causal else (0.0, 1.0)

        def loss(carried: tuple[Model, Array], batch: Any, key: Any) -> Array:
            model, (first, *rest) = carried[0], batch
            if o.causal:
                now = causal_weights(self._magnitude(model, first) ** 2, first.points[-1], *span, o.causal)
                first = eqx.tree_at(lambda p: p.weights, first, now)
            return system.loss(model, ((first, *rest), jax.lax.stop_gradient(carried[1])))

        def draw(key: Key[Array, ""], step: Array) -> Any:
            start = jax.random.randint(key, (), 0, pool[0].points.shape[1] - count + 1)
            first = jax.tree.map(lambda v: jax.lax.dynamic_slice_in_dim(v, start, count, axis=-1), pool[0])
            return (first, *pool[1:])

        # The weights of the terms travel as parameters whose gradient is zero: renewed, they need no other program.
        state, losses, done = None, [], 0
        part = o.adam if self._balance is None else BALANCE_EVERY
        while done < o.adam:
            self.rebalance(model, pool)
            steps = min(part, o.adam - done)
            carried = (model, self.weights())
            if state is not None:
                state = eqx.tree_at(lambda s: s.params[1], state, carried[1])
            result = fit(
                carried,
                loss,
                draw,
                method,
                done + steps,
                key=jax.random.fold_in(key, done),
                state=state,
                label=o.warm_up,
            )
            state, model, done = result.state, result.model[0], done + steps
            losses.append(np.asarray(result.history["loss"]))
        return model, np.concatenate(losses)

    def run(self, key: Key[Array, ""], *, watch: Any = None, start: Model | None = None) -> tuple[Model, TrainInfo]:
        """Train from the system's first model, or from one given.

        Args:
            watch: called as watch(model, iterations, loss) after each round.

        Raises:
            PrecisionError: a second-order method in less than float64.
        """
        o, system = self.options, self.system
        chosen = stage(o.optimizer)
        iterations = chosen.iterations if o.iterations is None else o.iterations
        renew = o.renew or chosen.renew
        if iterations and system.dtype != jnp.float64:
            raise PrecisionError(
                f"{chosen.label} needs float64",
                got=str(system.dtype),
                remedy="solve inside `with sciax.core.x64():`, or iterations=0 for Adam alone",
            )
        if o.causal and not system.frame.timed:
            raise InputError("causal weights need a problem in time", got=f"causal={o.causal}")
        wall, cpu = time.perf_counter(), time.process_time()
        model, losses = system.model if start is None else start, []
        if o.adam:
            model, history = self.warm_up(model, key)
            losses.append(history)
        params, static = eqx.partition(model, eqx.is_inexact_array)
        state: Any = None
        done, reason, value = 0, "iterations", float(losses[0][-1]) if losses else np.inf
        if watch is not None:
            watch(model, 0, value)
        while done < iterations:
            points = self.adapted(model)
            self.rebalance(model, points)
            batch = (points, self.weights())
            result = chosen.run(self.functions, params, batch, min(renew, iterations - done), state)
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
            if bool(result.stalled) and taken <= renew // 10:
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
            optimizer=chosen.label,
            balance=tuple(float(w) for w in self.balance),
        )
        return model, info
