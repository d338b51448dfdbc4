"""Linear inverse model of gridded fields."""

from dataclasses import dataclass
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.earth._grid import area_weights
from sciax.earth.data import time_step
from sciax.earth.models._base import Coords, Model, ModelConfig
from sciax.earth.models._climatology import ClimatologyFields
from sciax.earth.models._persistence import anomalies


class LinearInverseModel(Model):
    """x(t + step) = B x(t) for the leading principal components x of the anomalies; the rest of the field is damped."""

    name: ClassVar[str] = "linear_inverse"
    climatology: ClimatologyFields
    patterns: Float[Array, "mode channel lat lon"]
    adjoint: Float[Array, "mode channel lat lon"]
    propagator: Float[Array, "mode mode"]
    rest: Float[Array, " channel"]
    coords: Coords = eqx.field(static=True)

    def input_coords(self) -> Coords:
        return self.coords

    def init(self, fields, when):
        anomaly = fields - self.climatology(when)
        x = jnp.einsum("kcyx,mcyx->mk", self.adjoint, anomaly)
        return x, anomaly - self._field(x)

    def step(self, state, when):
        x, remainder = state
        x = x @ self.propagator.T
        remainder = self.rest[:, None, None] * remainder
        return (x, remainder), self.climatology(when) + self._field(x) + remainder

    def _field(self, x):
        return jnp.einsum("kcyx,mk->mcyx", self.patterns, x)


@dataclass(frozen=True)
class LinearInverse(ModelConfig):
    """B = C(step) C(0)^-1 of the leading principal components of the training anomalies.

    Channels are scaled by their standard deviation and weighted by area. An unstable B (from a short training period) is
    shrunk to spectral radius `limit`. Source: C. Penland and P. Sardeshmukh, J. Climate 8, 1999 (1995).

    Attributes:
        modes: principal components kept (fewer where the training data have fewer).
        annual: harmonics of the climatology.
        ridge: added to C(0), as a fraction of its mean diagonal.
        limit: largest modulus of an eigenvalue of B.
    """

    modes: int = 20
    annual: int | None = None
    ridge: float = 1e-3
    limit: float = 0.999

    def __post_init__(self) -> None:
        if self.modes < 1 or self.ridge < 0 or not 0 < self.limit <= 1:
            raise InputError(
                "modes must be positive, ridge not negative, limit in (0, 1]", got=(self.modes, self.ridge, self.limit)
            )

    def build(self, coords, training=None):
        training = self._need_training(training)
        climatology = ClimatologyFields.fit(training, coords, self.annual)
        anomaly = anomalies(training, coords, climatology)
        stride = round(coords.step_hours / time_step(training)) if anomaly.shape[0] > 1 else 1
        if stride < 1 or anomaly.shape[0] < stride + 3:
            raise InputError(
                "the training data are too short, or coarser in time than the forecast step, for a linear inverse model",
                got=f"{anomaly.shape[0]} times, a step of {stride} of them",
                expected="at least 3 pairs a step apart",
            )
        if not np.isfinite(anomaly).all():
            raise InputError("the training data have missing values", remedy="fill them, or leave the channel out")
        scale = np.sqrt((anomaly**2).mean((0, 2, 3)))
        weight = np.sqrt(area_weights(np.array(coords.lat)))[:, None] / np.maximum(scale, 1e-30)[:, None, None]
        flat = (anomaly * weight).reshape(len(anomaly), -1)
        _, s, rows = np.linalg.svd(flat, full_matrices=False)
        modes = int(min(self.modes, (s > 1e-10 * s[0]).sum(), (len(anomaly) - stride) // 2 or 1))
        rows = rows[:modes]
        x = flat @ rows.T
        a, b = x[:-stride], x[stride:]
        c0 = a.T @ a
        c0 += self.ridge * np.trace(c0) / modes * np.eye(modes)
        propagator = np.linalg.solve(c0, a.T @ b).T
        radius = np.abs(np.linalg.eigvals(propagator)).max()
        if radius > self.limit:
            propagator *= self.limit / radius
        left = (flat - x @ rows).reshape(anomaly.shape)
        top, bottom = (left[:-stride] * left[stride:]).sum((0, 2, 3)), (left[:-stride] ** 2).sum((0, 2, 3))
        rest = np.where(bottom > 1e-20, np.clip(top / np.maximum(bottom, 1e-20), 0, 1), 0)
        shape = (modes, *anomaly.shape[1:])
        patterns, adjoint = rows.reshape(shape) / weight, rows.reshape(shape) * weight
        patterns, adjoint, propagator, rest = (
            jnp.asarray(v, climatology.coefficients.dtype) for v in (patterns, adjoint, propagator, rest)
        )
        return LinearInverseModel(climatology, patterns, adjoint, propagator, rest, coords)
