"""Many steps in one compiled call."""

from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PyTree

from sciax.core.train._batches import BatchSource, HostBatches
from sciax.core.train._step import TrainState


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

    def inside(self, gradient: Callable[..., Any]) -> Callable[..., Any]:
        """The function of loss and gradients, with what is inside it placed as well."""
        ...


def make_chunk(
    step: Callable[..., Any], source: BatchSource | HostBatches, plan: Placement | None
) -> Callable[..., tuple[TrainState, dict[str, Array], Int[Array, ""]]]:
    """`chunk(state, source arrays, key, count, log)`: up to `count` steps in one compiled while loop, metrics into `log`.

    A loop of a run-time length compiles once, however the chunks are cut, and ends at the first loss that is not finite.
    """
    hosted = isinstance(source, HostBatches)
    rest = None if hosted else eqx.partition(source, eqx.is_array)[1]

    def chunk(state: TrainState, data: PyTree, key: Key[Array, ""], count: Int[Array, ""], log: dict[str, Array]):
        drawn: Any = None if hosted else eqx.combine(data, rest)

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
