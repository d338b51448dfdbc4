"""Mixed precision: a dtype policy with float32 islands, and dynamic loss scaling for float16."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import DTypeError, InputError


def _is_float(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.floating)


def cast_floats(tree: Any, dtype: Any) -> Any:
    """The tree with its real floating arrays in `dtype`; integers, complex numbers and everything else as they are."""
    return jax.tree.map(lambda x: x.astype(dtype) if _is_float(x) else x, tree)


@dataclass(frozen=True)
class Policy:
    """Which dtype does what.

    Attributes:
        compute: dtype of activations and of the weights while they are used.
        params: dtype in which weights, gradients and the optimiser's state are kept.
        output: dtype of results and losses.
    """

    compute: Any = jnp.float32
    params: Any = jnp.float32
    output: Any = jnp.float32

    def __post_init__(self) -> None:
        for name in ("compute", "params", "output"):
            try:
                dtype = jnp.dtype(getattr(self, name))
            except TypeError as error:
                raise DTypeError(
                    f"Policy.{name} is no dtype", got=getattr(self, name), expected="float32, bfloat16, float16"
                ) from error
            if not jnp.issubdtype(dtype, jnp.floating):
                raise DTypeError(f"Policy.{name} must be a floating dtype", got=dtype.name)
            object.__setattr__(self, name, dtype)

    @classmethod
    def named(cls, name: str) -> "Policy":
        """ "float32", "bfloat16" or "float16": computing in that dtype, float32 for the rest."""
        from sciax.core.errors import did_you_mean

        if name not in ("float32", "bfloat16", "float16"):
            raise InputError(
                f"unknown precision {name!r}", remedy=did_you_mean(name, ("float32", "bfloat16", "float16"))
            )
        return cls(compute=jnp.dtype(name))

    @property
    def needs_scaling(self) -> bool:
        """Whether gradients in the compute dtype underflow without loss scaling (float16)."""
        return jnp.finfo(self.compute).minexp > -100

    def wrap(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """`f` with its floating arguments in `compute` and its floating results in `output`.

        Gradients with respect to the arguments come back in the arguments' own dtype.
        """

        @functools.wraps(f, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = cast_floats((args, kwargs), self.compute)
            return cast_floats(f(*args, **kwargs), self.output)

        return call


def island(f: Callable[..., Any], dtype: Any = jnp.float32) -> Callable[..., Any]:
    """`f` computed in `dtype` inside a lower-precision model, its results back in the precision of its arguments.

    For sums over many terms, softmax, norms and losses.
    """
    if not callable(f):
        raise InputError("island needs a function", got=type(f).__name__)

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        floats = [x.dtype for x in jax.tree.leaves((args, kwargs)) if _is_float(x)]
        args, kwargs = cast_floats((args, kwargs), dtype)
        out = f(*args, **kwargs)
        return cast_floats(out, jnp.result_type(*floats)) if floats else out

    return call


class LossScale(NamedTuple):
    """Dynamic loss scaling for float16: a pytree, so that it can be carried by a compiled training loop.

    Gradients of `scale * loss` are computed and divided by `scale`. Where one is not finite the step is skipped and the scale
    halved; after `period` good steps in a row it is doubled.

    Attributes:
        scale: the present factor, a power of two.
        good: steps since the last change.
        skipped: steps thrown away so far.
    """

    scale: jax.Array
    good: jax.Array
    skipped: jax.Array

    @classmethod
    def start(cls, scale: float = 2.0**15) -> "LossScale":
        if not np.isfinite(scale) or scale < 1:
            raise InputError("the loss scale must be finite and at least 1", got=scale)
        return cls(jnp.float32(scale), jnp.int32(0), jnp.int32(0))

    def update(self, finite: Any, *, period: int = 200, largest: float = 2.0**24) -> "LossScale":
        """The scale after a step whose gradients were `finite`, or not."""
        grown = self.good + 1 >= period
        up = jnp.where(grown, jnp.minimum(self.scale * 2, largest), self.scale)
        down = jnp.maximum(self.scale / 2, 1.0)
        return LossScale(
            jnp.where(finite, up, down),
            jnp.where(finite & ~grown, self.good + 1, 0),
            self.skipped + jnp.where(finite, 0, 1),
        )


def all_finite(tree: Any) -> jax.Array:
    """Whether every entry of every floating array is finite."""
    checks = [
        jnp.all(jnp.isfinite(x))
        for x in jax.tree.leaves(tree)
        if hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact)
    ]
    return functools.reduce(jnp.logical_and, checks, jnp.bool_(True))


def scaled_value_and_grad(loss: Callable[..., Any], policy: Policy) -> Callable[..., Any]:
    """Value and gradient of `loss(params, *rest)` under a policy.

    Returns:
        A function (scale: LossScale, params, *rest) -> (value, gradient, finite, new scale). `value` and `gradient` are in
        `policy.output` and `policy.params`; where `finite` is False the gradient is zero, and the step should be skipped:
        `params = jax.tree.map(lambda new, old: jnp.where(finite, new, old), updated, params)`.
        A policy that needs no scaling (float32, bfloat16) leaves the scale at what it is.
    """
    if not callable(loss):
        raise InputError("scaled_value_and_grad needs a loss function", got=type(loss).__name__)
    wrapped = policy.wrap(loss)

    def call(scale: LossScale, params: Any, *rest: Any) -> Any:
        factor = scale.scale if policy.needs_scaling else jnp.float32(1.0)

        def scaled(p: Any) -> Any:
            value = wrapped(p, *rest)
            return value * factor.astype(value.dtype), value

        gradient, value = jax.grad(scaled, has_aux=True)(cast_floats(params, policy.params))
        gradient = jax.tree.map(lambda g: g / factor.astype(g.dtype) if _is_float(g) else g, gradient)
        finite = all_finite(gradient)
        gradient = jax.tree.map(lambda g: jnp.where(finite, g, jnp.zeros_like(g)), gradient)
        return value, gradient, finite, scale.update(finite) if policy.needs_scaling else scale

    return call
