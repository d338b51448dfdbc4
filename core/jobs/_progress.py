"""Progress bars that appear only for what takes over two seconds, and only on a terminal."""

import threading
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 2.0
"""Seconds before a bar is shown: shorter work would only flicker."""


class Display:
    """The live display of one run: all its bars share it. Silent where `console` is None or no terminal."""

    def __init__(self, console: Any = None):
        self._console = console if console is not None and console.is_terminal else None
        self._live: Any = None
        self._lock = threading.RLock()
        self._open = 0

    @property
    def active(self) -> bool:
        return self._console is not None

    def show(self, label: str, total: float | None, done: float) -> Any:
        """Add a bar; returns its handle."""
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        with self._lock:
            if self._live is None:
                columns = (
                    SpinnerColumn(),
                    TextColumn("{task.description}"),
                    BarColumn(bar_width=30),
                    TextColumn("{task.fields[count]}"),
                    TimeElapsedColumn(),
                    Remaining(compact=True),
                )
                self._live = Progress(*columns, console=self._console, transient=True, refresh_per_second=5)
                self._live.start()
            self._open += 1
            return self._live.add_task(label, total=total, completed=done, count=_count(done, total))

    def update(self, handle: Any, **changes: Any) -> None:
        with self._lock:
            if self._live is not None:
                self._live.update(handle, **changes)

    def hide(self, handle: Any) -> None:
        with self._lock:
            if self._live is None:
                return
            self._live.remove_task(handle)
            self._open -= 1
            if self._open == 0:
                self.close()

    def close(self) -> None:
        """Take every bar down; also called when a run is interrupted."""
        with self._lock:
            if self._live is not None:
                self._live.stop()
                self._live, self._open = None, 0


class Bar:
    """One bar, as a context manager; `advance` after each step done."""

    def __init__(self, display: Display, label: str, total: float | None, closed: Callable[[str], None]):
        self._display, self._label, self._total, self._closed = display, label, total, closed
        self._done: float = 0
        self._handle: Any = None
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> "Bar":
        self._start = time.perf_counter()
        if self._display.active:
            # A timer, since the first step (which compiles) may be the long one.
            self._timer = threading.Timer(PATIENCE, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def _appear(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._handle = self._display.show(self._label, self._total, self._done)

    def advance(self, steps: float = 1) -> None:
        """`steps` more are done."""
        self._done += steps
        if self._handle is not None:
            self._display.update(self._handle, completed=self._done, count=_count(self._done, self._total))

    def describe(self, label: str) -> None:
        """Change the words beside the bar."""
        self._label = label
        if self._handle is not None:
            self._display.update(self._handle, description=label)

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._handle is not None:
                self._display.hide(self._handle)
                self._handle = None
        seconds = time.perf_counter() - self._start
        count = _count(self._done, self._total)
        self._closed(f"{self._label}: {count} in {seconds:.1f} s" if count else f"{self._label}: {seconds:.1f} s")


def _count(done: float, total: float | None) -> str:
    if total is None:
        return f"{done:g}" if done else ""
    return f"{done:g}/{total:g}"
