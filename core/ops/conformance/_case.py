"""One sample of one operator, cast to a dtype and split into what is differentiated, traced and static."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.ops._registry import Operator, Sample

BATCH = 8
_REAL = {"float32": np.float32, "float64": np.float64}
_COMPLEX = {"float32": np.complex64, "float64": np.complex128}


def generator(operator: Operator, salt: str = "") -> np.random.Generator:
    """Random numbers that depend on the operator's name only."""
    return np.random.default_rng(zlib.crc32(f"{operator.name}/{salt}".encode()))


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | jax.Array) and not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)


def has_complex(sample: Sample) -> bool:
    """Whether the sample itself brings complex arrays."""
    return any(_is_array(leaf) and np.iscomplexobj(leaf) for leaf in jax.tree.leaves(sample.args))


@dataclass(frozen=True)
class Case:
    """A call that is ready to run: `call(diff, aux)` with `diff` differentiated and `aux` traced arrays."""

    operator: Operator
    sample: Sample
    dtype: str
    diff: list[np.ndarray]
    aux: list[np.ndarray]
    call: Callable[[Sequence[Any], Sequence[Any]], Any]
    rebuild: Callable[[Sequence[Any], Sequence[Any]], tuple[Any, ...]]
    static: Any
    """What `call` closes over, hashable: cases of one operator with equal `static` share their compiled programs."""

    @property
    def title(self) -> str:
        return f"{self.operator.name}, sample {self.sample.label!r}"

    def oracle(self, diff: Sequence[Any] | None = None) -> Any:
        """The oracle at the rounded inputs, in float64."""
        widen = lambda leaf: (  # noqa: E731
            leaf.astype(np.complex128 if np.iscomplexobj(leaf) else np.float64)
            if isinstance(leaf, np.ndarray) and np.issubdtype(leaf.dtype, np.inexact)
            else leaf
        )
        diff = [np.asarray(x) for x in (self.diff if diff is None else diff)]
        args = self.rebuild([widen(x) for x in diff], [widen(x) for x in self.aux])
        return self.operator.oracle(*args, **self.sample.kwargs)


def _key(item: Any) -> Any:
    """A hashable stand-in for a static argument."""
    if isinstance(item, np.ndarray | jax.Array) and _is_array(item):
        item = np.asarray(item)
        return item.shape, item.dtype.str, item.tobytes()
    if isinstance(item, tuple | list):
        return type(item), tuple(map(_key, item))
    if isinstance(item, dict):
        return tuple((k, _key(v)) for k, v in item.items())
    if isinstance(item, str | bool | int | float | complex | type(None)):
        return type(item), item
    return id(item)


def make_case(
    operator: Operator,
    sample: Sample,
    dtype: str,
    *,
    as_complex: bool = False,
    function: Callable[..., Any] | None = None,
) -> Case:
    """Cast `sample` to `dtype`; `as_complex` gives its differentiated arrays an imaginary part (see `Sample.real`)."""
    rng = generator(operator, "imaginary")
    diff: list[np.ndarray] = []
    aux: list[np.ndarray] = []
    plan: list[tuple[Any, list[tuple[str, Any]]]] = []
    for position, arg in enumerate(sample.args):
        leaves, treedef = jax.tree.flatten(arg)
        slots: list[tuple[str, Any]] = []
        for leaf in leaves:
            if not _is_array(leaf):
                slots.append(("static", leaf))
                continue
            leaf = np.asarray(leaf)
            if not np.issubdtype(leaf.dtype, np.inexact):
                slots.append(("aux", len(aux)))
                aux.append(leaf)
                continue
            free = position not in sample.fixed
            if as_complex and free and position not in sample.real and not np.iscomplexobj(leaf):
                leaf = leaf + 1j * np.where(leaf == 0, 1.0, np.abs(leaf)) * rng.uniform(-1, 1, leaf.shape)
            leaf = leaf.astype((_COMPLEX if np.iscomplexobj(leaf) else _REAL)[dtype])
            slots.append(("diff", len(diff)) if free else ("aux", len(aux)))
            (diff if free else aux).append(leaf)
        plan.append((treedef, slots))

    def rebuild(diff: Sequence[Any], aux: Sequence[Any]) -> tuple[Any, ...]:
        pick = {"diff": lambda key: diff[key], "aux": lambda key: aux[key], "static": lambda key: key}
        return tuple(jax.tree.unflatten(treedef, [pick[kind](key) for kind, key in slots]) for treedef, slots in plan)

    run = operator.function if function is None else function

    def call(diff: Sequence[Any], aux: Sequence[Any]) -> Any:
        return run(*rebuild(diff, aux), **sample.kwargs)

    layout = tuple((treedef, tuple((kind, _key(key)) for kind, key in slots)) for treedef, slots in plan)
    static = (layout, tuple((name, _key(value)) for name, value in sample.kwargs.items()), id(run))
    return Case(operator, sample, dtype, diff, aux, call, rebuild, static)


def direction(leaves: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """A random tangent whose entries are as large as the entries they perturb."""
    out = []
    for leaf in leaves:
        size = np.abs(leaf).astype(np.float64)
        typical = float(np.median(size[size > 0])) if (size > 0).any() else 1.0
        noise = rng.standard_normal(leaf.shape)
        if np.iscomplexobj(leaf):
            noise = noise + 1j * rng.standard_normal(leaf.shape)
        out.append(np.asarray(noise * np.where(size > 0, size, typical)).astype(leaf.dtype))
    return out


def batched(leaves: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    """`BATCH` copies stacked, each but the first perturbed by a percent; zeros and signs stay."""
    out = []
    for leaf in leaves:
        noise = 1 + 0.01 * rng.standard_normal((BATCH, *leaf.shape))
        noise[0] = 1.0
        out.append(np.asarray(leaf * noise).astype(leaf.dtype))
    return out
