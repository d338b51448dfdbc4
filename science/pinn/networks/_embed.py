"""What the network sees of a point: scaled coordinates, periodic pairs, random Fourier features, functions of the user's own.

Nothing here is trained, so its derivatives are computed once for each set of points, not at every step.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


class Embedding(eqx.Module):
    """Features of a point (x, t).

    Attributes:
        lower, upper: box around the domain; the other axes are scaled from it to [-1, 1].
        periods: axis -> number of harmonics; that axis enters as cos and sin of 2 pi k (x - lower) / length, k = 1, 2, ...
        fourier: [features, axes] random frequencies: cos and sin of B z join the scaled coordinates z (Tancik et al. 2020).
        extra: functions of the point whose values join as inputs.
    """

    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    periods: tuple[tuple[int, int], ...] = eqx.field(static=True)
    fourier: np.ndarray | None
    extra: tuple[Callable[..., Any], ...] = eqx.field(static=True)

    @staticmethod
    def make(
        lower: Any,
        upper: Any,
        *,
        periods: dict[int, int],
        fourier: int = 0,
        scale: float = 1.0,
        extra: tuple[Callable[..., Any], ...] = (),
        key: Key[Array, ""],
    ) -> "Embedding":
        free = [a for a in range(len(lower)) if a not in periods]
        matrix = np.asarray(jax.random.normal(key, (fourier, len(free)))) * scale if fourier else None
        low, high = tuple(float(v) for v in lower), tuple(float(v) for v in upper)
        return Embedding(low, high, tuple(sorted(periods.items())), matrix, tuple(extra))

    @property
    def size(self) -> int:
        point = jax.ShapeDtypeStruct((len(self.lower),), jnp.result_type(float))
        return jax.eval_shape(self, point).shape[0]

    def __call__(self, z: Float[Array, " axes"]) -> Float[Array, " features"]:
        harmonics = dict(self.periods)
        out, free = [], []
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            share = (z[axis] - low) / (high - low)
            if axis in harmonics:
                for k in range(1, harmonics[axis] + 1):
                    out += [jnp.cos(2 * np.pi * k * share), jnp.sin(2 * np.pi * k * share)]
            else:
                free.append(2 * share - 1)
        out += free
        if self.fourier is not None and free:
            phase = jnp.asarray(self.fourier, z.dtype) @ jnp.stack(free)
            out += [*jnp.cos(phase), *jnp.sin(phase)]
        for function in self.extra:
            out += list(jnp.atleast_1d(function(z)))
        return jnp.stack([jnp.asarray(v, z.dtype) for v in out])
