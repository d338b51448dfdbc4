"""What graph mode knows while a function is traced: options, the stack of converted calls, the stack of staged regions."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType
from typing import Any


@dataclass
class Region:
    """A branch or a loop body that is being staged.

    Attributes:
        names: the variables that the region may change.
        outer: id -> object, the mutable Python objects that exist outside and are visible inside; changing one of them would
            happen once, while tracing, whatever the condition says at run time.
        condition: thunk of the traced condition under which the region runs, evaluated at its entry.
        depth: number of converted calls around it.
    """

    names: tuple[str, ...]
    outer: dict[int, Any]
    condition: Callable[[], Any]
    depth: int


@dataclass
class Frame:
    """One activation of a converted function."""

    code: CodeType
    globals: dict[str, Any]
    regions: int
    where: tuple[str, int]
    unused_after: set[str] = field(default_factory=set)  # loop variables that only closures in the loop read


@dataclass
class Options:
    """How loops are lowered.

    Attributes:
        max_steps: bound on data-dependent loops, which makes them reverse-mode differentiable.
        reverse: "checkpointed" (treeverse checkpoints, reverse mode) or "bounded" (also forward over reverse).
    """

    max_steps: int | None = None
    reverse: str = "checkpointed"


@dataclass
class Trace:
    """One trace of an outermost graph function."""

    options: Options = field(default_factory=Options)
    functions: dict[int, Any] = field(default_factory=dict)  # user functions met, for the watch list
    roots: list[Any] = field(default_factory=list)  # closures and arguments that exist outside the trace
    foreign: dict[int, dict[int, Any]] = field(default_factory=dict)  # globals' id -> reachable mutable objects
    foreign_roots: dict[int, Any] | None = None
    negations: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # id(not x) -> (not x, x)
    checks: bool = False  # whether anything is checked at run time
    prints: bool = False


class _State(threading.local):
    def __init__(self) -> None:
        self.trace: Trace | None = None
        self.frames: list[Frame] = []
        self.regions: list[Region] = []
        self.tries: list[int] = []  # number of regions at each active `try`
        self.eager = 0


STATE = _State()


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    """Install a fresh trace; the former state comes back after it, also when it fails."""
    saved = STATE.trace, STATE.frames, STATE.regions, STATE.tries
    STATE.trace, STATE.frames, STATE.regions, STATE.tries = trace, [], [], []
    try:
        yield trace
    finally:
        STATE.trace, STATE.frames, STATE.regions, STATE.tries = saved


def current_trace() -> Trace:
    if STATE.trace is None:
        STATE.trace = Trace()
    return STATE.trace


@contextmanager
def region(names: tuple[str, ...], outer: dict[int, Any], condition: Callable[[], Any]) -> Iterator[None]:
    frames, tries, depth = len(STATE.frames), len(STATE.tries), len(STATE.regions)
    STATE.regions.append(Region(names, outer, condition, frames))
    try:
        yield
    finally:
        del STATE.frames[frames:], STATE.tries[tries:], STATE.regions[depth:]


@contextmanager
def loop_bound(max_steps: int, *, reverse: str = "checkpointed") -> Iterator[None]:
    """Inside a graph function: the data-dependent loops in this block take at most `max_steps` steps.

    Args:
        max_steps: the bound. A loop that needs more raises `LoopBoundError` when it runs.
        reverse: "checkpointed" keeps logarithmically many states and recomputes (reverse mode only); "bounded" allows forward
            mode and any mixture, at a cost in compile time.
    """
    from sciax.core.errors import InputError, did_you_mean

    if not isinstance(max_steps, int) or isinstance(max_steps, bool) or max_steps < 1:
        raise InputError("loop_bound needs a positive Python integer", got=max_steps)
    if reverse not in ("checkpointed", "bounded"):
        raise InputError(f"unknown loop kind {reverse!r}", remedy=did_you_mean(reverse, ("checkpointed", "bounded")))
    trace = current_trace()
    saved, trace.options = trace.options, Options(max_steps, reverse)
    try:
        yield
    finally:
        trace.options = saved
