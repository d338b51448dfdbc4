"""What the command prints: consoles, error panels, numbers."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 140
"""Columns of tables where the output is no terminal: rich would fold them at 80."""


def console(stderr: bool = False) -> "Console":
    """A console on the current stdout or stderr (looked up now: tests replace them)."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False)


def error_panel(title: str, details: dict[str, Any]) -> None:
    """An error on stderr: what happened, what came, what was expected, what to do. Framed on a terminal, else plain lines."""
    from rich.panel import Panel
    from rich.text import Text

    out = console(stderr=True)
    text = Text(str(details["message"]), style="bold")
    for name in ("got", "expected", "remedy"):
        if details.get(name) is not None:
            text.append(f"\n{name + ':':<10}", style="not bold dim").append(str(details[name]), style="not bold")
    if out.is_terminal:
        out.print(Panel(text, title=title, title_align="left", border_style="red", expand=False))
    else:
        print(f"{title}: {text.plain}", file=sys.stderr)


def number(value: float | None, digits: int = 6) -> str:
    """A number for a table; an empty cell where there is none."""
    return "" if value is None else f"{value:.{digits}g}"


def near(path: Path) -> str:
    """The path, relative to the current folder where it lies below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
