"""The training loop: compiled, many steps a call, resumable to the last bit."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Int, Key, PyTree

from sciax.core._mixed import LossScale, Policy
from sciax.core.errors import ConvergenceError, InputError
from sciax.core.parallel._initialize import beat
from sciax.core.train._batches import HostBatches, as_source
from sciax.core.train._callbacks import Callback, LogTo
from sciax.core.train._checkpoint import Checkpoints, CheckpointStore
from sciax.core.train._step import Loss, TrainState, make_step

if TYPE_CHECKING:
    from sciax.core.jobs import Run

CAPACITY = 256
"""Longest chunk: steps between two looks at the metrics. Their buffer has this length whatever the chunk's."""

CHUNK_SECONDS = 0.5
"""Aimed duration of a chunk: long against dispatch, short against a person's patience and an interrupt."""


class Placement(Protocol):
    """How a plan of sciax.core.parallel takes part in a training."""

    def place(self, tree: PyTree) -> PyTree:
        """Arrays of the model, the optimiser and the averages, moved to where the plan has them."""
        ...

    def constrain(self, tree: PyTree) -> PyTree:
        """The same inside the compiled loop."""
        ...

    def replicate(self, tree: PyTree) -> PyTree:
        """Arrays on every device of every process."""
        ...

    def constrain_batch(self, batch: PyTree) -> PyTree:
        """The batch, split as the plan has it, inside the compiled loop."""
        ...

    def constrain_gradients(self, grads: PyTree) -> PyTree:
        """The gradients, where the optimiser wants them, inside the compiled loop."""
        ...


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


@dataclass
class Progress:
    """What callbacks see and may say: `stop(reason)` ends the training after the present chunk."""

    step: int
    steps: int
    state: TrainState
    steps_per_second: float = 0.0
    alerts: list[str] = field(default_factory=list)
    reason: str = ""

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


