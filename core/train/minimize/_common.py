"""What the minimisers share: the result, the checks of their input, and flattening."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from sciax.core.errors import InputError, PrecisionError


class MinimizeResult(NamedTuple):
    """What a minimiser gives back.

    Attributes:
        params: where it ended.
        state: to go on from, with the same or with new data (what it has learnt of the curvature is kept).
        value: objective there.
        history: (iterations,) objective after each iteration; NaN past `taken`.
        taken: iterations done.
        evaluations: of the objective (with its gradient or Jacobian, or without).
        stalled: no lower point was found: rounding is reached, or the objective is not smooth.
    """

    params: PyTree
    state: Any
    value: Float[Array, ""]
    history: Float[Array, " iterations"]
    taken: Int[Array, ""]
    evaluations: Int[Array, ""]
    stalled: Bool[Array, ""]


def flat_start(
    method: str, params: PyTree, max_parameters: int | None, instead: str = "lbfgs"
) -> tuple[Float[Array, " n"], Callable[[Array], PyTree]]:
    """(x, unravel) of a start that a method can take.

    Raises:
        PrecisionError: parameters in less than float64; line searches and damping rules then stall near a relative 1e-7.
        InputError: no parameters, or too many for a dense matrix.
    """
    leaves = jax.tree.leaves(params)
    if not leaves or not all(eqx.is_inexact_array(leaf) for leaf in leaves):
        raise InputError(
            f"{method} minimises over inexact arrays", remedy="equinox.partition(model, equinox.is_inexact_array)"
        )
    if any(leaf.dtype != jnp.float64 for leaf in leaves):
        raise PrecisionError(
            f"{method} needs float64 parameters",
            got=str(sorted({str(leaf.dtype) for leaf in leaves})),
            remedy="inside `with sciax.core.x64():` make them float64",
        )
    x, unravel = _ravel(params)
    if max_parameters is not None and x.size > max_parameters:
        raise InputError(
            f"{method} keeps a dense matrix of {x.size}^2 entries ({x.size**2 * 8 / 1e9:.1f} GB)",
            expected=f"at most {max_parameters} parameters",
            remedy=f"{instead}, or raise max_parameters",
        )
    return x, unravel


def require_finite(value: Array) -> None:
    """Raises InputError where the objective is not finite at the start (it then is nowhere on the way)."""
    if not bool(jnp.isfinite(value)):
        raise InputError("the objective is not finite at the start", got=float(value))


_UNRAVEL: dict[Any, Callable[[Array], PyTree]] = {}


def _ravel(params: PyTree) -> tuple[Array, Callable[[Array], PyTree]]:
    """`ravel_pytree`, with the same inverse function for the same structure: it is a static argument of the compiled loops."""
    x, unravel = ravel_pytree(params)
    key = (jax.tree.structure(params), tuple((leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(params)))
    return x, _UNRAVEL.setdefault(key, unravel)
