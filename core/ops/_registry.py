"""Registration of operators: one decorator states all that the rest of sciax needs to know of a numerical primitive.

    @operator("segment.sum", oracle=_oracle, samples=_samples, flops=lambda data, ids, n: data.size)
    def segment_sum(data, segment_ids, num_segments): ...

The decorated function is returned unchanged: no wrapper, no cost at call time. tests/conformance runs every registered
operator through a grid of transformations, dtypes and oracles; no cell may be missing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from sciax.core.errors import InputError, did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

CELLS = (
    "eager",
    "jit",
    "vmap",
    "jvp",
    "vjp",
    "second_order",
    "float32",
    "float64",
    "complex",
    "sharded",
)
"""Columns of the conformance grid. Every one compares values, against the oracle or against the eager result."""

SHARDINGS = ("batch", "leading")


@dataclass(frozen=True)
class Sample:
    """One call of an operator.

    Attributes:
        label: what is special about it ("ordinary", "empty", "size one", "badly scaled", ...).
        args: positional arguments (pytrees are allowed). Floating and complex NumPy arrays are cast to the dtype under test,
            are differentiated with respect to, and are batched by vmap; integer and boolean arrays are passed as they are,
            traced under jit; everything else (Python numbers, strings, objects) is static.
        kwargs: keyword arguments, static under jit (sizes, options); arrays are allowed, as they are, and are not
            differentiated.
        fixed: positions in `args` of floating arrays that are not differentiated or batched (grid coordinates, say).
        real: positions in `args` that stay real in the complex cell (query points, weights). That cell gives the other
            floating arrays an imaginary part; where an operator has samples with complex arrays, it runs just those.
        smooth: False where the operator has a kink at this point, so that finite differences mean nothing.
        tolerance: factor on the table's tolerance, with `reason`.
    """

    label: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    fixed: tuple[int, ...] = ()
    real: tuple[int, ...] = ()
    smooth: bool = True
    tolerance: float = 1.0
    reason: str = ""

    def __post_init__(self) -> None:
        if self.tolerance != 1.0 and not self.reason:
            raise InputError(f"sample {self.label!r} loosens its tolerance without a reason")


@dataclass(frozen=True)
class Operator:
    """What is known of one operator; see `operator` for the fields."""

    name: str
    function: Callable[..., Any]
    oracle: Callable[..., Any]
    samples: Callable[[np.random.Generator], Iterable[Sample]]
    flops: Callable[..., float]
    bytes: Callable[..., float] | None
    sharding: str
    orders: int
    dtypes: tuple[str, ...]
    unsupported: Mapping[str, str]
    implementations: Mapping[str, Callable[..., Any]]

    @property
    def kind(self) -> str:
        return self.name.partition(".")[0]


_REGISTRY: dict[str, Operator] = {}


def operator(
    name: str,
    *,
    oracle: Callable[..., Any],
    samples: Callable[[np.random.Generator], Iterable[Sample]],
    flops: Callable[..., float],
    bytes: Callable[..., float] | None = None,
    sharding: str = "batch",
    orders: int = 2,
    dtypes: tuple[str, ...] = ("float32", "float64"),
    unsupported: Mapping[str, str] | None = None,
    implementations: Mapping[str, Callable[..., Any]] | None = None,
) -> Callable[[F], F]:
    """Register the decorated function as operator `name` ("kind.name") and return it unchanged.

    Args:
        oracle: the same call in NumPy/SciPy float64 (complex128), independent of the implementation.
        samples: from a NumPy generator, the calls the grid makes: ordinary, empty, size one, odd, large, non-contiguous,
            badly scaled. Arrays are float64 (complex128).
        flops, bytes: cost of a call, from the same arguments.
        sharding: "batch" (a leading batch axis added by vmap is split over devices) or "leading" (the first axis of the
            first argument is).
        orders: how many times it can be differentiated, both modes; 0 for integer-valued operators.
        dtypes: real dtypes it keeps.
        unsupported: cell name -> reason, for every cell of the grid the operator refuses. The refusal must be a
            `SciaxError` of its own: the grid calls it and checks.
        implementations: further implementations by platform or library ("native"), held to the same oracle.

    Raises:
        InputError: a name used twice or not "kind.name"; an unknown cell in `unsupported`.
    """
    if sharding not in SHARDINGS:
        raise InputError(f"operator {name!r}: unknown sharding {sharding!r}", remedy=did_you_mean(sharding, SHARDINGS))
    kind, dot, short = name.partition(".")
    if not (kind and dot and short):
        raise InputError(f"operator name {name!r} is not of the form 'kind.name'")
    unsupported = dict(unsupported or {})
    for cell in unsupported:
        if cell not in CELLS:
            raise InputError(f"operator {name!r}: unknown grid cell {cell!r}", remedy=did_you_mean(cell, CELLS))

    def register(function: F) -> F:
        known = _REGISTRY.get(name)
        # A module that is reloaded registers the same function again; two different functions may not share a name.
        if known is not None and (known.function.__module__, known.function.__qualname__) != (
            function.__module__,
            function.__qualname__,
        ):
            raise InputError(f"operator {name!r} is registered twice", got=function, expected=known.function)
        _REGISTRY[name] = Operator(
            name=name,
            function=function,
            oracle=oracle,
            samples=samples,
            flops=flops,
            bytes=bytes,
            sharding=sharding,
            orders=orders,
            dtypes=dtypes,
            unsupported=unsupported,
            implementations=dict(implementations or {}),
        )
        return function

    return register


def registry() -> dict[str, Operator]:
    """All registered operators by name, sorted."""
    from sciax.core.ops import _all

    _all.load()
    return dict(sorted(_REGISTRY.items()))
