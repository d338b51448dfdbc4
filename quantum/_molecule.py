"""Molecules as qubit Hamiltonians: from PySCF, from integrals, or from the examples that come with the package."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sciax.core.errors import ConvergenceError, InputError, ShapeError, did_you_mean, optional_import
from sciax.quantum._fermion import encode_products
from sciax.quantum._pauli import PauliSum

_DATA = Path(__file__).parent / "data"
HARTREE_PER_EV = 1 / 27.211386245988  # CODATA 2018


@dataclass(frozen=True, eq=False)
class Molecule:
    """Integrals over spatial molecular orbitals and reference energies, in Hartree.

    Attributes:
        name: what it is.
        num_electrons: of both spins, equally many of each.
        constant: nuclear repulsion, plus the energy of a frozen core.
        one_body: (m, m) h_pq.
        two_body: (m, m, m, m) (pq|rs) in chemists' order.
        hf, fci: reference energies, None where unknown.
    """

    name: str
    num_electrons: int
    constant: float
    one_body: np.ndarray
    two_body: np.ndarray
    hf: float | None = None
    fci: float | None = None

    def __post_init__(self) -> None:
        m = len(self.one_body)
        if self.one_body.shape != (m, m) or self.two_body.shape != (m, m, m, m):
            raise ShapeError(
                "integrals do not fit", got=f"{self.one_body.shape}, {self.two_body.shape}", expected=f"m={m}"
            )
        symmetric = np.allclose(self.two_body, self.two_body.transpose(1, 0, 2, 3), atol=1e-8)
        exchanged = np.allclose(self.two_body, self.two_body.transpose(2, 3, 0, 1), atol=1e-8)
        if not symmetric or not exchanged or not np.allclose(self.one_body, self.one_body.T, atol=1e-8):
            raise InputError(
                "the integrals lack the symmetry of chemists' order (pq|rs) = (qp|rs) = (rs|pq)",
                remedy="physicists' integrals <pr|qs> become chemists' by transpose(0, 2, 1, 3)",
            )
        if self.num_electrons % 2 or not 0 <= self.num_electrons <= 2 * m:
            raise InputError("closed shells only: an even number of electrons that fits", got=self.num_electrons)

    @property
    def num_qubits(self) -> int:
        """Spin orbitals; 2p is orbital p with spin up, 2p + 1 with spin down."""
        return 2 * len(self.one_body)

    def hamiltonian(self, encoding: str = "jordan_wigner", threshold: float = 1e-10) -> PauliSum:
        """constant + sum h_pq a^+_p a_q + 1/2 sum (pq|rs) a^+_p a^+_r a_s a_q over orbitals and spins, encoded.

        Args:
            threshold: integrals and terms at most this large are dropped.
        """
        n, m = self.num_qubits, len(self.one_body)
        p, q = np.nonzero(np.abs(self.one_body) > threshold)
        spin = np.array([0, 1])
        one = np.stack([(2 * p[:, None] + spin).ravel(), (2 * q[:, None] + spin).ravel()], 1).reshape(-1, 2)
        total = encode_products(
            one, np.tile([True, False], (len(one), 1)), np.repeat(self.one_body[p, q], 2), n, encoding
        )
        p, q, r, s = np.nonzero(np.abs(self.two_body) > threshold)
        value = 0.5 * self.two_body[p, q, r, s]
        rows, weights = [], []
        for a in (0, 1):
            for b in (0, 1):
                rows.append(np.stack([2 * p + a, 2 * r + b, 2 * s + b, 2 * q + a], 1))
                weights.append(value)
        two, weight = np.concatenate(rows), np.concatenate(weights)
        alive = (two[:, 0] != two[:, 1]) & (two[:, 2] != two[:, 3])  # a^+ a^+ of one orbital vanishes
        two, weight = two[alive], weight[alive]
        total = total + encode_products(two, np.tile([True, True, False, False], (len(two), 1)), weight, n, encoding)
        assert m >= 0
        return (total + self.constant).simplify(threshold)

    def active_space(self, frozen: int, orbitals: int) -> "Molecule":
        """The lowest `frozen` orbitals kept doubly occupied, the next `orbitals` kept, the rest dropped.

        Raises:
            InputError: more frozen orbitals than occupied ones, or more orbitals than there are.
        """
        m = len(self.one_body)
        if not 0 <= frozen <= self.num_electrons // 2 or not 1 <= orbitals <= m - frozen:
            raise InputError(
                "no such active space", got=f"{frozen} frozen, {orbitals} active", expected=f"of {m} orbitals"
            )
        core, active = slice(0, frozen), slice(frozen, frozen + orbitals)
        g, h = self.two_body, self.one_body
        coulomb = np.einsum("pqii->pq", g[:, :, core, core])
        exchange = np.einsum("piiq->pq", g[:, core, core, :])
        field = h + 2 * coulomb - exchange
        energy = float(np.trace(h[core, core] + field[core, core]))
        return Molecule(
            f"{self.name} ({self.num_electrons - 2 * frozen} electrons, {orbitals} orbitals)",
            self.num_electrons - 2 * frozen,
            self.constant + energy,
            field[active, active],
            g[active, active, active, active],
            self.hf if frozen + orbitals <= m else None,
        )


def molecule(name: str) -> Molecule:
    """An example that comes with the package, STO-3G: H2 (0.7414 angstrom), H4 (chain, 1.0), LiH (1.5949), BeH2 (1.3264).

    The integrals and reference energies were computed for sciax with PySCF 2.14 (RHF, FCI).

    Raises:
        InputError: an unknown name.
    """
    known = sorted(f.stem for f in _DATA.glob("*.json"))
    if name not in known:
        raise InputError(
            f"no molecule {name!r} comes with sciax", remedy=did_you_mean(name, known) + "; or use from_pyscf"
        )
    return read_molecule(_DATA / f"{name}.json")


def read_molecule(path: str | Path) -> Molecule:
    """From a JSON file with the packed integrals that `write_molecule` makes."""
    data = json.loads(Path(path).read_text())
    m = data["orbitals"]
    two = np.zeros((m, m, m, m))
    for p, q, r, s, value in data["two_body"]:
        for a, b in ((p, q), (q, p)):
            for c, d in ((r, s), (s, r)):
                two[a, b, c, d] = two[c, d, a, b] = value
    return Molecule(
        data["name"], data["electrons"], data["constant"], np.array(data["one_body"]), two, data["hf"], data["fci"]
    )


def write_molecule(mol: Molecule, path: str | Path) -> None:
    """Write the integrals, each symmetry-distinct (pq|rs) once."""
    m = len(mol.one_body)
    two = [
        [p, q, r, s, float(f"{mol.two_body[p, q, r, s]:.15g}")]
        for p in range(m)
        for q in range(p + 1)
        for r in range(p + 1)
        for s in range(r + 1)
        if (p, q) >= (r, s) and abs(mol.two_body[p, q, r, s]) > 1e-14
    ]
    data = {
        "name": mol.name,
        "electrons": mol.num_electrons,
        "orbitals": m,
        "constant": mol.constant,
        "hf": mol.hf,
        "fci": mol.fci,
        "one_body": mol.one_body.tolist(),
        "two_body": two,
    }
    Path(path).write_text(json.dumps(data))


def from_pyscf(geometry: str, basis: str = "sto-3g", *, name: str = "", fci: bool = True) -> Molecule:
    """Run restricted Hartree-Fock (and full CI) in PySCF.

    Args:
        geometry: "H 0 0 0; Li 0 0 1.5949", in angstrom.

    Raises:
        MissingDependencyError: PySCF is not installed; ConvergenceError: Hartree-Fock did not converge.
    """
    gto, scf, ao2mo = (optional_import(f"pyscf.{part}", "quantum") for part in ("gto", "scf", "ao2mo"))
    mol = gto.M(atom=geometry, basis=basis, unit="Angstrom", verbose=0)
    field = scf.RHF(mol)
    field.conv_tol = 1e-12
    energy = field.kernel()
    if not field.converged:
        raise ConvergenceError("Hartree-Fock did not converge", got=geometry)
    c = field.mo_coeff
    one = c.T @ field.get_hcore() @ c
    two = ao2mo.restore(1, ao2mo.kernel(mol, c), len(one))
    exact = None
    if fci:
        solver = optional_import("pyscf.fci", "quantum").FCI(field)
        solver.conv_tol = 1e-13
        exact = float(solver.kernel()[0])
    return Molecule(name or geometry, mol.nelectron, float(mol.energy_nuc()), one, two, float(energy), exact)
