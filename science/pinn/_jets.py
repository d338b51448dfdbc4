"""Derivatives carried through a network with its values: truncated Taylor coefficients of many points at once.

A `Jet` holds D^a h for a set of multi-indices a (one entry an axis of (x, t)), each an array [features, points]. Linear maps act
on each entry; products follow Leibniz, nonlinear functions Faà di Bruno:

    D^a f(h) = sum over the partitions of a into blocks B_1 .. B_k of  f^(k)(h) D^{B_1} h ... D^{B_k} h

One more entry may hold a Laplacian, for which L f(h) = f'(h) L h + f''(h) |grad h|^2: the forward Laplacian.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Index = tuple[int, ...]
"""How often to differentiate along each axis."""


def unit(axis: int, axes: int) -> Index:
    return tuple(int(i == axis) for i in range(axes))


def plus(a: Index, b: Index) -> Index:
    return tuple(i + j for i, j in zip(a, b, strict=True))


def laplacian_index(dim: int, axes: int) -> Index:
    """The key of the Laplacian over the first `dim` axes: -1 there."""
    return tuple(-1 if i < dim else 0 for i in range(axes))


def is_laplacian(index: Index) -> bool:
    return min(index, default=0) < 0


def below(index: Index) -> set[Index]:
    """All multi-indices under one, itself included; of a Laplacian, what its rules need."""
    axes = len(index)
    if is_laplacian(index):
        return {index, (0,) * axes} | {unit(i, axes) for i in range(axes) if index[i] < 0}
    out = {()}
    for n in index:
        out = {(*head, i) for head in out for i in range(n + 1)}
    return out


def closed(indices: Iterable[Index], axes: int) -> tuple[Index, ...]:
    """The smallest set with all indices under those given, lowest order first."""
    every: set[Index] = {(0,) * axes}
    for index in indices:
        every |= below(index)
    return tuple(sorted(every, key=lambda a: (is_laplacian(a), sum(a), a)))


@functools.cache
def _partitions(index: Index) -> tuple[tuple[int, tuple[Index, ...]], ...]:
    """(how often, blocks) for the ways to split the derivatives of `index` into blocks."""
    labels = [axis for axis, n in enumerate(index) for _ in range(n)]

    def split(rest: list[int]):
        if not rest:
            yield []
            return
        for smaller in split(rest[1:]):
            yield [[rest[0]], *smaller]
            for i in range(len(smaller)):
                yield [*smaller[:i], [rest[0], *smaller[i]], *smaller[i + 1 :]]

    def as_index(block: list[int]) -> Index:
        return tuple(block.count(axis) for axis in range(len(index)))

    found = Counter(tuple(sorted(as_index(b) for b in blocks)) for blocks in split(labels))
    return tuple((count, blocks) for blocks, count in found.items())


class Jet(eqx.Module):
    """Values and derivatives of a quantity at points.

    Attributes:
        parts: multi-index -> array [features, points]; closed under lowering an index.
    """

    parts: dict[Index, Array]

    @property
    def axes(self) -> int:
        return len(next(iter(self.parts)))

    @property
    def zero(self) -> Index:
        return (0,) * self.axes

    @property
    def value(self) -> Float[Array, "features points"]:
        return self.parts[self.zero]

    @property
    def order(self) -> int:
        return max(2 if is_laplacian(a) else sum(a) for a in self.parts)

    def map(self, linear: Callable[[Array], Array]) -> "Jet":
        """A linear map of each entry."""
        return Jet({a: linear(v) for a, v in self.parts.items()})

    def shift(self, constant: Any) -> "Jet":
        """Plus something that does not depend on the point."""
        return Jet({**self.parts, self.zero: self.value + constant})

    def __add__(self, other: "Jet") -> "Jet":
        return Jet({a: v + other.parts[a] for a, v in self.parts.items()})

    def __sub__(self, other: "Jet") -> "Jet":
        return Jet({a: v - other.parts[a] for a, v in self.parts.items()})

    def __mul__(self, other: "Jet") -> "Jet":
        return Jet({a: self._leibniz(other, a) for a in self.parts})

    def _leibniz(self, other: "Jet", index: Index) -> Array:
        u, v, zero = self.parts, other.parts, self.zero
        if is_laplacian(index):
            out = u[index] * v[zero] + u[zero] * v[index]
            for i in range(self.axes):
                if index[i] < 0:
                    e = unit(i, self.axes)
                    out = out + 2 * u[e] * v[e]
            return out
        out: Any = 0
        for a in below(index):
            b = tuple(n - i for n, i in zip(index, a, strict=True))
            factor = math.prod(math.comb(n, i) for n, i in zip(index, a, strict=True))
            term = u[a] * v[b]
            out = out + (term if factor == 1 else factor * term)
        return out

    def compose(self, derivatives: Callable[[Array, int], list[Array]]) -> "Jet":
        """f(h), from f, f', f'', ... at the values, as many as asked for."""
        u, zero = self.parts, self.zero
        f = derivatives(u[zero], self.order)
        out = {zero: f[0]}
        for index in u:
            if index == zero:
                continue
            if is_laplacian(index):
                square: Any = sum(u[unit(i, self.axes)] ** 2 for i in range(self.axes) if index[i] < 0)
                out[index] = f[1] * u[index] + f[2] * square
                continue
            total: Any = 0
            for count, blocks in _partitions(index):
                term = functools.reduce(lambda a, b: a * b, (u[b] for b in blocks)) * f[len(blocks)]
                total = total + (term if count == 1 else count * term)
            out[index] = total
        return Jet(out)


