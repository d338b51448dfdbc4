"""sciax: scientific computing and AI for science on one differentiable core.

Sub-packages (`sciax.core`, `sciax.science`, `sciax.earth`, ...) load on first use, so `import sciax` itself costs nothing
and configures nothing.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

_SUBPACKAGES = ("chem", "core", "datasets", "earth", "elec", "quantum", "science")

__all__ = ["__version__"]


def __getattr__(name: str) -> ModuleType:
    if name in _SUBPACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_SUBPACKAGES])
