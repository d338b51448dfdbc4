"""`raise` and `assert` on traced conditions: the user's own exception, raised when the compiled program runs.

A check is a host callback that raises when its condition holds, which aborts the program. The wrapper that called the program
finds the exception by the number in XLA's error text and raises it in the user's own type.
"""

import itertools
import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.graph._state import STATE, current_trace

_LOCK = threading.Lock()
_NUMBER = itertools.count(1)
_CHECKS: dict[int, Callable[[], BaseException]] = {}
_MARK = "sciax-check-"


class CheckFailed(RuntimeError):
    """Carries the number of a failed check through XLA."""


class _Quiet(logging.Filter):
    """jax logs every exception of a callback with its traceback; ours are raised again, properly, a moment later."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], CheckFailed))


logging.getLogger("jax._src.debugging").addFilter(_Quiet())


def path_condition() -> Any:
    """The traced condition under which the code being traced runs; None outside staged regions."""
    result = None
    for region in STATE.regions:
        condition = region.condition()
        if condition is not None:
            result = condition if result is None else jnp.logical_and(result, condition)
    return result


def check(failed: Any, error: Callable[[], BaseException]) -> None:
    """When the program runs, raise `error()` if `failed` holds and this place in the program is reached."""
    condition = path_condition()
    if condition is not None:
        failed = jnp.logical_and(condition, failed)
    current_trace().checks = True
    with _LOCK:
        number = next(_NUMBER)
        _CHECKS[number] = error

    def callback(value):
        if np.asarray(value).any():
            raise CheckFailed(f"{_MARK}{number}")

    jax.debug.callback(callback, jnp.asarray(failed))


def translate(error: BaseException) -> BaseException | None:
    """The user's exception behind an error of the runtime, or None."""
    found = re.search(_MARK + r"(\d+)", str(error))
    if found is None:
        return None
    make = _CHECKS.get(int(found.group(1)))
    return make() if make is not None else None
