"""SIREN (Sitzmann et al., NeurIPS 2020): sine layers whose first frequency is set apart."""

import itertools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from sciax.science.pinn._jets import activate, linear


class Siren(eqx.Module):
    """h <- sin(w0 (W h + b)); W uniform in +-1/in for the first layer, +-sqrt(6/in)/w0 for the others.

    The factor w0 is kept inside the weights, so that any optimiser sees the plain network.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]

    def __init__(self, inputs, outputs, width, depth, *, key, activation="sin", frequency=4.0, dtype=jnp.float64):
        sizes = [inputs, *[width] * depth, outputs]
        keys = jax.random.split(key, 2 * (len(sizes) - 1))
        weights, biases = [], []
        for i, (a, b) in enumerate(itertools.pairwise(sizes)):
            bound = frequency / a if i == 0 else (6 / a) ** 0.5
            if i == depth:
                bound = (6 / a) ** 0.5 / frequency
            weights.append(jax.random.uniform(keys[2 * i], (b, a), dtype, -bound, bound))
            biases.append(
                jax.random.uniform(keys[2 * i + 1], (b,), dtype, -bound, bound) if i < depth else jnp.zeros(b, dtype)
            )
        self.weights, self.biases = tuple(weights), tuple(biases)

    def __call__(self, h: Any) -> Any:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            h = activate("sin", linear(weight, bias, h))
        return linear(self.weights[-1], self.biases[-1], h)
