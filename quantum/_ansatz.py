"""Parametrised circuits: unitary coupled cluster, hardware-efficient layers, QAOA."""

from collections.abc import Sequence

import numpy as np

from sciax.core.errors import InputError
from sciax.quantum._circuit import Circuit, GateList
from sciax.quantum._expression import symbol
from sciax.quantum._fermion import encode_occupation, encode_products
from sciax.quantum._pauli import PauliSum, format_string

Excitation = tuple[tuple[int, ...], tuple[int, ...]]


def hartree_fock(num_qubits: int, num_electrons: int, encoding: str = "jordan_wigner") -> Circuit:
    """The lowest `num_electrons` spin orbitals filled.

    Raises:
        InputError: more electrons than spin orbitals.
    """
    if not 0 <= num_electrons <= num_qubits:
        raise InputError("electrons do not fit the spin orbitals", got=num_electrons, expected=f"0..{num_qubits}")
    state = encode_occupation(list(range(num_electrons)), num_qubits, encoding)
    circuit = Circuit(num_qubits)
    for q in range(num_qubits):
        circuit = circuit.x(q) if state >> q & 1 else circuit
    return circuit


def excitations(num_qubits: int, num_electrons: int) -> list[Excitation]:
    """Spin-conserving single and double excitations (created, annihilated) from the Hartree-Fock state, doubles first."""
    occupied, virtual = range(num_electrons), range(num_electrons, num_qubits)
    doubles = [
        ((b, a), (j, i))
        for i in occupied
        for j in range(i + 1, num_electrons)
        for a in virtual
        for b in range(a + 1, num_qubits)
        if i % 2 + j % 2 == a % 2 + b % 2
    ]
    singles = [((a,), (i,)) for i in occupied for a in virtual if i % 2 == a % 2]
    return doubles + singles


def generalised_excitations(num_qubits: int) -> list[Excitation]:
    """Spin-conserving single and double excitations between any spin orbitals, occupied or not, doubles first; each with its
    reverse counted once. Source: J. Lee et al., J. Chem. Theory Comput. 15, 311 (2019)."""
    spins = range(num_qubits)
    pairs = [(a, b) for a in spins for b in range(a + 1, num_qubits)]
    doubles = [
        ((b, a), (j, i))
        for k, (i, j) in enumerate(pairs)
        for a, b in pairs[k + 1 :]
        if not {a, b} & {i, j} and i % 2 + j % 2 == a % 2 + b % 2
    ]
    return doubles + [((a,), (i,)) for i in spins for a in range(i + 2, num_qubits, 2)]


def uccsd(num_qubits: int, num_electrons: int, *, encoding: str = "jordan_wigner", repetitions: int = 1) -> Circuit:
    """Hartree-Fock, then prod_k exp(t_k (T_k - T_k^dagger)): unitary coupled cluster with singles and doubles, one Trotter step
    for each repetition, every excitation with a parameter of its own.

    Under Jordan-Wigner an excitation is one two-level rotation; under other encodings, commuting Pauli rotations.
    Source: A. Peruzzo et al. 2014; J. Romero et al. 2018.

    Raises:
        InputError: an unknown encoding, electrons that do not fit.
    """
    start, circuit = hartree_fock(num_qubits, num_electrons, encoding), GateList(num_qubits)
    for r in range(repetitions):
        for k, (up, down) in enumerate(excitations(num_qubits, num_electrons)):
            name = f"t{k}" if repetitions == 1 else f"t{k}_{r}"
            if encoding == "jordan_wigner":
                circuit = circuit.excitation(name, up, down)
                continue
            daggers = [[True] * len(up) + [False] * len(down)]
            t = encode_products([[*up, *down]], daggers, [1.0], num_qubits, encoding)
            generator = (t - t.dagger()).simplify()  # anti-Hermitian: sum i w_k P_k, and the P_k commute
            for x, z, c in zip(generator.x, generator.z, generator.coefficients):
                text = format_string(int(x), int(z)).split()
                letters, qubits = "".join(f[0] for f in text), [int(f[1:]) for f in text]
                circuit = circuit.rp(symbol(name) * float(-2 * c.imag), letters, qubits)
    return start + circuit.circuit()


