"""Parameter expressions: sums of coefficient x symbol plus a constant."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.core
import numpy as np

from sciax.core.errors import InputError


@dataclass(frozen=True)
class Expression:
    """sum_k coefficient_k * symbol_k + constant.

    A term's key is a symbol's name, or an integer: the place of a number in the circuit's value vector, so that circuits that
    differ only in numbers share one compiled program.
    """

    terms: tuple[tuple[str | int, float], ...] = ()
    constant: float = 0.0

    def __add__(self, other: "Expression | float") -> "Expression":
        other = as_expression(other)
        merged: dict[str | int, float] = {}
        for key, coefficient in self.terms + other.terms:
            merged[key] = merged.get(key, 0.0) + coefficient
        return Expression(tuple(merged.items()), self.constant + other.constant)

    def __mul__(self, factor: float) -> "Expression":
        if isinstance(factor, Expression):
            raise InputError(
                "a parameter expression is linear: symbols cannot be multiplied", remedy="multiply by a number"
            )
        factor = float(factor)
        return Expression(tuple((k, c * factor) for k, c in self.terms), self.constant * factor)

    def __neg__(self) -> "Expression":
        return self * -1.0

    def __sub__(self, other: "Expression | float") -> "Expression":
        return self + -as_expression(other)

    def __rsub__(self, other: "Expression | float") -> "Expression":
        return as_expression(other) + -self

    def __truediv__(self, divisor: float) -> "Expression":
        return self * (1.0 / float(divisor))

    __radd__ = __add__
    __rmul__ = __mul__

    def rename(self, change) -> "Expression":
        """The expression with `change(key)` for every key."""
        return Expression(tuple((change(k), c) for k, c in self.terms), self.constant)

    def __str__(self) -> str:
        parts = [k if c == 1 else f"{c:g}*{k}" for k, c in self.terms if isinstance(k, str)]
        if self.constant or not parts:
            parts.append(f"{self.constant:g}")
        return " + ".join(parts).replace("+ -", "- ")


def symbol(name: str) -> Expression:
    """A named circuit parameter; combine with numbers by + - * /.

    Raises:
        InputError: an empty name.
    """
    if not isinstance(name, str) or not name:
        raise InputError("a symbol needs a name", got=repr(name), expected="a non-empty string")
    return Expression(((name, 1.0),))


def as_expression(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return symbol(value)
    return Expression((), float(value))


def split_angle(value: Any, slot: int) -> tuple[Expression, Any]:
    """An angle as an expression and, when it is a number or a traced scalar, the value to store in place `slot`.

    Raises:
        InputError: NaN or infinite, or not a scalar.
    """
    if isinstance(value, Expression):
        if not np.isfinite(value.constant) or not all(np.isfinite(c) for _, c in value.terms):
            raise InputError("a gate parameter is not finite", got=value)
        return value, None
    if isinstance(value, str):
        return symbol(value), None
    if isinstance(value, jax.core.Tracer):
        if value.ndim:
            raise InputError(
                "a gate parameter must be a scalar", got=value.shape, remedy="jax.vmap over the circuit instead"
            )
        return Expression(((slot, 1.0),)), value
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(
            "a gate parameter must be a number, a symbol's name or an expression", got=repr(value)
        ) from None
    if not np.isfinite(number):
        raise InputError("a gate parameter is not finite", got=number)
    return Expression(((slot, 1.0),)), number
