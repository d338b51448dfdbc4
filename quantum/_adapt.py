"""Ansatz circuits that grow where the energy falls fastest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import ConvergenceError, InputError
from sciax.quantum._ansatz import Excitation, generalised_excitations, hartree_fock
from sciax.quantum._circuit import Circuit, GateList
from sciax.quantum._molecule import Molecule
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import expectation, statevector
from sciax.quantum._vqe import Minimum, minimise


@dataclass(frozen=True)
class Grown:
    """What `adapt` found.

    Attributes:
        circuit: the reference state and the chosen excitations, parameters a0, a1, ... in order of choice.
        minimum: energy, parameters and history of all rounds together.
        chosen: the excitation of each parameter.
        pool_gradient: the largest |dE/da| that any excitation of the pool still offers.
        rounds: how often the circuit grew.
        converged: whether `pool_gradient` is below the threshold.
    """

    circuit: Circuit
    minimum: Minimum
    chosen: tuple[Excitation, ...]
    pool_gradient: float
    rounds: int
    converged: bool


def adapt(
    reference: Circuit,
    observable: PauliSum,
    pool: Sequence[Excitation],
    *,
    threshold: float = 3e-5,
    batch: int = 8,
    rounds: int = 40,
    tolerance: float = 1e-6,
    steps: int = 400,
    callback: Callable[[int, float], None] | None = None,
    throw: bool = True,
) -> Grown:
    """Minimise <H> with a circuit that grows: prod_k exp(a_k (T_k - T_k^dagger)) |reference>, T_k from a pool of excitations.

    Each round appends the excitations with the largest energy gradient |<[H, T_k - T_k^dagger]>| at the current state and
    minimises all parameters again from where they are. With all generalised singles and doubles as pool the exact ground
    state of the reference's particle number and spin can be reached (F. Evangelista, G. Chan, G. Scuseria, J. Chem. Phys. 151,
    244112 (2019)), which one Trotter step of UCCSD cannot. Source: H. Grimsley et al., Nature Communications 10, 3007 (2019);
    there one excitation a round.

    Args:
        pool: (created, annihilated) spin orbitals under Jordan-Wigner, as `excitations` and `generalised_excitations` give them.
        threshold: stop when no excitation offers a larger gradient, in the units of H. The default leaves less than 2e-7 Ha for
            H2, H4, LiH and BeH2; ten times as much leaves 1e-5 Ha for BeH2.
        batch: most excitations added a round, of those with at least half of the largest gradient.
        rounds: most rounds.
        tolerance, steps: of each minimisation, as `minimise`.
        callback: called with (iteration, energy).
        throw: raise when `rounds` pass without reaching `threshold`; otherwise see `converged`.

    Raises:
        InputError: an empty pool, a reference with free parameters or measurements; ConvergenceError: as `throw` says.
    """
    if not pool:
        raise InputError("the pool of excitations is empty")
    if reference.names:
        raise InputError("the reference state has free parameters", got=", ".join(reference.names[:4]), remedy="bind()")
    n = reference.num_qubits
    candidates = GateList(n)
    for k, (up, down) in enumerate(pool):
        candidates.excitation(f"p{k}", up, down)
    offered = candidates.circuit()
    zeros = jnp.zeros(len(pool))
    # At zero angles every candidate sees the same state, so one reverse pass gives the gradients of the whole pool.
    slopes = jax.jit(jax.grad(lambda p, psi: expectation(offered, observable, p, initial=psi)))
    circuit, chosen, params = reference, [], np.zeros(0)
    history: list[float] = []
    iterations = evaluations = 0
    energy, norm, largest, grown = float(expectation(reference, observable)), 0.0, np.inf, 0

    def report(_: int, value: float) -> None:
        history.append(value)
        if callback is not None:
            callback(len(history), value)

    for grown in range(rounds + 1):
        g = np.abs(np.asarray(slopes(zeros, statevector(circuit, params if chosen else None))))
        largest = float(g.max())
        if largest <= threshold or grown == rounds:
            break
        best = [k for k in np.argsort(-g, kind="stable")[:batch] if g[k] >= largest / 2]
        for k in best:
            circuit = circuit.excitation(f"a{len(chosen)}", *pool[k])
            chosen.append(pool[k])
        start = np.concatenate([params, np.zeros(len(best))])
        found = minimise(circuit, observable, start, steps=steps, tolerance=tolerance, callback=report, throw=False)
        params, energy, norm = found.params, found.energy, found.gradient_norm
        iterations += found.iterations
        evaluations += found.evaluations
    converged = largest <= threshold
    if throw and not converged:
        raise ConvergenceError(
            "the ansatz stopped growing before the pool was exhausted",
            history=history,
            got=f"a gradient of {largest:.3g} is still offered after {grown} rounds",
            expected=f"{threshold:g}",
            remedy="raise rounds, batch or threshold, use 64-bit arrays, or pass throw=False",
        )
    minimum = Minimum(energy, params, iterations, evaluations, norm, bool(norm <= tolerance), history)
    return Grown(circuit, minimum, tuple(chosen), largest, grown, converged)


def solve_adapt(mol: Molecule, **options: Any) -> Grown:
    """The ground state of a molecule by `adapt` with all generalised singles and doubles, from Hartree-Fock.

    Args:
        options: passed to `adapt`.

    Raises: as `adapt`.
    """
    reference = hartree_fock(mol.num_qubits, mol.num_electrons)
    return adapt(reference, mol.hamiltonian(), generalised_excitations(mol.num_qubits), **options)
