"""Hamiltonians and variational energies against closed forms and published or independently computed values."""

import jax
import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, InputError
from sciax.quantum import (
    Circuit,
    FermionSum,
    Molecule,
    PauliSum,
    adapt,
    expectation,
    generalised_excitations,
    hardware_efficient,
    hartree_fock,
    maxcut,
    minimise,
    molecule,
    pauli,
    qaoa,
    read_molecule,
    tfim,
    tfim_ground_energy,
    uccsd,
    write_molecule,
)
from sciax.quantum._adapt import solve_adapt
from sciax.quantum._fermion import ENCODINGS
from sciax.quantum._vqe import solve_uccsd

# PySCF 2.14 RHF and FCI, STO-3G
ENERGIES = {
    "H2": (-1.1166843871, -1.1372701747, 15),
    "H4": (-2.0985459370, -2.1663874486, 185),
    "LiH": (-7.8620269594, -7.8824034103, 631),
}


@pytest.mark.parametrize("name", ENERGIES)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encoded_molecules(name, encoding):
    hf, fci, terms = ENERGIES[name]
    mol = molecule(name)
    h = mol.hamiltonian(encoding)
    assert len(h) == terms and abs(h.ground_state()[0] - fci) < 1e-9
    energy = expectation(hartree_fock(mol.num_qubits, mol.num_electrons, encoding), h)
    assert abs(energy - hf) < 1e-9


def test_groups_of_x_masks():
    assert molecule("LiH").hamiltonian().num_groups == 84
    assert molecule("H2").hamiltonian().num_groups == 2


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_ladder_operators_anticommute(encoding):
    n = 5
    a = [FermionSum({f"{p}": 1.0}).encode(encoding, n).matrix(n) for p in range(n)]
    for p in range(n):
        for q in range(n):
            np.testing.assert_allclose(a[p] @ a[q] + a[q] @ a[p], 0, atol=1e-14)
            other = a[q].conj().T
            np.testing.assert_allclose(a[p] @ other + other @ a[p], (p == q) * np.eye(1 << n), atol=1e-14)


@pytest.mark.parametrize("n", [4, 8, 10])
def test_tfim_closed_form(n):
    exact = {4: -4.7587704831, 8: -9.8379514475, 10: -12.3814899997}[n]
    assert abs(tfim_ground_energy(n) - exact) < 1e-10
    assert abs(tfim(n).ground_state()[0] - exact) < 1e-9


@pytest.mark.parametrize(
    "n, layers, energy, gradient",
    [
        (12, 6, -0.0380258, (0.29970452, -0.08213139, -0.07340165)),  # Lightning and MindQuantum, complex128
        (16, 5, 0.7159186, (0.17068198, -0.09166256, 0.30157377)),
    ],
)
def test_hardware_efficient_gradient(n, layers, energy, gradient):
    circuit = hardware_efficient(n, layers)
    theta = np.random.default_rng(0).uniform(0, 6, 2 * n * layers)
    value, g = jax.value_and_grad(lambda p: expectation(circuit, tfim(n), p))(jax.numpy.asarray(theta))
    assert abs(value - energy) < 1e-7
    np.testing.assert_allclose(g[:3], gradient, atol=1e-8)


@pytest.mark.parametrize("name, repetitions, tolerance", [("H2", 1, 1e-9), ("LiH", 1, 2e-5), ("LiH", 2, 1e-6)])
def test_coupled_cluster_energy(name, repetitions, tolerance):
    mol = molecule(name)
    result = solve_uccsd(mol, repetitions=repetitions)
    assert result.converged
    assert 0 <= result.energy - ENERGIES[name][1] + 1e-10 < tolerance


@pytest.mark.parametrize(
    "name, exact",
    [
        ("H2", -1.1372701747),
        ("H4", -2.1663874486),
        pytest.param("LiH", -7.8824034103, marks=pytest.mark.slow),
        pytest.param("BeH2", -15.5951768689, marks=pytest.mark.slow),
    ],
)
def test_growing_ansatz_is_exact(name, exact):
    result = solve_adapt(molecule(name))
    assert result.converged and len(result.chosen) == len(result.circuit.names)
    assert -1e-9 < result.minimum.energy - exact < 1e-6


def test_growing_ansatz_refuses():
    h = molecule("H2").hamiltonian()
    with pytest.raises(InputError, match="empty"):
        adapt(hartree_fock(4, 2), h, [])
    with pytest.raises(InputError, match="free parameters"):
        adapt(Circuit(4).rx("t", 0), h, generalised_excitations(4))
    with pytest.raises(ConvergenceError, match="still offered"):
        adapt(hartree_fock(4, 2), h, generalised_excitations(4), rounds=0)


@pytest.mark.parametrize("encoding", ["parity", "bravyi_kitaev"])
def test_coupled_cluster_in_other_encodings(encoding):
    mol = molecule("H4")
    start = np.random.default_rng(2).normal(size=26) * 0.1
    reference = expectation(uccsd(8, 4), mol.hamiltonian(), start)
    value = expectation(uccsd(8, 4, encoding=encoding), mol.hamiltonian(encoding), start)
    assert abs(value - reference) < 1e-12


