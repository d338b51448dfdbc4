"""Simulation as pure functions: state vectors, expectation values, probabilities, unitaries."""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float

from sciax.core.errors import InputError, ShapeError, UnsupportedError
from sciax.core.ops.gates import (
    PauliTerms,
    apply_matrix,
    gates_prepare,
    gates_run,
    pauli_apply,
    pauli_overlaps,
    run_plain,
)
from sciax.core.precision import default_float, require_dtype
from sciax.quantum._circuit import Circuit, Structure
from sciax.quantum._lower import Dense, Lowered, Run, lower
from sciax.quantum._memory import require_memory
from sciax.quantum._noise_families import PlacedFamily
from sciax.quantum._pauli import PauliSum

BACKENDS = {"auto": "auto", "cpu": "native", "xla": "xla", "density": "auto"}
GRADIENTS = ("adjoint", "autodiff")
Params = Float[Array, " parameters"] | Mapping[str, Any] | Sequence[float] | np.ndarray | None


def statevector(
    circuit: Circuit,
    params: Params = None,
    *,
    initial: Complex[Array, " amplitudes"] | None = None,
    dtype: Any = None,
    backend: str = "auto",
    gradient: str = "adjoint",
) -> Complex[Array, " amplitudes"]:
    """The final amplitudes, qubit 0 the least significant bit of the index; composes with jit, grad, jvp and vmap.

    Args:
        params: the vector of `circuit.names`, or a mapping from them.
        initial: initial amplitudes, normalised (default |0...0>).
        dtype: complex64 or complex128; by default that of `initial`, else the one that fits `params`, else JAX's default float.
        backend: "cpu" (compiled kernel), "xla" (any device), or "auto". `expectation` and `probabilities` also offer "density",
            the exact mixed state, which "auto" takes for circuits with channels or resets.
        gradient: "adjoint" undoes the gates in the reverse pass, with the memory of a few states; "autodiff" is JAX's own
            differentiation of the xla back end.

    Raises:
        InputError: unbound or NaN parameters, an unknown back end, more amplitudes than memory, an initial state that is not
            normalised or does not fit; UnsupportedError: measurement in the middle, reset, channels, classical control.
    """
    if backend == "density":
        raise UnsupportedError(
            "a state vector is not what the density back end computes", remedy="use density_matrix()"
        )
    vector = circuit.parameter_vector(params)
    kind = complex_dtype(dtype, initial, vector)
    check_options(backend, gradient)
    require_memory(circuit.num_qubits, kind, "a state vector")
    if initial is not None:
        initial = check_state(initial, circuit.num_qubits, kind)
    return _state(circuit.structure, kind, BACKENDS[backend], gradient, vector, numbers_of(circuit, kind), initial)


def expectation(
    circuit: Circuit,
    observable: PauliSum | Sequence[PauliSum],
    params: Params = None,
    *,
    initial: Complex[Array, " amplitudes"] | None = None,
    dtype: Any = None,
    backend: str = "auto",
    gradient: str = "adjoint",
) -> Float[Array, "*observables"]:
    """<psi| H |psi> of the final state, a scalar, or one for each of a sequence of observables.

    Differentiable, to any order, in the parameters, the initial state and the observables' coefficients; the first reverse
    derivative costs a few forward passes whatever the number of parameters.

    Args: as `statevector`.

    Raises:
        InputError: as `statevector`, and an observable that is not Hermitian or acts outside the circuit's register.
    """
    many = not isinstance(observable, PauliSum)
    observables = tuple(observable) if many else (observable,)
    if use_density(circuit, backend):
        from sciax.quantum._density import density_matrix, trace_terms

        prepared = [o.hermitian_terms(circuit.num_qubits) for o in observables]
        rho = density_matrix(circuit, params, initial=initial, dtype=dtype)
        values = jnp.stack([trace_terms(rho, t, jnp.asarray(c, rho.real.dtype)) for t, c in prepared])
        return values if many else values[0]
    vector = circuit.parameter_vector(params)
    kind = complex_dtype(dtype, initial, vector)
    check_options(backend, gradient)
    require_memory(circuit.num_qubits, kind, "an expectation value", copies=3)
    if initial is not None:
        initial = check_state(initial, circuit.num_qubits, kind)
    prepared = [o.hermitian_terms(circuit.num_qubits) for o in observables]
    terms = tuple(t for t, _ in prepared)
    coefficients = [c for _, c in prepared]
    values = _expect(
        circuit.structure,
        kind,
        BACKENDS[backend],
        gradient,
        terms,
        vector,
        numbers_of(circuit, kind),
        initial,
        coefficients,
    )
    return values if many else values[0]


def probabilities(
    circuit: Circuit, params: Params = None, *, qubits: Sequence[int] | None = None, **options: Any
) -> Float[Array, " outcomes"]:
    """Probabilities of the basis states of `qubits` (default all; qubits[0] is the least significant bit).

    Args: as `statevector`.
    """
    if use_density(circuit, options.get("backend", "auto")):
        from sciax.quantum._density import density_matrix

        options.pop("gradient", None)
        full = jnp.real(jnp.diagonal(density_matrix(circuit, params, **options)))
    else:
        psi = statevector(circuit, params, **options)
        full = jnp.real(psi * jnp.conj(psi))
    return marginal(full, circuit.num_qubits, qubits)


