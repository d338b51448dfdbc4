"""Converting between the two orders of qubits.

Everywhere in this package qubit 0 is the least significant bit of a basis state's index ("little"); other programs and
textbooks let it be the most significant ("big"), so that |q0 q1 ... > is read from the left.
"""

from typing import Any

import jax.numpy as jnp

from sciax.core.errors import InputError, ShapeError

ORDERS = ("little", "big")


def check_order(order: str) -> None:
    """Raises:
    InputError: neither "little" nor "big".
    """
    if order not in ORDERS:
        raise InputError(
            "unknown order of qubits", got=repr(order), expected="'little' (qubit 0 least significant) or 'big'"
        )


def reorder(array: Any, *, order: str) -> Any:
    """A state vector, vector of probabilities, or square matrix of this package in another order, and back again.

    Index i becomes the index with its n bits reversed, on every axis: psi'[b_0 b_1 ... b_(n-1)] = psi[b_(n-1) ... b_1 b_0].

    Args:
        array: (2^n,) or (2^n, 2^n), in one of the orders.
        order: "big" turns the package's order into the other one (and, being its own inverse, imports from it); "little" is
            the package's own and changes nothing.

    Raises:
        InputError: an unknown order; ShapeError: an axis that is no power of two.
    """
    check_order(order)
    array = jnp.asarray(array)
    if array.ndim not in (1, 2) or any(s < 1 or s & (s - 1) or s != array.shape[0] for s in array.shape):
        raise ShapeError("not amplitudes or a matrix of qubits", got=array.shape, expected="(2^n,) or (2^n, 2^n)")
    if order == "little":
        return array
    n = array.shape[0].bit_length() - 1
    axes = [axis * n + n - 1 - q for axis in range(array.ndim) for q in range(n)]
    return array.reshape((2,) * (n * array.ndim)).transpose(axes).reshape(array.shape)
