"""The minimisers a network can be trained with, and what those of sums of squares need: residual vector and Jacobian."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from sciax.core.errors import InputError, did_you_mean
from sciax.core.train.minimize import MinimizeResult, lbfgs, levenberg_marquardt, natural_gradient, ssbroyden
from sciax.science.pinn._system import Model, System, Term


class Functions:
    """Loss, residual vector and Jacobian of one system; kept, so that the compiled loops are found again."""

    def __init__(self, system: System):
        self.system = system
        self.loss: Callable[..., Any] = lambda model, batch: system.loss(model, batch)
        self.vector: Callable[..., Any] = self._vector
        self.jacobian: Callable[..., Any] = self._jacobian

    def _vector(self, model: Model, batch: Any) -> Float[Array, " m"]:
        """All residuals, sqrt(term weight * point weight / points) * r: the sum of their squares is the loss."""
        prepared, weights = batch
        return jnp.concatenate(
            [
                (self.system.residual(term, model, data) * _scale(data, weights[k])).T.ravel()
                for k, (term, data) in enumerate(zip(self.system.terms, prepared, strict=True))
            ]
        )

    def _jacobian(self, model: Model, batch: Any) -> tuple[Float[Array, " m"], Any]:
        """The residual vector and its derivative, by reverse mode in each point: no residual depends on another point.

        That costs little more than one gradient of the loss; forward mode would cost a pass for each parameter.
        """
        prepared, weights = batch
        values, derivatives = [], []
        for k, (term, data) in enumerate(zip(self.system.terms, prepared, strict=True)):
            rows, slopes = point_jacobian(self.system, term, model, data)
            scale = _scale(data, weights[k])
            values.append((rows * scale[:, None]).ravel())
            derivatives.append(jax.tree.map(lambda d, s=scale: _flat(d * s.reshape(-1, *[1] * (d.ndim - 1))), slopes))
        return jnp.concatenate(values), jax.tree.map(lambda *parts: jnp.concatenate(parts), *derivatives)


def _scale(data: Any, weight: Array) -> Float[Array, " n"]:
    return jnp.sqrt(weight * data.weights / data.points.shape[-1])


def _flat(d: Array) -> Array:
    return d.reshape(-1, *d.shape[2:])


def point_jacobian(system: System, term: Term, model: Model, data: Any) -> tuple[Float[Array, "n rows"], Any]:
    """Residuals of one term and their derivatives in the model: leaves [n, rows, ...]."""

    def one(model: Model, point: Any) -> tuple[Array, Array]:
        rows = system.residual(term, model, jax.tree.map(lambda v: v[..., None], point))[:, 0]
        return rows, rows

    slopes, rows = jax.vmap(jax.jacrev(one, has_aux=True), in_axes=(None, -1))(model, data)
    return rows, slopes


@dataclass(frozen=True)
class Stage:
    """One way to minimise.

    Attributes:
        label: for pictures.
        renew: iterations between two drawings of points, unless said otherwise.
        iterations: at most, unless said otherwise.
        run: (functions, params, batch, iterations, state) -> result.
    """

    label: str
    renew: int
    iterations: int
    run: Callable[[Functions, Any, Any, int, Any], MinimizeResult]


def _broyden(f: Functions, params: Any, batch: Any, iterations: int, state: Any) -> MinimizeResult:
    return ssbroyden(f.loss, params, batch, iterations=iterations, state=state, max_parameters=20000)


def _lbfgs(f: Functions, params: Any, batch: Any, iterations: int, state: Any) -> MinimizeResult:
    return lbfgs(f.loss, params, batch, iterations=iterations, state=state)


def _levenberg(f: Functions, params: Any, batch: Any, iterations: int, state: Any) -> MinimizeResult:
    return levenberg_marquardt(f.vector, params, batch, iterations=iterations, state=state, jacobian=f.jacobian)


def _natural(f: Functions, params: Any, batch: Any, iterations: int, state: Any) -> MinimizeResult:
    return natural_gradient(f.vector, params, batch, iterations=iterations, state=state, jacobian=f.jacobian)


STAGES: dict[str, Stage] = {
    "ssbroyden": Stage("self-scaled Broyden", 500, 3000, _broyden),
    "lm": Stage("Levenberg-Marquardt", 10, 300, _levenberg),
    "natural": Stage("natural gradient", 10, 300, _natural),
    "lbfgs": Stage("L-BFGS", 500, 5000, _lbfgs),
}


def stage(name: str) -> Stage:
    """Raises InputError for an unknown name."""
    if name not in STAGES:
        raise InputError(f"unknown optimizer {name!r}", remedy=did_you_mean(str(name), STAGES))
    return STAGES[name]
