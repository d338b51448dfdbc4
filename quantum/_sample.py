"""Sampling: measurement outcomes, with mid-circuit measurement, classical control, reset and noise as trajectories."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from sciax.core.errors import InputError
from sciax.core.ops.gates import apply_matrix, gates_run
from sciax.quantum._circuit import Circuit, Structure
from sciax.quantum._gate import Gate
from sciax.quantum._lower import Conditioned, Dense, Run, lower
from sciax.quantum._memory import require_memory
from sciax.quantum._order import check_order
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import (
    BACKENDS,
    Params,
    angles_of,
    check_options,
    check_strengths,
    complex_dtype,
    numbers_of,
    quadratic_form,
    refuse_gradient,
    statevector,
)


def sample(
    circuit: Circuit,
    params: Params = None,
    *,
    shots: int,
    key: Array,
    readout: tuple[float, float] = (0.0, 0.0),
    dtype: Any = None,
    backend: str = "auto",
) -> Bool[Array, "shots bits"]:
    """Outcomes of `shots` runs: column k is classical bit k, or, without measurements in the circuit, qubit k.

    Circuits that only measure at the end are simulated once; others (measurement in the middle, classical control, reset,
    channels) once a shot, exactly in distribution.

    Args:
        key: a JAX random key.
        readout: probabilities of reading 1 for 0 and 0 for 1.

    Raises: as `statevector`; InputError for a number of shots below 1 or rates that are not probabilities.
    """
    if shots < 1:
        raise InputError("a sample needs at least one shot", got=shots)
    if not all(0 <= p <= 1 for p in readout):
        raise InputError("readout errors are probabilities", got=readout, expected="two numbers in 0..1")
    gates = circuit.gates
    key, flips = jax.random.split(key)
    if _needs_trajectories(gates):
        bits = _trajectories(circuit, params, shots, key, dtype, backend, None)
    else:
        vector = refuse_gradient(_DRAWN, circuit.parameter_vector(params))
        psi = statevector(circuit, vector, dtype=dtype, backend=backend)
        outcomes = _draw(jnp.real(psi * jnp.conj(psi)), shots, key)
        every = (outcomes[:, None] >> jnp.arange(circuit.num_qubits)) & 1
        measured = {b: q for g in gates if g.kind == "measure" for q, b in zip(g.targets, g.bits)}
        if measured:
            columns = [
                every[:, measured[b]] if b in measured else jnp.zeros(shots, every.dtype)
                for b in range(circuit.num_bits)
            ]
            every = jnp.stack(columns, axis=1)
        bits = every.astype(bool)
    if any(readout):
        rate = jnp.where(bits, readout[1], readout[0])
        bits = bits ^ (jax.random.uniform(flips, bits.shape, rate.dtype) < rate)
    return bits


def counts(bits: Bool[Array, "shots bits"], *, order: str = "little") -> dict[str, int]:
    """How often each bit string came, most frequent first.

    Args:
        order: "little" prints bit 0 last, as the least significant digit; "big" prints it first.

    Raises:
        InputError: an unknown order.
    """
    check_order(order)
    columns = np.asarray(bits)
    columns = columns[:, ::-1] if order == "little" else columns
    rows, number = np.unique(columns, axis=0, return_counts=True)
    ranks = np.argsort(-number, kind="stable")
    return {"".join("1" if b else "0" for b in rows[k]): int(number[k]) for k in ranks}


def trajectories(
    circuit: Circuit,
    observable: PauliSum,
    params: Params = None,
    *,
    shots: int,
    key: Array,
    dtype: Any = None,
    backend: str = "auto",
) -> tuple[Array, Array]:
    """<H> as a mean over random pure-state runs, and its standard error: for noise on registers too wide for a density matrix.

    Raises: as `sample` and `expectation`.
    """
    if shots < 2:
        raise InputError("a standard error needs at least two shots", got=shots)
    values = _trajectories(circuit, params, shots, key, dtype, backend, observable)
    return values.mean(), values.std(ddof=1) / np.sqrt(shots)


_DRAWN = "random outcomes have no derivative: their probabilities depend on the parameters"


def _pathwise(gates) -> bool:
    """Whether the mean of the runs' derivatives is the derivative of the mean: all noise is unitaries drawn at constant rates."""
    return all(
        g.is_unitary or g.kind == "barrier" or (g.kind == "channel" and not g.angles and g.extra.mixes_unitaries)
        for g in gates
    )


def _needs_trajectories(gates) -> bool:
    done: set[int] = set()
    written: set[int] = set()
    for g in gates:
        if g.kind == "barrier":
            continue
        if g.kind in ("reset", "channel") or g.condition is not None or done & set(g.qubits):
            return True
        if g.kind == "measure":
            if written & set(g.bits):
                return True
            done |= set(g.targets)
            written |= set(g.bits)
    return False


