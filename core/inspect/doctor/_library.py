"""Probes of sciax's own operators."""

import importlib
import pkgutil
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sciax.core.inspect.doctor._probe import Measured, probe
from sciax.core.ops import Operator, registry
from sciax.core.ops.conformance import ConformanceError, check

_MOST = 10
"""Operators that are looked at, one a kind: the whole grid is the test suite's."""


def spot_operators() -> list[Operator]:
    """One operator of each kind, the first by name that takes float64."""
    chosen: dict[str, Operator] = {}
    for operator in registry().values():
        if "float64" in operator.dtypes:
            chosen.setdefault(operator.kind, operator)
    return list(chosen.values())[:_MOST]


@probe(
    "operators",
    "one operator of each kind: values against its NumPy oracle, reverse mode against differences",
    subject=spot_operators,
    remedy="see which: python -m pytest tests/conformance in a checkout",
)
def _operators(spot: Any) -> Measured:
    wrong, names = [], []
    for operator in spot():
        first = replace(operator, samples=partial(_first, operator.samples))
        for cell in ("float64", "vjp"):
            if cell in operator.unsupported:
                continue
            names.append(operator.name)
            try:
                check(first, cell)
            except ConformanceError as error:
                wrong.append(str(error).splitlines()[0])
    if wrong:
        raise ConformanceError("; ".join(wrong))
    return Measured(len(names), len(names), detail=", ".join(dict.fromkeys(names)))


def _first(samples: Any, rng: np.random.Generator) -> list[Any]:
    return list(samples(rng))[:1]


def native_modules() -> dict[str, Any]:
    """The compiled kernels that are installed: name to the dict of its calls; a broken one raises."""
    from sciax.core.ops import native

    found = {}
    for module in pkgutil.iter_modules(native.__path__):
        if module.name.startswith("_"):
            found[module.name] = importlib.import_module(f"{native.__name__}.{module.name}")
    return found


@probe(
    "native kernels",
    "compiled extensions load where they are installed (absent is fine: XLA does the work)",
    subject=native_modules,
    remedy="rebuild or remove them: pip install --force-reinstall --no-deps sciax",
    informative=True,
)
def _native(modules: Any) -> Measured:
    found = modules()
    loaded = [bool(module) for module in found.values()]
    detail = ", ".join(name.removeprefix("_") for name in found) if found else "none, on XLA alone"
    return Measured(loaded, [True] * len(found), detail=detail)
