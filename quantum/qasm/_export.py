"""Writing OpenQASM 2.

Gates that qelib1.inc has are written by name; all others are decomposed exactly, without ancillas and with the global phase.
Two ideas carry it: a controlled one-qubit gate is W D W^dagger with D diagonal, and a phase on k qubits being 1 is a network of
CX and u1 over the parities of subsets (2^k - 1 of them, so the number of controls is limited).
"""

import cmath
import math
from collections.abc import Sequence

import numpy as np

from sciax.core.errors import UnsupportedError
from sciax.quantum._circuit import Circuit
from sciax.quantum._gate import Gate
from sciax.quantum._lower import gate_matrix
from sciax.quantum._order import check_order

_MAX_CONTROLS = 10
_NAMES = {
    0: {
        **{
            k: k
            for k in (
                "id",
                "x",
                "y",
                "z",
                "h",
                "s",
                "sdg",
                "t",
                "tdg",
                "sx",
                "sxdg",
                "rx",
                "ry",
                "rz",
                "u2",
                "u3",
                "swap",
            )
        },
        **{"p": "u1", "iswap": "iswap", "rxx": "rxx", "ryy": "ryy", "rzz": "rzz"},
    },
    1: {
        "x": "cx",
        "y": "cy",
        "z": "cz",
        "h": "ch",
        "rx": "crx",
        "ry": "cry",
        "rz": "crz",
        "p": "cu1",
        "u3": "cu3",
        "swap": "cswap",
    },
    2: {"x": "ccx"},
    3: {"x": "c3x"},
    4: {"x": "c4x"},
}


def to_qasm(circuit: Circuit, *, order: str = "little") -> str:
    """The circuit as an OpenQASM 2 program; reading it back gives the same unitary, global phase included.

    Args:
        order: "little" writes qubit k as q[k]; "big" as q[n-1-k], for readers to whom q[0] is the most significant.

    Raises:
        InputError: an unknown order.
        UnsupportedError: unbound parameters, channels, more than 10 controls on a gate that has no name, conditions on bits
            that do not form registers.
    """
    if circuit.names:
        raise UnsupportedError(
            "OpenQASM 2 has no free parameters", got=", ".join(circuit.names[:8]), remedy="circuit.bind({...}) first"
        )
    check_order(order)
    if order == "big":
        circuit = circuit.remap(range(circuit.num_qubits)[::-1])
    writer = _Writer(circuit)
    for gate in circuit.gates:
        writer.gate(gate)
    return writer.text()


