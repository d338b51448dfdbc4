"""The training loop: compiled, many steps a call, resumable to the last bit."""

import json
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Key, PyTree

from sciax.core._mixed import LossScale, Policy
from sciax.core.errors import ConvergenceError, InputError
from sciax.core.parallel._initialize import beat
from sciax.core.train._batches import HostBatches, as_source
from sciax.core.train._callbacks import Callback, LogTo
from sciax.core.train._checkpoint import Checkpoints, CheckpointStore
from sciax.core.train._chunk import Placement, make_chunk
from sciax.core.train._evaluate import Evaluation, Evaluator
from sciax.core.train._feed import Feed
from sciax.core.train._step import Loss, TrainState, make_step

if TYPE_CHECKING:
    from sciax.core.jobs import Run

CAPACITY = 256
"""Longest chunk: steps between two looks at the metrics. Their buffer has this length whatever the chunk's."""

HOST_CAPACITY = 16
"""The same for batches from the host, which are stacked."""

CHUNK_SECONDS = 0.5
"""Aimed duration of a chunk: long against dispatch, short against a person's patience and an interrupt."""


@dataclass
class Progress:
    """What callbacks see and may say: `stop(reason)` ends the training after the present chunk."""

    step: int
    steps: int
    state: TrainState
    steps_per_second: float = 0.0
    alerts: list[str] = field(default_factory=list)
    reason: str = ""
    error: BaseException | None = None
    """What broke the training off, when callbacks are told that it has ended."""

    def stop(self, reason: str) -> None:
        self.reason = self.reason or reason


@dataclass(frozen=True)
class FitResult:
    """What a training gives back.

    Attributes:
        model: the trained model.
        ema: the model of averaged parameters, or None.
        best: the model of the best evaluation, or None.
        state: step, parameters, optimiser state: `fit(..., state=result.state)` goes on from it.
        history: name -> (steps of this call,) metrics of each step, "step" among them.
        evaluations: one dict an evaluation, with "step".
        reason: why it ended: "steps", or what a callback said.
    """

    model: Any
    ema: Any
    best: Any
    state: TrainState
    history: dict[str, np.ndarray]
    evaluations: list[dict[str, float]]
    reason: str
    alerts: list[str]


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, optax.GradientTransformation):
        raise InputError(
            "the optimizer is not an optax gradient transformation",
            got=type(optimizer).__name__,
            remedy="optax.adam(1e-3), say",
        )


def _check(steps: int, accumulate: int, ema: float | None) -> None:
    if steps < 1:
        raise InputError("steps is a positive number", got=steps)
    if accumulate < 1:
        raise InputError("accumulate is a positive number of parts", got=accumulate)
    if ema is not None and not 0 <= ema < 1:
        raise InputError("the decay of the average lies in [0, 1)", got=ema)


class _Memory:
    """What a checkpoint holds besides the state: key, best model, the callbacks' memories."""

    def __init__(
        self,
        checkpoint: Checkpoints,
        callbacks: Sequence[Callback],
        evaluator: Evaluator | None,
        log: LogTo | None,
        steps: int,
    ):
        self._log, self._steps, self._directory = log, steps, Path(checkpoint.directory)
        self._store = CheckpointStore(checkpoint.directory, keep=checkpoint.keep, keep_every=checkpoint.keep_every)
        self._callbacks = callbacks
        self._evaluator = evaluator if evaluator is not None and evaluator.evaluation.keep_best else None

    def _tree(self, state: TrainState, key: Key[Array, ""]) -> tuple[Any, ...]:
        if self._evaluator is None:
            return state, key
        best = self._evaluator.best_params
        return state, key, state.params if best is None else best

    def save(self, state: TrainState, key: Key[Array, ""]) -> None:
        best = None if self._evaluator is None else self._evaluator.best_value
        notes = {"best": best, "callbacks": [callback.state() for callback in self._callbacks]}
        if self._log is not None:
            notes["metrics"] = self._log.state()
        self._store.save(int(state.step), self._tree(state, key), notes)

    def latest(self, state: TrainState, key: Key[Array, ""]) -> tuple[TrainState, Key[Array, ""]]:
        """State and key to go on from: those of the latest checkpoint, else the given ones."""
        if self._store.latest is None:
            self._begin_log()
            return state, key
        loaded, notes = self._store.load(self._tree(state, key))
        if self._evaluator is not None and notes["best"] is not None:
            self._evaluator.best_value, self._evaluator.best_params = notes["best"], loaded[2]
        for callback, memory in zip(self._callbacks, notes["callbacks"], strict=True):
            callback.restore(memory)
        # A training that is done already leaves the lines of what came after it.
        if self._log is not None and "metrics" in notes and int(loaded[0].step) < self._steps:
            self._log.restore(notes["metrics"])
        return loaded[0], loaded[1]

    def _begin_log(self) -> None:
        """Remember where the metrics begin: a training killed before its first checkpoint writes them again from there."""
        if self._log is None:
            return
        note = self._directory / "metrics.json"
        if note.exists():
            self._log.restore(json.loads(note.read_text()))
        else:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps(self._log.state()))

    def close(self) -> None:
        self._store.close()


