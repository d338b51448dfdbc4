"""The table of programs and of refusals that the tests of graph mode run over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PROGRAMS: list["Program"] = []
REFUSED: list["Refused"] = []


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]
    grad: bool
    max_steps: int | None
    static: tuple[str, ...]
    instead: Callable[..., Any] | None  # what to compare with where the program cannot run line by line (under vmap)

    @property
    def name(self) -> str:
        return self.function.__name__


@dataclass(frozen=True)
class Refused:
    function: Callable[..., Any]
    args: tuple[Any, ...]
    words: tuple[str, ...]
    line: int


def program(*calls: tuple, grad: bool = True, max_steps: int | None = None, static: tuple[str, ...] = (), instead=None):
    """Register a program with the arguments of its calls."""

    def register(function):
        PROGRAMS.append(Program(function, calls, grad, max_steps, static, instead))
        return function

    return register


def refused(*args: Any, words: tuple[str, ...] = (), line: int):
    """Register a program that graph mode must refuse; `line` counts from the `def`, the message must hold all `words`."""

    def register(function):
        REFUSED.append(Refused(function, args, words, function.__code__.co_firstlineno + line + 1))
        return function

    return register