class _Writer:
    def __init__(self, circuit: Circuit):
        self.circuit = circuit
        self.values = np.asarray(circuit.values, float)
        self.lines: list[str] = []
        self.prefix = ""
        self.registers = _registers(circuit)
        self.place = {b: f"{name}[{k}]" for name, bits in self.registers for k, b in enumerate(bits)}

    def text(self) -> str:
        head = ["OPENQASM 2.0;", 'include "qelib1.inc";']
        head += [f"qreg q[{self.circuit.num_qubits}];"] if self.circuit.num_qubits else []
        head += [f"creg {name}[{len(bits)}];" for name, bits in self.registers]
        return "\n".join(head + self.lines) + "\n"

    def emit(self, name: str, angles: Sequence[float], qubits: Sequence[int]) -> None:
        inside = f"({','.join(repr(float(a)) for a in angles)})" if angles else ""
        self.lines.append(f"{self.prefix}{name}{inside} {','.join(f'q[{q}]' for q in qubits)};")

    # -- gates

    def gate(self, g: Gate) -> None:
        self.prefix = ""
        if g.condition is not None:
            name = next(n for n, bits in self.registers if bits == g.condition[0])
            self.prefix = f"if({name}=={g.condition[1]}) "
        if g.kind == "measure":
            self.lines.append(f"{self.prefix}measure q[{g.targets[0]}] -> {self.place[g.bits[0]]};")
        elif g.kind == "reset":
            self.lines.append(f"{self.prefix}reset q[{g.targets[0]}];")
        elif g.kind == "barrier":
            self.lines.append(f"barrier {','.join(f'q[{q}]' for q in g.targets)};") if g.targets else None
        elif g.kind == "channel":
            raise UnsupportedError("OpenQASM 2 has no noise channels", got=str(g.extra))
        else:
            self.unitary(g)

    def unitary(self, g: Gate) -> None:
        angles = [float(sum(c * self.values[k] for k, c in a.terms) + a.constant) for a in g.angles]
        negative = [q for q, v in g.controls if not v]
        controls = [q for q, _ in g.controls]
        for q in negative:
            self.emit("x", [], [q])
        name = _NAMES.get(len(controls), {}).get(g.kind)
        if name is not None:
            self.emit(name, angles, [*controls, *g.targets])
        elif g.kind == "gphase":
            self.phase(angles[0], controls)
        elif g.kind in ("swapalpha", "fsim", "givens", "swap", "iswap", "iswapdg"):
            self.exchange(gate_matrix(g, tuple(angles)), g.targets, controls)
        elif g.kind == "rp" or (g.kind[0] == "r" and len(g.kind) == 3 and len(g.targets) == 2):
            self.rotation(angles[0], g.extra if g.kind == "rp" else g.kind[1:].upper(), g.targets, controls)
        elif g.kind == "excitation":
            self.excitation(angles[0], g, controls)
        elif len(g.targets) == 1:
            self.controlled(gate_matrix(g, tuple(angles)), g.targets[0], controls)
        else:
            self.matrix(gate_matrix(g, tuple(angles)), g.targets, controls)
        for q in negative:
            self.emit("x", [], [q])

    def phase(self, angle: float, qubits: Sequence[int]) -> None:
        """exp(i angle) where all qubits are 1; on no qubits, a global phase."""
        if not qubits:
            if not self.circuit.num_qubits:
                raise UnsupportedError("OpenQASM 2 cannot hold a phase without a qubit")
            for _ in range(2):  # diag(1, e) and diag(e, 1)
                self.emit("u1", [angle], [0])
                self.emit("x", [], [0])
            return
        k = len(qubits)
        if k == 1:
            return self.emit("u1", [angle], qubits)
        if k == 2:
            return self.emit("cu1", [angle], qubits)
        if k > _MAX_CONTROLS:
            raise UnsupportedError("too many controls to write out", got=k, expected=f"at most {_MAX_CONTROLS}")
        # b_1 b_2 ... b_k = 2^(1-k) sum over subsets (-1)^(size+1) parity(subset)
        part = angle / 2 ** (k - 1)
        for top in range(k):
            # Gray code over the subsets of the lower qubits, collected on qubit `top`
            self.emit("u1", [part], [qubits[top]])
            size, held = 1, 0
            for code in range(1, 1 << top):
                flipped = (code & -code).bit_length() - 1
                self.emit("cx", [], [qubits[flipped], qubits[top]])
                held ^= 1 << flipped
                size = 1 + held.bit_count()
                self.emit("u1", [part if size % 2 else -part], [qubits[top]])
            for q in range(top):
                if held >> q & 1:
                    self.emit("cx", [], [qubits[q], qubits[top]])

    def controlled(self, m: np.ndarray, target: int, controls: Sequence[int]) -> None:
        """A one-qubit matrix under positive controls."""
        if not controls:
            theta, phi, lam, alpha = _u3(m)
            self.emit("u3", [theta, phi, lam], [target])
            if abs(cmath.exp(1j * alpha) - 1) > 1e-15:
                self.phase(alpha, [])
            return
        values, vectors = _diagonalise(m)
        theta, phi, lam, _ = _u3(vectors)
        diagonal = np.allclose(vectors, np.eye(2), atol=1e-15)
        if not diagonal:
            self.emit("u3", [-theta, -lam, -phi], [target])
        a, b = cmath.phase(values[0]), cmath.phase(values[1])
        if abs(a) > 1e-16:
            self.phase(a, controls)
        self.phase(b - a, [*controls, target])
        if not diagonal:
            self.emit("u3", [theta, phi, lam], [target])

    def exchange(self, m: np.ndarray, targets: Sequence[int], controls: Sequence[int]) -> None:
        """A gate that mixes |01> and |10> and gives |11> a phase."""
        a, b = targets
        self.emit("cx", [], [a, b])
        # now |01> is b = 1, a = 1 and |10> is b = 1, a = 0
        self.controlled(np.array([[m[2, 2], m[2, 1]], [m[1, 2], m[1, 1]]]), a, [b, *controls])
        self.emit("cx", [], [a, b])
        if abs(m[3, 3] - 1) > 1e-16:
            self.phase(cmath.phase(m[3, 3]), [a, b, *controls])

    def rotation(self, angle: float, letters: str, targets: Sequence[int], controls: Sequence[int]) -> None:
        for p, q in zip(letters, targets):
            if p != "Z":
                self.emit("h" if p == "X" else "sx", [], [q])
        for q in targets[:-1]:
            self.emit("cx", [], [q, targets[-1]])
        e = cmath.exp(0.5j * angle)
        if controls:
            self.controlled(np.diag([1 / e, e]), targets[-1], controls)
        else:
            self.emit("rz", [angle], [targets[-1]])
        for q in reversed(targets[:-1]):
            self.emit("cx", [], [q, targets[-1]])
        for p, q in zip(letters, targets):
            if p != "Z":
                self.emit("h" if p == "X" else "sxdg", [], [q])

    def excitation(self, angle: float, g: Gate, controls: Sequence[int]) -> None:
        up, down, string = ([g.targets[k] for k in part] for part in g.extra)
        pivot, others = up[0], [*up[1:], *down]
        for q in others:
            self.emit("cx", [], [pivot, q])
        for q in string:
            self.emit("cz", [], [q, pivot])
        for q in up[1:]:
            self.emit("x", [], [q])
        c, s = math.cos(angle), math.sin(angle)
        self.controlled(np.array([[c, -s], [s, c]], complex), pivot, [*others, *controls])
        for q in up[1:]:
            self.emit("x", [], [q])
        for q in string:
            self.emit("cz", [], [q, pivot])
        for q in others:
            self.emit("cx", [], [pivot, q])

    def matrix(self, m: np.ndarray, targets: Sequence[int], controls: Sequence[int]) -> None:
        """Any matrix on several qubits, as rotations of pairs of basis states and phases (Reck et al. 1994)."""
        m, size = m.astype(complex), len(m)
        steps = []
        for column in range(size - 1):
            for row in range(size - 1, column, -1):
                a, b = m[column, column], m[row, column]
                if abs(b) < 1e-15:
                    continue
                r = math.hypot(abs(a), abs(b))
                g = np.array([[a.conjugate(), b.conjugate()], [-b, a]]) / r  # takes (a, b) to (r, 0)
                m[[column, row]] = g @ m[[column, row]]
                steps.append((column, row, g.conj().T))
        for k in range(size):  # what is left is diagonal
            if abs(m[k, k] - 1) > 1e-15:
                self.basis_phase(cmath.phase(m[k, k]), k, targets, controls)
        for column, row, g in reversed(steps):
            self.two_level(g, column, row, targets, controls)

    def flips(self, value: int, targets: Sequence[int]) -> None:
        for k, q in enumerate(targets):
            if not value >> k & 1:
                self.emit("x", [], [q])

    def basis_phase(self, angle: float, state: int, targets: Sequence[int], controls: Sequence[int]) -> None:
        self.flips(state, targets)
        self.phase(angle, [*targets, *controls])
        self.flips(state, targets)

    def two_level(self, g: np.ndarray, a: int, b: int, targets: Sequence[int], controls: Sequence[int]) -> None:
        """g on the basis states a (first) and b of the targets."""
        x = a ^ b
        pivot = (x & -x).bit_length() - 1
        if a >> pivot & 1:
            a, b, g = b, a, g[::-1, ::-1]
        others = [k for k in range(len(targets)) if x >> k & 1 and k != pivot]
        for k in others:  # the states now differ on the pivot alone, and agree with a elsewhere
            self.emit("cx", [], [targets[pivot], targets[k]])
        rest = [q for k, q in enumerate(targets) if k != pivot]
        zeros = [q for k, q in enumerate(targets) if k != pivot and not a >> k & 1]
        for q in zeros:
            self.emit("x", [], [q])
        self.controlled(g, targets[pivot], [*rest, *controls])
        for q in zeros:
            self.emit("x", [], [q])
        for k in others:
            self.emit("cx", [], [targets[pivot], targets[k]])