def fit(
    model: Any,
    loss: Loss,
    batches: Any,
    optimizer: optax.GradientTransformation,
    steps: int,
    *,
    key: Key[Array, ""] | None = None,
    plan: Placement | None = None,
    accumulate: int = 1,
    clip: float | None = None,
    ema: float | None = None,
    precision: Policy | str | None = None,
    evaluate: Evaluation | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Checkpoints | None = None,
    state: TrainState | None = None,
    run: "Run | None" = None,
    log_every: int = 10,
    label: str = "training",
) -> FitResult:
    """Train `model` for `steps` steps of `optimizer` on `loss(model, batch, key)`.

    The steps run inside one compiled loop, with no Python between them; Python looks at the metrics twice a second, writes
    them to `run`, calls the callbacks, evaluates and saves. With `checkpoint` a training that was killed goes on where its
    last checkpoint was and reaches the very same parameters, bit for bit, as one that was not: batch and randomness of a step
    depend on its number alone.

    Args:
        model: an Equinox module (or any pytree); its inexact arrays are trained.
        loss: `loss(model, batch, key)` -> real scalar, or (scalar, {name: scalar}).
        batches: arrays (used whole), `ArrayBatches`, `HostBatches`, or a traceable function `(key, step) -> batch`.
        optimizer: optax; those that need the value and a value function (L-BFGS) get them.
        steps: number of the last step, counted from the first call (a resumed training does the rest).
        key: of all randomness in the steps. Default `jax.random.key(0)`.
        plan: placement of parameters and batch over devices (sciax.core.parallel).
        accumulate: parts in which a batch is worked through, the gradient being their mean.
        clip: bound on the global norm of the gradient.
        precision: "bfloat16", "float16" (with dynamic loss scaling) or a `Policy`: the dtype of model and batch inside the loss;
            parameters and optimiser keep their own. Wrap sums and norms in `sciax.core.island`.
        ema: decay of an exponential moving average of the parameters.
        run: run directory of a job: progress bar and metrics go there.

    Raises:
        ConvergenceError: the loss or its gradient is not finite. The message names the step; `history` holds the losses.
        InputError, ShapeError: arguments that do not fit.
        FileFormatError: the checkpoint folder holds another model.
    """
    _check_optimizer(optimizer)
    _check(steps, accumulate, ema)
    if clip is not None:
        optimizer = optax.chain(optax.clip_by_global_norm(clip), optimizer)
    policy = Policy.named(precision) if isinstance(precision, str) else precision
    source = as_source(batches)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    if not jax.tree.leaves(params):
        raise InputError("the model holds no inexact arrays to train", got=type(model).__name__)

    # Copies: the loop gives its buffers away, and neither the caller's model nor two leaves that share one may be among them.
    now: TrainState = jax.tree.map(jnp.array, _start(params, optimizer, ema, policy) if state is None else state)
    own_key: Any = jax.random.key(0) if key is None else key
    everywhere = (lambda tree: tree) if plan is None else plan.replicate
    if plan is not None:
        now, own_key = plan.place(now), plan.replicate(own_key)

    placed = {} if plan is None else {"constrain_gradients": plan.constrain_gradients, "inside": plan.inside}
    step = make_step(static, loss, optimizer, accumulate=accumulate, ema_decay=ema, policy=policy, **placed)
    chunk = jax.jit(make_chunk(step, source, plan), donate_argnums=(0,))
    hosted = isinstance(source, HostBatches)
    capacity = min(HOST_CAPACITY if hosted else CAPACITY, steps)
    evaluator = None if evaluate is None else Evaluator(evaluate, static)
    log_to = None if run is None else LogTo(run, log_every)
    watchers = [*callbacks, *([] if log_to is None else [log_to])]
    intervals = [every.every for every in (evaluate, checkpoint) if every is not None]
    history: list[dict[str, np.ndarray]] = []

    def count_from(first: int, length: int) -> int:
        """Steps until Python has something to do, at most `length`."""
        return min([length, capacity, steps - first, *(every - first % every for every in intervals)])

    with ExitStack() as closing:
        memory = None if checkpoint is None else _Memory(checkpoint, callbacks, evaluator, log_to, steps)
        if memory is not None:
            closing.callback(memory.close)
            now, own_key = memory.latest(now, own_key)
        progress = Progress(step=int(now.step), steps=steps, state=now)
        log = everywhere(_empty_log(step, source, now, own_key, capacity))
        feed = Feed(source, capacity, everywhere)
        closing.callback(feed.close)
        bar = None if run is None else closing.enter_context(run.progress(label, total=steps))
        if bar is not None:
            bar.advance(progress.step)
        for watcher in watchers:
            watcher.on_start(progress)
            closing.callback(watcher.on_end, progress)
        length = capacity if hosted else 1
        try:
            while progress.step < steps and not progress.reason:
                first = progress.step
                count = count_from(first, length)
                data = feed.data(first, count, count_from(first + count, length) if first + count < steps else 0)
                start = time.perf_counter()
                now, filled, done = chunk(now, data, own_key, everywhere(jnp.asarray(count, jnp.int32)), log)
                done = int(done)
                seconds = time.perf_counter() - start
                metrics = {name: np.asarray(values)[:done] for name, values in filled.items()}
                numbers = np.arange(first + 1, first + done + 1)
                history.append({"step": numbers, **metrics})
                progress.step, progress.state, progress.steps_per_second = int(now.step), now, done / seconds
                if not bool(now.ok):
                    raise _not_finite(first + done, metrics, history)
                beat(progress.step)
                if bar is not None:
                    bar.advance(done)
                for watcher in watchers:
                    watcher.on_chunk(progress, numbers, metrics)
                last = progress.step == steps
                if evaluator is not None and (last or progress.step % evaluator.evaluation.every == 0):
                    values = evaluator(now, own_key, progress.step)
                    for watcher in watchers:
                        watcher.on_evaluation(progress, values)
                if checkpoint is not None and (last or progress.reason or progress.step % checkpoint.every == 0):
                    assert memory is not None
                    memory.save(now, own_key)
                if not hosted:
                    length = int(np.clip(done * CHUNK_SECONDS / max(seconds, 1e-6), 1, 4 * length))
        except BaseException as error:
            progress.error = error
            # An interrupt (Ctrl-C, a job's SIGTERM) saves. Between two chunks the state is whole; inside one its buffers are
            # given away and the last checkpoint counts.
            whole = not any(leaf.is_deleted() for leaf in jax.tree.leaves(progress.state))
            if memory is not None and not isinstance(error, Exception) and whole:
                memory.save(progress.state, own_key)
            raise

    best = None if evaluator is None else evaluator.best_params
    names = list(history[0]) if history else ["step", *log]
    return FitResult(
        model=eqx.combine(now.params, static),
        ema=None if now.ema is None else eqx.combine(now.ema, static),
        best=None if best is None else eqx.combine(best, static),
        state=now,
        history={name: np.concatenate([part[name] for part in history]) if history else np.zeros(0) for name in names},
        evaluations=[] if evaluator is None else evaluator.results,
        reason=progress.reason or "steps",
        alerts=progress.alerts,
    )


