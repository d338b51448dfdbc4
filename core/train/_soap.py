"""SOAP: Adam in the slowly turning eigenbasis of Shampoo's preconditioner (Vyas et al. 2024, arXiv 2409.11321)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Int

from sciax.core.errors import InputError


class _Sides(NamedTuple):
    """Of one parameter matrix [m, n]: averages of G G' and G'G, and their eigenvectors; None where a side is too long."""

    left: Array | None
    right: Array | None
    left_basis: Array | None
    right_basis: Array | None


class SoapState(NamedTuple):
    """State of `soap`.

    Attributes:
        count: steps taken, the first (which only starts the averages) not counted.
        mean: average of the gradients, in the parameters' own basis.
        square: average of the squared gradients, in the eigenbasis.
        sides: a `_Sides` a leaf.
    """

    count: Int[Array, ""]
    mean: Any
    square: Any
    sides: Any


def _into(sides: _Sides, g: Array) -> Array:
    """Q_L' G Q_R."""
    g = g if sides.left_basis is None else sides.left_basis.T @ g
    return g if sides.right_basis is None else g @ sides.right_basis


def _back(sides: _Sides, g: Array) -> Array:
    """Q_L G Q_R'."""
    g = g if sides.left_basis is None else sides.left_basis @ g
    return g if sides.right_basis is None else g @ sides.right_basis.T


def _is_sides(node: Any) -> bool:
    return isinstance(node, _Sides)


def _average(sides: _Sides, g: Array, decay: float) -> _Sides:
    left = None if sides.left is None else decay * sides.left + (1 - decay) * g @ g.T
    right = None if sides.right is None else decay * sides.right + (1 - decay) * g.T @ g
    return sides._replace(left=left, right=right)


def _first_basis(sides: _Sides) -> _Sides:
    def basis(matrix: Array | None) -> Array | None:
        return None if matrix is None else jnp.linalg.eigh(matrix)[1][:, ::-1]

    return sides._replace(left_basis=basis(sides.left), right_basis=basis(sides.right))


def _turn(sides: _Sides, square: Array) -> tuple[_Sides, Array]:
    """One step of orthogonal iteration from the basis of before; its columns, and `square` with them, by falling eigenvalue."""

    def follow(matrix: Array, basis: Array) -> tuple[Array, Array]:
        order = jnp.argsort(-jnp.einsum("ij,ik,kj->j", basis, matrix, basis))
        return order, jnp.linalg.qr(matrix @ basis[:, order])[0]

    left_basis, right_basis = sides.left_basis, sides.right_basis
    if sides.left is not None and left_basis is not None:
        order, left_basis = follow(sides.left, left_basis)
        square = square[order]
    if sides.right is not None and right_basis is not None:
        order, right_basis = follow(sides.right, right_basis)
        square = square[:, order]
    return sides._replace(left_basis=left_basis, right_basis=right_basis), square


def soap(
    learning_rate: optax.ScalarOrSchedule = 3e-3,
    b1: float = 0.95,
    b2: float = 0.95,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    *,
    every: int = 10,
    max_side: int = 2000,
) -> optax.GradientTransformation:
    """The optimiser, for `fit` or by itself.

    For a matrix parameter with gradient G [m, n]: L and R are running averages of G G' and G'G, Q_L and Q_R their eigenvectors,
    followed by one QR step every so many steps, and Adam runs on Q_L' G Q_R. Vectors and scalars get plain Adam; tensors of more
    axes are taken as matrices [first, rest]. The first step only starts the averages and moves nothing.

    Args:
        learning_rate: a number or a schedule.
        b1, b2: decays of the averages; 0.95 both, or 0.99 for very noisy gradients.
        eps: in the denominator.
        weight_decay: decoupled, times the learning rate.
        every: steps between two turns of the bases; 1 is best and dearest, 10 loses little.
        max_side: a side longer than this keeps the unit basis.

    Raises:
        InputError: decays outside of [0, 1), or `every` below one.
    """
    if not (0 <= b1 < 1 and 0 <= b2 < 1) or every < 1:
        raise InputError("soap: 0 <= b1, b2 < 1 and every >= 1", got=f"b1={b1}, b2={b2}, every={every}")

    def shaped(g: Array) -> Array:
        return g if g.ndim <= 2 else g.reshape(g.shape[0], -1)

    def sides_of(p: Array) -> _Sides:
        p = shaped(p)
        if p.ndim < 2:
            return _Sides(None, None, None, None)
        zero = [jnp.zeros((n, n), p.dtype) if n <= max_side else None for n in p.shape]
        return _Sides(zero[0], zero[1], zero[0], zero[1])

    def init(params: Any) -> SoapState:
        zeros = jax.tree.map(lambda p: jnp.zeros_like(shaped(p)), params)
        return SoapState(jnp.zeros((), jnp.int32), zeros, zeros, jax.tree.map(sides_of, params))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        gradients = jax.tree.map(shaped, updates)
        began = jnp.any(jnp.stack([jnp.any(s != 0) for s in jax.tree.leaves(state.square)])) | (state.count > 0)

        def first(_: None) -> tuple[Any, SoapState]:
            sides = jax.tree.map(
                lambda s, g: _first_basis(_average(s, g, b2)), state.sides, gradients, is_leaf=_is_sides
            )
            square = jax.tree.map(lambda s, g: (1 - b2) * _into(s, g) ** 2, sides, gradients, is_leaf=_is_sides)
            still = jax.tree.map(jnp.zeros_like, gradients)
            return still, SoapState(state.count, still, square, sides)

        def later(_: None) -> tuple[Any, SoapState]:
            count = state.count + 1
            mean = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mean, gradients)
            square = jax.tree.map(
                lambda s, v, g: b2 * v + (1 - b2) * _into(s, g) ** 2,
                state.sides,
                state.square,
                gradients,
                is_leaf=_is_sides,
            )
            # The squares were started one step before the mean.
            corrected = jnp.sqrt(1 - b2 ** (count + 1.0)) / (1 - b1 ** (count + 0.0))
            step = jax.tree.map(
                lambda s, m, v: _back(s, _into(s, m) * corrected.astype(m.dtype) / (jnp.sqrt(v) + eps)),
                state.sides,
                mean,
                square,
                is_leaf=_is_sides,
            )
            sides = jax.tree.map(lambda s, g: _average(s, g, b2), state.sides, gradients, is_leaf=_is_sides)

            def turn(pair: tuple[Any, Any]) -> tuple[Any, Any]:
                both = jax.tree.map(_turn, *pair, is_leaf=_is_sides)
                is_pair = lambda n: isinstance(n, tuple) and not _is_sides(n) and len(n) == 2 and _is_sides(n[0])  # noqa: E731
                return (
                    jax.tree.map(lambda p: p[0], both, is_leaf=is_pair),
                    jax.tree.map(lambda p: p[1], both, is_leaf=is_pair),
                )

            sides, square = jax.lax.cond(count % every == 0, turn, lambda pair: pair, (sides, square))
            return step, SoapState(count, mean, square, sides)

        step, new = jax.lax.cond(began, later, first, None)
        return jax.tree.map(lambda s, g: s.reshape(g.shape), step, updates), new

    parts = [optax.GradientTransformation(init, update)]
    if weight_decay:
        parts.append(optax.add_decayed_weights(weight_decay))
    return optax.chain(*parts, optax.scale_by_learning_rate(learning_rate))