def _make_chunk(step, source, plan: Placement | None):
    """`chunk(state, source arrays, key, count, log)`: up to `count` steps in one compiled while loop, metrics into `log`.

    A loop of a run-time length compiles once, however the chunks are cut, and ends at the first loss that is not finite.
    """
    hosted = isinstance(source, HostBatches)
    rest = None if hosted else eqx.partition(source, eqx.is_array)[1]

    def chunk(state: TrainState, data: PyTree, key: Key[Array, ""], count: Int[Array, ""], log: dict[str, Array]):
        drawn = None if hosted else eqx.combine(data, rest)

        def go_on(carry):
            i, state, _, _ = carry
            return (i < count) & state.ok

        def body(carry):
            i, state, cache, log = carry
            step_key = jax.random.fold_in(key, state.step)
            if hosted:
                batch = jax.tree.map(lambda leaf: jax.lax.dynamic_index_in_dim(leaf, i, keepdims=False), data)
            else:
                batch, cache = drawn.take(cache, state.step, step_key)
            if plan is not None:
                # At both ends: XLA would else carry the state through the loop in a place of its own choice.
                batch, state = plan.constrain_batch(batch), plan.constrain(state)
            state, metrics = step(state, batch, step_key)
            if plan is not None:
                state = plan.constrain(state)
            log = {name: log[name].at[i].set(value) for name, value in metrics.items()}
            return i + 1, state, cache, log

        cache = None if hosted else drawn.begin(state.step)
        done, state, _, log = jax.lax.while_loop(go_on, body, (jnp.zeros((), jnp.int32), state, cache, log))
        return (state if plan is None else plan.constrain(state)), log, done

    return chunk


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
    if steps < 1:
        raise InputError("steps is a positive number", got=steps)
    if accumulate < 1:
        raise InputError("accumulate is a positive number of parts", got=accumulate)
    if ema is not None and not 0 <= ema < 1:
        raise InputError("the decay of the average lies in [0, 1)", got=ema)
    if clip is not None:
        optimizer = optax.chain(optax.clip_by_global_norm(clip), optimizer)
    policy = Policy.named(precision) if isinstance(precision, str) else precision
    key = jax.random.key(0) if key is None else key
    source = as_source(batches)
    params, static = eqx.partition(model, eqx.is_inexact_array)
    if not jax.tree.leaves(params):
        raise InputError("the model holds no inexact arrays to train", got=type(model).__name__)

    if state is None:
        average = None if ema is None else params
        scale = LossScale.start() if policy is not None and policy.needs_scaling else None
        state = TrainState(jnp.zeros((), jnp.int32), params, optimizer.init(params), average, jnp.ones((), bool), scale)
    # Copies: the loop gives its buffers away, and neither the caller's model nor two leaves that share one may be among them.
    state = jax.tree.map(jnp.array, state)
    everywhere = (lambda tree: tree) if plan is None else plan.replicate
    if plan is not None:
        state, key = plan.place(state), plan.replicate(key)
    best = {"value": None, "params": None}

    store = (
        CheckpointStore(checkpoint.directory, keep=checkpoint.keep, keep_every=checkpoint.keep_every)
        if checkpoint
        else None
    )
    progress = Progress(step=int(state.step), steps=steps, state=state)
    watchers = [*callbacks, *([LogTo(run, log_every)] if run is not None else [])]

    def saved_tree(state: TrainState):
        best_params = state.params if best["params"] is None else best["params"]
        return (state, key, best_params) if evaluate and evaluate.keep_best else (state, key)

    def save(state: TrainState) -> None:
        assert store is not None
        notes = {
            "best": best["value"],
            "callbacks": [watcher.state() for watcher in callbacks],
            "reason": progress.reason,
        }
        store.save(int(state.step), saved_tree(state), notes)

    if store is not None and store.latest is not None:
        loaded, notes = store.load(saved_tree(state))
        state, key = loaded[0], loaded[1]
        if notes["best"] is not None:
            best["value"], best["params"] = notes["best"], loaded[2]
        for watcher, memory in zip(callbacks, notes["callbacks"], strict=True):
            watcher.restore(memory)
        progress.step, progress.state = int(state.step), state

    placed = {} if plan is None else {"constrain_gradients": plan.constrain_gradients}
    step = make_step(static, loss, optimizer, accumulate=accumulate, ema_decay=ema, policy=policy, **placed)
    chunk = jax.jit(_make_chunk(step, source, plan), donate_argnums=(0,))
    hosted = isinstance(source, HostBatches)
    device_data = None if hosted else everywhere(eqx.filter(source, eqx.is_array))
    capacity = min(CAPACITY, 16 if hosted else CAPACITY, steps)

    def first_batch(step_number, step_key):
        return source.take(source.begin(step_number), step_number, step_key)[0]

    shapes = source.load(progress.step) if hosted else jax.eval_shape(first_batch, state.step, key)
    _, metric_shapes = jax.eval_shape(step, state, shapes, key)
    log = everywhere({name: jnp.zeros((capacity, *shape.shape), shape.dtype) for name, shape in metric_shapes.items()})
    history: list[dict[str, np.ndarray]] = []
    evaluations: list[dict[str, float]] = []

    if evaluate is not None:

        @jax.jit
        def score(params, key):
            values = evaluate.fn(eqx.combine(params, static), key)
            return values if isinstance(values, dict) else {evaluate.metric: values}

    def evaluate_now() -> None:
        assert evaluate is not None
        params = state.params if state.ema is None else state.ema
        values = {name: float(value) for name, value in score(params, jax.random.fold_in(key, state.step)).items()}
        if evaluate.metric not in values:
            raise InputError(f"the evaluation gives no {evaluate.metric!r}", got=sorted(values))
        evaluations.append({"step": progress.step, **values})
        value = -values[evaluate.metric] if evaluate.maximize else values[evaluate.metric]
        if evaluate.keep_best and (best["value"] is None or value < best["value"]):
            best["value"], best["params"] = value, jax.tree.map(jnp.array, params)
        for watcher in watchers:
            watcher.on_evaluation(progress, values)

    def boundary(now: int) -> int:
        """The next step at which Python has something to do."""
        stops = [steps]
        if evaluate is not None:
            stops.append((now // evaluate.every + 1) * evaluate.every)
        if checkpoint is not None:
            stops.append((now // checkpoint.every + 1) * checkpoint.every)
        return min(stops)

    pool = ThreadPoolExecutor(1) if hosted else None
    ahead: tuple[tuple[int, int], Future] | None = None

    def hosted_data(now: int, count: int) -> PyTree:
        """The stacked batches of this chunk; the next chunk's are loaded meanwhile."""
        nonlocal ahead
        assert pool is not None
        ready = ahead[1].result() if ahead and ahead[0] == (now, count) else source.stack(now, count, capacity)
        after = now + count
        if after < steps:
            next_count = min(capacity, boundary(after) - after)
            ahead = ((after, next_count), pool.submit(source.stack, after, next_count, capacity))
        return ready

    length = capacity if hosted else 1
    bar = run.progress(label, total=steps) if run is not None else None
    if bar is not None:
        bar.__enter__()
        bar.advance(progress.step)
    for watcher in watchers:
        watcher.on_start(progress)
    try:
        while progress.step < steps and not progress.reason:
            now = progress.step
            count = min(length, capacity, boundary(now) - now)
            data = everywhere(hosted_data(now, count)) if hosted else device_data
            start = time.perf_counter()
            state, filled, done = chunk(state, data, key, everywhere(jnp.asarray(count, jnp.int32)), log)
            done = int(done)
            seconds = time.perf_counter() - start
            metrics = {name: np.asarray(values)[:done] for name, values in filled.items()}
            numbers = np.arange(now + 1, now + done + 1)
            history.append({"step": numbers, **metrics})
            progress.step, progress.state, progress.steps_per_second = int(state.step), state, done / seconds
            if not bool(state.ok):
                raise ConvergenceError(
                    f"the loss or its gradient is not finite at step {now + done}",
                    got=f"loss {metrics['loss'][-1]}, gradient norm {metrics['grad_norm'][-1]}",
                    remedy="a smaller learning rate, clip=1.0, or float64; the last checkpoint is of a good step",
                    history=np.concatenate([part["loss"] for part in history]).tolist(),
                )
            beat(progress.step)
            if bar is not None:
                bar.advance(done)
            for watcher in watchers:
                watcher.on_chunk(progress, numbers, metrics)
            if evaluate is not None and (progress.step % evaluate.every == 0 or progress.step == steps):
                evaluate_now()
            if checkpoint is not None and (
                progress.step % checkpoint.every == 0 or progress.step == steps or progress.reason
            ):
                save(state)
            if not hosted:
                length = int(np.clip(done * CHUNK_SECONDS / max(seconds, 1e-6), 1, 4 * length))
    except BaseException as error:
        # An interrupt (Ctrl-C, a job's SIGTERM) saves. Between two chunks the state is whole; inside one its buffers are
        # given away and the last checkpoint counts.
        interrupted = not isinstance(error, Exception)
        if store is not None and interrupted and not any(leaf.is_deleted() for leaf in jax.tree.leaves(progress.state)):
            save(progress.state)
        raise
    finally:
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        if bar is not None:
            bar.__exit__(None, None, None)
        for watcher in watchers:
            watcher.on_end(progress)
        if store is not None:
            store.close()

    names = list(history[0]) if history else ["step", *metric_shapes]
    return FitResult(
        model=eqx.combine(state.params, static),
        ema=None if state.ema is None else eqx.combine(state.ema, static),
        best=None if best["params"] is None else eqx.combine(best["params"], static),
        state=state,
        history={name: np.concatenate([part[name] for part in history]) if history else np.zeros(0) for name in names},
        evaluations=evaluations,
        reason=progress.reason or "steps",
        alerts=progress.alerts,
    )
