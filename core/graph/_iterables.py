"""What `range`, `enumerate` and `zip` return on traced values."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from sciax.core.graph._checks import check
from sciax.core.graph._errors import GraphError
from sciax.core.graph._values import describe, is_tracer


class TracedRange:
    """`range` with a bound that is known only when the program runs."""

    def __init__(self, *arguments: Any):
        for a in arguments:
            if getattr(a, "dtype", None) is not None and (a.ndim or not jnp.issubdtype(a.dtype, jnp.integer)):
                raise TypeError(f"range() needs integers, got {describe(a)}")
        start, stop, step = (0, arguments[0], 1) if len(arguments) == 1 else (*arguments, 1)[:3]
        self.start, self.stop, self.step = start, stop, step
        if is_tracer(step):
            check(step == 0, lambda: ValueError("range() arg 3 must not be zero"))
        elif step == 0:
            raise ValueError("range() arg 3 must not be zero")

    def length(self) -> jax.Array:
        if not is_tracer(self.step) and self.step == 1:
            span = jnp.asarray(self.stop)
            return jnp.maximum(0, span if not is_tracer(self.start) and self.start == 0 else span - self.start)
        span = jnp.asarray(self.stop) - self.start
        step = jnp.where(jnp.asarray(self.step) == 0, 1, self.step) if is_tracer(self.step) else self.step
        return jnp.maximum(0, -((-span) // step))

    def item(self, i: Any) -> Any:
        if not is_tracer(self.step) and self.step == 1:
            return i if not is_tracer(self.start) and self.start == 0 else self.start + i
        return self.start + i * self.step

    def __iter__(self):
        raise GraphError(
            "a range of traced length can be looped over with `for`, and nothing else",
            remedy="use a for statement, or an array of fixed size with a mask",
        )

    __len__ = __getitem__ = __iter__  # type: ignore[assignment]


class Columns:
    """A static number of items taken from the leading axes of arrays."""

    def __init__(self, leaves: Sequence[jax.Array], item: Callable[[Sequence[Any]], Any]):
        self.leaves, self.item = list(leaves), item
        self.length = min((x.shape[0] for x in leaves), default=0)
        self.leaves = [x[: self.length] if x.shape[0] != self.length else x for x in self.leaves]

    def __len__(self) -> int:
        return self.length

    def __iter__(self):
        for k in range(self.length):
            yield self.item([x[k] for x in self.leaves])


def columns_of(value: Any) -> Columns | None:
    if isinstance(value, Columns):
        return value
    if isinstance(value, jax.Array) and value.ndim:
        return Columns([value], lambda leaves: leaves[0])
    return None


def range_(*arguments: Any):
    if not 1 <= len(arguments) <= 3:
        return range(*arguments)
    if any(is_tracer(a) for a in arguments):
        return TracedRange(*arguments)
    return range(*arguments)


def enumerate_(items: Any, start: Any = 0):
    columns = columns_of(items)
    if columns is None:
        return enumerate(items, start)
    index = jnp.arange(columns.length) + start
    return Columns([index, *columns.leaves], lambda leaves: (leaves[0], columns.item(leaves[1:])))


def zip_(*items: Any, strict: bool = False):
    columns = [columns_of(x) for x in items]
    if not items or any(c is None for c in columns):
        return zip(*items, strict=strict)
    if strict and len({c.length for c in columns if c}) > 1:
        raise ValueError("zip() arguments have different lengths")

    def item(leaves):
        result, at = [], 0
        for c in columns:
            assert c is not None
            result.append(c.item(leaves[at : at + len(c.leaves)]))
            at += len(c.leaves)
        return tuple(result)

    shortest = min(c.length for c in columns if c)
    return Columns([x[:shortest] for c in columns if c for x in c.leaves], item)


def reversed_(items: Any):
    columns = columns_of(items)
    if columns is None:
        return reversed(items)
    return Columns([x[::-1] for x in columns.leaves], columns.item)
