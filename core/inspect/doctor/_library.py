"""Probes of sciax's own operators."""

import importlib
import pkgutil
from typing import Any

import jax
import numpy as np

from sciax.core.inspect.doctor._probe import Measured, probe
from sciax.core.precision import x64

_MOST = 8
"""Operators that are looked at: the whole grid is the test suite's."""


def spot_operators() -> dict[str, Any]:
    """One operator a kind, the cheapest to name: the first by name that takes ordinary floating samples."""
    from sciax.core.ops import registry

    chosen: dict[str, Any] = {}
    for name, operator in registry().items():
        if "float64" in operator.dtypes and operator.kind not in {each.kind for each in chosen.values()}:
            chosen[name] = operator
    return dict(list(chosen.items())[:_MOST])


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@probe(
    "operators",
    "one operator of each kind, compiled, against its NumPy oracle",
    subject=spot_operators,
    remedy="run the operator grid: python -m pytest tests/conformance",
)
def _operators(spot: Any) -> Measured:
    errors, names = [], []
    for name, operator in spot().items():
        sample = next(iter(operator.samples(np.random.default_rng(0))))
        with x64():
            got = operator.function(*sample.args, **sample.kwargs)
        wanted = operator.oracle(*sample.args, **sample.kwargs)
        pairs = zip(_leaves(got), _leaves(wanted), strict=True)
        errors += [Measured(a, b).error / sample.tolerance for a, b in pairs]
        names.append(name)
    return Measured(errors, np.zeros(len(errors)), 1e-9, ", ".join(names))


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
