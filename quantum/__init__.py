"""Differentiable quantum circuits: gates, noise, OpenQASM, chemistry, variational algorithms.

Qubit 0 is the least significant bit of a basis state's index, everywhere.
"""

from sciax.quantum._adapt import Grown as Grown
from sciax.quantum._adapt import adapt as adapt
from sciax.quantum._ansatz import excitations as excitations
from sciax.quantum._ansatz import generalised_excitations as generalised_excitations
from sciax.quantum._ansatz import hardware_efficient as hardware_efficient
from sciax.quantum._ansatz import hartree_fock as hartree_fock
from sciax.quantum._ansatz import maxcut as maxcut
from sciax.quantum._ansatz import qaoa as qaoa
from sciax.quantum._ansatz import tfim as tfim
from sciax.quantum._ansatz import tfim_ground_energy as tfim_ground_energy
from sciax.quantum._ansatz import uccsd as uccsd
from sciax.quantum._circuit import Circuit as Circuit
from sciax.quantum._density import density_matrix as density_matrix
from sciax.quantum._draw import draw as draw
from sciax.quantum._evolution import evolve as evolve
from sciax.quantum._evolution import trotter as trotter
from sciax.quantum._expression import Expression as Expression
from sciax.quantum._expression import symbol as symbol
from sciax.quantum._fermion import FermionSum as FermionSum
from sciax.quantum._gate import Gate as Gate
from sciax.quantum._gradient import gradient as gradient
from sciax.quantum._learn import QuantumLayer as QuantumLayer
from sciax.quantum._learn import kernel_matrix as kernel_matrix
from sciax.quantum._molecule import Molecule as Molecule
from sciax.quantum._molecule import from_pyscf as from_pyscf
from sciax.quantum._molecule import molecule as molecule
from sciax.quantum._molecule import read_molecule as read_molecule
from sciax.quantum._molecule import write_molecule as write_molecule
from sciax.quantum._noise import Channel as Channel
from sciax.quantum._noise import amplitude_damping as amplitude_damping
from sciax.quantum._noise import bit_flip as bit_flip
from sciax.quantum._noise import bit_phase_flip as bit_phase_flip
from sciax.quantum._noise import depolarising as depolarising
from sciax.quantum._noise import kraus as kraus
from sciax.quantum._noise import pauli_channel as pauli_channel
from sciax.quantum._noise import phase_damping as phase_damping
from sciax.quantum._noise import phase_flip as phase_flip
from sciax.quantum._noise import thermal_relaxation as thermal_relaxation
from sciax.quantum._order import reorder as reorder
from sciax.quantum._pauli import PauliSum as PauliSum
from sciax.quantum._pauli import pauli as pauli
from sciax.quantum._sample import counts as counts
from sciax.quantum._sample import sample as sample
from sciax.quantum._sample import trajectories as trajectories
from sciax.quantum._simulate import expectation as expectation
from sciax.quantum._simulate import probabilities as probabilities
from sciax.quantum._simulate import statevector as statevector
from sciax.quantum._simulate import unitary as unitary
from sciax.quantum._vqe import Minimum as Minimum
from sciax.quantum._vqe import minimise as minimise


def plot_convergence(history, hf: float, exact: float, title: str):
    """Energy and error against iteration, as a matplotlib Figure."""
    from sciax.quantum._plot import convergence  # matplotlib is loaded when the first picture is made

    return convergence(history, hf, exact, title)