def marginal(full: Float[Array, " amplitudes"], n: int, qubits: Sequence[int] | None) -> Float[Array, " outcomes"]:
    """Probabilities of some qubits from those of all.

    Raises:
        InputError: a qubit out of range or listed twice.
    """
    if qubits is None:
        return full
    qubits = [int(q) for q in qubits]
    if len(set(qubits)) != len(qubits) or any(not 0 <= q < n for q in qubits):
        raise InputError("qubits must be distinct and in the register", got=qubits, expected=f"0..{n - 1}")
    tensor = full.reshape((2,) * n)
    rest = tuple(n - 1 - q for q in range(n) if q not in qubits)
    order = sorted(qubits, reverse=True)
    return jnp.transpose(tensor.sum(rest), [order.index(q) for q in reversed(qubits)]).reshape(-1)


def unitary(
    circuit: Circuit, params: Params = None, *, dtype: Any = None, backend: str = "auto"
) -> Complex[Array, "rows rows"]:
    """The circuit's matrix, global phase included.

    Args: as `statevector`.

    Raises: as `statevector`; measurements are refused, too.
    """
    if any(g.kind == "measure" for g in circuit.structure.flat(limit=1)):
        raise UnsupportedError("a circuit with measurements has no unitary", remedy="leave the measurements out")
    vector = circuit.parameter_vector(params)
    kind = complex_dtype(dtype, None, vector)
    check_options(backend, "adjoint")
    require_memory(2 * circuit.num_qubits, kind, "a unitary", copies=2)
    return _unitary(circuit.structure, kind, BACKENDS[backend], vector, numbers_of(circuit, kind))


# -- compiled parts ---------------------------------------------------------------------------------------------------------


def evolve(lowered: Lowered, psi, angles, dtype, implementation: str, gradient: str):
    """Run the segments on psi; None is |0...0>, whose array is not made if the first segment is a run."""
    for segment in lowered.segments:
        if isinstance(segment, Run):
            c = segment.coefficients(angles, dtype)
            if gradient == "autodiff":
                start = _zero(lowered.num_qubits, dtype) if psi is None else psi
                psi = run_plain(start, c, program=segment.program)
            elif psi is None:
                psi = gates_prepare(c, program=segment.program, implementation=implementation)
            else:
                psi = gates_run(psi, c, program=segment.program, implementation=implementation)
        else:
            assert isinstance(segment, Dense)
            start = _zero(lowered.num_qubits, dtype) if psi is None else psi
            psi = apply_matrix(start, segment.matrix(angles, dtype), targets=segment.targets)
    return psi


def _zero(n, dtype):
    return jnp.zeros(1 << n, dtype).at[0].set(1)


def angles_of(lowered: Lowered, vector, values, dtype):
    real = np.zeros(0, dtype).real.dtype
    return lowered.angles(jnp.concatenate([jnp.asarray(vector, real), jnp.asarray(values, real)]))


def numbers_of(circuit: Circuit, dtype) -> Any:
    """The circuit's numbers for a simulation in `dtype`: large angles are reduced before float32 can take their digits."""
    values = circuit.values
    narrow = np.dtype(dtype) == np.complex64 and isinstance(values, np.ndarray)
    if not narrow or not values.size or np.abs(values).max() <= 4 * np.pi:
        return values
    return np.where(_periodic(circuit.structure), np.remainder(values, 4 * np.pi), values)


@lru_cache(maxsize=128)
def _periodic(structure: Structure) -> np.ndarray:
    """Whether each number enters, with whole coefficients, only angles of period 2 pi or 4 pi."""
    safe = np.ones(structure.num_values, bool)
    for gate in structure.flat(limit=1):
        for angle in gate.angles:
            for key, c in angle.terms:
                if isinstance(key, int) and (gate.kind in ("rn", "swapalpha", "custom", "channel") or c != round(c)):
                    safe[key] = False
    return safe


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _state(structure: Structure, dtype, implementation: str, gradient: str, vector, values, initial):
    lowered = lower(structure)
    return evolve(lowered, initial, angles_of(lowered, vector, values, dtype), dtype, implementation, gradient)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _expect(structure, dtype, implementation, gradient, terms, vector, values, initial, coefficients):
    lowered = lower(structure)
    psi = evolve(lowered, initial, angles_of(lowered, vector, values, dtype), dtype, implementation, gradient)
    real = jnp.real(psi).dtype
    return jnp.stack([quadratic_form(t, psi, jnp.asarray(c, real)) for t, c in zip(terms, coefficients)])


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def quadratic_form(terms: PauliTerms, psi, coefficients):
    """<psi| H |psi>, whose reverse derivative reuses H psi."""
    return jnp.real(jnp.vdot(psi, pauli_apply(psi, coefficients, terms=terms)))


