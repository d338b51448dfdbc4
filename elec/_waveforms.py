"""Time signals of sources."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import ShapeError
from sciax.elec._checks import finite, positive


@dataclass(frozen=True)
class GaussianPulse:
    """sin(2 pi f (t - t0)) exp(-(t - t0)^2 / (2 tau^2)), tau = 1 / (2 pi width), t0 = delay tau.

    Attributes:
        frequency: centre (Hz).
        width: standard deviation of the spectrum (Hz).
        delay: start of the pulse's peak in units of tau; 5 starts at exp(-12.5).
    """

    frequency: Any
    width: Any
    delay: float = 5.0

    def __post_init__(self) -> None:
        positive(self.frequency, "pulse frequency")
        positive(self.width, "pulse width")

    def __call__(self, t):
        tau = 1.0 / (2 * np.pi * self.width)
        s = t - self.delay * tau
        return jnp.sin(2 * np.pi * self.frequency * s) * jnp.exp(-0.5 * (s / tau) ** 2)

    def band(self) -> tuple[float, float]:
        """Frequencies (Hz) beyond which the spectrum is below 1e-3 of its peak."""
        f, w = float(self.frequency), float(self.width)
        return max(f - 3.7 * w, 0.0), f + 3.7 * w

    def end(self) -> float:
        return 2 * self.delay / (2 * np.pi * float(self.width))


@dataclass(frozen=True)
class ContinuousWave:
    """sin(2 pi f t) switched on over `ramp` periods by a smooth step."""

    frequency: Any
    ramp: float = 5.0

    def __post_init__(self) -> None:
        positive(self.frequency, "frequency")
        positive(self.ramp, "ramp")

    def __call__(self, t):
        u = jnp.clip(t * self.frequency / self.ramp, 0.0, 1.0)
        return u * u * u * (10 - 15 * u + 6 * u * u) * jnp.sin(2 * np.pi * self.frequency * t)

    def band(self) -> tuple[float, float]:
        f = float(self.frequency)
        return f * (1 - 1 / self.ramp), f * (1 + 1 / self.ramp)

    def end(self) -> float:
        return np.inf


@dataclass(frozen=True)
class Ricker:
    """Second derivative of a Gaussian: (1 - 2 a) exp(-a), a = (pi f (t - t0))^2, t0 = 1.5 / f."""

    frequency: Any

    def __post_init__(self) -> None:
        positive(self.frequency, "frequency")

    def __call__(self, t):
        a = (np.pi * self.frequency * (t - 1.5 / self.frequency)) ** 2
        return (1 - 2 * a) * jnp.exp(-a)

    def band(self) -> tuple[float, float]:
        return 0.0, 3.3 * float(self.frequency)

    def end(self) -> float:
        return 3.0 / float(self.frequency)


@dataclass(frozen=True, eq=False)
class Sampled:
    """Linear interpolation of given samples, zero outside them."""

    times: Any
    values: Any

    def __post_init__(self) -> None:
        if np.ndim(self.times) != 1 or np.shape(self.times) != np.shape(self.values) or np.shape(self.times)[0] < 2:
            raise ShapeError(
                "samples need one time axis and as many values", got=(np.shape(self.times), np.shape(self.values))
            )
        finite(self.times, "times")
        finite(self.values, "values")

    def __call__(self, t):
        times = jnp.asarray(self.times)
        return jnp.interp(t, times, jnp.asarray(self.values), left=0.0, right=0.0)

    def band(self) -> tuple[float, float]:
        times = np.asarray(self.times, float)
        return 0.0, 0.5 / float(np.diff(times).min())

    def end(self) -> float:
        return float(np.asarray(self.times)[-1])