def _u3(m: np.ndarray) -> tuple[float, float, float, float]:
    """theta, phi, lambda, alpha with m = exp(i alpha) u3(theta, phi, lambda)."""
    theta = 2 * math.atan2(abs(m[1, 0]), abs(m[0, 0]))
    if abs(m[0, 0]) >= abs(m[1, 0]):
        alpha = cmath.phase(m[0, 0])
        total = cmath.phase(m[1, 1]) - alpha
        phi = cmath.phase(m[1, 0]) - alpha if abs(m[1, 0]) > 1e-16 else 0.0
        return theta, phi, total - phi, alpha
    # the diagonal may vanish: take the phase so that lambda is 0
    alpha = cmath.phase(-m[0, 1])
    phi = cmath.phase(m[1, 0]) - alpha
    if abs(m[0, 0]) < 1e-16:
        return theta, phi, 0.0, alpha
    alpha = cmath.phase(m[0, 0])
    return theta, cmath.phase(m[1, 0]) - alpha, cmath.phase(-m[0, 1]) - alpha, alpha


def _diagonalise(m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import schur

    if abs(m[0, 1]) < 1e-16 and abs(m[1, 0]) < 1e-16:
        return np.diag(m), np.eye(2, dtype=complex)
    triangle, vectors = schur(m, output="complex")  # pyright: ignore[reportAssignmentType]
    return np.diag(triangle), vectors


def _registers(circuit: Circuit) -> list[tuple[str, tuple[int, ...]]]:
    """Classical registers such that every condition reads a whole one."""
    groups = sorted({g.condition[0] for g in circuit.gates if g.condition is not None})
    seen: set[int] = set()
    for bits in groups:
        if seen & set(bits):
            raise UnsupportedError(
                "OpenQASM 2 conditions read whole registers, and these overlap", got=", ".join(str(g) for g in groups)
            )
        seen |= set(bits)
    rest = tuple(b for b in range(circuit.num_bits) if b not in seen)
    ordered = sorted([*groups, *([rest] if rest else [])])
    names = ["c"] if len(ordered) == 1 else [f"c{k}" for k in range(len(ordered))]
    return list(zip(names, ordered))