def _quadratic_form_jvp(terms, primals, tangents):
    psi, c = primals
    dpsi, dc = tangents
    h_psi = pauli_apply(psi, c, terms=terms)
    value = jnp.real(jnp.vdot(psi, h_psi))
    change = jnp.zeros_like(value)
    # Symbolic zeros are told apart, so that the overlaps are computed only when the coefficients are differentiated.
    if not isinstance(dpsi, jax.custom_derivatives.SymbolicZero):
        change = change + 2 * jnp.real(jnp.vdot(h_psi, dpsi))
    if not isinstance(dc, jax.custom_derivatives.SymbolicZero):
        change = change + jnp.dot(pauli_overlaps(jnp.conj(psi), psi, terms=terms), dc)
    return value, change


quadratic_form.defjvp(_quadratic_form_jvp, symbolic_zeros=True)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _unitary(structure: Structure, dtype, implementation: str, vector, values):
    lowered = lower(structure)
    angles = angles_of(lowered, vector, values, dtype)
    columns = jnp.eye(1 << structure.num_qubits, dtype=dtype)
    return jax.vmap(lambda psi: evolve(lowered, psi, angles, dtype, implementation, "adjoint"))(columns).T


def use_density(circuit: Circuit, backend: str) -> bool:
    """Whether a value is asked of, or needs, the density matrix: "auto" takes it for channels and resets."""
    if backend == "density":
        return True
    return backend == "auto" and _mixes(circuit.structure)


@lru_cache(maxsize=128)
def _mixes(structure: Structure) -> bool:
    return any(g.kind in ("channel", "reset") and g.condition is None for g in structure.flat(limit=1))


# -- checks -----------------------------------------------------------------------------------------------------------------


def complex_dtype(dtype, initial, vector) -> np.dtype:
    if dtype is not None:
        kind = require_dtype(dtype, "the simulation")
        if kind not in (np.dtype(np.complex64), np.dtype(np.complex128)):
            raise InputError("amplitudes are complex64 or complex128", got=kind)
        return kind
    if initial is not None and jnp.issubdtype(initial.dtype, jnp.complexfloating):
        source = np.dtype(initial.dtype)
    elif isinstance(vector, jax.Array) and jnp.issubdtype(vector.dtype, jnp.floating):
        source = np.dtype(vector.dtype)
    else:
        source = default_float()
    wide = source in (np.dtype(np.float64), np.dtype(np.complex128)) and default_float() == np.float64
    return np.dtype(np.complex128 if wide else np.complex64)


def check_options(backend: str, gradient: str) -> None:
    if backend not in BACKENDS:
        raise InputError("unknown back end", got=backend, expected=", ".join(BACKENDS))
    if backend == "cpu":
        from sciax.core.ops.gates import _native

        _native.require()
    if gradient not in GRADIENTS:
        raise InputError("unknown gradient rule", got=gradient, expected=", ".join(GRADIENTS))


def check_strengths(circuit: Circuit, vector) -> None:
    """Raises:
    InputError: noise strengths that make no channel, named (outside traces; inside, they give NaN).
    """
    gates = [g for g in circuit.structure.flat(limit=1) if g.kind == "channel" and g.angles]
    if not gates or isinstance(vector, jax.core.Tracer) or isinstance(circuit.values, jax.core.Tracer):
        return
    source = {**dict(zip(circuit.names, np.asarray(vector))), **dict(enumerate(np.asarray(circuit.values)))}
    for gate in gates:
        strengths = np.array([a.constant + sum(c * source[k] for k, c in a.terms) for a in gate.angles])
        channel = PlacedFamily(gate.extra, tuple(range(len(strengths))))
        if not np.all(np.isfinite(channel.kraus_at(jnp.asarray(strengths), np.complex64))):
            raise InputError(
                f"the strengths of {gate.extra.name!r} on qubit {gate.targets[0]} make no channel",
                got=", ".join(f"{v:g}" for v in strengths),
                expected="probabilities in 0..1, times with t2 <= 2 t1",
            )


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def refuse_gradient(why: str, x):
    """The identity, for arguments whose derivative would be wrong: differentiating raises UnsupportedError."""
    return x


@refuse_gradient.defjvp
def _refuse_gradient_jvp(why, primals, tangents):
    raise UnsupportedError(why, remedy="differentiate expectation() or density_matrix(), which are exact")


def check_state(initial, n: int, dtype):
    """An initial state as an array of `dtype`.

    Raises:
        ShapeError, InputError: a wrong length, or (outside traces) a norm that is not 1.
    """
    initial = jnp.asarray(initial, dtype)
    if initial.shape != (1 << n,):
        raise ShapeError("the initial state does not fit the register", got=initial.shape, expected=f"({1 << n},)")
    if not isinstance(initial, jax.core.Tracer):
        norm = float(jnp.linalg.norm(initial))
        if not abs(norm - 1) < 1e-3:
            raise InputError("the initial state is not normalised", got=f"norm {norm:.6g}", expected="1")
    return initial
