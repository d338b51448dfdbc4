"""The Laplacian, and the choice of a second-order method by measurement."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp

from sciax.core.autodiff._derivatives import _require_callable, _scalar, require_vector
from sciax.core.errors import InputError, did_you_mean

Method = Literal["auto", "forward", "forward_over_reverse", "hessian"]
METHODS = ("forward", "forward_over_reverse", "hessian")


def laplacian(f: Callable[..., Any], *, method: Method = "auto") -> Callable[..., Any]:
    """sum_i d^2 f / dx_i^2 of a real scalar function of a vector, as a function of (x, *rest).

    Args:
        f: f(x, *rest) -> scalar, x of shape (d,).
        method: "forward" carries value, gradient and Laplacian through f in one sweep (folx; Li et al., 2023); "auto" is that:
            it won every measurement at d = 2, 3 and 10, forward and under grad. "forward_over_reverse" takes d Hessian-vector
            products; "hessian" the trace of the Hessian. `measure_laplacian` times all three on a given function.

    Raises (when called):
        ShapeError: x is not a vector, or f not a scalar.
    """
    _require_callable(f, "laplacian")
    if method not in ("auto", *METHODS):
        raise InputError(f"unknown method {method!r}", remedy=did_you_mean(method, ("auto", *METHODS)))
    scalar = _scalar(f, False, "laplacian")

    def call(x: Any, *rest: Any) -> Any:
        x = require_vector(x, "laplacian")
        if x.size == 0:
            return jnp.zeros((), x.dtype)
        if method in ("auto", "forward"):
            import folx

            jax.eval_shape(scalar, x, *rest)  # typed errors before folx's own
            return folx.forward_laplacian(lambda y: scalar(y, *rest))(x).laplacian
        gradient = jax.grad(scalar)
        if method == "hessian":
            return jnp.trace(jax.jacfwd(gradient)(x, *rest))
        eye = jnp.eye(x.size, dtype=x.dtype)
        along = jax.vmap(lambda v: jnp.vdot(v, jax.jvp(lambda y: gradient(y, *rest), (x,), (v,))[1]))
        return jnp.sum(along(eye))

    return call


@dataclass(frozen=True)
class Timing:
    """Seconds a call of each method, fastest first, for a value and for its training gradient.

    Attributes:
        best: the fastest method.
        seconds: method -> seconds.
    """

    best: str
    seconds: dict[str, float]

    def __str__(self) -> str:
        least = self.seconds[self.best]
        return "\n".join(
            f"{m:>22} {s * 1e3:9.3f} ms  {s / least:5.2f}x"
            for m, s in sorted(self.seconds.items(), key=lambda kv: kv[1])
        )


def measure(candidates: dict[str, Callable[..., Any]], *args: Any, repeats: int = 5) -> Timing:
    """Time compiled candidates on the same arguments, interleaved, the best of `repeats`.

    Args:
        candidates: name -> function of `args`; each is compiled once, outside the timing.
    """
    if not candidates:
        raise InputError("measure needs at least one candidate")
    if repeats < 1:
        raise InputError("repeats must be at least 1", got=repeats)
    compiled = {name: jax.jit(f) for name, f in candidates.items()}
    loops = {}
    for name, f in compiled.items():
        jax.block_until_ready(f(*args))
        start = time.perf_counter()
        jax.block_until_ready(f(*args))
        loops[name] = max(1, int(2e-3 / max(time.perf_counter() - start, 1e-7)))
    seconds = dict.fromkeys(candidates, float("inf"))
    for _ in range(repeats):
        for name, f in compiled.items():
            start = time.perf_counter()
            for _ in range(loops[name]):
                result = f(*args)
            jax.block_until_ready(result)
            seconds[name] = min(seconds[name], (time.perf_counter() - start) / loops[name])
    return Timing(min(seconds, key=seconds.__getitem__), seconds)


def measure_laplacian(
    f: Callable[..., Any], params: Any, points: Any, *, training: bool = True, repeats: int = 5
) -> Timing:
    """Time the Laplacian methods on `f(params, x)` over a batch of points, under the gradient in `params` if `training`."""
    _require_callable(f, "measure_laplacian")

    def candidate(method: Any) -> Callable[..., Any]:
        def loss(p: Any, xs: Any) -> Any:
            values = jax.vmap(laplacian(lambda x: f(p, x), method=method))(xs)
            return jnp.mean(values**2)

        return jax.grad(loss) if training else loss

    return measure({m: candidate(m) for m in METHODS}, params, jnp.asarray(points), repeats=repeats)
