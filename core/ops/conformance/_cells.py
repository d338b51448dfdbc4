"""The cells of the grid: `check(operator, cell)` runs one on all samples of an operator."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, MissingDependencyError, SciaxError, UnsupportedError, did_you_mean
from sciax.core.ops._registry import CELLS, Operator, Sample
from sciax.core.ops.conformance._case import BATCH, Case, batched, direction, generator, has_complex, make_case
from sciax.core.ops.conformance._compare import ConformanceError, same, scale_of
from sciax.core.ops.conformance._programs import (
    Derivatives,
    by_device,
    calls_back,
    compiled,
    derivatives,
    floats,
    pairing,
    shared,
    vmapped,
)
from sciax.core.ops.conformance._tolerances import tolerance
from sciax.core.precision import x64

_DERIVATIVES = ("jvp", "vjp", "second_order")


def check(operator: Operator, cell: str) -> None:
    """Run one cell of the grid.

    Args:
        operator: from `sciax.core.ops.registry()`.
        cell: one of `sciax.core.ops.CELLS`.

    Raises:
        ConformanceError: naming operator, sample, what differs and by how much.
        InputError: unknown cell.
    """
    if cell not in CELLS:
        raise InputError(f"unknown grid cell {cell!r}", remedy=did_you_mean(cell, CELLS))
    if cell in operator.unsupported:
        _refuses(operator, cell)
        return
    _consistent(operator, cell)
    _CHECKS[cell](operator)


def samples_of(operator: Operator) -> list[Sample]:
    """All samples of an operator; the same at every call."""
    return list(operator.samples(generator(operator)))


def _cases(operator: Operator, dtype: str) -> list[Case]:
    return shared(operator, ("cases", dtype), lambda: [make_case(operator, s, dtype) for s in samples_of(operator)])


def _complex_cases(operator: Operator) -> list[Case]:
    samples = samples_of(operator)
    own = [s for s in samples if has_complex(s)]
    return [make_case(operator, s, "float64", as_complex=not own) for s in own or samples]


def _default(operator: Operator) -> str:
    return "float32" if "float32" in operator.dtypes else "float64"


def _dtype_follows(case: Case, outputs: Any) -> None:
    for leaf in jax.tree.leaves(outputs):
        if jnp.issubdtype(leaf.dtype, jnp.inexact) and jnp.finfo(leaf.dtype).dtype != case.dtype:
            raise ConformanceError(f"{case.title}: output dtype {leaf.dtype} for {case.dtype} input")


def _eager(operator: Operator) -> None:
    dtype = _default(operator)
    with x64(dtype == "float64"):
        for case in _cases(operator, dtype):
            got = case.call([jnp.asarray(x) for x in case.diff], [jnp.asarray(x) for x in case.aux])
            same(
                got,
                case.oracle(),
                tolerance("eager", dtype, case.sample.tolerance),
                f"{case.title}: eager against oracle",
            )


def _value(case: Case) -> Any:
    return jax.device_get(compiled(case)(case.diff, case.aux))


def _jit(operator: Operator) -> None:
    dtype = _default(operator)
    with x64(dtype == "float64"):
        for case in _cases(operator, dtype):
            tol = tolerance("jit", dtype, case.sample.tolerance)
            got = _value(case)
            eager = case.call([jnp.asarray(x) for x in case.diff], [jnp.asarray(x) for x in case.aux])
            same(got, eager, tol, f"{case.title}: jit against eager")
            same(got, case.oracle(), tol, f"{case.title}: jit against oracle")


def _dtype(operator: Operator, dtype: str) -> None:
    with x64(dtype == "float64"):
        for case in _cases(operator, dtype):
            got, want = _value(case), case.oracle()
            tol = tolerance(dtype, dtype, case.sample.tolerance)
            _dtype_follows(case, got)
            same(got, want, tol, f"{case.title}: {dtype} against oracle")
            for name, function in operator.implementations.items():
                other = make_case(operator, case.sample, dtype, function=function)
                try:
                    got = jax.device_get(jax.jit(other.call)(other.diff, other.aux))
                except (UnsupportedError, MissingDependencyError):
                    continue  # not on this machine, or not for this dtype: refused by name
                same(got, want, tol, f"{case.title}: implementation {name!r}, {dtype} against oracle")
    if dtype == "float32":  # and no float64 creeps in where 64-bit arrays are on
        with x64():
            for case in _cases(operator, dtype):
                _dtype_follows(case, jax.eval_shape(case.call, case.diff, case.aux))


def _batches(operator: Operator) -> list[tuple[Case, list[np.ndarray], Any]]:
    """For each sample: `BATCH` perturbed inputs and the vmapped results."""

    def make() -> list[tuple[Case, list[np.ndarray], Any]]:
        rng = generator(operator, "batch")
        out = []
        for case in _cases(operator, "float64"):
            diff = batched(case.diff, rng)
            out.append((case, diff, jax.device_get(vmapped(case)(diff, case.aux))))
        return out

    return shared(operator, "batches", make)


def _vmap(operator: Operator) -> None:
    with x64():
        for case, diff, got in _batches(operator):
            rows = [jax.device_get(compiled(case)([x[i] for x in diff], case.aux)) for i in range(BATCH)]
            want = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
            same(got, want, tolerance("vmap", "float64", case.sample.tolerance), f"{case.title}: vmap against a loop")


def _derived(operator: Operator) -> list[tuple[Case, Derivatives]]:
    """For each sample: all supported derivatives by one compiled program."""
    parts = tuple(cell for cell in _DERIVATIVES if cell not in operator.unsupported)

    def make() -> list[tuple[Case, Derivatives]]:
        rng = generator(operator, "derivatives")
        return [(case, derivatives(case, parts, rng)) for case in _cases(operator, "float64")]

    return shared(operator, "derivatives", make)


def _first_order(case: Case, result: Derivatives, cell: str) -> None:
    factor = case.sample.tolerance
    exact, title = result.exact, case.title
    floor = 1e-3 * scale_of(exact["value"])
    for leaf in jax.tree.leaves(exact.get(cell)):
        if not np.isfinite(leaf).all():
            raise ConformanceError(f"{title}: {cell} has {int((~np.isfinite(leaf)).sum())} entries that are not finite")
    if cell == "jvp" and "value" in result.differences:
        tol = tolerance("jvp", "float64", factor)
        same(exact["jvp"], result.differences["value"], tol, f"{title}: jvp against central differences", floor)
    if cell == "vjp":
        right, size_right = pairing(exact["vjp"], result.tangent)
        if "jvp" in exact:
            left, size_left = pairing(result.cotangent, exact["jvp"])
            _close(
                left, right, size_left + size_right, tolerance("dot", "float64", factor), f"{title}: <w, Jv> = <J'w, v>"
            )
        if "value" in result.differences:
            left, size_left = pairing(result.cotangent, result.differences["value"])
            size = size_left + size_right + floor
            _close(left, right, size, tolerance("vjp", "float64", factor), f"{title}: vjp against central differences")


def _close(left: float, right: float, size: float, tol: float, what: str) -> None:
    if not abs(left - right) <= tol * size:
        raise ConformanceError(
            f"{what}: {left:.15g} and {right:.15g} differ by {abs(left - right):.2e}, allowed {tol * size:.2e}"
        )


def _derivative(operator: Operator, cell: str) -> None:
    with x64():
        for case, result in _derived(operator):
            _first_order(case, result, cell)


def _second_order(operator: Operator) -> None:
    with x64():
        for case, result in _derived(operator):
            factor, got = case.sample.tolerance, result.exact["second_order"]
            for leaf in got:
                if not np.isfinite(leaf).all():
                    raise ConformanceError(f"{case.title}: second order has entries that are not finite")
            floors = 1e-3 * scale_of(result.exact["vjp"])
            if "vjp" in result.differences:
                tol = tolerance("second_order", "float64", factor)
                title = f"{case.title}: forward over reverse against differences of the gradient"
                same(got, result.differences["vjp"], tol, title, floors)
            left, size_left = pairing(got, result.other_tangent)
            right, size_right = pairing(result.other["second_order"], result.tangent)
            tol = tolerance("symmetry", "float64", factor)
            _close(left, right, size_left + size_right, tol, f"{case.title}: Hessian symmetry <u, Hv> = <v, Hu>")


def _complex(operator: Operator) -> None:
    parts = tuple(cell for cell in ("jvp", "vjp") if cell not in operator.unsupported)
    rng = generator(operator, "complex")
    with x64():
        for case in _complex_cases(operator):
            result = derivatives(case, parts, rng)
            want = [x for x in jax.tree.leaves(case.oracle()) if np.issubdtype(np.asarray(x).dtype, np.inexact)]
            tol = tolerance("complex", "float64", case.sample.tolerance)
            same(result.exact["value"], want, tol, f"{case.title}: complex against oracle")
            for cell in parts:
                _first_order(case, result, cell)


def _mesh() -> jax.sharding.Mesh:
    count = min(BATCH, jax.device_count())
    return jax.make_mesh((count,), ("batch",), axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:count])


def _sharded(operator: Operator) -> None:
    mesh = _mesh()
    split = jax.NamedSharding(mesh, jax.P("batch"))
    whole = jax.NamedSharding(mesh, jax.P())
    with x64():
        if operator.sharding == "leading":
            _sharded_leading(operator, mesh.size, split, whole)
            return
        # how a program is split does not depend on values: the ordinary sample and one more stand for all
        for case, diff, want in _batches(operator)[:2]:
            run = by_device(case, mesh) if calls_back(case) else vmapped(case, split)
            got = run(jax.device_put(diff, split), jax.device_put(case.aux, whole))
            _compare_sharded(case, got, want, mesh.size)


def _sharded_leading(operator: Operator, count: int, split: Any, whole: Any) -> None:
    done = 0
    for case in _cases(operator, "float64"):
        arrays = {"diff": list(case.diff), "aux": list(case.aux)}
        first = "diff" if 0 not in case.sample.fixed and case.diff else "aux"
        if (
            not arrays[first]
            or arrays[first][0].ndim == 0
            or arrays[first][0].shape[0] % count
            or not arrays[first][0].size
        ):
            continue  # cannot be split evenly
        placed = {
            k: [jax.device_put(x, split if (k, i) == (first, 0) else whole) for i, x in enumerate(v)]
            for k, v in arrays.items()
        }
        got = compiled(case)(placed["diff"], placed["aux"])
        _compare_sharded(case, got, _value(case), count)
        done += 1
    if not done:
        raise ConformanceError(
            f"{operator.name}: sharding='leading' needs a sample whose first axis is a multiple of {count}"
        )


def _compare_sharded(case: Case, got: Any, want: Any, count: int) -> None:
    devices = max((len(leaf.sharding.device_set) for leaf in jax.tree.leaves(got)), default=count)
    if devices != count:
        raise ConformanceError(f"{case.title}: ran on {devices} devices instead of {count}")
    tol = tolerance("sharded", "float64", case.sample.tolerance)
    same(jax.device_get(got), want, tol, f"{case.title}: {count} devices against one")


def _consistent(operator: Operator, cell: str) -> None:
    """What the registration says of itself must agree."""
    if cell in ("float32", "float64") and cell not in operator.dtypes:
        raise ConformanceError(f"{operator.name}: {cell} is not in dtypes, so it belongs in unsupported")
    needs = {"jvp": 1, "vjp": 1, "second_order": 2}.get(cell, 0)
    if operator.orders < needs:
        raise ConformanceError(f"{operator.name}: orders={operator.orders}, so {cell!r} belongs in unsupported")


def _refuses(operator: Operator, cell: str) -> None:
    """An unsupported cell raises a SciaxError on the ordinary sample."""
    sample = samples_of(operator)[0]
    dtype = cell if cell in ("float32", "float64") else _default(operator)
    wide = cell not in ("float32", "eager", "jit") or dtype == "float64"
    rng = generator(operator, "refusal")
    with x64(wide):
        case = make_case(operator, sample, "float64" if wide else dtype, as_complex=cell == "complex")
        diff, aux = [jnp.asarray(x) for x in case.diff], [jnp.asarray(x) for x in case.aux]
        try:
            _attempt(case, cell, diff, aux, rng)
        except SciaxError:
            return
        except Exception as error:
            raise ConformanceError(
                f"{operator.name}: unsupported cell {cell!r} ({operator.unsupported[cell]}) raises {type(error).__name__} "
                f"instead of a SciaxError: {error}"
            ) from error
    raise ConformanceError(
        f"{operator.name}: cell {cell!r} is registered as unsupported ({operator.unsupported[cell]}) but runs"
    )


def _attempt(case: Case, cell: str, diff: list[Any], aux: list[Any], rng: np.random.Generator) -> None:
    function = partial(floats, case)
    tangent = direction(case.diff, rng)

    def gradient(d: list[Any]) -> list[Any]:
        out, pull = jax.vjp(lambda e: function(e, aux), d)
        return pull([jnp.ones_like(x) for x in out])[0]

    if cell == "jit":
        jax.jit(case.call)(diff, aux)
    elif cell in ("vmap", "sharded"):
        stacked: Any = batched(case.diff, rng)
        if cell == "sharded":
            stacked = jax.device_put(stacked, jax.NamedSharding(_mesh(), jax.P("batch")))
        jax.jit(jax.vmap(case.call, in_axes=(0, None), axis_size=BATCH))(stacked, aux)
    elif cell == "jvp":
        jax.jvp(lambda d: function(d, aux), (diff,), (tangent,))
    elif cell == "vjp":
        gradient(diff)
    elif cell == "second_order":
        jax.jvp(gradient, (diff,), (tangent,))
    else:
        case.call(diff, aux)


_CHECKS: dict[str, Callable[[Operator], None]] = {
    "eager": _eager,
    "jit": _jit,
    "vmap": _vmap,
    "jvp": partial(_derivative, cell="jvp"),
    "vjp": partial(_derivative, cell="vjp"),
    "second_order": _second_order,
    "float32": partial(_dtype, dtype="float32"),
    "float64": partial(_dtype, dtype="float64"),
    "complex": _complex,
    "sharded": _sharded,
}
