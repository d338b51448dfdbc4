"""Lowering: from a circuit's structure to instruction programs and the functions that make their coefficients.

The trace of a circuit is independent of its number of gates: angles come from one sparse linear map of the parameters, the
gates of one kind get their coefficients together, and the program is one instruction table.
"""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops.gates import Program
from sciax.quantum._circuit import Repeat, Structure
from sciax.quantum._gate import Gate
from sciax.quantum._kinds import KINDS, rotation_coefficients
from sciax.quantum._noise_families import Family, PlacedFamily


@dataclass(frozen=True, eq=False)
class Angles:
    """The map from (parameters, values) to all angles: sum of coefficient * source[index], plus a constant.

    Attributes:
        count: number of angles.
        slot, index, coefficient: its entries, in order of slot.
        constant: (count,).
    """

    count: int
    slot: np.ndarray
    index: np.ndarray
    coefficient: np.ndarray
    constant: np.ndarray

    def __call__(self, source):
        if self.count == 0:
            return jnp.zeros((0,), source.dtype)
        constant = jnp.asarray(self.constant, source.dtype)
        if len(self.slot) == 0:
            return constant
        parts = source[self.index] * jnp.asarray(self.coefficient, source.dtype)
        if len(self.slot) == self.count and np.array_equal(self.slot, np.arange(self.count)):
            return constant + parts  # one term an angle, the common case: no scatter
        return constant.at[self.slot].add(parts, indices_are_sorted=True)


@dataclass(frozen=True, eq=False)
class Group:
    """Gates of one coefficient function: `angles[:, k]` are the angle slots of gate k."""

    function: Any
    angles: np.ndarray


@dataclass(frozen=True, eq=False)
class Run:
    """A stretch of gates that is one program.

    Attributes:
        program: the instructions.
        constants: (C, 4) coefficients of gates without angles.
        groups: the others.
        order: instruction g takes row order[g] of (constants, groups' rows).
    """

    program: Program
    constants: np.ndarray
    groups: tuple[Group, ...]
    order: np.ndarray

    def coefficients(self, angles, dtype):
        """(G, 4) complex coefficients in program order."""
        rows = [jnp.asarray(self.constants, dtype)] if len(self.constants) else []
        for group in self.groups:
            own = [angles[slots] for slots in group.angles]
            for parts in group.function(jnp, own):
                shape = own[0].shape
                rows.append(jnp.stack([jnp.broadcast_to(jnp.asarray(p), shape).astype(dtype) for p in parts], axis=-1))
        if not rows:
            return jnp.zeros((0, 4), dtype)
        table = jnp.concatenate(rows) if len(rows) > 1 else rows[0]
        return table if np.array_equal(self.order, np.arange(len(self.order))) else table[self.order]


@dataclass(frozen=True, eq=False)
class Dense:
    """A matrix on several qubits; `matrix(angles, dtype)` makes it."""

    targets: tuple[int, ...]
    gate: Gate
    slots: tuple[int, ...]

    def matrix(self, angles, dtype):
        g = self.gate
        if g.kind == "unitary":
            m = jnp.asarray(g.extra.array, dtype)
        else:
            m = jnp.asarray(g.extra.function(*(angles[k] for k in self.slots))).astype(dtype)
            m = jnp.conj(m).swapaxes(-1, -2) if g.extra.dagger else m
        return controlled_matrix(m, [v for _, v in g.controls])


