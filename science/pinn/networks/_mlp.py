"""The multilayer perceptron."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from sciax.science.pinn._jets import activate, linear


def glorot(key: Key[Array, ""], outputs: int, inputs: int, dtype: Any) -> Float[Array, "outputs inputs"]:
    """Normal weights of variance 2 / (in + out) (Glorot & Bengio 2010)."""
    return jax.random.normal(key, (outputs, inputs), dtype) * jnp.asarray((2 / (inputs + outputs)) ** 0.5, dtype)


class Mlp(eqx.Module):
    """h <- activation(W h + b), the last layer linear."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activation: str = eqx.field(static=True)

    def __init__(self, inputs, outputs, width, depth, *, key, activation="tanh", dtype=jnp.float64):
        sizes = [inputs, *[width] * depth, outputs]
        keys = jax.random.split(key, len(sizes) - 1)
        self.weights = tuple(glorot(k, o, i, dtype) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True))
        self.biases = tuple(jnp.zeros(o, dtype) for o in sizes[1:])
        self.activation = activation

    def __call__(self, h: Any) -> Any:
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = linear(weight, bias, h)
            h = h if i == last else activate(self.activation, h)
        return h
