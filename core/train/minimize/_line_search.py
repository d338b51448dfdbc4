"""Strong Wolfe line search under jit, with cubic interpolation (Nocedal & Wright 2006, algorithms 3.5 and 3.6)."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Point(NamedTuple):
    """The objective along a ray: step length, value, slope, and the gradient there."""

    step: Float[Array, ""]
    value: Float[Array, ""]
    slope: Float[Array, ""]
    gradient: Float[Array, " n"]


class Search(NamedTuple):
    """Result of a search.

    Attributes:
        point: the accepted point; the start (step 0) where nothing lower was found.
        ok: whether the point fulfils both Wolfe conditions.
        evaluations: of value and gradient.
    """

    point: Point
    ok: Bool[Array, ""]
    evaluations: Int[Array, ""]


def _cubic(low: Point, high: Point) -> Float[Array, ""]:
    """Minimiser of the cubic through values and slopes at both ends, kept inside the middle 80 %; else the midpoint."""
    width = high.step - low.step
    width = jnp.where(width == 0, 1, width)
    d1 = low.slope + high.slope - 3 * (high.value - low.value) / width
    under = d1**2 - low.slope * high.slope
    d2 = jnp.sign(width) * jnp.sqrt(jnp.maximum(under, 0))
    bottom = high.slope - low.slope + 2 * d2
    share = 1 - (high.slope + d2 - d1) / jnp.where(bottom == 0, 1, bottom)
    share = jnp.where((under >= 0) & (bottom != 0) & jnp.isfinite(share), share, 0.5)
    return low.step + width * jnp.clip(share, 0.1, 0.9)


def strong_wolfe(
    value_and_grad: Callable[[Float[Array, " n"]], tuple[Float[Array, ""], Float[Array, " n"]]],
    x: Float[Array, " n"],
    direction: Float[Array, " n"],
    value: Float[Array, ""],
    gradient: Float[Array, " n"],
    first_step: Float[Array, ""],
    *,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    max_evaluations: int = 20,
) -> Search:
    """A step a with f(x + a p) <= f + c1 a g'p and |g(x + a p)'p| <= c2 |g'p|.

    A trial whose value is not finite counts as too high, so the search turns back from where the objective is not defined.

    Args:
        value_and_grad: of the objective at a vector.
        direction: p, a direction of descent.
        decrease, curvature: c1, c2.
    """
    slope = gradient @ direction
    start = Point(jnp.zeros_like(value), value, slope, gradient)

    def at(step) -> Point:
        f, g = value_and_grad(x + step * direction)
        return Point(step, f, g @ direction, g)

    def go_on(state):
        _, _, _, _, done, count = state
        return ~done & (count < max_evaluations)

    def body(state):
        low, high, bounded, step, _, count = state
        trial = at(step)
        finite = jnp.isfinite(trial.value) & jnp.isfinite(trial.slope)
        too_high = (
            ~finite | (trial.value > value + decrease * step * slope) | (trial.value >= low.value) & (low.step > 0)
        )
        done = ~too_high & (jnp.abs(trial.slope) <= -curvature * slope)
        # The minimum lies between the trial and the former low end where the slope at the trial points back to that end.
        turns = ~too_high & ~done & (trial.slope * (step - low.step) >= 0)

        def choose(flag, a, b):
            return jax.tree.map(lambda p, q: jnp.where(flag, p, q), a, b)

        # Beyond a trial that is not finite nothing is known: pretend a steep rise, the cubic then bisects.
        barrier = Point(step, value + jnp.abs(slope) * step, jnp.abs(slope), gradient)
        new_high = choose(too_high, choose(finite, trial, barrier), choose(turns, low, high))
        new_low = choose(too_high, low, trial)
        bounded = bounded | too_high | turns
        next_step = jnp.where(bounded, _cubic(new_low, new_high), 2 * step)
        return new_low, new_high, bounded, next_step, done, count + 1

    nothing = jnp.zeros((), bool)
    state = (start, start, nothing, jnp.asarray(first_step, value.dtype), nothing, jnp.zeros((), jnp.int32))
    low, _, _, _, done, count = jax.lax.while_loop(go_on, body, state)
    return Search(low, done, count)