def controlled_matrix(m, values):
    """A matrix with control qubits added above its own."""
    size = m.shape[0]
    full = 1 << len(values)
    at = sum(v << k for k, v in enumerate(values))
    if full == 1:
        return m
    out = jnp.eye(size * full, dtype=m.dtype)
    return out.at[at * size : (at + 1) * size, at * size : (at + 1) * size].set(m)


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A gate that acts only where classical bits hold a value."""

    condition: tuple[tuple[int, ...], int]
    segment: Run | Dense


@dataclass(frozen=True, eq=False)
class Lowered:
    """A circuit without measurement: runs of instructions and dense matrices between them, and their angles."""

    num_qubits: int
    angles: Angles
    segments: tuple[Run | Dense | Gate | Conditioned, ...]

    @property
    def is_one_run(self) -> bool:
        return len(self.segments) == 1 and isinstance(self.segments[0], Run)


class _RunBuilder:
    def __init__(self, num_qubits: int):
        self.n = num_qubits
        self.rows: list[tuple[int, int, int, int, int]] = []
        self.constants: list[tuple[Any, ...]] = []
        self.where: list[tuple[Any, int]] = []
        self.groups: dict[Any, list[tuple[int, ...]]] = defaultdict(list)
        self.functions: dict[Any, tuple[Any, int]] = {}

    def add(self, gate: Gate, slots: tuple[int, ...]) -> None:
        masks, function, real, key = instructions(gate)
        on = sum(1 << q for q, _ in gate.controls)
        value = sum(v << q for q, v in gate.controls)
        if not slots:
            rows = function(np, ())
            for k, (x, z, cmask, cval) in enumerate(masks):
                self.where.append((None, len(self.constants)))
                self.constants.append(rows[k])
                self.rows.append((x, z, cmask | on, cval | value, int(real[k]) << 1))
            return
        position = len(self.groups[key])
        self.groups[key].append(slots)
        self.functions[key] = (function, len(masks))
        for k, (x, z, cmask, cval) in enumerate(masks):
            self.where.append(((key, k), position))
            self.rows.append((x, z, cmask | on, cval | value, 1 | int(real[k]) << 1))

    def build(self, repeats: int = 1) -> Run:
        offsets: dict[Any, int] = {None: 0}
        total, groups = len(self.constants), []
        for key, slots in self.groups.items():
            function, m = self.functions[key]
            groups.append(Group(function, np.array(slots, np.int32).T))
            for k in range(m):
                offsets[(key, k)] = total
                total += len(slots)
        # int32: an index array that JAX has seen with 64-bit arrays off must mean the same with them on
        order = np.array([offsets[key] + position for key, position in self.where], np.int32)
        constants = np.array(self.constants, np.complex128).reshape(-1, 4)
        rows = np.array(self.rows, np.int64).reshape(-1, 5)
        return Run(Program.from_rows(self.n, rows, repeats), constants, tuple(groups), order)


def instructions(gate: Gate):
    """(masks, coefficient function, realness, group key) of a gate of the table or of a one-qubit matrix."""
    bits = tuple(1 << q for q in gate.targets)
    if gate.kind == "unitary":
        (a, b), (c, d) = gate.extra.array
        return [(bits[0], bits[0], 0, 0)], lambda xp, angles: [(a, d, b, c)], (False,), None
    if gate.kind == "custom":
        return [(bits[0], bits[0], 0, 0)], _custom_one(gate.extra), (False,), gate.extra
    kind = KINDS[gate.kind]
    if gate.kind == "rp":
        function, real = rotation_coefficients(gate.extra)
        key = ("rp", "diagonal" if set(gate.extra) <= set("IZ") else gate.extra.count("Y") % 4)
        return kind.masks(bits, gate.extra), function, (real,), key
    return kind.masks(bits, gate.extra), kind.coefficients, kind.real, gate.kind


def _custom_one(extra):
    def coefficients(xp, angles):
        import jax

        m = jax.vmap(lambda *a: jnp.asarray(extra.function(*a)) + 0j)(*angles)
        m = jnp.conj(m).swapaxes(-1, -2) if extra.dagger else m
        return [(m[:, 0, 0], m[:, 1, 1], m[:, 0, 1], m[:, 1, 0])]

    return coefficients


def _is_dense(gate: Gate) -> bool:
    return gate.kind in ("unitary", "custom") and len(gate.targets) > 1


@lru_cache(maxsize=512)
def lower(structure: Structure, *, keep: bool = False) -> Lowered:
    """Lower a structure.

    Args:
        keep: keep measurements, resets, channels and conditioned gates as segments of their own; otherwise they are refused,
            except measurements after which nothing happens to their qubit, which a state does not need.

    Raises:
        UnsupportedError: an operation that is not unitary, named; InputError: too many qubits for a state.
    """
    if not keep:
        _refuse(structure.flat(limit=2))  # twice, since a measurement can meet the gates before it
    work = _Lowering(structure, keep)
    work.add(structure.ops)
    return work.lowered()


WRITTEN_OUT = 512
"""Gates up to which a repeated block is written out; longer ones are scanned, with about as many gates a repetition."""


class _Lowering:
    """Collects segments, angles and their entries, in order."""

    def __init__(self, structure: Structure, keep: bool):
        self.structure, self.keep = structure, keep
        self.builder: _RunBuilder | None = None
        self.segments: list[Run | Dense | Gate | Conditioned] = []
        self.entries: list[tuple[int, int, float]] = []
        self.constants: list[float] = []
        self.place = {name: k for k, name in enumerate(structure.names)}

    def add(self, ops) -> None:
        for op in ops:
            if isinstance(op, Repeat):
                self.add_repeat(op)
            else:
                self.add_gate(op, self.slots(op))

    def add_repeat(self, op: Repeat) -> None:
        if op.fresh:  # parameters of its own for every run: their number grows, the trace does not
            self.add(op.flat())
            return
        count, inner = op.count, op.body
        while len(inner) == 1 and isinstance(inner[0], Repeat) and not inner[0].fresh:
            count, inner = count * inner[0].count, inner[0].body
        gates = [g for g in Repeat(inner, 1).flat() if not self.ignored(g)]
        if len(gates) * count <= WRITTEN_OUT or any(_stands_alone(g) for g in gates):
            for _ in range(count):
                self.add(inner)
            return
        placed = [(g, self.slots(g)) for g in gates]
        together = max(1, WRITTEN_OUT // len(gates))
        self.close()
        self.builder = _RunBuilder(self.structure.num_qubits)
        for g, slots in placed * together:
            self.builder.add(g, slots)
        self.close(count // together)
        for g, slots in placed * (count % together):
            self.add_gate(g, slots)

    def ignored(self, gate: Gate) -> bool:
        return gate.kind == "barrier" or (gate.kind == "measure" and not self.keep)

    def slots(self, gate: Gate) -> tuple[int, ...]:
        """Places for the gate's angles among all angles."""
        offset, out = len(self.place), []
        for angle in gate.angles:
            slot = len(self.constants)
            self.constants.append(angle.constant)
            self.entries.extend((slot, self.place[k] if isinstance(k, str) else offset + k, c) for k, c in angle.terms)
            out.append(slot)
        return tuple(out)

    def add_gate(self, gate: Gate, slots: tuple[int, ...]) -> None:
        if self.ignored(gate):
            return
        if _stands_alone(gate):
            self.close()
            self.segments.append(_segment(gate, slots, self.structure.num_qubits))
            return
        self.builder = self.builder or _RunBuilder(self.structure.num_qubits)
        self.builder.add(gate, slots)

    def close(self, repeats: int = 1) -> None:
        """End the run of gates."""
        if self.builder is not None:
            self.segments.append(self.builder.build(repeats))
            self.builder = None

    def lowered(self) -> Lowered:
        if not self.segments:
            self.builder = self.builder or _RunBuilder(self.structure.num_qubits)
        self.close()
        table = np.array(self.entries, np.float64).reshape(-1, 3)
        angles = Angles(
            len(self.constants),
            table[:, 0].astype(np.int32),
            table[:, 1].astype(np.int32),
            table[:, 2],
            np.array(self.constants, np.float64),
        )
        return Lowered(self.structure.num_qubits, angles, tuple(self.segments))


