"""One training step: loss, gradients, update; a pure function of the state and the batch."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int, Key, PyTree

from sciax.core._mixed import LossScale, Policy, cast_floats
from sciax.core.errors import InputError, ShapeError
from sciax.core.train._batches import Batch

Loss = Callable[[Any, Batch, Key[Array, ""]], Any]
"""`loss(model, batch, key)` -> a scalar, or (a scalar, {name: scalar}) with further metrics."""


class TrainState(eqx.Module):
    """All that a training step reads and writes; what a checkpoint holds.

    Attributes:
        step: steps taken.
        params: the inexact arrays of the model (`equinox.partition`).
        opt_state: the optimiser's state.
        ema: exponential moving average of `params`, or None.
        ok: False once a loss was not finite; the state is then the one before that step.
        scale: dynamic loss scale under float16, else None.
    """

    step: Int[Array, ""]
    params: PyTree
    opt_state: PyTree
    ema: PyTree
    ok: Bool[Array, ""]
    scale: LossScale | None = None


def split_microbatches(batch: Batch, count: int) -> Batch:
    """Reshape each leaf (B, ...) to (count, B / count, ...).

    Raises:
        ShapeError: a leading axis that `count` does not divide.
    """

    def split(leaf):
        if leaf.ndim == 0 or leaf.shape[0] % count:
            raise ShapeError(
                f"gradient accumulation over {count} parts needs a leading axis divisible by {count}",
                got=f"shape {leaf.shape}",
            )
        return leaf.reshape(count, leaf.shape[0] // count, *leaf.shape[1:])

    return jax.tree.map(split, batch)


def make_objective(static: PyTree, loss: Loss, policy: Policy | None) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """`objective(params, batch, key, factor) -> (loss, further metrics)`, the loss times `factor` if there is one."""

    def objective(params, batch, key, factor=None):
        model = eqx.combine(params, static)
        if policy is not None:
            model, batch = cast_floats(model, policy.compute), cast_floats(batch, policy.compute)
        value = loss(model, batch, key)
        value, extra = value if isinstance(value, tuple) else (value, {})
        if jnp.shape(value) != ():
            raise ShapeError("the loss must be a scalar", got=f"shape {jnp.shape(value)}", remedy="take its mean")
        if jnp.iscomplexobj(value):
            raise InputError("the loss must be real", got=value.dtype, remedy="take its real part or its modulus")
        if policy is not None:
            value = value.astype(policy.output)
        return value if factor is None else value * factor.astype(value.dtype), dict(extra)

    return objective


def make_gradient(static: PyTree, loss: Loss, policy: Policy | None = None) -> Callable[..., Any]:
    """`gradient(params, batch, key, factor) -> ((loss, metrics), gradients)`: what a plan is searched for."""
    return jax.value_and_grad(make_objective(static, loss, policy), has_aux=True)


def make_step(
    static: PyTree,
    loss: Loss,
    optimizer: optax.GradientTransformation,
    *,
    accumulate: int = 1,
    ema_decay: float | None = None,
    policy: Policy | None = None,
    constrain_gradients: Callable[[PyTree], PyTree] = lambda grads: grads,
    inside: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda gradient: gradient,
) -> Callable[[TrainState, Batch, Key[Array, ""]], tuple[TrainState, dict[str, Array]]]:
    """`step(state, batch, key) -> (state, metrics)`; metrics hold "loss", "grad_norm" and what the loss returns.

    With `accumulate = k` the gradient is the mean over k equal parts of the batch, computed one after another.
    `constrain_gradients` says where a plan wants them (sharding constraints); `inside` places what is inside loss and gradient.
    A step whose loss or gradient is not finite leaves the parameters as they were and clears `state.ok`; under float16 an
    overflow halves the loss scale first and the step is skipped, until the scale is 1.
    """

    objective = make_objective(static, loss, policy)
    gradient = inside(make_gradient(static, loss, policy))

    def accumulated(params, batch, key, factor):
        if accumulate == 1:
            return gradient(params, batch, key, factor)

        def add(total, part):
            index, micro = part
            return jax.tree.map(jnp.add, total, gradient(params, micro, jax.random.fold_in(key, index), factor)), None

        parts = split_microbatches(batch, accumulate)
        shapes = jax.eval_shape(gradient, params, jax.tree.map(lambda leaf: leaf[0], parts), key, factor)
        zero = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        total, _ = jax.lax.scan(add, zero, (jnp.arange(accumulate), parts))
        return jax.tree.map(lambda leaf: leaf / accumulate, total)

    extra_args = isinstance(optimizer, optax.GradientTransformationExtraArgs)

    def step(state: TrainState, batch: Batch, key: Key[Array, ""]):
        factor = None if state.scale is None else state.scale.scale
        (value, extra), grads = accumulated(state.params, batch, key, factor)
        if factor is not None:
            value, grads = jax.tree.map(lambda leaf: leaf / factor.astype(leaf.dtype), (value, grads))
        # JAX's convention for complex parameters: the gradient's conjugate points downhill.
        grads = jax.tree.map(lambda leaf: leaf.conj() if jnp.iscomplexobj(leaf) else leaf, grads)
        grads = constrain_gradients(grads)
        keywords = (
            {"value": value, "grad": grads, "value_fn": lambda params: objective(params, batch, key)[0]}
            if extra_args
            else {}
        )
        updates, opt_state = optimizer.update(grads, state.opt_state, state.params, **keywords)
        params = optax.apply_updates(state.params, updates)
        norm = optax.tree.norm(grads)
        good = jnp.isfinite(value) & jnp.isfinite(norm)
        ema = state.ema
        if ema_decay is not None:
            kept_share, new_share = ema_decay, 1 - ema_decay
            ema = jax.tree.map(lambda old, new: kept_share * old + new_share * new, ema, params)
        taken = TrainState(state.step + 1, params, opt_state, ema, state.ok, state.scale)
        if state.scale is None:
            kept = eqx.tree_at(lambda s: s.ok, state, jnp.zeros_like(state.ok))
        else:
            # An overflow of float16: skip the step with a lower scale. At scale 1 it is no overflow.
            rescued = state.scale.scale > 1
            kept = eqx.tree_at(
                lambda s: (s.ok, s.step), state, (rescued, state.step + rescued.astype(state.step.dtype))
            )
        after = jax.tree.map(lambda new, old: jnp.where(good, new, old), taken, kept)
        if state.scale is not None:
            after = eqx.tree_at(lambda s: s.scale, after, state.scale.update(good))
        return after, {"loss": value, "grad_norm": norm, **extra}

    return step
