"""Levenberg-Marquardt for sums of squares, with geodesic acceleration.

For residuals r(x) with Jacobian J the step v solves (J'J + lam D) v = -J'r, and the second-order correction

    q = -1/2 (J'J + lam D)^-1 J' r_vv,      r_vv = d^2/de^2 r(x + e v) at e = 0,

is added where 2 |q| <= 3/4 |v| (Transtrum & Sethna 2012, arXiv 1201.5885). D is the unit matrix, or with `scaled` the largest
squared column norms of J so far (Moré 1978). The damping follows the ratio of actual to predicted decrease (Nielsen 1999).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, Int, PyTree

from sciax.core.errors import InputError, did_you_mean
from sciax.core.train.minimize._common import MinimizeResult, flat_start, require_finite

Residual = Callable[[PyTree, Any], Float[Array, " m"]]
Jacobian = Callable[[PyTree, Any], tuple[Float[Array, " m"], PyTree]]
"""(params, data) -> residuals [m], and their derivative as a pytree like `params` with a leading axis m."""

SOLVERS = ("cholesky", "qr")
ACCEPT = 1e-4  # of the predicted decrease
MAX_CORRECTION = 0.75  # of 2|q|/|v|, beyond which the quadratic expansion of r is not to be trusted


class LevenbergState(NamedTuple):
    """Where a minimisation is: position, damping, the factor by which it grows next, and the squared scales D."""

    x: Float[Array, " n"]
    damping: Float[Array, ""]
    growth: Float[Array, ""]
    scale: Float[Array, " n"]
    iterations: Int[Array, ""]


@dataclass(frozen=True)
class DenseJacobian:
    """r and J by forward mode, one column a parameter, all of them in one pass.

    Two of the same residual are equal, so that nothing is compiled anew.
    """

    residual: Residual

    def __call__(self, params: PyTree, data: Any) -> tuple[Array, PyTree]:
        return self.residual(params, data), jax.jacfwd(self.residual)(params, data)


def flatten_jacobian(jacobian: PyTree) -> Float[Array, "m n"]:
    """Leaves [m, ...] side by side, in the order of `ravel_pytree`."""
    leaves = jax.tree.leaves(jacobian)
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)


class _Factor(NamedTuple):
    """An upper triangular C with C'C = J'J + lam D."""

    upper: Array

    def solve(self, b: Array) -> Array:
        return cho_solve((self.upper, False), b)


def _factor(normal: Array, triangle: Array | None, damped: Array) -> _Factor:
    if triangle is None:
        return _Factor(jnp.linalg.cholesky(normal + jnp.diag(damped), upper=True))
    # R of [R_J; sqrt(lam D)]: the condition number of J itself, not its square, limits the last digits.
    return _Factor(jnp.linalg.qr(jnp.concatenate([triangle, jnp.diag(jnp.sqrt(damped))]), mode="r"))


@partial(jax.jit, static_argnames=("residual", "jacobian", "unravel", "iterations", "geodesic", "scaled", "solver"))
def _run(residual, jacobian, unravel, iterations, geodesic, scaled, solver, start: LevenbergState, data):
    def r(x: Array) -> Array:
        return residual(unravel(x), data)

    def linearise(x: Array) -> tuple[Array, Array, Array]:
        value, rows = jacobian(unravel(x), data)
        j = flatten_jacobian(rows)
        # The triangle of QR stands for J'J: R'R = J'J.
        return (j.T @ j if solver == "cholesky" else jnp.linalg.qr(j, mode="r")), j.T @ value, value @ value

    def product(matrix: Array, v: Array) -> Array:
        return matrix @ v if solver == "cholesky" else matrix.T @ (matrix @ v)

    def columns(matrix: Array) -> Array:
        return jnp.diagonal(matrix) if solver == "cholesky" else jnp.sum(matrix**2, axis=0)

    first, gradient, value = linearise(start.x)
    history = jnp.full(iterations, jnp.nan, value.dtype)

    def go_on(carry):
        i, *_, stalled = carry
        return (i < iterations) & ~stalled

    def body(carry):
        i, state, matrix, gradient, value, history, _ = carry
        scale = jnp.maximum(state.scale, columns(matrix)) if scaled else state.scale
        factor = _factor(matrix, None if solver == "cholesky" else matrix, state.damping * scale)
        v = -factor.solve(gradient)
        # With normal equations one step of refinement costs little and wins the digits that squaring lost.
        v = v - factor.solve(product(matrix, v) + state.damping * scale * v + gradient)
        step = v
        if geodesic:
            along = lambda x: jax.jvp(r, (x,), (v,))[1]  # noqa: E731
            second = jax.jvp(along, (state.x,), (v,))[1]
            q = -0.5 * factor.solve(jax.vjp(r, state.x)[1](second)[0])
            weight = jnp.sqrt(scale)
            small = 2 * jnp.linalg.norm(weight * q) <= MAX_CORRECTION * jnp.linalg.norm(weight * v)
            step = v + jnp.where(small & jnp.all(jnp.isfinite(q)), q, 0.0)
        after = r(state.x + step)
        lower = after @ after
        predicted = -(2 * gradient @ v + v @ product(matrix, v))
        ratio = jnp.where(predicted > 0, (value - lower) / predicted, -1.0)
        good = jnp.isfinite(lower) & jnp.all(jnp.isfinite(step)) & (ratio > ACCEPT) & (lower < value)
        eased = state.damping * jnp.clip(1 - (2 * ratio - 1) ** 3, 1 / 3, 2.0)
        state = LevenbergState(
            jnp.where(good, state.x + step, state.x),
            jnp.maximum(jnp.where(good, eased, state.damping * state.growth), 1e-30),
            jnp.where(good, 2.0, state.growth * 2),
            scale,
            state.iterations + 1,
        )
        moved = jax.lax.cond(good, lambda: linearise(state.x), lambda: (matrix, gradient, value))
        # Damped into a step of no effect, or a stationary point: nothing more to gain.
        tiny = jnp.linalg.norm(v) <= 1e-15 * (jnp.linalg.norm(state.x) + 1e-15)
        stalled = (~good & (tiny | (state.damping > 1e30))) | (jnp.linalg.norm(gradient) == 0)
        return i + 1, state, *moved, history.at[i].set(jnp.where(good, lower, value)), stalled

    zero = jnp.zeros((), jnp.int32)
    carry = (zero, start, first, gradient, value, history, jnp.zeros((), bool))
    i, state, _, _, last, history, stalled = jax.lax.while_loop(go_on, body, carry)
    return state, value, last, history, i, stalled


def levenberg_marquardt(
    residual: Residual,
    params: PyTree,
    data: Any = None,
    *,
    iterations: int = 100,
    state: LevenbergState | None = None,
    jacobian: Jacobian | None = None,
    geodesic: bool = True,
    scaled: bool = False,
    solver: str = "cholesky",
    damping: float = 1e-2,
    max_parameters: int = 5000,
) -> MinimizeResult:
    """Minimise f = sum of squares of `residual(params, data)`; all iterations in one compiled loop.

    Cost an iteration: J, 2 m n^2 + n^3/3 operations, and with `geodesic` two more evaluations; a rejected step factors anew but
    keeps J. Good for networks of up to about 2000 parameters, with at least four residuals a parameter.

    Args:
        residual: smooth function to a vector [m]; put the weights of a weighted sum into it as square roots.
        params: pytree of float64 arrays.
        data: handed to `residual`; renew it between calls and go on with `state=result.state`.
        jacobian: r and J where there is a way cheaper than forward mode column by column.
        geodesic: second-order correction; it makes narrow curved valleys (PINNs have them) several times shorter.
        scaled: Moré's scales instead of the unit matrix, for parameters of very different size.
        solver: "cholesky" of the normal equations, or "qr" of J: twice to four times the time, right to the last digits.
        damping: lam at the start.

    Raises:
        PrecisionError: parameters in less than float64.
        InputError: no parameters, too many, an unknown solver, or a start where a residual is not finite.
    """
    if solver not in SOLVERS:
        raise InputError(f"unknown solver {solver!r}", remedy=did_you_mean(solver, SOLVERS))
    if not damping > 0:
        raise InputError("the damping is a positive number", got=damping)
    x, unravel = flat_start("levenberg_marquardt", params, max_parameters)
    start = state
    if start is None:
        one = jnp.ones((), x.dtype)
        scale = jnp.zeros_like(x) if scaled else jnp.ones_like(x)
        start = LevenbergState(x, damping * one, 2 * one, scale, jnp.zeros((), jnp.int32))
    chosen = jacobian if jacobian is not None else DenseJacobian(residual)
    end, first, value, history, taken, stalled = _run(
        residual, chosen, unravel, iterations, geodesic, scaled, solver, start, data
    )
    require_finite(first)
    return MinimizeResult(unravel(end.x), end, value, history, taken, 2 * taken + 1, stalled)
