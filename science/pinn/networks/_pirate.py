"""PirateNet (Wang, Li, Chen & Perdikaris, J. Mach. Learn. Res. 25, 2024): adaptive residual blocks that begin as the identity."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from sciax.science.pinn._jets import activate, linear
from sciax.science.pinn.networks._mlp import glorot


class PirateNet(eqx.Module):
    """Blocks of three layers, the first two gated by two encoders; x <- a s(W3 z2 + b3) + (1 - a) x with a = 0 at the start.

    `depth` counts layers as in the other networks: depth // 3 blocks, at least one.
    """

    first: tuple[Array, Array]
    gates: tuple[Array, Array]
    gate_biases: tuple[Array, Array]
    blocks: tuple[tuple[tuple[Array, Array], ...], ...]
    mix: tuple[Array, ...]
    last: tuple[Array, Array]
    activation: str = eqx.field(static=True)

    def __init__(self, inputs, outputs, width, depth, *, key, activation="tanh", dtype=jnp.float64):
        count = max(1, depth // 3)
        keys = iter(jax.random.split(key, 4 + 3 * count))
        zero = jnp.zeros(width, dtype)
        self.first = (glorot(next(keys), width, inputs, dtype), zero)
        self.gates = (glorot(next(keys), width, width, dtype), glorot(next(keys), width, width, dtype))
        self.gate_biases = (zero, zero)
        self.blocks = tuple(
            tuple((glorot(next(keys), width, width, dtype), zero) for _ in range(3)) for _ in range(count)
        )
        self.mix = tuple(jnp.zeros((), dtype) for _ in range(count))
        self.last = (glorot(next(keys), outputs, width, dtype), jnp.zeros(outputs, dtype))
        self.activation = activation

    def __call__(self, h: Any) -> Any:
        h = activate(self.activation, linear(*self.first, h))
        u, v = (activate(self.activation, linear(w, b, h)) for w, b in zip(self.gates, self.gate_biases, strict=True))
        difference = u - v
        for (one, two, three), share in zip(self.blocks, self.mix, strict=True):
            z = activate(self.activation, linear(*one, h)) * difference + v
            z = activate(self.activation, linear(*two, z)) * difference + v
            z = activate(self.activation, linear(*three, z))
            h = _scaled(z, share) + _scaled(h, 1 - share)
        return linear(*self.last, h)


def _scaled(h: Any, factor: Any) -> Any:
    return h * factor if isinstance(h, jax.Array) else h.map(lambda v: factor * v)
