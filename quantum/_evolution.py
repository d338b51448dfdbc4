"""Time evolution: Trotter circuits and exact propagation of a state."""

from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex

from sciax.core.errors import InputError
from sciax.core.ops.gates import pauli_apply
from sciax.quantum._circuit import Circuit, GateList
from sciax.quantum._expression import Expression, as_expression
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import check_state


def trotter(hamiltonian: PauliSum, time: Any, steps: int, *, order: int = 2, num_qubits: int | None = None) -> Circuit:
    """exp(-i H t) as `steps` products of exp(-i c_k P_k dt), the identity's phase included; one repeated block.

    Args:
        time: a number, a symbol's name or an expression.
        order: 1, error O(t^2 / steps); 2 (symmetric), O(t^3 / steps^2); 4 (Suzuki), O(t^5 / steps^4).

    Raises:
        InputError: an order that is not offered, no steps, a Hamiltonian that is not Hermitian.
    """
    if order not in (1, 2, 4):
        raise InputError("Trotter formulas are of order 1, 2 or 4", got=order)
    if steps < 1:
        raise InputError("a Trotter formula needs at least one step", got=steps)
    n = hamiltonian.num_qubits if num_qubits is None else num_qubits
    terms, coefficients = hamiltonian.hermitian_terms(n)
    symbolic = isinstance(time, str | Expression)
    t = as_expression(time) if symbolic else time
    block = GateList(n)

    def sweep(fraction: float, backwards: bool) -> None:
        rows = list(zip(terms.rows, coefficients))
        for (x, z, _), c in reversed(rows) if backwards else rows:
            qubits = [q for q in range(n) if (int(x) | int(z)) >> q & 1]
            letters = "".join("IXZY"[(int(x) >> q & 1) | (int(z) >> q & 1) << 1] for q in qubits)
            block.rp(t * (2 * float(c) * fraction / steps), letters, qubits)

    def second(fraction: float) -> None:
        sweep(fraction / 2, False)
        sweep(fraction / 2, True)

    if order == 1:
        sweep(1.0, False)
    elif order == 2:
        second(1.0)
    else:
        s = 1 / (4 - 4 ** (1 / 3))
        for fraction in (s, s, 1 - 4 * s, s, s):
            second(fraction)
    return block.circuit().repeat(steps)


def evolve(
    hamiltonian: PauliSum, time: float, state: Complex[Array, " amplitudes"], *, tolerance: float | None = None
) -> Complex[Array, " amplitudes"]:
    """exp(-i H t) psi by a Chebyshev series; differentiable in the state.

    exp(-i H t) = sum_k (2 - delta_k0) (-i)^k J_k(R t) T_k(H / R) with R = sum |c_k| >= |H|; the series falls faster than
    exponentially beyond R t terms. Source: H. Tal-Ezer, R. Kosloff 1984.

    Args:
        time: a number, known when the program is traced (it sets the length of the series).
        tolerance: on the neglected terms (default: rounding of the dtype).

    Raises:
        InputError: as `statevector`; a time that is not finite or is traced.
    """
    from scipy.special import jv

    if isinstance(time, jax.core.Tracer):
        raise InputError(
            "the time of an exact evolution sets the length of its series", remedy="make it a static argument"
        )
    if not np.isfinite(time):
        raise InputError("the time is not finite", got=time)
    state = jnp.asarray(state)
    n = (state.shape[-1] - 1).bit_length()
    if not jnp.issubdtype(state.dtype, jnp.complexfloating):
        state = state + 0j
    state = check_state(state, n, state.dtype)
    terms, c = hamiltonian.hermitian_terms(n)
    c = jnp.asarray(c, state.real.dtype)
    if isinstance(c, jax.core.Tracer):
        raise InputError("the coefficients of an exact evolution set the length of its series", remedy="use trotter()")
    radius = float(np.abs(np.asarray(c)).sum())
    span = abs(radius * time)
    eps = tolerance or float(np.finfo(state.dtype).eps)
    length = int(span + 10 * span ** (1 / 3) + 20)
    weights = jv(np.arange(length), span) * np.where(np.arange(length) == 0, 1, 2)
    length = max(2, int(np.max(np.flatnonzero(np.abs(weights) > eps / 10), initial=0)) + 1)
    phase = (-1j * np.sign(time or 1.0)) ** np.arange(length)
    series = jnp.asarray(weights[:length] * phase, state.dtype)
    scale = 1 / radius if radius else 0.0
    h = lambda v: scale * pauli_apply(v, c, terms=terms)  # noqa: E731

    def body(carry, weight):
        total, previous, current = carry
        new = 2 * h(current) - previous
        return (total + weight * new, current, new), None

    first = h(state)
    start = (series[0] * state + series[1] * first, state, first)
    return jax.lax.scan(body, start, series[2:])[0][0]
