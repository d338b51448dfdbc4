"""What the cells compute. Compiling is what the grid pays for, so one program gives value, jvp, vjp and second order."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.ops._registry import Operator
from sciax.core.ops.conformance._case import BATCH, Case, direction

STEP = 3e-5

# Compiled programs of the operator at work, by kind and by what is static in a case. Cells come operator by operator, so
# one operator's worth is kept; samples of equal shapes share a program.
_SHARED: dict[Any, Any] = {}


def shared(operator: Operator, key: Any, make: Callable[[], Any]) -> Any:
    """`make()`, remembered under `key` until another operator comes."""
    if _SHARED.get("operator") is not operator:
        _SHARED.clear()
        _SHARED["operator"] = operator
    if key not in _SHARED:
        _SHARED[key] = make()
    return _SHARED[key]


def _fast() -> dict[str, Any] | None:
    """LLVM's optimisation is much of the compile time and not what the cells of transformations are after."""
    return {"xla_backend_optimization_level": 0} if jax.default_backend() == "cpu" else None


def compiled(case: Case) -> Any:
    """The jitted call."""
    return shared(case.operator, ("call", case.static), lambda: jax.jit(case.call))


def vmapped(case: Case, out_shardings: Any = None) -> Any:
    """The jitted call over a leading axis of the differentiated arrays."""

    def make() -> Any:
        mapped = jax.vmap(case.call, in_axes=(0, None), axis_size=BATCH)
        return jax.jit(mapped, out_shardings=out_shardings, compiler_options=_fast() if out_shardings is None else None)

    return shared(case.operator, ("vmap", case.static, out_shardings), make)


def floats(case: Case, diff: Sequence[Any], aux: Sequence[Any]) -> list[Any]:
    """The floating and complex outputs."""
    return [x for x in jax.tree.leaves(case.call(diff, aux)) if jnp.issubdtype(jnp.result_type(x), jnp.inexact)]


def calls_back(case: Case) -> bool:
    """Whether the program calls Python whenever it runs; a callback in a branch (an error to raise) does not count."""

    def inside(item: Any) -> bool:
        if isinstance(item, tuple | list):
            return any(map(inside, item))
        eqns = getattr(getattr(item, "jaxpr", item), "eqns", ())
        return any(
            "callback" in eqn.primitive.name or (eqn.primitive.name != "cond" and any(map(inside, eqn.params.values())))
            for eqn in eqns
        )

    return inside(jax.make_jaxpr(case.call)(case.diff, case.aux))


def by_device(case: Case, mesh: jax.sharding.Mesh) -> Any:
    """As `vmapped`, each device running its part of the batch by itself.

    XLA's partitioner puts a callback on one device, where the others wait for it; with more virtual devices than cores the
    waiting threads can be all there are, and the process aborts.
    """

    def make() -> Any:
        mapped = jax.vmap(case.call, in_axes=(0, None), axis_size=BATCH // mesh.size)
        batch, whole = jax.P("batch"), jax.P()
        return jax.jit(jax.shard_map(mapped, mesh=mesh, in_specs=(batch, whole), out_specs=batch, check_vma=False))

    return shared(case.operator, ("by device", case.static), make)


def _derivatives(
    case: Case, parts: tuple[str, ...], diff: Any, aux: Any, tangent: Any, cotangent: Any
) -> dict[str, Any]:
    function = partial(floats, case)
    gradient = lambda d: jax.vjp(lambda e: function(e, aux), d)[1](cotangent)[0]  # noqa: E731
    out: dict[str, Any] = {}
    if "jvp" in parts:
        out["value"], out["jvp"] = jax.jvp(lambda d: function(d, aux), (diff,), (tangent,))
    else:
        out["value"] = function(diff, aux)
    if "second_order" in parts:
        out["vjp"], out["second_order"] = jax.jvp(gradient, (diff,), (tangent,))
    elif "vjp" in parts:
        out["vjp"] = gradient(diff)
    return out


@dataclass(frozen=True)
class Derivatives:
    """Value and derivatives at one point along one direction, and the same by fourth-order central differences."""

    tangent: list[np.ndarray]
    cotangent: list[np.ndarray]
    exact: dict[str, Any]
    other: dict[str, Any]
    """Second order along another direction, `other_tangent`, for the symmetry of the Hessian."""
    other_tangent: list[np.ndarray]
    differences: dict[str, Any]


def derivatives(case: Case, parts: tuple[str, ...], rng: np.random.Generator) -> Derivatives:
    """Run the derivative program of `case` for the cells in `parts`, and difference it."""
    shapes = jax.eval_shape(partial(floats, case), case.diff, case.aux)
    cotangent = direction([np.ones(s.shape, s.dtype) for s in shapes], rng)
    tangent, second = direction(case.diff, rng), direction(case.diff, rng)
    program = shared(
        case.operator,
        ("derivatives", case.static, parts),
        lambda: jax.jit(partial(_derivatives, case, parts), compiler_options=_fast()),
    )
    run = lambda diff, along: jax.device_get(program(diff, case.aux, along, cotangent))  # noqa: E731
    exact = run(case.diff, tangent)
    other = run(case.diff, second) if "second_order" in parts else {}
    differences: dict[str, Any] = {}
    if case.sample.smooth:
        shifted = {
            k: run([x + k * STEP * v for x, v in zip(case.diff, tangent)], tangent) for k in (-2, -1, 1, 2)
        }  # rounding of x + h v is part of the 1e-11 error of the quotient
        central = lambda a, b, c, d: (8 * (c - b) - (d - a)) / (12 * STEP)  # noqa: E731
        for key in ("value", "vjp"):
            if key in exact:
                differences[key] = jax.tree.map(central, *(shifted[k][key] for k in (-2, -1, 1, 2)))
    return Derivatives(tangent, cotangent, exact, other, second, differences)


def pairing(a: Sequence[Any], b: Sequence[Any]) -> tuple[float, float]:
    """Re sum a b (JAX's convention for complex transposes) and the sum of moduli that rounding is measured against."""
    products = [np.asarray(x, np.complex128) * np.asarray(y, np.complex128) for x, y in zip(a, b)]
    return float(sum(p.sum().real for p in products)), float(sum(np.abs(p).sum() for p in products))
