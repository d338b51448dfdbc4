"""Small validators shared by the scene's parts; traced values (gradients, jit) pass, concrete ones are checked."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jax.core import Tracer

from sciax.core.errors import InputError, did_you_mean


def is_traced(value: Any) -> bool:
    return isinstance(value, Tracer)


def positive(value: Any, what: str, zero: bool = False) -> None:
    if is_traced(value):
        return
    v = np.asarray(value)
    if not np.all(np.isfinite(v)) or np.any(v < 0) or (not zero and np.any(v == 0)):
        raise InputError(f"{what} must be {'non-negative' if zero else 'positive'} and finite", got=value)


def finite(value: Any, what: str) -> None:
    if is_traced(value):
        return
    if not np.all(np.isfinite(np.asarray(value))):
        raise InputError(f"{what} must be finite", got=value)


def one_of(value: str, known: Iterable[str], what: str) -> None:
    known = tuple(known)
    if value not in known:
        raise InputError(f"unknown {what} {value!r}", remedy=did_you_mean(str(value), known))


def vector(value: Any, what: str, length: int = 3) -> tuple:
    """A tuple of `length` numbers; shorter ones are filled with zeros (a 2-D position has z = 0)."""
    out = tuple(value)
    if not 1 <= len(out) <= length:
        raise InputError(f"{what} needs one to {length} numbers", got=value)
    out = out + (0.0,) * (length - len(out))
    for v in out:
        finite(v, what)
    return out
