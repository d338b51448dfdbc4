"""Linear balance between geopotential and stream function: laplacian(Phi) = div(f grad(psi))."""

from functools import lru_cache

import numpy as np
from jaxtyping import Array, Complex

from sciax.earth._grid import EARTH_ROTATION


@lru_cache(maxsize=8)
def _matrices(truncation: int, rotation: float, floor: float) -> tuple[np.ndarray, np.ndarray]:
    """(balance, its regularised inverse), each (m, l, l), degrees below m empty."""
    n = truncation + 1
    forward, inverse = np.zeros((n, n, n)), np.zeros((n, n, n))
    for m in range(n):
        l = np.arange(max(m, 1), n, dtype=float)
        eps = np.sqrt(np.maximum(l**2 - m**2, 0) / (4 * l**2 - 1))
        above = np.sqrt(np.maximum((l + 1) ** 2 - m**2, 0) / (4 * (l + 1) ** 2 - 1))
        b = np.zeros((l.size, l.size))
        # The l' = l - 1 and l' = l + 1 couplings of div(mu grad); nothing couples l to itself.
        b[np.arange(1, l.size), np.arange(l.size - 1)] = ((l - 1) * (l + 1) * eps / (l * (l + 1)))[1:]
        b[np.arange(l.size - 1), np.arange(1, l.size)] = (l * (l + 2) * above / (l * (l + 1)))[:-1]
        b *= 2 * rotation
        s = int(l[0])
        forward[m, s:, s:] = b
        # f vanishes at the equator, where balance says nothing: a Tikhonov floor of a few per cent of Omega.
        inverse[m, s:, s:] = np.linalg.solve(b.T @ b + (floor * rotation) ** 2 * np.eye(l.size), b.T)
    return forward, inverse


def _apply(matrix: np.ndarray, c):
    import jax.numpy as jnp

    n = matrix.shape[0]
    inner = jnp.einsum("mij,...mj->...mi", jnp.asarray(matrix, c.real.dtype), c[..., :n])
    return jnp.pad(inner, [(0, 0)] * (c.ndim - 1) + [(0, c.shape[-1] - n)])


def streamfunction_from_geopotential(
    phi: Complex[Array, "*batch m l"], truncation: int, rotation: float = EARTH_ROTATION, floor: float = 0.03
) -> Complex[Array, "*batch m l"]:
    """Stream function (m2 s-1) whose rotation balances the geopotential (m2 s-2), in the least-squares sense.

    Args:
        floor: regularisation in units of Omega; larger smooths the tropics, where balance does not hold.
    """
    return _apply(_matrices(truncation, float(rotation), float(floor))[1], phi)


def geopotential_from_streamfunction(
    psi: Complex[Array, "*batch m l"], truncation: int, rotation: float = EARTH_ROTATION, floor: float = 0.03
) -> Complex[Array, "*batch m l"]:
    """Balanced geopotential, without its mean."""
    return _apply(_matrices(truncation, float(rotation), float(floor))[0], psi)
