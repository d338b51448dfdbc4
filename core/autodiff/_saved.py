"""Hooks on what the forward pass saves for the backward pass: other precision, another memory, a record."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from sciax.core.errors import InputError, ShapeError


@jax.tree_util.register_static
class _Structure:
    """How saved leaves make up the pullback; kept with them, so that traces do not share it."""

    def __init__(self, treedef: Any, avals: tuple, inexact: tuple):
        self.key = (treedef, avals, inexact)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Structure) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key[1:])


def saved_tensors(
    pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: every floating array that `f` saves for its backward pass goes through `pack`, and comes back by `unpack`.

    `pack(array) -> anything made of arrays`, `unpack(that) -> array` of the shape that was packed (a changed dtype is changed
    back). Both are traced under jit and run as they are otherwise. Values that `f` closes over are differentiated too.

    Ready-made pairs: `BFLOAT16`, `HOST`; `saved_tensors(*BFLOAT16)(f)`.
    """
    if not callable(pack) or not callable(unpack):
        raise InputError(
            "saved_tensors(pack, unpack) needs two functions", got=(type(pack).__name__, type(unpack).__name__)
        )

    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(f):
            raise InputError("saved_tensors decorates a function", got=type(f).__name__)

        @functools.wraps(f, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            def plain(*a: Any) -> Any:
                return f(*a, **kwargs)

            closed, captured = jax.closure_convert(plain, *args)

            @jax.custom_vjp
            def hooked(a: tuple, c: list) -> Any:
                return closed(*a, *c)

            def forward(a: tuple, c: list) -> Any:
                value, pull = jax.vjp(lambda aa, cc: closed(*aa, *cc), a, c)
                leaves, treedef = jax.tree.flatten(pull)
                inexact = tuple(hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jnp.inexact) for x in leaves)
                avals = tuple((jnp.shape(x), str(x.dtype)) if hasattr(x, "dtype") else ((), "") for x in leaves)
                packed = [pack(x) if yes else x for x, yes in zip(leaves, inexact)]
                return value, (packed, _Structure(treedef, avals, inexact))

            def backward(saved: Any, cotangent: Any) -> Any:
                packed, structure = saved
                treedef, avals, inexact = structure.key
                leaves = []
                for x, (shape, dtype), yes in zip(packed, avals, inexact):
                    if not yes:
                        leaves.append(x)
                        continue
                    y = unpack(x)
                    if jnp.shape(y) != shape:
                        raise ShapeError(
                            "saved_tensors: unpack returned another shape", got=jnp.shape(y), expected=shape
                        )
                    leaves.append(y if str(y.dtype) == dtype else y.astype(dtype))
                return jax.tree.unflatten(treedef, leaves)(cotangent)

            hooked.defvjp(forward, backward)
            return hooked(args, list(captured))

        return call

    return decorate


def _to_bfloat16(x: Any) -> Any:
    return x.astype(jnp.bfloat16) if x.dtype == jnp.float32 else x


def _to_host(x: Any) -> Any:
    return jax.device_put(x, jax.memory.Space.Host)


def _from_host(x: Any) -> Any:
    return jax.device_put(x, jax.memory.Space.Device)


IDENTITY = (lambda x: x, lambda x: x)
"""Saves as usual: bitwise the same gradient."""

BFLOAT16 = (_to_bfloat16, lambda x: x)
"""Half the memory for float32 residuals, relative error of the gradient about 2e-3."""

HOST = (_to_host, _from_host)
"""Residuals wait in the host's memory (no saving where the device is the host)."""
