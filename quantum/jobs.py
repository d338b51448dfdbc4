"""Jobs of sciax.quantum."""

from typing import Literal

from pydantic import Field

from sciax.core.jobs import JobConfig, Outcome, Run, job


class VqeConfig(JobConfig):
    """The variational quantum eigensolver."""

    molecule: str = Field("LiH", description="a molecule that comes with sciax: H2, H4, LiH or BeH2 (STO-3G)")
    ansatz: Literal["uccsd", "adapt"] = Field(
        "uccsd", description="coupled cluster, or a circuit that grows (exact, slower)"
    )
    encoding: str = Field("jordan_wigner", description="jordan_wigner, parity or bravyi_kitaev")
    repetitions: int = Field(2, gt=0, description="Trotter steps of the coupled-cluster ansatz")
    steps: int = Field(500, gt=0, description="most iterations of the optimiser")
    tolerance: float = Field(5e-6, gt=0, description="largest gradient component at which to stop")


@job("quantum.vqe", VqeConfig, summary="Ground state of a molecule by a variational quantum circuit", tour=True)
def vqe(config: VqeConfig, run: Run) -> Outcome:
    """Minimise <H> over a coupled-cluster or a growing circuit and compare with full configuration interaction."""
    import numpy as np

    from sciax.core.errors import InputError
    from sciax.quantum import molecule
    from sciax.quantum._adapt import solve_adapt
    from sciax.quantum._plot import convergence
    from sciax.quantum._vqe import solve_uccsd

    mol = molecule(config.molecule)
    assert mol.fci is not None and mol.hf is not None
    with run.progress("optimising", total=config.steps) as bar:

        def report(step: int, energy: float) -> None:
            run.metric(step=step, energy=energy)
            bar.advance()

        if config.ansatz == "adapt":
            if config.encoding != "jordan_wigner":
                raise InputError("the growing ansatz works under Jordan-Wigner", got=config.encoding)
            result = solve_adapt(mol, steps=config.steps, tolerance=config.tolerance, callback=report).minimum
        else:
            result = solve_uccsd(
                mol,
                encoding=config.encoding,
                repetitions=config.repetitions,
                steps=config.steps,
                tolerance=config.tolerance,
                callback=report,
            )
    hamiltonian = mol.hamiltonian(config.encoding)
    run.note(
        f"{mol.name}: {mol.num_qubits} qubits, {len(hamiltonian)} Pauli strings in {hamiltonian.num_groups} groups, "
        f"{len(result.params)} parameters, {result.iterations} iterations, {result.evaluations} gradients. "
        f"Hartree-Fock is {1e3 * (mol.hf - mol.fci):.3f} mHa above the exact energy, "
        f"the circuit {1e3 * (result.energy - mol.fci):.6f} mHa."
    )
    run.figure(
        convergence(result.history, mol.hf, mol.fci, f"{mol.name}, {mol.num_qubits} qubits"),
        "convergence",
        caption="Energy and its error against full configuration interaction, by iteration; dashed: chemical accuracy.",
    )
    path = run.outputs / "parameters.csv"
    np.savetxt(path, result.params, header="amplitude", comments="")
    run.file(path, caption="amplitudes of the ansatz at the minimum")
    return Outcome(
        quantity=f"ground-state energy of {mol.name} (Ha)",
        value=result.energy,
        reference=mol.fci,
        error=abs(result.energy - mol.fci),
        source="full configuration interaction (PySCF)",
    )
