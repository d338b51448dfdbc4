"""`print` and f-strings with traced values: written when the program runs."""

from typing import Any

import jax
import numpy as np

from sciax.core.graph._state import STATE, current_trace
from sciax.core.graph._values import describe, is_tracer

_CONVERSIONS = {-1: lambda v: v, ord("s"): str, ord("r"): repr, ord("a"): ascii}


class LazyText:
    """An f-string with traced values in it. `print` shows the values; anything else sees their type."""

    def __init__(self, parts: tuple[Any, ...]):
        self.parts = parts

    def render(self, values: list[Any]) -> str:
        stream, out = iter(values), []
        for part in self.parts:
            if not isinstance(part, tuple):
                out.append(str(part))
                continue
            value, conversion, spec = part
            if is_tracer(value):
                value = next(stream)
                value = value.item() if np.ndim(value) == 0 and spec else value
            out.append(format(_CONVERSIONS[conversion](value), str(spec)))
        return "".join(out)

    @property
    def traced(self) -> list[Any]:
        return [p[0] for p in self.parts if isinstance(p, tuple) and is_tracer(p[0])]

    def __str__(self) -> str:
        return "".join(map(_show, self.parts))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def _show(part: Any) -> str:
    if not isinstance(part, tuple):
        return str(part)
    value, conversion, spec = part
    return f"<traced {describe(value)}>" if is_tracer(value) else format(_CONVERSIONS[conversion](value), str(spec))


def format_string(*parts: Any) -> Any:
    text = LazyText(parts)
    return text if text.traced else str(text)


def print_(*values: Any, **options: Any) -> None:
    """`print` at run time: of traced values, and of anything inside a traced branch or loop."""
    traced: list[Any] = []
    for value in values:
        traced += value.traced if isinstance(value, LazyText) else [value] if is_tracer(value) else []
    if not traced and not STATE.regions:
        print(*values, **options)
        return
    current_trace().prints = True

    def show(*arrays: Any) -> None:
        stream, shown = iter([np.asarray(a) for a in arrays]), []
        for value in values:
            if isinstance(value, LazyText):
                shown.append(value.render([next(stream) for _ in value.traced]))
            else:
                shown.append(next(stream) if is_tracer(value) else value)
        print(*shown, **options)

    # Ordered where the place allows it would serialise the program; lines of one step keep their order on a CPU.
    jax.debug.callback(show, *traced)
