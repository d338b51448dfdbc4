"""Errors of graph mode: what could not be staged, where in the user's own file, and a way out."""

from typing import Any

from sciax.core.errors import SciaxError


class GraphError(SciaxError, TypeError):
    """A program that graph mode refuses.

    Attributes:
        file, line: where in the user's source.
        variable: the variable it is about, if one.
    """

    def __init__(
        self,
        message: str,
        *,
        variable: str | None = None,
        where: tuple[str, int] | None = None,
        got: Any = None,
        expected: Any = None,
        remedy: str | None = None,
    ):
        from sciax.core.graph._location import user_location

        self.file, self.line = where or user_location() or ("<unknown>", 0)
        self.variable = variable
        super().__init__(f"{self.file}:{self.line}: {message}", got=got, expected=expected, remedy=remedy)


class UnboundedLoopError(GraphError):
    """Reverse-mode differentiation through a data-dependent loop that has no bound."""


class LoopBoundError(SciaxError, RuntimeError):
    """A loop that had not finished after the `max_steps` it was promised to need."""


class MissingReturnError(SciaxError, RuntimeError):
    """A function ended without `return` on a path that was chosen at run time."""


class StagedRaise(BaseException):
    """A user's `raise` met while a branch is traced: the branch diverges, the error is checked at run time.

    Derives from BaseException so that the user's own `except Exception` does not swallow it during tracing.
    """

    def __init__(self, error: BaseException):
        self.error = error
        super().__init__(repr(error))
