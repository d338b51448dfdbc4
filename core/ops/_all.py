"""Finds every operator module of this folder, so that adding one is adding a file."""

import importlib
import pkgutil
from functools import cache


@cache
def load() -> None:
    """Import each public package and module of sciax.core.ops, which registers its operators."""
    import sciax.core.ops as ops

    for module in pkgutil.walk_packages(ops.__path__, prefix=f"{ops.__name__}."):
        # native: compiled extensions, imported by the operators that use them
        if ".native" not in module.name:
            importlib.import_module(module.name)