def _draw(p, shots: int, key):
    """Indices with probabilities p, by inversion in float64 where it is on."""
    cumulative = jnp.cumsum(p)
    u = jax.random.uniform(key, (shots,), p.dtype) * cumulative[-1]
    return jnp.minimum(jnp.searchsorted(cumulative, u, side="right"), len(p) - 1)


def _trajectories(circuit: Circuit, params, shots: int, key, dtype, backend: str, observable):
    vector = circuit.parameter_vector(params)
    kind = complex_dtype(dtype, None, vector)
    check_options(backend, "adjoint")
    check_strengths(circuit, vector)
    values = numbers_of(circuit, kind)
    if observable is None or not _pathwise(circuit.gates):
        # Outcomes are drawn with probabilities that depend on the parameters, which no derivative of the runs can see.
        vector, values = refuse_gradient(_DRAWN, vector), refuse_gradient(_DRAWN, values)
    n = circuit.num_qubits
    # shots run together as far as about 256 MiB of states allows
    together = int(max(1, min(shots, 2**28 // (kind.itemsize << n))))
    require_memory(n, kind, "a trajectory", copies=4)
    terms, c = (None, None) if observable is None else observable.hermitian_terms(n)
    keys = jax.random.split(key, shots)
    return _run(circuit.structure, kind, BACKENDS[backend], together, terms, vector, values, keys, c)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _run(structure: Structure, dtype, implementation: str, together: int, terms, vector, values, keys, coefficients):
    lowered = lower(structure, keep=True)
    angles = angles_of(lowered, vector, values, dtype)
    n = structure.num_qubits
    index = jnp.arange(1 << n, dtype=jnp.uint32)
    real = np.zeros(0, dtype).real.dtype

    def segment_on(psi, segment: Run | Dense, active):
        if isinstance(segment, Dense):
            out = apply_matrix(psi, segment.matrix(angles, dtype), targets=segment.targets)
            return out if active is None else jnp.where(active, out, psi)
        c = segment.coefficients(angles, dtype)
        if active is not None:  # a gate that is switched off is the identity
            c = jnp.where(active, c, jnp.array([1, 1, 0, 0], dtype))
        return gates_run(psi, c, program=segment.program, implementation=implementation)

    def collapse(psi, q, key):
        one = (index >> q & 1).astype(bool)
        weight = jnp.real(psi * jnp.conj(psi))
        p1 = jnp.sum(jnp.where(one, weight, 0)) / jnp.sum(weight)
        outcome = jax.random.uniform(key, (), real) < p1
        psi = jnp.where(one == outcome, psi, 0)
        return psi / jnp.linalg.norm(psi), outcome

    def channel(psi, gate, key):
        kraus = gate.extra.kraus_at(angles, dtype)
        branches = jnp.stack([apply_matrix(psi, jnp.asarray(k, dtype), targets=gate.targets) for k in kraus])
        weight = jnp.sum(jnp.real(branches * jnp.conj(branches)), axis=-1)
        chosen = branches[_draw(weight, 1, key)[0]]
        return chosen / jnp.linalg.norm(chosen)

    def one_shot(key):
        psi = jnp.zeros(1 << n, dtype).at[0].set(1)
        bits = jnp.zeros(structure.num_bits, bool)
        for segment in lowered.segments:
            key, own = jax.random.split(key)
            active, part = None, segment
            if isinstance(segment, Conditioned):
                where, value = segment.condition
                wanted = np.array([value >> k & 1 for k in range(len(where))], bool)
                active, part = jnp.all(bits[np.array(where)] == wanted), segment.segment
            if isinstance(part, Run | Dense):
                psi = segment_on(psi, part, active)
                continue
            assert isinstance(part, Gate)
            if part.condition is not None:
                where, value = part.condition
                wanted = np.array([value >> k & 1 for k in range(len(where))], bool)
                active = jnp.all(bits[np.array(where)] == wanted)
            before = psi
            if part.kind == "measure":
                psi, outcome = collapse(psi, part.targets[0], own)
                outcome = outcome if active is None else jnp.where(active, outcome, bits[part.bits[0]])
                bits = bits.at[part.bits[0]].set(outcome)
            elif part.kind == "reset":
                q = part.targets[0]
                psi, outcome = collapse(psi, q, own)
                psi = jnp.where(outcome, psi[index ^ np.uint32(1 << q)], psi)
            else:
                psi = channel(psi, part, own)
            psi = psi if active is None else jnp.where(active, psi, before)
        if terms is not None:
            return quadratic_form(terms, psi, jnp.asarray(coefficients, real))
        if structure.num_bits:
            return bits
        drawn = _draw(jnp.real(psi * jnp.conj(psi)), 1, key)[0]
        return ((drawn >> jnp.arange(n)) & 1).astype(bool)

    return jax.lax.map(one_shot, keys, batch_size=together)
