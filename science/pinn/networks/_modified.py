"""The modified perceptron of Wang, Teng & Perdikaris (SIAM J. Sci. Comput. 43, A3055, 2021): two encoders gate each layer."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from sciax.science.pinn._jets import activate, linear
from sciax.science.pinn.networks._mlp import glorot


class ModifiedMlp(eqx.Module):
    """U = s(W_U x + b_U), V = s(W_V x + b_V), h <- z U + (1 - z) V with z = s(W h + b)."""

    gates: tuple[Array, Array]
    gate_biases: tuple[Array, Array]
    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str = eqx.field(static=True)

    def __init__(self, inputs, outputs, width, depth, *, key, activation="tanh", dtype=jnp.float64):
        sizes = [inputs, *[width] * depth, outputs]
        keys = jax.random.split(key, len(sizes) + 1)
        self.gates = (glorot(keys[0], width, inputs, dtype), glorot(keys[1], width, inputs, dtype))
        self.gate_biases = (jnp.zeros(width, dtype), jnp.zeros(width, dtype))
        self.weights = tuple(glorot(k, o, i, dtype) for k, i, o in zip(keys[2:], sizes[:-1], sizes[1:], strict=True))
        self.biases = tuple(jnp.zeros(o, dtype) for o in sizes[1:])
        self.activation = activation

    def __call__(self, h: Any) -> Any:
        u, v = (activate(self.activation, linear(w, b, h)) for w, b in zip(self.gates, self.gate_biases, strict=True))
        difference = u - v
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = activate(self.activation, linear(weight, bias, h)) * difference + v
        return linear(self.weights[-1], self.biases[-1], h)
