"""The table of networks."""

import inspect
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from sciax.core.errors import InputError, did_you_mean
from sciax.science.pinn._jets import ACTIVATIONS
from sciax.science.pinn.networks._mlp import Mlp
from sciax.science.pinn.networks._modified import ModifiedMlp
from sciax.science.pinn.networks._pirate import PirateNet
from sciax.science.pinn.networks._siren import Siren

NETWORKS: dict[str, Any] = {"mlp": Mlp, "modified": ModifiedMlp, "pirate": PirateNet, "siren": Siren}


def build(
    name: str, inputs: int, outputs: int, *, width: int, depth: int, activation: str | None, key: Any, dtype=jnp.float64
) -> Any:
    """A network by name.

    Raises:
        InputError: unknown network or activation, sizes below one.
    """
    if name not in NETWORKS:
        raise InputError(f"unknown network {name!r}", remedy=did_you_mean(name, NETWORKS))
    if width < 1 or depth < 1:
        raise InputError("a network needs at least one layer of one unit", got=f"width={width}, depth={depth}")
    chosen = NETWORKS[name]
    if activation is None:
        activation = inspect.signature(chosen.__init__).parameters["activation"].default
    if activation not in ACTIVATIONS:
        raise InputError(f"unknown activation {activation!r}", remedy=did_you_mean(str(activation), ACTIVATIONS))
    if name == "siren" and activation != "sin":
        raise InputError("a SIREN has sine layers", got=activation, remedy="network='mlp'")
    return _made(chosen, inputs, outputs, width, depth, key, activation, dtype)


@eqx.filter_jit
def _made(chosen, inputs, outputs, width, depth, key, activation, dtype):
    # one compilation instead of one for each shape of weights
    return chosen(inputs, outputs, width, depth, key=key, activation=activation, dtype=dtype)
