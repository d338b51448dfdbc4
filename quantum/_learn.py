"""Circuits in learning: an Equinox layer and quantum kernels."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from sciax.core.errors import InputError, ShapeError
from sciax.quantum._circuit import Circuit, Structure
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import expectation, statevector


class QuantumLayer(eqx.Module):
    """x -> (<H_1>, ..., <H_m>) of a circuit whose encoder parameters are x and whose other parameters are trained.

    The circuit is an encoder (`Circuit.as_encoder`) and an ansatz, in any order and as often as wanted. Use jax.vmap for a
    batch: the compiled kernel then takes the whole batch at once.

    Attributes:
        weights: trained parameters, in the order of `circuit.ansatz_names`.
    """

    weights: Float[Array, " weights"]
    structure: Structure = eqx.field(static=True)
    numbers: tuple[float, ...] = eqx.field(static=True)
    observables: tuple[tuple[tuple[int, int, float], ...], ...] = eqx.field(static=True)
    backend: str = eqx.field(static=True)

    def __init__(
        self,
        circuit: Circuit,
        observables: Sequence[PauliSum],
        *,
        key: Array,
        scale: float = 0.1,
        backend: str = "auto",
    ):
        """Weights start normally distributed with standard deviation `scale`.

        Raises:
            InputError: no encoder parameters, no observables, or an observable that is not Hermitian.
        """
        if not circuit.encoder_names:
            raise InputError("a quantum layer needs encoder parameters", remedy="circuit.as_encoder() + ansatz")
        if not observables:
            raise InputError("a quantum layer needs at least one observable")
        kept = []
        for h in observables:
            terms, c = h.hermitian_terms(circuit.num_qubits)
            kept.append(tuple((int(x), int(z), float(v)) for (x, z, _), v in zip(terms.rows, c)))
        self.structure, self.numbers = circuit.structure, tuple(float(v) for v in circuit.values)
        self.observables, self.backend = tuple(kept), backend
        self.weights = scale * jax.random.normal(key, (len(circuit.ansatz_names),))

    @property
    def circuit(self) -> Circuit:
        return Circuit._of(self.structure, np.asarray(self.numbers, np.float64))

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """One sample, its entries in the order of `circuit.encoder_names`.

        Raises:
            ShapeError: not one number for each encoder parameter.
        """
        circuit = self.circuit
        names = circuit.encoder_names
        if x.shape != (len(names),):
            raise ShapeError(
                "the input does not fit the encoder", got=x.shape, expected=f"({len(names)},); jax.vmap for a batch"
            )
        where = {n: k for k, n in enumerate((*names, *circuit.ansatz_names))}
        order = np.array([where[n] for n in circuit.names])
        source = jnp.concatenate([x, self.weights.astype(x.dtype)])
        sums = [
            PauliSum.from_masks([t[0] for t in h], [t[1] for t in h], [t[2] for t in h], num_qubits=circuit.num_qubits)
            for h in self.observables
        ]
        return expectation(circuit, sums, source[order], backend=self.backend)


def kernel_matrix(
    encoder: Circuit, left: Float[Array, "m inputs"], right: Float[Array, "n inputs"] | None = None, **options: Any
):
    """The fidelity kernel |<psi(x) | psi(y)>|^2 between rows of two data sets (default: one with itself); (m, n), real.

    Source: V. Havlicek et al., Nature 567, 209 (2019).

    Args:
        options: passed to `statevector`.

    Raises:
        ShapeError: rows that do not fit the encoder's parameters.
    """
    count = len(encoder.names)
    for data in (left, right):
        if data is not None and (np.ndim(data) != 2 or np.shape(data)[1] != count):
            raise ShapeError("the data do not fit the encoder", got=np.shape(data), expected=f"(rows, {count})")
    states = jax.vmap(lambda p: statevector(encoder, p, **options))
    a = states(jnp.asarray(left))
    b = a if right is None else states(jnp.asarray(right))
    overlap = jnp.matmul(jnp.conj(a), b.T, precision=jax.lax.Precision.HIGHEST)
    return jnp.real(overlap * jnp.conj(overlap))