def _stands_alone(gate: Gate) -> bool:
    return gate.kind in ("measure", "reset", "channel") or gate.condition is not None or _is_dense(gate)


def _segment(gate: Gate, slots: tuple[int, ...], n: int) -> "Run | Dense | Gate | Conditioned":
    if gate.kind == "channel" and isinstance(gate.extra, Family):
        return replace(gate, extra=PlacedFamily(gate.extra, slots))
    if gate.kind in ("measure", "reset", "channel"):
        return gate
    if _is_dense(gate):
        inner: Run | Dense = Dense(gate.qubits, gate, slots)
    else:
        builder = _RunBuilder(n)
        builder.add(replace(gate, condition=None), slots)
        inner = builder.build()
    return inner if gate.condition is None else Conditioned(gate.condition, inner)


def _refuse(gates: list[Gate]) -> None:
    measured: dict[int, int] = {}
    for position, gate in enumerate(gates):
        if gate.kind == "barrier":
            continue
        touched = [q for q in gate.qubits if q in measured]
        if touched and gate.kind != "measure":
            raise UnsupportedError(
                f"the circuit measures qubit {touched[0]} in the middle (operation {measured[touched[0]]}), "
                f"then applies {gate.kind!r}",
                remedy="use sample(), which splits there, or leave measurements to the end",
            )
        if gate.kind == "measure":
            measured[gate.targets[0]] = position
        elif gate.condition is not None:
            raise UnsupportedError(
                f"operation {position} ({gate.kind!r}) is classically controlled: the state is not a function of the parameters",
                remedy="use sample()",
            )
        elif not gate.is_unitary:
            raise UnsupportedError(
                f"operation {position} is a {gate.kind}: the state does not stay pure",
                remedy="use density_matrix(), or trajectories() for samples",
            )


def gate_matrix(gate: Gate, angles: tuple[float, ...]) -> np.ndarray:
    """The matrix of a gate in NumPy, on its own targets, controls left out.

    Raises:
        InputError: an operation that is not a gate.
    """
    k = len(gate.targets)
    local = replace(gate, targets=tuple(range(k)), controls=())
    if gate.kind == "unitary":
        return gate.extra.array
    if gate.kind == "custom":
        m = np.asarray(gate.extra.function(*angles))
        return m.conj().T if gate.extra.dagger else m
    if gate.kind not in KINDS:
        raise InputError(f"a {gate.kind} has no matrix")
    masks, function, _, _ = instructions(local)
    index = np.arange(1 << k)
    out = np.eye(1 << k, dtype=complex)
    for (x, z, cmask, cval), (a0, a1, b0, b1) in zip(masks, function(np, tuple(np.float64(a) for a in angles))):
        inside = ((index & cmask) == cval) | ((index & cmask) == (cval ^ (x & cmask)))
        odd = np.bitwise_count(index & z) & 1
        new = np.where(odd, a1, a0)[:, None] * out + np.where(odd, b1, b0)[:, None] * out[index ^ x]
        out = np.where(inside[:, None], new, out)
    return out
