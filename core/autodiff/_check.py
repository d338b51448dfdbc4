"""Derivatives against finite differences and the complex step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from sciax.core.autodiff._derivatives import _require_callable, require_inexact
from sciax.core.errors import InputError, SciaxError, did_you_mean


class GradientError(SciaxError, AssertionError):
    """A derivative that disagrees with finite differences."""


@dataclass(frozen=True)
class GradientReport:
    """What was compared.

    Attributes:
        errors: (order, mode) -> largest error relative to the size of the derivative.
    """

    errors: dict[tuple[int, str], float]

    @property
    def worst(self) -> float:
        return max(self.errors.values(), default=0.0)


def check_gradients(
    f: Callable[..., Any],
    *args: Any,
    order: int = 1,
    modes: tuple[str, ...] = ("forward", "reverse"),
    method: str = "finite",
    directions: int = 2,
    rtol: float | None = None,
    seed: int = 0,
) -> GradientReport:
    """Compare derivatives of `f` at `args`, in random directions, with differences of values; orders 1 to `order`.

    Order n compares the derivative of the (n-1)-th directional derivative, so a rule that is right once and wrong when
    differentiated again is found. Reverse mode is compared through <ct, J v> = <J^T ct, v>; for complex numbers the pairing is
    Re(sum a b), which is JAX's convention.

    Args:
        args: floating or complex arrays (or trees); others are passed as they are and not differentiated.
        modes: any of "forward", "reverse".
        method: "finite": central differences with Richardson extrapolation; "complex": f(x + i h v) for real analytic f, to
            machine precision, first order.
        directions: number of random directions.
        rtol: default 1e-6 in float64, 2e-2 in float32, times 10 for each order.

    Raises:
        GradientError: naming order, mode, both values.
    """
    _require_callable(f, "check_gradients")
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= 3:
        raise InputError("check_gradients: order must be 1, 2 or 3", got=order)
    for mode in modes:
        if mode not in ("forward", "reverse"):
            raise InputError(f"unknown mode {mode!r}", remedy=did_you_mean(mode, ("forward", "reverse")))
    if method not in ("finite", "complex"):
        raise InputError(f"unknown method {method!r}", remedy=did_you_mean(method, ("finite", "complex")))
    moving = [i for i, a in enumerate(args) if jax.tree.leaves(a) and all(_inexact(x) for x in jax.tree.leaves(a))]
    if not moving:
        raise InputError("check_gradients: no floating-point argument", got=[type(a).__name__ for a in args])
    require_inexact(args, tuple(moving), "check_gradients")
    x, unravel = ravel_pytree(tuple(jax.tree.map(jnp.asarray, args[i]) for i in moving))
    if x.size == 0:
        return GradientReport({})

    def flat(y: Any) -> Any:
        values = list(args)
        for i, v in zip(moving, unravel(y)):
            values[i] = v
        return ravel_pytree(f(*values))[0]

    rng = np.random.default_rng(seed)
    wide = x.dtype in (jnp.float64, jnp.complex128)
    base = rtol if rtol is not None else (1e-6 if wide else 2e-2)
    errors: dict[tuple[int, str], float] = {}
    for _ in range(directions):
        v = _random(rng, x)
        g = flat
        for n in range(1, order + 1):
            expected = _difference(g, x, v, method if n == 1 else "finite")
            for mode in modes:
                error, detail = _compare(g, x, v, expected, mode, rng)
                key = (n, mode)
                errors[key] = max(errors.get(key, 0.0), error)
                if not error <= base * 10 ** (n - 1):
                    raise GradientError(
                        f"derivative of order {n}, {mode} mode, disagrees with differences of values",
                        got=detail[0],
                        expected=detail[1],
                        remedy=f"relative error {error:.3g}, allowed {base * 10 ** (n - 1):.3g}: check the rule",
                    )
            g = _derivative(g, v, modes)
    return GradientReport(errors)


def _inexact(x: Any) -> bool:
    return (hasattr(x, "dtype") or isinstance(x, (float, complex))) and jnp.issubdtype(
        jax.dtypes.result_type(x), jnp.inexact
    )


def _random(rng: np.random.Generator, like: jax.Array) -> jax.Array:
    v = rng.normal(size=like.shape)
    if jnp.iscomplexobj(like):
        v = v + 1j * rng.normal(size=like.shape)
    return jnp.asarray(v / np.linalg.norm(v), like.dtype)


def _derivative(g: Callable[[Any], Any], v: Any, modes: tuple[str, ...]) -> Callable[[Any], Any]:
    if "forward" in modes:
        return lambda y: jax.jvp(g, (y,), (v,))[1]

    def by_reverse(y: Any) -> Any:
        value, pull = jax.vjp(g, y)
        eye = jnp.eye(value.size, dtype=value.dtype)
        return jax.vmap(lambda c: jnp.sum(pull(c)[0] * v))(eye)

    return by_reverse


def _difference(g: Callable[[Any], Any], x: Any, v: Any, method: str) -> np.ndarray:
    if method == "complex":
        if jnp.iscomplexobj(x):
            raise InputError("the complex step needs real arguments", remedy='method="finite"')
        h = 1e-20 if x.dtype == jnp.float64 else 1e-10
        return np.asarray(jnp.imag(g(x + 1j * h * v))) / h
    real = jnp.finfo(x.dtype)
    h = float(real.eps) ** 0.2 * max(1.0, float(jnp.max(jnp.abs(x))) ** 0.5)

    def central(step: float) -> np.ndarray:
        step = float(np.asarray(step, np.finfo(real.dtype).dtype))
        wide = np.complex128 if jnp.iscomplexobj(g(x)) else np.float64
        return (np.asarray(g(x + step * v)).astype(wide) - np.asarray(g(x - step * v)).astype(wide)) / (2 * step)

    return (4 * central(h / 2) - central(h)) / 3


def _compare(
    g: Any, x: Any, v: Any, expected: np.ndarray, mode: str, rng: np.random.Generator
) -> tuple[float, tuple[str, str]]:
    if mode == "forward":
        got = np.asarray(jax.jvp(g, (x,), (v,))[1])
        scale = max(float(np.abs(expected).max(initial=0)), float(np.abs(got).max(initial=0)), 1e-3)
        error = float(np.abs(got - expected).max(initial=0)) / scale
        worst = int(np.argmax(np.abs(got - expected))) if got.size else 0
        return _nan(error), (f"{got[worst] if got.size else got}", f"{expected[worst] if got.size else expected}")
    value, pull = jax.vjp(g, x)
    ct = _random(rng, value) if value.size else value
    back = pull(ct)[0]
    got = float(np.real(np.sum(np.asarray(back) * np.asarray(v))))
    want = float(np.real(np.sum(np.asarray(ct) * expected)))
    scale = max(abs(want), abs(got), float(np.abs(expected).max(initial=0)), 1e-3)
    return _nan(abs(got - want) / scale), (f"{got}", f"{want}")


def _nan(error: float) -> float:
    return error if np.isfinite(error) else float("inf")
