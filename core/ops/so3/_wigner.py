"""Wigner matrices of rotation matrices, differentiable, without angles."""

import functools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.so3._harmonics import _oracle as harmonics_oracle
from sciax.core.ops.so3._harmonics import spherical_harmonics


@functools.cache
def _points(l: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions and the pseudo-inverse of Y_l on them: a spherical Fibonacci set, condition number near 1."""
    n = 4 * (2 * l + 1) + 8
    k = np.arange(n) + 0.5
    height, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    ring = np.sqrt(1 - height**2)
    points = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], -1)
    values = harmonics_oracle(points, lmax=l)[l * l :]
    return points, np.linalg.pinv(values)


def _oracle(rotations, *, l):
    """The same definition on SciPy's harmonics. (The group laws, which do not share the definition, are tests of their own.)"""
    points, inverse = _points(l)
    turned = np.einsum("...ab,pb->...pa", rotations, points)
    values = harmonics_oracle(turned.reshape(-1, 3), lmax=l, normalise=False)[l * l :].reshape(
        2 * l + 1, *turned.shape[:-1]
    )
    return np.einsum("m...p,pn->...mn", values, inverse)


def _samples(rng):
    from scipy.spatial.transform import Rotation

    r = Rotation.random(3, rng=rng).as_matrix()
    yield Sample("ordinary", (r,), {"l": 2})
    yield Sample("one, degree 4", (r[:1],), {"l": 4})
    yield Sample("badly scaled: a matrix near zero", (r * np.array([1e-3, 1, 10]).reshape(3, 1, 1),), {"l": 1})


@operator(
    "so3.wigner_d",
    oracle=_oracle,
    samples=_samples,
    flops=lambda rotations, *, l: 12.0 * (2 * l + 1) ** 3 * rotations.shape[0],
    unsupported={"complex": "rotations are real"},
)
def wigner_d(rotations: Float[Array, "*batch 3 3"], *, l: int) -> Float[Array, "*batch dim dim"]:
    """D with Y_l(R v) = D Y_l(v), in the real basis; an improper R gives the matrix of its polynomial action (parity (-1)^l).

    D = Y_l(R p) Y_l(p)⁺ on a fixed set of directions p: a polynomial of R, with no singular angles.

    Raises:
        InputError: l < 0. ShapeError, DTypeError: not 3x3 real matrices.
    """
    if l < 0:
        raise InputError("a degree is not negative", got=l)
    if rotations.ndim < 2 or rotations.shape[-2:] != (3, 3):
        raise ShapeError("rotations are not 3x3 matrices", got=rotations.shape, expected="(..., 3, 3)")
    if not jnp.issubdtype(rotations.dtype, jnp.floating):
        raise DTypeError("rotations are not real floating numbers", got=rotations.dtype)
    if l == 0:
        return jnp.ones((*rotations.shape[:-2], 1, 1), rotations.dtype)
    points, inverse = _points(l)
    turned = jnp.einsum("...ab,pb->...pa", rotations, jnp.asarray(points, rotations.dtype), precision="highest")
    values = spherical_harmonics(turned, lmax=l, normalise=False)[l * l :]
    return jnp.einsum("m...p,pn->...mn", values, jnp.asarray(inverse, rotations.dtype), precision="highest")
