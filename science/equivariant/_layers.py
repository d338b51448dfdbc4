"""Layers on irreps arrays: linear maps, gates, norms, and a plain perceptron for invariant features."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError
from sciax.core.ops.so3 import Irreps
from sciax.science.equivariant._array import IrrepsArray
from sciax.science.equivariant._random import normal


class Linear(eqx.Module):
    """The general equivariant linear map: channels of equal irreps mix. y_k = Σ W x / √(channels in), variance preserving.

    Raises:
        InputError: an output irrep that the input does not hold (it could only be zero).
    """

    source: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)
    weights: tuple[tuple[Array, ...], ...]

    def __init__(self, source: Irreps | str, target: Irreps | str, *, key: Array, dtype=jnp.float32):
        self.source, self.target = Irreps(source), Irreps(target)
        keys = iter(jax.random.split(key, len(self.source) * len(self.target) + 1))
        rows = []
        for mul, ir in self.target:
            if not self.source.count(ir):
                raise InputError(
                    f"{ir} cannot come out of a linear map", got=str(self.source), expected=f"a source with {ir}"
                )
            rows.append(tuple(normal(next(keys), (m, mul), dtype) for m, i in self.source if i == ir))
        self.weights = tuple(rows)

    def __call__(self, x: IrrepsArray) -> IrrepsArray:
        out = []
        for (_, ir), row in zip(self.target, self.weights):
            blocks = [c for (_, i), c in zip(x.irreps, x.chunks) if i == ir]
            scale = np.asarray(1 / np.sqrt(sum(w.shape[0] for w in row)), row[0].dtype)
            out.append(sum(c @ (w * scale) for c, w in zip(blocks, row)))
        return IrrepsArray(self.target, out)


class Gate(eqx.Module):
    """Scalars through an activation; each channel of the rest times a sigmoid of a gate scalar.

    The input is `irreps_in`: the target, led by one more even scalar for each gated channel.
    """

    target: Irreps = eqx.field(static=True)
    activation: Callable = eqx.field(static=True, default=jax.nn.silu)

    @property
    def gates(self) -> int:
        return sum(mul for mul, ir in self.target if ir.l > 0 or ir.p < 0)

    @property
    def irreps_in(self) -> Irreps:
        return Irreps([(self.gates, "0e"), *self.target]) if self.gates else self.target

    def __call__(self, x: IrrepsArray) -> IrrepsArray:
        if x.irreps != self.irreps_in:
            raise InputError("the input of a gate does not fit", got=str(x.irreps), expected=str(self.irreps_in))
        chunks, out, at = list(x.chunks), [], 0
        gates = jax.nn.sigmoid(chunks.pop(0)) if self.gates else None
        for (mul, ir), c in zip(self.target, chunks):
            if ir.l == 0 and ir.p > 0:
                out.append(self.activation(c))
            else:
                assert gates is not None
                out.append(c * gates[..., at : at + mul])
                at += mul
        return IrrepsArray(self.target, out)


class NormActivation(eqx.Module):
    """x · f(|x|)/|x| for each channel, smooth at 0 through √(x² + ε²)."""

    activation: Callable = eqx.field(static=True, default=jax.nn.silu)
    epsilon: float = eqx.field(static=True, default=1e-4)

    def __call__(self, x: IrrepsArray) -> IrrepsArray:
        out = []
        for c in x.chunks:
            n = jnp.sqrt(jnp.sum(c * c, 0, keepdims=True) + self.epsilon**2)
            out.append(c * (self.activation(n) / n))
        return IrrepsArray(x.irreps, out)


def component_rms(x: IrrepsArray, epsilon: float = 1e-5) -> IrrepsArray:
    """Each block divided by the root mean square of its components over all channels: an equivariant layer norm."""
    out = [c / jnp.sqrt(jnp.mean(c * c, (0, -1), keepdims=True) + epsilon) for c in x.chunks]
    return IrrepsArray(x.irreps, out)


class Mlp(eqx.Module):
    """Perceptron of invariant features, silu between layers, weights of variance 1/inputs, no bias unless asked for."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...] | None

    def __init__(self, sizes: tuple[int, ...], *, key: Array, bias: bool = False, dtype=jnp.float32):
        keys = jax.random.split(key, len(sizes))
        self.weights = tuple(normal(k, (a, b), dtype) for k, a, b in zip(keys, sizes[:-1], sizes[1:]))
        self.biases = tuple(jnp.zeros(b, dtype) for b in sizes[1:]) if bias else None

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        for k, w in enumerate(self.weights):
            x = x @ (w * np.asarray(w.shape[0] ** -0.5, w.dtype))
            if self.biases is not None:
                x = x + self.biases[k]
            if k + 1 < len(self.weights):
                x = jax.nn.silu(x) * np.asarray(1.6766, w.dtype)  # keeps the second moment of a unit Gaussian
        return x
