"""Derivatives of solutions: roots, fixed points and minima, by the implicit function theorem.

For F(x, theta) = 0 the derivative is dx = -(dF/dx)^-1 dF/dtheta dtheta: one linear solve (lineax), however many steps the
solver took, in forward and reverse mode and of any order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from sciax.core.autodiff._derivatives import _require_callable, _scalar, is_tracer, require_inexact
from sciax.core.errors import ConvergenceError, DTypeError, InputError, ShapeError


class Solution(NamedTuple):
    """A solution with how good it is.

    Attributes:
        value: x, differentiable with respect to the parameters.
        residual: largest |F| at x.
        steps: iterations taken.
        converged: whether the residual is within the tolerance.
    """

    value: Any
    residual: jax.Array
    steps: jax.Array
    converged: jax.Array


def _default_tol(x: jax.Array) -> float:
    return 50 * float(jnp.finfo(x.dtype).eps)


def _linear(matvec: Callable[[Any], Any], b: jax.Array, solver: Any, throw: bool = True) -> jax.Array:
    import lineax as lx

    operator = lx.FunctionLinearOperator(matvec, jax.ShapeDtypeStruct(b.shape, b.dtype))
    return lx.linear_solve(operator, b, solver or lx.AutoLinearSolver(well_posed=True), throw=throw).value


def implicit(residual: Callable[..., Any], x: Any, *theta: Any, solver: Any = None) -> Any:
    """`x`, a known solution of residual(x, *theta) = 0, as a differentiable function of theta.

    Use it behind any solver: `x = implicit(F, stop_gradient(my_solver(theta)), theta)`.

    Args:
        residual: returns as many numbers as x has.
        solver: a lineax solver for dF/dx; default dense LU. For large x pass lineax.GMRES(rtol, atol).
    """
    _require_callable(residual, "implicit")
    require_inexact((x,), 0, "implicit")
    flat, unravel = ravel_pytree(jax.tree.map(jax.lax.stop_gradient, jax.tree.map(jnp.asarray, x)))

    def flat_residual(y: jax.Array, *t: Any) -> jax.Array:
        return ravel_pytree(residual(unravel(y), *t))[0]

    shape = jax.eval_shape(flat_residual, flat, *theta).shape
    if shape != flat.shape:
        raise ShapeError("implicit: the residual must have as many numbers as x", got=shape, expected=flat.shape)

    @jax.custom_jvp
    def at(y: jax.Array, t: tuple) -> jax.Array:
        return y

    @at.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        y, t = primals
        x_star = at(y, t)
        change = jax.jvp(lambda tt: flat_residual(x_star, *tt), (t,), (tangents[1],))[1]
        # x_star keeps its dependence on theta, so that the rule can be differentiated again.
        move = _linear(lambda v: jax.jvp(lambda z: flat_residual(z, *t), (x_star,), (v,))[1], -change, solver)
        return x_star, move

    return unravel(at(flat, tuple(theta)))


def _newton(residual: Callable[[jax.Array], jax.Array], x0: jax.Array, tol: Any, max_steps: int, solver: Any):
    """Newton's method with step halving until the residual falls."""

    def size(r: jax.Array) -> jax.Array:
        return jnp.max(jnp.abs(r), initial=0.0)

    def goes_on(state: Any) -> Any:
        _, _, norm, k, stuck = state
        return (norm > tol) & (k < max_steps) & ~stuck

    def step(state: Any) -> Any:
        x, r, norm, k, _ = state
        direction = _linear(lambda v: jax.jvp(residual, (x,), (v,))[1], -r, solver, throw=False)
        direction = jnp.where(jnp.all(jnp.isfinite(direction)), direction, 0)  # singular: stuck, reported by the caller
        rates = 0.5 ** jnp.arange(12, dtype=norm.dtype)
        trials = jax.vmap(lambda a: residual(x + a.astype(x.dtype) * direction))(rates)
        norms = jnp.max(jnp.abs(trials), axis=1, initial=0.0)
        norms = jnp.where(jnp.isfinite(norms), norms, jnp.inf)
        best = jnp.where(jnp.any(norms < norm), jnp.argmax(norms < norm), jnp.argmin(norms))
        new = x + rates[best].astype(x.dtype) * direction
        better = norms[best] < norm
        return (
            jnp.where(better, new, x),
            jnp.where(better, trials[best], r),
            jnp.where(better, norms[best], norm),
            k + 1,
            ~better,
        )

    r0 = residual(x0)
    x, _, norm, k, _ = jax.lax.while_loop(goes_on, step, (x0, r0, size(r0), jnp.int32(0), jnp.bool(False)))
    return x, norm, k


def _finish(
    who: str, residual: Callable[..., Any], x: Any, norm: Any, k: Any, tol: Any, theta: tuple, solver: Any, throw: bool
) -> Solution:
    converged = (norm <= tol) & jnp.isfinite(norm)  # a start at infinity has an infinite tolerance too
    if throw:
        if is_tracer(norm):
            import equinox as eqx

            x = eqx.error_if(x, ~converged, f"{who} did not converge")
        elif not bool(converged):
            raise ConvergenceError(
                f"{who} did not converge",
                got=f"residual {float(norm):.3g} after {int(k)} steps",
                expected=f"at most {float(tol):.3g}",
                remedy="start closer, allow more steps, loosen tol, or take throw=False and look at the residual",
                history=[float(norm)],
            )
    return Solution(implicit(residual, x, *theta, solver=solver), norm, k, converged)