def hardware_efficient(
    num_qubits: int,
    layers: int,
    *,
    rotations: Sequence[str] = ("ry", "rz"),
    entangler: str = "linear",
    prefix: str = "t",
) -> Circuit:
    """Layers of one-qubit rotations and a chain ("linear"), ring ("circular") or all pairs ("full") of CX gates.

    Parameters are named prefix0, prefix1, ... in order of appearance. Source: A. Kandala et al. 2017.

    Raises:
        InputError: an unknown entangler.
    """
    n = num_qubits
    pairs = {
        "linear": [(q, q + 1) for q in range(n - 1)],
        "circular": [(q, (q + 1) % n) for q in range(n)] if n > 2 else [(q, q + 1) for q in range(n - 1)],
        "full": [(a, b) for a in range(n) for b in range(a + 1, n)],
    }
    if entangler not in pairs:
        raise InputError("unknown entangler", got=entangler, expected=", ".join(pairs))
    circuit, k = GateList(n), 0
    for _ in range(layers):
        for q in range(n):
            for name in rotations:
                circuit = circuit.gate(name, q, (f"{prefix}{k}",))
                k += 1
        for a, b in pairs[entangler]:
            circuit = circuit.cx(a, b)
    return circuit.circuit()


def maxcut(edges: Sequence[tuple[int, int]] | np.ndarray, weights: Sequence[float] | None = None) -> PauliSum:
    """The cut sum_edges w (1 - Z_a Z_b)/2, to be maximised.

    Raises:
        InputError: a loop.
    """
    edges = np.asarray(edges, np.int64).reshape(-1, 2)
    w = np.ones(len(edges)) if weights is None else np.asarray(weights, float)
    if np.any(edges[:, 0] == edges[:, 1]):
        raise InputError("an edge joins a node with itself")
    z = (np.int64(1) << edges[:, 0]) | (np.int64(1) << edges[:, 1])
    return PauliSum.from_masks(np.zeros_like(z), z, -w / 2) + float(w.sum() / 2)


def qaoa(cost: PauliSum, layers: int, num_qubits: int | None = None) -> Circuit:
    """|+...+>, then `layers` of exp(-i gamma_k C) and exp(-i beta_k sum X). Parameters gamma0, beta0, gamma1, ...

    Source: E. Farhi, J. Goldstone, S. Gutmann 2014.

    Raises:
        InputError: a cost that is not diagonal.
    """
    if np.any(cost.x):
        raise InputError("the cost of QAOA must be diagonal: only Z factors", got=str(cost)[:80])
    n = cost.num_qubits if num_qubits is None else num_qubits
    circuit = GateList(n)
    for q in range(n):
        circuit.h(q)
    _, coefficients = cost.hermitian_terms(n)
    for k in range(layers):
        for z, c in zip(cost.z, coefficients):
            qubits = [q for q in range(n) if int(z) >> q & 1]
            circuit.rp(symbol(f"gamma{k}") * float(2 * c), "Z" * len(qubits), qubits)
        for q in range(n):
            circuit.rx(symbol(f"beta{k}") * 2, q)
    return circuit.circuit()


def tfim(num_qubits: int, coupling: float = 1.0, field: float = 1.0, *, periodic: bool = False) -> PauliSum:
    """-J sum Z_q Z_{q+1} - h sum X_q."""
    bonds = [(q, (q + 1) % num_qubits) for q in range(num_qubits if periodic and num_qubits > 2 else num_qubits - 1)]
    terms = {f"Z{min(a, b)} Z{max(a, b)}": -coupling for a, b in bonds}
    return PauliSum({**terms, **{f"X{q}": -field for q in range(num_qubits)}}, num_qubits=num_qubits)


def tfim_ground_energy(num_qubits: int) -> float:
    """Exact ground energy of the open chain at J = h = 1: 1 - 1/sin(pi / (2 (2n + 1))). Source: P. Pfeuty 1970."""
    return float(1 - 1 / np.sin(np.pi / (2 * (2 * num_qubits + 1))))
