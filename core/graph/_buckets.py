"""Shape buckets: the leading axis of some arguments is padded to one of a few sizes, so that few programs serve all sizes."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, ShapeError, did_you_mean
from sciax.core.graph._errors import GraphError
from sciax.core.graph._values import describe, is_tracer

SMALLEST = 8
"""Smallest power-of-two bucket: below it a program of its own is not worth compiling."""


class Buckets:
    """Padding, masking and cropping around a compiled function.

    Padding repeats the last row, so that padded rows hold ordinary values (no 0/0). A function that combines rows takes an
    argument `mask` (bool, padded length) and leaves the masked rows out. When a bucket is first used, the program is run
    with other values in the padded rows as well: a result that depends on them is refused.
    """

    def __init__(self, spec: Mapping[str, Any], signature: inspect.Signature | None, name: str):
        if signature is None:
            raise InputError(f"{name}: buckets need a function whose arguments can be named")
        names = list(signature.parameters)
        self.sizes: dict[str, tuple[int, ...] | None] = {}
        for key, rule in dict(spec).items():
            if key not in names:
                raise InputError(f"buckets: {key!r} is no argument of {name}", remedy=did_you_mean(key, names))
            self.sizes[key] = _sizes(rule)
        if not self.sizes:
            raise InputError(
                f"{name}: buckets is empty", expected='{"argument": "pow2"} or {"argument": (32, 64, 128)}'
            )
        self.signature, self.name = signature, name
        self.masked = "mask" in names
        self.axes: dict[Any, Any] = {}

    def size_for(self, key: str, n: int) -> int:
        """The smallest bucket that holds `n` rows."""
        sizes = self.sizes[key]
        if sizes is None:
            return max(SMALLEST, 1 << max(n - 1, 0).bit_length())
        for size in sizes:
            if size >= n:
                return size
        raise ShapeError(
            f"{self.name}: argument {key!r} has more rows than the largest bucket",
            got=n,
            expected=f"at most {sizes[-1]}",
        )

    def call(self, run: Callable[[tuple, dict], Any], args: tuple, kwargs: dict) -> Any:
        bound = self.signature.bind(*args, **kwargs)
        lengths: dict[str, int] = {}
        for key in self.sizes:
            if key not in bound.arguments:
                continue
            for leaf in jax.tree.leaves(bound.arguments[key]):
                if np.ndim(leaf) == 0:
                    raise ShapeError(f"{self.name}: bucketed argument {key!r} has no axis to pad", got=describe(leaf))
                if lengths.setdefault(key, np.shape(leaf)[0]) != np.shape(leaf)[0]:
                    raise ShapeError(f"{self.name}: the leaves of {key!r} differ in their number of rows")
        if len(set(lengths.values())) > 1:
            raise ShapeError(f"{self.name}: bucketed arguments differ in their number of rows", got=lengths)
        if not lengths:
            return run(args, kwargs)
        n = next(iter(lengths.values()))
        size = max(self.size_for(key, n) for key in lengths)
        if n == 0:
            size = 0

        def padded(fill: float) -> Any:
            for key in lengths:
                bound.arguments[key] = jax.tree.map(lambda x: _pad(x, size, fill), original[key])
            if self.masked:
                bound.arguments["mask"] = np.arange(size) < n
            return run(bound.args, bound.kwargs)

        original = {key: bound.arguments[key] for key in lengths}
        result = padded(0.0)
        signature = (
            size,
            jax.tree.structure(original),
            tuple(str(getattr(x, "dtype", type(x))) for x in jax.tree.leaves(original)),
        )
        traced = any(is_tracer(x) for x in jax.tree.leaves((original, result)))
        if signature not in self.axes:
            axes = self._axes(padded, original, bound, lengths, size, result)
            if not traced and n != size:
                self._verify(padded, result, axes, n)
            if n == size and not traced:
                return result
            self.axes[signature] = axes
        return jax.tree.map(lambda x, axis: _crop(x, axis, n), result, self.axes[signature])

    def _axes(self, padded: Any, original: Any, bound: Any, lengths: Any, size: int, result: Any) -> Any:
        """For each output, the axes that follow the padded one: those that change when a row is added."""

        def shape_at(rows: int) -> Any:
            def at(x: Any) -> jax.ShapeDtypeStruct:
                plain = jax.eval_shape(lambda v: v, x)
                return jax.ShapeDtypeStruct((rows, *plain.shape[1:]), plain.dtype)

            def trace(avals: Any, mask: Any) -> Any:
                for key in lengths:
                    bound.arguments[key] = avals[key]
                if self.masked:
                    bound.arguments["mask"] = mask
                return self.run_untraced(bound.args, bound.kwargs)

            avals = {key: jax.tree.map(at, original[key]) for key in lengths}
            return jax.eval_shape(trace, avals, jax.ShapeDtypeStruct((rows,), jnp.dtype(bool)))

        larger = shape_at(size + 1)

        def compare(a: Any, b: Any) -> tuple[int, ...]:
            axes = tuple(i for i, (p, q) in enumerate(zip(np.shape(a), b.shape)) if p != q)
            if any(np.shape(a)[i] != size for i in axes):
                raise GraphError(
                    f"{self.name}: an output's size is not the number of rows but depends on it",
                    got=f"{describe(a)} for {size} rows",
                    remedy="leave buckets off, or return one entry a row",
                )
            return axes

        return jax.tree.map(compare, result, larger)

    run_untraced: Callable[[tuple, dict], Any]

    def _verify(self, padded: Any, result: Any, axes: Any, n: int) -> None:
        for fill in (977.0, -977.0):
            other = padded(fill)
            for a, b, axis in zip(jax.tree.leaves(result), jax.tree.leaves(other), _axis_leaves(result, axes)):
                a, b = np.asarray(_crop(a, axis, n)), np.asarray(_crop(b, axis, n))
                same = np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
                if not same and not np.allclose(
                    a, b, rtol=1e-5, atol=1e-6 * float(np.max(np.abs(a), initial=0)), equal_nan=True
                ):
                    raise GraphError(
                        f"{self.name}: the result depends on the padded rows",
                        remedy="give the function an argument `mask` (True for real rows) and leave the others out of sums, "
                        "means and extremes: jnp.sum(x, where=mask[:, None])",
                    )


def _axis_leaves(result: Any, axes: Any) -> list[tuple[int, ...]]:
    return jax.tree.structure(result).flatten_up_to(axes)


def _sizes(rule: Any) -> tuple[int, ...] | None:
    if rule == "pow2":
        return None
    if isinstance(rule, str):
        raise InputError(f"unknown bucket rule {rule!r}", expected='"pow2" or a sequence of sizes')
    try:
        sizes = tuple(sorted(int(s) for s in rule))
    except (TypeError, ValueError) as error:
        raise InputError("buckets must be 'pow2' or a sequence of sizes", got=rule) from error
    if not sizes or sizes[0] < 1:
        raise InputError("bucket sizes must be positive", got=rule)
    return sizes


def _pad(x: Any, size: int, fill: float) -> Any:
    n = np.shape(x)[0]
    if n == size:
        return x
    if is_tracer(x):
        last = jax.lax.stop_gradient(x[-1:])
        return jnp.concatenate([x, jnp.broadcast_to(last, (size - n, *x.shape[1:]))])
    # On the host: jnp.concatenate would itself be compiled for every new number of rows.
    array = np.asarray(x)
    rows = np.repeat(array[-1:], size - n, axis=0)
    if fill and array.dtype.kind in "fc":
        rows = rows + np.asarray(fill, array.dtype)
    return np.concatenate([array, rows])


def _crop(x: Any, axes: tuple[int, ...], n: int) -> Any:
    if not axes or all(x.shape[i] == n for i in axes):
        return x
    index = tuple(slice(n) if i in axes else slice(None) for i in range(x.ndim))
    return x[index] if is_tracer(x) else jax.device_put(np.asarray(x)[index])