def _start(who: str, x0: Any, max_steps: int) -> tuple[jax.Array, Any]:
    require_inexact((x0,), 0, who)
    if not jax.tree.leaves(x0):
        raise InputError(f"{who}: there is nothing to solve for", got=x0)
    for leaf in jax.tree.leaves(x0):
        if jnp.finfo(jax.dtypes.result_type(leaf)).bits < 32:
            raise DTypeError(
                f"{who}: linear solves need at least float32",
                got=str(jax.dtypes.result_type(leaf)),
                remedy="convert the start",
            )
    if max_steps < 1:
        raise InputError(f"{who}: max_steps must be at least 1", got=max_steps)
    return ravel_pytree(jax.tree.map(jnp.asarray, x0))


def root(
    residual: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_steps: int = 50,
    solver: Any = None,
    throw: bool = True,
) -> Solution:
    """Solve residual(x, *theta) = 0 by damped Newton; the solution is differentiable in theta.

    Args:
        x0: start, an array or a tree of arrays.
        tol: on the largest |residual|; default 50 machine epsilons times (1 + |residual(x0)|).
        solver: lineax solver for the Newton equation and the derivative.
        throw: raise `ConvergenceError`, else return the best point with its residual.
    """
    _require_callable(residual, "root")
    flat, unravel = _start("root", x0, max_steps)
    fixed = jax.tree.map(jax.lax.stop_gradient, theta)

    def flat_residual(y: jax.Array) -> jax.Array:
        return ravel_pytree(residual(unravel(y), *fixed))[0]

    out = jax.eval_shape(flat_residual, flat)
    if out.shape != flat.shape:
        raise ShapeError("root: as many equations as unknowns are needed", got=out.shape, expected=flat.shape)
    limit = tol if tol is not None else _default_tol(flat) * (1 + jnp.max(jnp.abs(flat_residual(flat)), initial=0.0))
    x, norm, k = _newton(flat_residual, flat, limit, max_steps, solver)
    return _finish("root", residual, unravel(x), norm, k, limit, theta, solver, throw)


def fixed_point(
    f: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_steps: int = 500,
    solver: Any = None,
    throw: bool = True,
) -> Solution:
    """Iterate x <- f(x, *theta) until it stands still; the solution is differentiable in theta."""
    _require_callable(f, "fixed_point")
    flat, unravel = _start("fixed_point", x0, max_steps)
    fixed = jax.tree.map(jax.lax.stop_gradient, theta)

    def apply(y: jax.Array) -> jax.Array:
        return ravel_pytree(f(unravel(y), *fixed))[0]

    out = jax.eval_shape(apply, flat)
    if out.shape != flat.shape:
        raise ShapeError("fixed_point: f must return what it takes", got=out.shape, expected=flat.shape)
    limit = tol if tol is not None else _default_tol(flat)

    def goes_on(state: Any) -> Any:
        y, new, k = state
        return (jnp.max(jnp.abs(new - y), initial=0.0) > limit * (1 + jnp.max(jnp.abs(new), initial=0.0))) & (
            k < max_steps
        )

    def step(state: Any) -> Any:
        _, new, k = state
        return new, apply(new), k + 1

    y, new, k = jax.lax.while_loop(goes_on, step, (flat, apply(flat), jnp.int32(1)))
    norm = jnp.max(jnp.abs(new - y), initial=0.0)
    allowed = limit * (1 + jnp.max(jnp.abs(new), initial=0.0))

    def residual(x: Any, *t: Any) -> Any:
        return jax.tree.map(jnp.subtract, f(x, *t), x)

    return _finish("fixed_point", residual, unravel(new), norm, k, allowed, theta, solver, throw)


def argmin(
    objective: Callable[..., Any],
    x0: Any,
    *theta: Any,
    tol: float | None = None,
    max_steps: int = 100,
    solver: Any = None,
    throw: bool = True,
) -> Solution:
    """Minimise objective(x, *theta) by Newton's method with a descent line search; differentiable in theta.

    For a smooth function that is convex near the minimum. The derivative is that of the stationary point.
    """
    _require_callable(objective, "argmin")
    flat, unravel = _start("argmin", x0, max_steps)
    scalar = _scalar(objective, False, "argmin")
    fixed = jax.tree.map(jax.lax.stop_gradient, theta)

    def value(y: jax.Array) -> jax.Array:
        return scalar(unravel(y), *fixed)

    gradient = jax.grad(value)
    limit = tol if tol is not None else _default_tol(flat) * (1 + jnp.max(jnp.abs(gradient(flat)), initial=0.0))

    def goes_on(state: Any) -> Any:
        _, g, k, stuck = state
        return (jnp.max(jnp.abs(g), initial=0.0) > limit) & (k < max_steps) & ~stuck

    def step(state: Any) -> Any:
        x, g, k, _ = state
        direction = _linear(lambda v: jax.jvp(gradient, (x,), (v,))[1], -g, solver, throw=False)
        direction = jnp.where(jnp.vdot(direction, g) < 0, direction, -g)  # uphill where the Hessian is not positive
        rates = 0.5 ** jnp.arange(16, dtype=x.dtype)
        trials = jax.vmap(lambda a: value(x + a * direction))(rates)
        now = value(x)
        good = jnp.isfinite(trials) & (
            trials <= now + 1e-4 * rates * jnp.vdot(direction, g) + _default_tol(x) * jnp.abs(now)
        )
        pick = jnp.argmax(good)
        ok = jnp.any(good)
        new = jnp.where(ok, x + rates[pick] * direction, x)
        return new, gradient(new), k + 1, ~ok

    x, g, k, _ = jax.lax.while_loop(goes_on, step, (flat, gradient(flat), jnp.int32(0), jnp.bool(False)))
    norm = jnp.max(jnp.abs(g), initial=0.0)
    return _finish("argmin", jax.grad(scalar), unravel(x), norm, k, limit, theta, solver, throw)
