"""Names of a package that load on first use, so that the command line need not wait for what it does not use."""

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(package: str, home: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for `package`, whose names live in its modules `home[name]`.

    The package states the same names under `TYPE_CHECKING`, for type checkers and readers.
    """

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home[name]}"), name)

    return load, lambda: sorted({*vars(sys.modules[package]), *home})
