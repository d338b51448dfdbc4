"""Typed errors: what came, what was expected, what to do.

Every error sciax raises on bad input derives from `SciaxError` and from the built-in class a Python user would catch anyway
(`InputError` is a `ValueError`, `MissingFileError` a `FileNotFoundError`, ...).
"""

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any


class SciaxError(Exception):
    """Base of all errors of sciax.

    `got`, `expected` and `remedy` are kept as attributes, so that a caller (a report, a test) need not parse the message.
    """

    def __init__(self, message: str, *, got: Any = None, expected: Any = None, remedy: str | None = None):
        self.message, self.got, self.expected, self.remedy = message, got, expected, remedy
        parts = [message]
        if got is not None:
            parts.append(f"  got:      {got}")
        if expected is not None:
            parts.append(f"  expected: {expected}")
        if remedy is not None:
            parts.append(f"  remedy:   {remedy}")
        super().__init__("\n".join(parts))


class InputError(SciaxError, ValueError):
    """A value outside what the function accepts: range, NaN, wrong name, inconsistent arguments."""


class ShapeError(InputError):
    """An array whose rank or dimensions do not fit."""


class DTypeError(SciaxError, TypeError):
    """An array of a dtype the operator does not support."""


class PrecisionError(SciaxError, TypeError):
    """float64 was asked for where 64-bit arrays are switched off."""


class UnsupportedError(SciaxError, NotImplementedError):
    """A combination that is not offered; the message names one that is."""


class ConvergenceError(SciaxError, ArithmeticError):
    """An iteration that did not reach its tolerance; `history` holds the residual norms."""

    def __init__(self, message: str, *, history: Iterable[float] = (), **details: Any):
        self.history = list(history)
        super().__init__(message, **details)


class SingularError(SciaxError, ArithmeticError):
    """A problem without a unique solution."""


class UnphysicalStateError(SciaxError, ArithmeticError):
    """A simulation that left the states there are (negative density, say); the last good state is not passed off as an answer.

    Attributes:
        step: the time step, from 1. cell: index of the cell along each axis. quantity: what went wrong.
    """

    def __init__(self, message: str, *, step: int = 0, cell: tuple[int, ...] = (), quantity: str = "", **details: Any):
        self.step, self.cell, self.quantity = step, cell, quantity
        super().__init__(message, **details)


class MissingFileError(SciaxError, FileNotFoundError):
    """A file that is not there."""

    def __str__(self) -> str:  # OSError.__str__ would show errno fields instead of the message
        return self.args[0]


class FileFormatError(SciaxError, ValueError):
    """A file that is there but cannot be read as what it claims to be."""


class ConfigError(SciaxError, ValueError):
    """A configuration with a wrong key or value."""


class MissingDependencyError(SciaxError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A remedy for a mistyped name: the nearest candidate, then all of them."""
    known = sorted(map(str, candidates))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known) if known else 'none'}"


def optional_import(module: str, extra: str) -> ModuleType:
    """Import `module`, which the extra `sciax[extra]` brings.

    Raises:
        MissingDependencyError: naming the extra, when the package is absent.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, something of its own is missing
        raise MissingDependencyError(
            f"this needs the package {module.split('.')[0]!r}, which is not installed",
            remedy=f"pip install 'sciax[{extra}]'",
        ) from error