def _start(
    params: PyTree, optimizer: optax.GradientTransformation, ema: float | None, policy: Policy | None
) -> TrainState:
    average = None if ema is None else params
    scale = LossScale.start() if policy is not None and policy.needs_scaling else None
    return TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params), average, jnp.ones((), bool), scale)


def _empty_log(step: Any, source: Any, state: TrainState, key: Key[Array, ""], capacity: int) -> dict[str, Array]:
    """The buffer that a chunk writes its metrics into; only shapes are computed."""

    def first(number: Any, key: Any) -> Any:
        return source.take(source.begin(number), number, key)[0]

    batch = source.load(int(state.step)) if isinstance(source, HostBatches) else jax.eval_shape(first, state.step, key)
    _, metrics = jax.eval_shape(step, state, batch, key)
    return {name: jnp.zeros((capacity, *shape.shape), shape.dtype) for name, shape in metrics.items()}


def _not_finite(step: int, metrics: dict[str, np.ndarray], history: list[dict[str, np.ndarray]]) -> ConvergenceError:
    return ConvergenceError(
        f"the loss or its gradient is not finite at step {step}",
        got=f"loss {metrics['loss'][-1]}, gradient norm {metrics['grad_norm'][-1]}",
        remedy="a smaller learning rate, clip=1.0, or float64; the last checkpoint is of a good step",
        history=np.concatenate([part["loss"] for part in history]).tolist(),
    )