def stack(jets: list[Jet]) -> Jet:
    """Features of several jets one under the other."""
    return jets[0] if len(jets) == 1 else Jet({a: jnp.concatenate([j.parts[a] for j in jets]) for a in jets[0].parts})


def linear(weight: Float[Array, "outputs inputs"], bias: Float[Array, " outputs"] | None, h: Jet | Array) -> Any:
    """W h + b of a jet, or of plain values [features, points]."""
    if isinstance(h, Jet):
        out = h.map(lambda v: weight @ v)
        return out if bias is None else out.shift(bias[:, None])
    out = weight @ h
    return out if bias is None else out + bias[:, None]


def activate(name: str, h: Jet | Array) -> Any:
    """An activation of a jet, or of plain values."""
    derivatives = ACTIVATIONS[name]
    return h.compose(derivatives) if isinstance(h, Jet) else derivatives(h, 0)[0]


def _tanh(v: Array, order: int) -> list[Array]:
    a = jnp.tanh(v)
    out = [a]
    if order >= 1:
        b = 1 - a * a
        out.append(b)
    if order >= 2:
        out.append(-2 * a * b)
    if order >= 3:
        out.append(b * (6 * a * a - 2))
    if order >= 4:
        out.append(b * a * (16 - 24 * a * a))
    return out + _further(jnp.tanh, v, len(out), order)


def _sin(v: Array, order: int) -> list[Array]:
    s, c = jnp.sin(v), (jnp.cos(v) if order else v)
    return [(s, c, -s, -c)[k % 4] for k in range(order + 1)]


def _further(function: Callable[[Array], Array], v: Array, have: int, order: int) -> list[Array]:
    """Derivatives past those written out, by nested forward mode."""
    out, f = [], function
    for k in range(1, order + 1):
        f = _derivative(f)
        if k >= have:
            out.append(f(v))
    return out


def _derivative(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda v: jax.jvp(f, (v,), (jnp.ones_like(v),))[1]


def _general(function: Callable[[Array], Array]) -> Callable[[Array, int], list[Array]]:
    return lambda v, order: [function(v), *_further(function, v, 1, order)]


ACTIVATIONS: dict[str, Callable[[Array, int], list[Array]]] = {
    "tanh": _tanh,
    "sin": _sin,
    "swish": _general(jax.nn.swish),
    "softplus": _general(jax.nn.softplus),
}


def jet_of(
    function: Callable[[Float[Array, " axes"]], Float[Array, " features"]],
    points: Float[Array, "axes points"],
    indices: Iterable[Index],
) -> Jet:
    """The jet of any JAX function of one point (a lift, a distance, an embedding), by nested forward mode along the axes."""
    axes = points.shape[0]
    batched = jax.vmap(function, in_axes=1, out_axes=1)

    def along(f: Callable[[Array], Array], axis: int) -> Callable[[Array], Array]:
        tangent = jnp.zeros_like(points).at[axis].set(1)
        return lambda z: jax.jvp(f, (z,), (tangent,))[1]

    parts: dict[Index, Array] = {}
    for index in indices:
        if is_laplacian(index):
            parts[index] = sum(along(along(batched, i), i)(points) for i in range(axes) if index[i] < 0)  # type: ignore[assignment]
            continue
        f = batched
        for axis in range(axes):
            for _ in range(index[axis]):
                f = along(f, axis)
        parts[index] = f(points)
    return Jet(parts)


def merge(parts: Mapping[Index, Array], dim: int) -> dict[Index, Array]:
    """Entries by multi-index only: a Laplacian is shared evenly among the pure second derivatives."""
    out = {}
    for index, value in parts.items():
        if is_laplacian(index):
            out.update({tuple(2 * n for n in unit(i, len(index))): value / dim for i in range(dim)})
        else:
            out[index] = value
    return out
