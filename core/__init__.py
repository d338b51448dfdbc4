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
    from sciax.core._mixed import LossScale as LossScale
    from sciax.core._mixed import Policy as Policy
    from sciax.core._mixed import cast_floats as cast_floats
    from sciax.core._mixed import island as island
    from sciax.core._mixed import scaled_value_and_grad as scaled_value_and_grad
    from sciax.core.autodiff import check_gradients as check_gradients
    from sciax.core.graph import GraphError as GraphError
    from sciax.core.graph import GraphFunction as GraphFunction
    from sciax.core.graph import eager as eager
    from sciax.core.graph import loop_bound as loop_bound
    from sciax.core.graph import persistent_cache as persistent_cache
    from sciax.core.graph import trace as trace
    from sciax.core.inspect import profile as profile

_LAZY = {
    "trace": "sciax.core.graph",
    "scaled_value_and_grad": "sciax.core._mixed",
    "profile": "sciax.core.inspect",
    "persistent_cache": "sciax.core.graph",
    "island": "sciax.core._mixed",
    "check_gradients": "sciax.core.autodiff",
    "cast_floats": "sciax.core._mixed",
    "Policy": "sciax.core._mixed",
    "LossScale": "sciax.core._mixed",
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