def test_active_space_keeps_the_energy():
    # frozen core of LiH: the exact energy in five orbitals is close above the full one; with no frozen orbital it is the same
    mol = molecule("LiH")
    assert abs(mol.active_space(0, 6).hamiltonian().ground_state()[0] - ENERGIES["LiH"][1]) < 1e-9
    frozen = mol.active_space(1, 5)
    assert frozen.num_electrons == 2 and frozen.num_qubits == 10
    gap = frozen.hamiltonian().ground_state()[0] - ENERGIES["LiH"][1]
    assert 0 < gap < 1e-3
    assert abs(expectation(hartree_fock(10, 2), frozen.hamiltonian()) - ENERGIES["LiH"][0]) < 1e-9


def test_integrals_in_the_wrong_order_are_refused():
    mol = molecule("LiH")
    with pytest.raises(InputError, match="chemists"):
        Molecule("wrong", 4, 0.0, mol.one_body, mol.two_body.transpose(0, 2, 1, 3))


def test_molecule_file_round_trip(tmp_path):
    mol = molecule("LiH")
    write_molecule(mol, tmp_path / "m.json")
    np.testing.assert_array_equal(read_molecule(tmp_path / "m.json").two_body, mol.two_body)
    with pytest.raises(InputError, match="did you mean 'LiH'"):
        molecule("LiHH")


def test_supplied_operators(shared_data):
    import json

    from sciax.quantum._pauli import pauli_from_list

    for file in sorted((shared_data / "quantum" / "molecules").glob("*_sto3g.json")):
        data = json.loads(file.read_text())
        if data["n_qubits"] > 12 or "jw" not in data:
            continue
        terms = data["jw"]
        h = pauli_from_list([(t, c) for t, c in terms])
        assert abs(h.ground_state()[0] - data["e_fci"]) < 1e-8, file.name


def test_qaoa_ring():
    # one layer on a ring of even length cuts 3/4 of the edges at best (Farhi, Goldstone, Gutmann 2014)
    edges = [(k, (k + 1) % 6) for k in range(6)]
    cost = maxcut(edges)
    assert np.isclose(np.max(np.real(np.diag(cost.matrix()))), 6)
    result = minimise(qaoa(cost, 1), -cost, [0.4, 0.3], tolerance=1e-8)
    assert abs(-result.energy - 4.5) < 1e-8
    deeper = minimise(qaoa(cost, 3), -cost, np.random.default_rng(0).uniform(0, 0.7, 6), tolerance=1e-6)
    assert abs(-deeper.energy - 6) < 1e-6


def test_pauli_algebra(string_matrix):
    a = PauliSum({"X0 Y1": 0.5, "Z1": -1.5j, "": 2.0})
    b = PauliSum({"Y0": 1.0, "X0 Z1": 0.25j})
    np.testing.assert_allclose((a * b).matrix(2), a.matrix(2) @ b.matrix(2), atol=1e-15)
    np.testing.assert_allclose((a - 2 * b + 1).matrix(2), a.matrix(2) - 2 * b.matrix(2) + np.eye(4), atol=1e-15)
    np.testing.assert_allclose(a.dagger().matrix(2), a.matrix(2).conj().T, atol=1e-15)
    np.testing.assert_allclose(pauli("X0 Y2").matrix(3), string_matrix("XIY"), atol=0)
    assert str(pauli("X0 Y2", 0.5)) == "0.5 X0 Y2"


@pytest.mark.parametrize(
    "build, words",
    [
        (lambda: pauli("X0 X0"), "twice"),
        (lambda: pauli("Q1"), "Pauli string"),
        (lambda: expectation(Circuit(1), pauli("Z3")), "outside"),
        (lambda: expectation(Circuit(1), 1j * pauli("Z0")), "Hermitian"),
        (lambda: molecule("LiH").hamiltonian("jordan"), "did you mean 'jordan_wigner'"),
        (lambda: qaoa(pauli("X0"), 1), "diagonal"),
        (lambda: maxcut([(1, 1)]), "itself"),
        (lambda: hartree_fock(2, 3), "do not fit"),
        (lambda: minimise(Circuit(1).h(0), pauli("Z0")), "no parameters"),
        (lambda: PauliSum({"X0": float("nan")}), "not finite"),
    ],
)
def test_bad_input(build, words):
    with pytest.raises(InputError, match=words):
        build()


def test_unconverged_minimum_raises():
    circuit = hardware_efficient(3, 2)
    with pytest.raises(ConvergenceError) as error:
        minimise(circuit, tfim(3), np.full(12, 0.3), steps=2)
    assert len(error.value.history) == 2
    assert not minimise(circuit, tfim(3), np.full(12, 0.3), steps=2, throw=False).converged
