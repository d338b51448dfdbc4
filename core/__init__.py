"""The differentiable core that every domain package stands on.

Public names of its parts load on first use, so that `import sciax.core` costs no more than jax.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sciax.core import errors as errors
from sciax.core.precision import default_float as default_float
from sciax.core.precision import require_dtype as require_dtype
from sciax.core.precision import x64 as x64
from sciax.core.precision import x64_enabled as x64_enabled

if TYPE_CHECKING:
    from sciax.core.graph import GraphError as GraphError
    from sciax.core.graph import GraphFunction as GraphFunction
    from sciax.core.graph import eager as eager
    from sciax.core.graph import loop_bound as loop_bound

_LAZY = {
    "GraphError": "sciax.core.graph",
    "GraphFunction": "sciax.core.graph",
    "eager": "sciax.core.graph",
    "loop_bound": "sciax.core.graph",
}
_PARTS = ("autodiff", "deploy", "graph", "inspect", "jobs", "nn", "ops", "parallel", "precision", "train")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _PARTS:
        return importlib.import_module(f"sciax.core.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_PARTS})
