"""What differs between JAX versions in the parameters of structured equations."""

from collections.abc import Sequence
from typing import Any


def scan_inputs(params: dict[str, Any], inputs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Constants, carry and scanned operands of a `scan` equation."""
    if "ft_in" in params:  # jax >= 0.11
        consts, carry, xs = (list(group) for group in params["ft_in"].update(list(inputs)).unpack())
        return consts, carry, xs
    nc, nk = params["num_consts"], params["num_carry"]
    return list(inputs[:nc]), list(inputs[nc : nc + nk]), list(inputs[nc + nk :])


def scan_outputs(params: dict[str, Any], outputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Final carry and stacked outputs of a `scan` equation (or of its body)."""
    if "ft_out" in params:
        carry, ys = (list(group) for group in params["ft_out"].update(list(outputs)).unpack())
        return carry, ys
    nk = params["num_carry"]
    return list(outputs[:nk]), list(outputs[nk:])
