"""Looking inside: profiles, hooks on operations, dumps, the origin of a NaN, and `sciax doctor`. See docs/inspect.md.

Names load on first use: the command line reads this module without loading jax.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sciax.core.inspect._dump import Dump as Dump
    from sciax.core.inspect._dump import dump as dump
    from sciax.core.inspect._interpret import Op as Op
    from sciax.core.inspect._interpret import with_hooks as with_hooks
    from sciax.core.inspect._locate import NonFinite as NonFinite
    from sciax.core.inspect._locate import locate_nonfinite as locate_nonfinite
    from sciax.core.inspect._profile import OpTime as OpTime
    from sciax.core.inspect._profile import Profile as Profile
    from sciax.core.inspect._profile import profile as profile
    from sciax.core.inspect._profile import read_ops as read_ops

_LAZY = {
    "Dump": "_dump",
    "NonFinite": "_locate",
    "Op": "_interpret",
    "OpTime": "_profile",
    "Profile": "_profile",
    "dump": "_dump",
    "locate_nonfinite": "_locate",
    "profile": "_profile",
    "read_ops": "_profile",
    "with_hooks": "_interpret",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"sciax.core.inspect.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
