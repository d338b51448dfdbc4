"""A strong form in Fourier space: which terms are linear with constant coefficients, and the value of the rest.

Values are kept in two parts, one of Fourier coefficients and one of grid values, and are transformed only where a product or a
derivative asks for the other; what was computed once is kept for the evaluation. Component axes come first, grid axes last.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import UnsupportedError
from sciax.science.pde import Env, evaluate
from sciax.science.pde._expr import (
    Add,
    Apply,
    Constant,
    Coordinate,
    Div,
    Dot,
    Dt,
    Expr,
    Field,
    Function,
    Grad,
    Index,
    MatMul,
    Mul,
    Parameter,
    Time,
    fields_of,
)


def split_terms(expr: Expr) -> list[Expr]:
    """The expression as a list of terms whose sum it is, sums under linear operators multiplied out."""
    if isinstance(expr, Add):
        return [t for a in expr.args for t in split_terms(a)]
    if isinstance(expr, Div | Grad):
        return [type(expr)((t,)) for t in split_terms(expr.args[0])]
    if isinstance(expr, Index):
        return [Index((t,), expr.index) for t in split_terms(expr.args[0])]
    if isinstance(expr, Mul):
        moving = [a for a in expr.args if fields_of(a)]
        if len(moving) == 1 and (parts := split_terms(moving[0])) and len(parts) > 1:
            rest = tuple(a for a in expr.args if a is not moving[0])
            return [Mul((*rest, t)) for t in parts]
    return [expr]


def fixed(expr: Expr, problem: Any) -> bool:
    """Whether an expression is the same everywhere and always."""
    if isinstance(expr, Parameter):
        value = problem.value(expr.name)
        return fixed(value, problem) if isinstance(value, Expr) else not callable(value)
    if isinstance(expr, Field | Function | Coordinate | Time):
        return False
    return isinstance(expr, Constant) or (bool(expr.args) and all(fixed(a, problem) for a in expr.args))


def linear(expr: Expr, problem: Any) -> bool:
    """Whether an expression is linear in the fields with constant coefficients: diagonal in Fourier space."""
    if isinstance(expr, Field):
        return True
    if isinstance(expr, Add):
        return all(linear(a, problem) for a in expr.args)
    if isinstance(expr, Mul | Dot | MatMul):
        moving = [a for a in expr.args if fields_of(a)]
        rest = [a for a in expr.args if not fields_of(a)]
        return len(moving) == 1 and linear(moving[0], problem) and all(fixed(a, problem) for a in rest)
    if isinstance(expr, Grad | Div | Index | Dt) or (isinstance(expr, Apply) and expr.linear and len(expr.args) == 1):
        return linear(expr.args[0], problem)
    return False


@dataclass
class Value:
    """`hat` + `grid`, each perhaps None (zero)."""

    hat: Any = None
    grid: Any = None


@dataclass
class Waves:
    """The Fourier side of a periodic box.

    Attributes:
        shape: points an axis. k: wavenumbers by axis, broadcastable, of the real transform (last axis halved); the highest wave
            of an even axis counts as zero. keep: which waves remain (2/3 rule). points: [dim, *shape].
    """

    shape: tuple[int, ...]
    k: list[np.ndarray]
    keep: np.ndarray
    points: np.ndarray

    @property
    def dim(self) -> int:
        return len(self.shape)

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(-self.dim, 0))

    def forward(self, grid):
        return jnp.fft.rfftn(grid, axes=self.axes)

    def inverse(self, hat):
        return jnp.fft.irfftn(hat, s=self.shape, axes=self.axes)


def waves(lower: Any, extent: Any, shape: tuple[int, ...], fraction: float) -> Waves:
    """Wavenumbers and points; waves at and above `fraction` of the highest are dropped."""
    k, keep, dim = [], np.ones((), bool), len(shape)
    for axis, (n, length) in enumerate(zip(shape, extent)):
        index = np.fft.rfftfreq(n, 1 / n) if axis == dim - 1 else np.fft.fftfreq(n, 1 / n)
        place = [1] * dim
        place[axis] = len(index)
        held = (np.abs(index) < fraction * n / 2 - 1e-9) | (n < 3)
        keep = keep & (held & (2 * np.abs(index) < n)).reshape(place)
        k.append((2 * np.pi / length * np.where(2 * np.abs(index) == n, 0.0, index)).reshape(place))
    axes = [a + length * np.arange(n) / n for a, length, n in zip(lower, extent, shape)]
    return Waves(shape, k, keep, np.stack(np.meshgrid(*axes, indexing="ij")))


@dataclass
class Evaluator:
    """Values of expressions for given Fourier coefficients of the fields.

    Attributes:
        hats: field name -> coefficients, component axes first. rates: of `dt`. values: parameters. t: time.
    """

    space: Waves
    hats: dict[str, Any]
    values: dict[str, Any]
    t: Any
    dtype: Any
    rates: dict[str, Any] = field(default_factory=dict)
    kept: dict[Any, Value] = field(default_factory=dict)
    grids: dict[Any, Any] = field(default_factory=dict)
    waved: dict[Any, Any] = field(default_factory=dict)

    def key(self, expr: Expr) -> Any:
        """The same for expressions that are the same by structure: `grad(u)[0]` written twice is computed once."""
        if isinstance(expr, Field):
            return ("field", expr.name)
        if isinstance(expr, Grad | Div):
            return (type(expr).__name__, self.key(expr.args[0]))
        if isinstance(expr, Index):
            return ("index", self.key(expr.args[0]), str(expr.index))
        return id(expr)

    def __call__(self, expr: Expr) -> Value:
        key = self.key(expr)
        if key not in self.kept:
            self.kept[key] = self._value(expr)
        return self.kept[key]

    def grid(self, expr: Expr) -> Any:
        key = self.key(expr)
        if key not in self.grids:
            value = self(expr)
            if value.hat is None:
                self.grids[key] = value.grid
            else:
                seen = self.space.inverse(value.hat)
                self.grids[key] = seen if value.grid is None else value.grid + seen
        return self.grids[key]

    def hat(self, expr: Expr) -> Any:
        key = self.key(expr)
        if key not in self.waved:
            value = self(expr)
            seen = value.hat
            if value.grid is not None:
                grid = value.grid
                whole = jnp.broadcast_to(grid, (*grid.shape[: grid.ndim - self.space.dim], *self.space.shape))
                seen = self.space.forward(whole) if seen is None else seen + self.space.forward(whole)
            self.waved[key] = seen
        return self.waved[key]

    # -- nodes -------------------------------------------------------------------------------------------------------

    def _outside(self, value: Any) -> Any:
        """A constant with grid axes of length one."""
        array = jnp.asarray(value, self.dtype)
        return array.reshape(*array.shape, *(1,) * self.space.dim)

    def _at_points(self, expr: Expr) -> Value:
        x = jnp.asarray(self.space.points, self.dtype)
        return Value(grid=self._pointwise(lambda p: evaluate(expr, Env(p, values=self.values, t=self.t)), x))

    def _pointwise(self, function, *arrays):
        """`function` of components at each point; grid axes of length one are spread."""
        dim, shape = self.space.dim, self.space.shape
        flat = []
        for a in arrays:
            a = jnp.broadcast_to(a, (*a.shape[: a.ndim - dim], *shape))
            flat.append(a.reshape(*a.shape[: a.ndim - dim], -1))
        out = jax.vmap(function, in_axes=-1, out_axes=-1)(*flat)
        return out.reshape(*out.shape[:-1], *shape)

    def _value(self, expr: Expr) -> Value:
        space = self.space
        match expr:
            case Constant(value=value):
                return Value(grid=self._outside(value))
            case Parameter(name=name):
                value = self.values[name]
                if isinstance(value, Expr):
                    return self(value)
                if callable(value):
                    return self._at_points(expr)
                return Value(grid=self._outside(value))
            case Function() | Coordinate() | Time():
                return self._at_points(expr)
            case Field(name=name):
                return Value(hat=self.hats[name])
            case Dt():
                inner = expr.args[0]
                if not isinstance(inner, Field):
                    raise UnsupportedError(
                        f"{expr!r}: only the rate of a field itself", remedy="write dt(u), u a Field"
                    )
                return Value(hat=self.rates[inner.name])
            case Add():
                return self._sum([self(a) for a in expr.args])
            case Mul():
                return self._product(expr)
            case Index(index=index):
                inner = self(expr.args[0])
                return Value(*(None if part is None else part[index] for part in (inner.hat, inner.grid)))
            case Grad():
                hat = self.hat(expr.args[0])
                slopes = [1j * jnp.asarray(k, self.dtype) * hat for k in space.k]
                return Value(hat=jnp.stack(slopes, axis=hat.ndim - space.dim))
            case Div():
                hat = self.hat(expr.args[0])
                at = hat.ndim - space.dim - 1
                parts = [1j * jnp.asarray(k, self.dtype) * jnp.take(hat, j, axis=at) for j, k in enumerate(space.k)]
                return Value(hat=sum(parts[1:], start=parts[0]))
            case Dot() | MatMul():
                return self._contraction(expr)
            case Apply(function=function):
                if expr.linear and len(expr.args) == 1 and self(expr.args[0]).grid is None:
                    hat = self(expr.args[0]).hat
                    flat = hat.reshape(*hat.shape[: hat.ndim - space.dim], -1)
                    out = jax.vmap(function, in_axes=-1, out_axes=-1)(flat)
                    return Value(hat=out.reshape(*out.shape[:-1], *hat.shape[hat.ndim - space.dim :]))
                return Value(grid=self._pointwise(function, *(self.grid(a) for a in expr.args)))
        raise UnsupportedError(f"cannot evaluate {expr!r} in Fourier space")

    def _sum(self, values: list[Value]) -> Value:
        def total(parts):
            held = [p for p in parts if p is not None]
            return None if not held else sum(held[1:], start=held[0])

        return Value(total([v.hat for v in values]), total([v.grid for v in values]))

    def _scale(self, expr: Expr) -> Any:
        """The value of a scalar without points, else None."""
        if fields_of(expr):
            return None
        grid = self(expr).grid
        return grid if grid.ndim == self.space.dim and grid.size == 1 else None

    def _product(self, expr: Expr) -> Value:
        factor, others = None, []
        for a in expr.args:
            scale = self._scale(a)
            if scale is None:
                others.append(a)
            else:
                factor = scale if factor is None else factor * scale
        if not others:
            return Value(grid=factor)
        if len(others) == 1:
            inner = self(others[0])
        else:
            arrays = [self.grid(a) for a in others]
            ranks = [a.ndim for a in arrays]
            # a scalar times a vector: grid axes are last, so the scalar gains component axes in front
            arrays = [a.reshape(*(1,) * (max(ranks) - a.ndim), *a.shape) for a in arrays]
            inner = Value(grid=_times(arrays))
        if factor is None:
            return inner
        return Value(*(None if part is None else factor * part for part in (inner.hat, inner.grid)))

    def _contraction(self, expr: Expr) -> Value:
        a, b = expr.args
        dim = self.space.dim
        bare = [not fields_of(x) and self(x).grid.size == np.prod(self(x).grid.shape[:-dim]) for x in (a, b)]

        def contract(left, right):
            rank_l, rank_r = left.ndim - dim, right.ndim - dim
            if isinstance(expr, MatMul):  # [i, j] with [j] or [j, l]
                return jnp.sum(left[:, :, None] * right[None], axis=1) if rank_r == 2 else jnp.sum(left * right, axis=1)
            # last component axes against one another, the shorter spread over the longer
            left = left.reshape(*(1,) * max(rank_r - rank_l, 0), *left.shape)
            right = right.reshape(*(1,) * max(rank_l - rank_r, 0), *right.shape)
            return jnp.sum(left * right, axis=max(rank_l, rank_r) - 1)

        if bare[0] and self(b).grid is None:
            return Value(hat=contract(self(a).grid, self(b).hat))
        if bare[1] and self(a).grid is None:
            return Value(hat=contract(self(a).hat, self(b).grid))
        return Value(grid=contract(self.grid(a), self.grid(b)))


def _times(arrays: list[Any]) -> Any:
    out = arrays[0]
    for a in arrays[1:]:
        out = out * a
    return out
