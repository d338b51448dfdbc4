"""Where in the user's code an equation of a jaxpr comes from."""

from typing import Any

from sciax.core.graph._location import is_library_file


def source_of(eqn: Any) -> tuple[str, int] | None:
    """File and line of the innermost user frame recorded with the equation."""
    traceback = getattr(eqn.source_info, "traceback", None)
    if traceback is None:
        return None
    for frame in traceback.frames:
        if not is_library_file(frame.file_name):
            return frame.file_name, frame.line_num
    return None


def scope_of(eqn: Any) -> str:
    """The equation's name stack ("encoder/dense")."""
    return str(eqn.source_info.name_stack)
