"""The table of methods and the one entry, `solve`."""

import importlib
from typing import Any

from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.science.pde import Problem

# One line a method: its name, and the class that implements it.
METHODS: dict[str, str] = {
    "fem": "sciax.science.solvers.fem._method:Fem",
    "fdm": "sciax.science.solvers.collocation._method:Fdm",
    "fvm": "sciax.science.solvers.fvm._method:Fvm",
    "etdrk": "sciax.science.solvers.etdrk._method:Etdrk",
    "spectral": "sciax.science.solvers.collocation._method:Spectral",
    "pinn": "sciax.science.pinn._method:Pinn",
}


class Method:
    """Interface of a method family.

    A subclass states its options as keyword arguments of `__init__` with defaults, refuses what it cannot do in `refuses`, and
    solves in `solve`. It is made once for a problem and a set of options, and kept: `solve` is called with problems that differ
    only in parameter values.
    """

    name: str
    takes_weak = False
    """Whether it can use weak forms given by hand."""
    moves_points = False
    """Whether it can solve on a mesh whose points `Problem.with_points` has moved."""
    laws = False
    """Whether it takes conservation laws, which state no equations but a law with its Riemann solver."""

    @classmethod
    def refuses(cls, problem: Problem) -> str | None:
        """Why this method cannot solve the problem; None if it can."""
        raise NotImplementedError

    def __init__(self, problem: Problem, **options: Any):
        raise NotImplementedError

    def solve(self, problem: Problem) -> Any:
        raise NotImplementedError


def method_class(name: str) -> type[Method]:
    if name not in METHODS:
        raise InputError(f"unknown method {name!r}", remedy=did_you_mean(name, METHODS))
    module, _, attribute = METHODS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def solve(problem: Problem, method: str = "fem", **options: Any) -> Any:
    """Solve a problem.

    What depends only on the problem's structure (mesh, sparsity, compiled programs) is kept with the problem and shared by
    all its `with_` copies, so solving again with other parameter values is fast. Differentiable in parameters, coefficients,
    sources and boundary values.

    Args:
        problem: the problem.
        method: a key of `METHODS`.
        options: of that method; an unknown one is refused.

    Returns:
        A solution: call it at points, `to_xarray()`, `plot()`, `integrate()`, and more by method.

    Raises:
        UnsupportedError: the method cannot do this; the message names one that can.
        InputError: unknown method or option, missing or contradictory conditions.
        SingularError, ConvergenceError: no unique solution; an iteration that stopped short.
    """
    return prepare(problem, method, **options).solve(problem)


def prepare(problem: Problem, method: str, **options: Any) -> Method:
    """The method made for a problem and options, kept with the problem.

    Raises:
        UnsupportedError, InputError: as `solve`.
    """
    chosen = method_class(method)
    reason = _refusal(chosen, problem)
    if reason is not None:
        others = [name for name in METHODS if name != method and _refusal(method_class(name), problem) is None]
        remedy = f"solve(problem, method={others[0]!r}) can" if others else "no method of this version can"
        raise UnsupportedError(f"method {method!r} cannot solve this problem: {reason}", remedy=remedy)
    import inspect

    known = [n for n, p in inspect.signature(chosen.__init__).parameters.items() if n not in ("self", "problem")]
    for name in options:
        if name not in known:
            raise InputError(f"method {method!r} has no option {name!r}", remedy=did_you_mean(name, known))
    key = (method, _key(options), _structure(problem))
    prepared = problem.cache.get(key)
    if prepared is None:
        prepared = problem.cache[key] = chosen(problem, **options)
    return prepared


def _refusal(chosen: type[Method], problem: Problem) -> str | None:
    if problem.weak and not chosen.takes_weak:
        return "it takes strong forms only, and a weak form is given"
    if problem.points is not None and not chosen.moves_points:
        return "it has no mesh whose points could be moved"
    if not problem.equations and not problem.weak and not chosen.laws:
        return "it is a conservation law, without equations in strong form"
    return chosen.refuses(problem)


def _key(options: dict[str, Any]):
    return tuple(sorted((name, _hashable(value)) for name, value in options.items()))


def _hashable(value: Any):
    if isinstance(value, dict):
        return _key(value)
    try:
        hash(value)
    except TypeError:
        import numpy as np

        array = np.asarray(value)
        return array.dtype.str, array.shape, array.tobytes()
    return value


def _structure(problem: Problem):
    """What of the parameter values is compiled in: functions and mappings, and whether 64-bit arrays are on."""
    from sciax.core import x64_enabled

    fixed = {n: id(v) for n, v in problem.values.items() if callable(v) or isinstance(v, dict)}
    return x64_enabled(), tuple(sorted(fixed.items()))
