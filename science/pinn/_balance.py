"""Weights of the terms of the loss where conditions are soft: by gradients, by the tangent kernel, or trained."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciax.core.errors import InputError, did_you_mean
from sciax.science.pinn._stages import point_jacobian
from sciax.science.pinn._system import Model, System


def grad_norm(system: System, model: Model, prepared: Any) -> Float[Array, " terms"]:
    """w_k = sum_j |grad L_j| / |grad L_k| (Wang, Sankaran, Wang & Perdikaris 2023): all terms pull equally hard."""

    def norm(k: int) -> Array:
        one = jnp.zeros(len(system.terms), system.dtype).at[k].set(1.0)
        gradient = jax.grad(lambda m: system.loss(m, (prepared, one)))(model)
        return jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(gradient)))

    return _shares(jnp.stack([norm(k) for k in range(len(system.terms))]))


def kernel_trace(system: System, model: Model, prepared: Any) -> Float[Array, " terms"]:
    """w_k = sum_j tr K_j / tr K_k, K_k = J_k J_k' / n_k the tangent kernel of a term (Wang, Yu & Perdikaris 2022).

    Terms that the network learns slowly count more.
    """

    def trace(k: int) -> Array:
        _, slopes = point_jacobian(system, system.terms[k], model, prepared[k])
        return sum(jnp.sum(d**2) for d in jax.tree.leaves(slopes)) / prepared[k].points.shape[-1]  # type: ignore[return-value]

    return _shares(jnp.stack([trace(k) for k in range(len(system.terms))]))


def _shares(size: Float[Array, " terms"]) -> Float[Array, " terms"]:
    """sum / size, scaled so that the equations' weight is 1; a term that pulls nowhere keeps weight 1."""
    return jnp.where(size > 0, size[0] / jnp.where(size > 0, size, 1), 1.0)


BALANCES: dict[str, Callable[..., Array] | None] = {
    "none": None,
    "grad-norm": grad_norm,
    "ntk": kernel_trace,
    "self-adaptive": None,
}


def check_balance(name: str) -> None:
    """Raises InputError for an unknown name."""
    if name not in BALANCES:
        raise InputError(f"unknown balance {name!r}", remedy=did_you_mean(str(name), BALANCES))


class Saddle(eqx.Module):
    """Network and point weights of self-adaptive training (McClenny & Braga-Neto 2023): min over one, max over the other.

    Attributes:
        model: the network.
        weights: [n] a term, squared in the loss.
    """

    model: Model
    weights: tuple[Float[Array, " n"], ...]

    @staticmethod
    def start(model: Model, pool: Any) -> "Saddle":
        return Saddle(model, tuple(jnp.ones(p.points.shape[-1], p.points.dtype) for p in pool))

    def loss(self, system: System, pool: Any, term_weights: Array) -> Float[Array, ""]:
        """The weighted loss at all points; its gradient in the weights has the sign turned, so that descent climbs."""
        masked = []
        for data, own in zip(pool, self.weights, strict=True):
            turned = 2 * jax.lax.stop_gradient(own) - own
            masked.append(eqx.tree_at(lambda p: p.weights, data, data.weights * turned**2))
        return system.loss(self.model, (tuple(masked), term_weights))

    def terms(self) -> Float[Array, " terms"]:
        """Mean squared weight of each term relative to the equations': what the next stage uses at its own points."""
        mean = jnp.stack([jnp.mean(w**2) for w in self.weights])
        return mean / mean[0]
