"""Unknown coefficients that are functions of x: each a first guess plus a small network."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Key

from sciax.core.errors import InputError
from sciax.science.pde._expr import takes_time
from sciax.science.pinn._hard import Frame
from sciax.science.pinn.networks import Embedding, build

WIDTH, DEPTH = 12, 2


def as_guess(name: str, function: Callable[..., Any]) -> Callable[[Any], Array]:
    """The first guess as a function of x.

    Raises:
        InputError: a function of time; coefficients in time are not offered.
    """
    if takes_time(function):
        raise InputError(f"the unknown {name!r} is a function of x alone", got="a function of (x, t)")
    return lambda x: jnp.asarray(function(x), jnp.result_type(x)).reshape(())


def coefficient_networks(
    frame: Frame, names: tuple[str, ...], key: Key[Array, ""], dtype: Any
) -> tuple[Embedding | None, dict[str, Any]]:
    """(what they see of x, name -> network). The last layers start at zero: each coefficient starts as its guess."""
    if not names:
        return None, {}
    places = Embedding.make(frame.lower[: frame.dim], frame.upper[: frame.dim], periods={}, key=key)
    out = {}
    for k, name in enumerate(names):
        own = jax.random.fold_in(key, k)
        network = build("mlp", places.size, 1, width=WIDTH, depth=DEPTH, activation=None, key=own, dtype=dtype)
        out[name] = eqx.tree_at(lambda n: n.weights[-1], network, jnp.zeros_like(network.weights[-1]))
    return places, out
