"""Where in the user's own source a piece of library code was called from."""

import os
import sys
import sysconfig
from types import CodeType, FrameType

_HERE = os.path.dirname(os.path.abspath(__file__))
_CORE = os.path.dirname(_HERE)
_PREFIXES = tuple(
    {os.path.abspath(sysconfig.get_paths()[key]) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_SCIAX = {_CORE, os.path.realpath(_CORE)}


def is_library_file(filename: str) -> bool:
    """True for the standard library, installed packages and sciax's core; False for the user's code."""
    if filename.startswith("<"):
        return filename.startswith(("<frozen", "<__array"))
    path = os.path.abspath(filename)
    if path.startswith(_PREFIXES):
        return True
    return any(path.startswith(root + os.sep) for root in _SCIAX)


def is_library_code(code: CodeType) -> bool:
    return is_library_file(code.co_filename)


def user_location(frame: FrameType | None = None) -> tuple[str, int] | None:
    """File and line of the innermost frame that is not library code.

    Converted functions keep the file name and the line numbers of the source they were made from, so no map is needed.
    """
    frame = frame or sys._getframe(1)
    while frame is not None:
        if not is_library_code(frame.f_code):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def traceback_location(error: BaseException) -> tuple[str, int] | None:
    """File and line of the innermost user frame in a traceback."""
    found, tb = None, error.__traceback__
    while tb is not None:
        if not is_library_code(tb.tb_frame.f_code):
            found = tb.tb_frame.f_code.co_filename, tb.tb_lineno
        tb = tb.tb_next
    return found
