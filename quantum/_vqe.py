"""Minimising an expectation value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import ConvergenceError, InputError
from sciax.quantum._ansatz import uccsd
from sciax.quantum._circuit import Circuit
from sciax.quantum._molecule import Molecule
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import expectation


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    Attributes:
        energy: the value there.
        params: the parameter vector, in the order of `circuit.names`.
        iterations: of the optimiser; `evaluations` of value and gradient.
        gradient_norm: the largest component of the last gradient.
        converged: whether the gradient is below the tolerance.
        history: energies, one an iteration.
    """

    energy: float
    params: np.ndarray
    iterations: int
    evaluations: int
    gradient_norm: float
    converged: bool
    history: list[float] = field(repr=False)


def minimise(
    circuit: Circuit,
    observable: PauliSum,
    start: Any = None,
    *,
    steps: int = 200,
    tolerance: float = 1e-6,
    callback: Callable[[int, float], None] | None = None,
    throw: bool = True,
    **options: Any,
) -> Minimum:
    """Minimise <H> over the circuit's parameters by BFGS with exact gradients.

    Args:
        start: initial parameters (default zeros).
        steps: most iterations.
        tolerance: on the largest component of the gradient.
        callback: called with (iteration, energy).
        throw: raise when the tolerance is not reached; otherwise see `converged`.
        options: passed to `expectation`.

    Raises:
        InputError: a circuit without parameters; ConvergenceError: as `throw` says.
    """
    from scipy.optimize import minimize

    if not circuit.names:
        raise InputError("the circuit has no parameters to vary")
    value_and_grad = jax.jit(jax.value_and_grad(lambda p: expectation(circuit, observable, p, **options)))
    x0 = np.zeros(len(circuit.names)) if start is None else np.asarray(circuit.parameter_vector(start), np.float64)
    history: list[float] = []
    evaluations = 0

    def fun(p):
        nonlocal evaluations
        evaluations += 1
        value, gradient = value_and_grad(jnp.asarray(p))
        return float(value), np.asarray(gradient, np.float64)

    def report(intermediate_result):
        history.append(float(intermediate_result.fun))
        if callback is not None:
            callback(len(history), history[-1])

    result = minimize(fun, x0, jac=True, method="BFGS", callback=report, options={"maxiter": steps, "gtol": tolerance})
    norm = float(np.abs(result.jac).max())
    converged = bool(norm <= tolerance)
    if throw and not converged:
        raise ConvergenceError(
            "the minimisation did not reach its tolerance",
            history=history,
            got=f"gradient {norm:.3g} after {result.nit} iterations: {result.message}",
            expected=f"{tolerance:g}",
            remedy="raise steps or tolerance, use 64-bit arrays, or pass throw=False",
        )
    return Minimum(float(result.fun), np.asarray(result.x), int(result.nit), evaluations, norm, converged, history)


def solve_uccsd(
    mol: Molecule,
    *,
    encoding: str = "jordan_wigner",
    repetitions: int = 2,
    steps: int = 500,
    tolerance: float = 5e-6,
    callback: Callable[[int, float], None] | None = None,
) -> Minimum:
    """The ground state of a molecule by unitary coupled cluster (`uccsd`), minimised by BFGS.

    From zero amplitudes with one Trotter step, which leaves an error of order 1e-5 Ha (LiH); with more steps from small random
    ones, because equal steps would stay equal. Two steps reach 1e-6 Ha for LiH.

    Raises: as `minimise`.
    """
    circuit = uccsd(mol.num_qubits, mol.num_electrons, encoding=encoding, repetitions=repetitions)
    start = np.zeros(len(circuit.names))
    if repetitions > 1:
        start = 0.05 * np.random.default_rng(0).normal(size=start.size)
    return minimise(circuit, mol.hamiltonian(encoding), start, steps=steps, tolerance=tolerance, callback=callback)
