"""Circuits: a static, hashable structure and a flat vector of numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.quantum._builder import Builder, as_indices
from sciax.quantum._expression import split_angle
from sciax.quantum._gate import Gate
from sciax.quantum._kinds import ALIASES, kind_of


@dataclass(frozen=True)
class Repeat:
    """A body run `count` times; `fresh` gives every run its own parameters, named name_0, name_1, ..."""

    body: tuple["Gate | Repeat", ...]
    count: int
    fresh: bool = False

    def flat(self) -> "list[Gate]":
        """Its gates, written out."""
        return list(_flatten((self,)))

    def __hash__(self) -> int:
        return hash((len(self.body), self.count, self.fresh))


@dataclass(frozen=True)
class Structure:
    """The static part of a circuit: equal structures share compiled programs.

    Attributes:
        num_qubits, num_bits: register sizes.
        ops: gates and repeated blocks.
        names: free parameters, in the order of the parameter vector.
        encoder: those of them that feed data in (see `Circuit.as_encoder`).
        num_values: length of the vector of numbers.
    """

    num_qubits: int
    num_bits: int
    ops: tuple[Gate | Repeat, ...]
    names: tuple[str, ...]
    encoder: frozenset[str]
    num_values: int

    @cached_property
    def _hash(self) -> int:
        return hash((self.num_qubits, self.num_bits, self.ops, self.names, self.encoder, self.num_values))

    def __hash__(self) -> int:
        return self._hash

    def flat(self, limit: int | None = None) -> list[Gate]:
        """All gates in order, repeated blocks written out (`limit` times at most, those with fresh parameters in full)."""
        return list(_flatten(self.ops, limit))


def _flatten(ops, limit: int | None = None):
    for op in ops:
        if isinstance(op, Repeat):
            body = list(_flatten(op.body, limit))
            if op.fresh:
                for k in range(op.count):
                    yield from (_fresh(g, k) for g in body)
            else:
                for _ in range(op.count if limit is None else min(op.count, limit)):
                    yield from body
        else:
            yield op


def _fresh(gate: Gate, k: int) -> Gate:
    change = lambda key: f"{key}_{k}" if isinstance(key, str) else key  # noqa: E731
    return replace(gate, angles=tuple(a.rename(change) for a in gate.angles))


class Circuit(Builder):
    """A quantum circuit on `num_qubits` qubits and `num_bits` classical bits.

    Qubit 0 is the least significant bit of a basis state's index. Circuits are immutable: every method returns a new one.

        bell = Circuit(2).h(0).cx(0, 1)
        ansatz = Circuit(1).ry("theta", 0)             # a free parameter
        fixed = Circuit(1).ry(0.3, 0)                   # a number; stored in `values`, never recompiles

    As a JAX pytree its only leaf is `values`; the rest is static.

    Raises:
        InputError: register sizes out of range.
    """

    def __init__(self, num_qubits: int, num_bits: int = 0):
        if not isinstance(num_qubits, int | np.integer) or not 0 <= num_qubits <= 4096:
            raise InputError("a circuit needs a number of qubits", got=repr(num_qubits), expected="0..4096")
        if not isinstance(num_bits, int | np.integer) or num_bits < 0:
            raise InputError("a circuit needs a number of classical bits", got=repr(num_bits), expected=">= 0")
        self.structure = Structure(int(num_qubits), int(num_bits), (), (), frozenset(), 0)
        self._values: tuple[Any, ...] | Any = ()

    @classmethod
    def _of(cls, structure: Structure, values) -> "Circuit":
        circuit = object.__new__(cls)
        circuit.structure = structure
        circuit._values = values
        return circuit

    @classmethod
    def from_gates(
        cls, num_qubits: int, gates: Iterable[Gate | Repeat], values=(), num_bits: int = 0, encoder=()
    ) -> "Circuit":
        """From operations and the numbers that their integer keys refer to."""
        ops = tuple(gates)
        empty = cls(num_qubits, num_bits)
        names = tuple(_names(ops))
        values = values if hasattr(values, "dtype") else tuple(values)
        return cls._of(
            replace(empty.structure, ops=ops, names=names, encoder=frozenset(encoder), num_values=len(values)), values
        )

    # -- what it is

    @property
    def num_qubits(self) -> int:
        return self.structure.num_qubits

    @property
    def num_bits(self) -> int:
        return self.structure.num_bits

    @property
    def names(self) -> tuple[str, ...]:
        """Free parameters, in the order of the parameter vector."""
        return self.structure.names

    @property
    def encoder_names(self) -> tuple[str, ...]:
        return tuple(n for n in self.names if n in self.structure.encoder)

    @property
    def ansatz_names(self) -> tuple[str, ...]:
        return tuple(n for n in self.names if n not in self.structure.encoder)

    @property
    def gates(self) -> list[Gate]:
        """All operations, repeated blocks written out."""
        return self.structure.flat()

    @property
    def values(self):
        """Numbers used as gate parameters: NumPy float64, or a JAX array when some are traced."""
        if not isinstance(self._values, tuple):
            return self._values
        if any(isinstance(v, jax.core.Tracer) for v in self._values):
            self._values = jnp.stack([jnp.asarray(v) for v in self._values])
        else:
            self._values = np.asarray(self._values, np.float64)
        return self._values

    @property
    def depth(self) -> int:
        """Length of the longest chain of operations that share a qubit or a classical bit (barriers not counted)."""
        level: dict[tuple[str, int], int] = {}
        for g in self.gates:
            if g.kind == "barrier":
                continue
            wires = [("q", q) for q in g.qubits] + [("c", b) for b in g.bits]
            wires += [("c", b) for b in g.condition[0]] if g.condition else []
            top = 1 + max((level.get(w, 0) for w in wires), default=0)
            level.update((w, top) for w in wires)
        return max(level.values(), default=0)

    def __len__(self) -> int:
        return len(self.gates)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Circuit):
            return NotImplemented
        return self.structure == other.structure and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.structure)

    def __repr__(self) -> str:
        bits = f", {self.num_bits} bits" if self.num_bits else ""
        return f"Circuit({self.num_qubits} qubits{bits}, {len(self)} gates, {len(self.names)} parameters)"

    def __str__(self) -> str:
        from sciax.quantum._draw import text

        return text(self)

    # -- adding gates

    def append(self, gate: Gate | Repeat, new_values: Sequence[Any] = ()) -> "Circuit":
        """The circuit followed by a gate, checked against the registers. Numbers in it must already be keys."""
        if isinstance(gate, Gate):
            _check_gate(gate, self.num_qubits, self.num_bits)
        s = self.structure
        known = set(s.names)
        fresh = tuple(n for n in _names((gate,)) if n not in known)
        old = self._values if isinstance(self._values, tuple) else tuple(self._values)
        values = self._values if not new_values else (*old, *new_values)
        return Circuit._of(replace(s, ops=(*s.ops, gate), names=s.names + fresh, num_values=len(values)), values)

    def gate(
        self,
        name: str,
        targets: int | Sequence[int],
        angles: Any = (),
        *,
        controls: int | Sequence[int] = (),
        negative: int | Sequence[int] = (),
        extra: Any = None,
    ) -> "Circuit":
        """Append the gate `name` of the gate table, with positive `controls` and `negative` ones.

        Raises:
            InputError: an unknown gate, a wrong number of targets or angles, a qubit out of range or used twice, a parameter that
                is not finite.
        """
        return self._add(*table_gate(name, targets, angles, controls, negative, extra))

    def _add(self, gate: Gate, angles: Sequence[Any]) -> "Circuit":
        slot, values, expressions = self.structure.num_values, [], []
        for angle in angles:
            expression, value = split_angle(angle, slot + len(values))
            expressions.append(expression)
            if value is not None:
                values.append(value)
        return self.append(replace(gate, angles=tuple(expressions)), values)

    def _conditioned(self, condition, body: Any) -> "Circuit":
        if any(g.condition is not None for g in body.gates):
            raise InputError("conditions cannot be nested")
        gates = [g if g.kind == "barrier" else replace(g, condition=condition) for g in body.gates]
        for g in gates:
            _check_gate(g, self.num_qubits, self.num_bits)
        return self + Circuit.from_gates(body.num_qubits, gates, body.values, body.num_bits, body.structure.encoder)

    # -- whole circuits

    def __add__(self, other: "Circuit") -> "Circuit":
        """This circuit, then the other, on the larger of the registers. Equal names are the same parameter.

        Raises:
            InputError: a name that is an encoder's in one and an ansatz's in the other.
        """
        a, b = self.structure, other.structure
        clash = sorted((a.encoder & (set(b.names) - b.encoder)) | (b.encoder & (set(a.names) - a.encoder)))
        if clash:
            raise InputError(
                "a parameter is an encoder's in one circuit and an ansatz's in the other",
                got=", ".join(clash),
                remedy="rename it: circuit.rename({old: new})",
            )
        offset = a.num_values
        shift = lambda key: key + offset if isinstance(key, int) else key  # noqa: E731
        names = a.names + tuple(n for n in b.names if n not in set(a.names))
        structure = Structure(
            max(a.num_qubits, b.num_qubits),
            max(a.num_bits, b.num_bits),
            a.ops + _map_keys(b.ops, shift),
            names,
            a.encoder | b.encoder,
            offset + b.num_values,
        )
        return Circuit._of(structure, (*tuple(self.values), *tuple(other.values)))

    def inverse(self) -> "Circuit":
        """The circuit backwards.

        Raises:
            UnsupportedError: measurement, reset, channels or classical control inside.
        """
        return self._with(_map_gates(tuple(reversed(self.structure.ops)), Gate.inverse, reverse=True))

    def control(self, qubits: int | Sequence[int], value: int = 1) -> "Circuit":
        """Every gate controlled by `qubits` (value 0: negative controls), global phases included.

        Raises:
            InputError: a control that the circuit already uses; UnsupportedError: operations that are not unitary.
        """
        extra = tuple((q, value) for q in as_indices(qubits))
        if value not in (0, 1):
            raise InputError("a control value is 0 or 1", got=value)

        def add(g: Gate) -> Gate:
            if g.kind == "barrier":
                return g
            if not g.is_unitary:
                raise UnsupportedError(f"a {g.kind} or a classically controlled gate cannot be controlled by a qubit")
            g = replace(g, controls=g.controls + extra)
            _check_gate(g, n, self.num_bits)
            return g

        n = max(self.num_qubits, *(q + 1 for q, _ in extra)) if extra else self.num_qubits
        return self._with(_map_gates(self.structure.ops, add), num_qubits=n)

    def power(self, exponent: float) -> "Circuit":
        """An integer power repeats the circuit (negative: its inverse); a fractional one is for circuits of one gate.

        Raises:
            UnsupportedError: a fractional power of several gates.
        """
        if float(exponent).is_integer():
            base = self if exponent >= 0 else self.inverse()
            return base.repeat(int(abs(exponent)))
        ops = [g for g in self.gates if g.kind != "barrier"]
        if len(ops) > 1:
            raise UnsupportedError(
                "a fractional power of several gates is not a circuit", got=exponent, expected="an integer"
            )
        return self._with(tuple(g.power(float(exponent)) for g in ops))

    def repeat(self, count: int, *, fresh: bool = False) -> "Circuit":
        """The circuit `count` times, kept as one block: structure and compile time do not grow with `count`.

        Args:
            fresh: give every repetition parameters of its own, named name_0, name_1, ...
        """
        if not isinstance(count, int | np.integer) or count < 0:
            raise InputError("a circuit is repeated a whole number of times", got=count, expected=">= 0")
        s = self.structure
        ops = (Repeat(s.ops, int(count), fresh),) if count and s.ops else ()
        encoder = s.encoder
        if fresh:
            encoder = frozenset(f"{n}_{k}" for n in s.encoder for k in range(count))
        return Circuit._of(
            replace(s, ops=ops, names=tuple(_names(ops)), encoder=encoder & set(_names(ops))), self._values
        )

    def remap(self, qubits: Mapping[int, int] | Sequence[int], num_qubits: int | None = None) -> "Circuit":
        """The circuit on other qubits: qubit q becomes qubits[q].

        Raises:
            InputError: two qubits sent to the same one, or a used qubit without an image.
        """
        table = dict(qubits) if isinstance(qubits, Mapping) else dict(enumerate(qubits))
        if len(set(table.values())) != len(table):
            raise InputError("two qubits are sent to the same one", got=table)
        used = {q for g in self.structure.flat(limit=1) for q in g.qubits}
        if used - set(table):
            raise InputError("a used qubit has no image", got=sorted(used - set(table)))
        n = max((v + 1 for v in table.values()), default=0) if num_qubits is None else num_qubits

        def move(g: Gate) -> Gate:
            g = replace(
                g, targets=tuple(table[q] for q in g.targets), controls=tuple((table[q], v) for q, v in g.controls)
            )
            _check_gate(g, n, self.num_bits)
            return g

        return self._with(_map_gates(self.structure.ops, move), num_qubits=n)

    # -- parameters

    def rename(self, names: Mapping[str, str] | Callable[[str], str]) -> "Circuit":
        """The circuit with parameters renamed.

        Raises:
            InputError: an unknown name, or two names made one.
        """
        if isinstance(names, Mapping):
            unknown = sorted(set(names) - set(self.names))
            if unknown:
                raise InputError(f"no parameter named {unknown[0]!r}", remedy=did_you_mean(unknown[0], self.names))
            table = {n: names.get(n, n) for n in self.names}
        else:
            table = {n: names(n) for n in self.names}
        if len(set(table.values())) != len(table):
            raise InputError("two parameters get the same name", got=table)
        ops = tuple(self.structure.flat())  # names inside fresh blocks are made when the block is written out
        change = lambda key: table[key] if isinstance(key, str) else key  # noqa: E731
        structure = replace(
            self.structure,
            ops=_map_keys(ops, change),
            names=tuple(table[n] for n in self.names),
            encoder=frozenset(table[n] for n in self.structure.encoder),
        )
        return Circuit._of(structure, self._values)

    def bind(self, params: Mapping[str, Any]) -> "Circuit":
        """The circuit with some parameters set to numbers.

        Raises:
            InputError: an unknown name, or a value that is not a finite scalar.
        """
        unknown = sorted(set(params) - set(self.names))
        if unknown:
            raise InputError(f"no parameter named {unknown[0]!r}", remedy=did_you_mean(unknown[0], self.names))
        slots, values = {}, list(self.values)
        for name, value in params.items():
            _, number = split_angle(value, 0)
            if number is None:
                raise InputError(
                    f"parameter {name!r} must be bound to a number", got=repr(value), remedy="rename() changes names"
                )
            slots[name] = len(values)
            values.append(number)
        change = lambda key: slots.get(key, key) if isinstance(key, str) else key  # noqa: E731
        structure = replace(
            self.structure,
            ops=_map_keys(tuple(self.structure.flat()), change),
            names=tuple(n for n in self.names if n not in slots),
            encoder=self.structure.encoder - set(slots),
            num_values=len(values),
        )
        return Circuit._of(structure, tuple(values))

    def as_encoder(self) -> "Circuit":
        """All parameters marked as data inputs: `encoder_names`."""
        return Circuit._of(replace(self.structure, encoder=frozenset(self.names)), self._values)

    def as_ansatz(self) -> "Circuit":
        """All parameters marked as trainable: `ansatz_names`."""
        return Circuit._of(replace(self.structure, encoder=frozenset()), self._values)

    def parameter_vector(self, params: Any = None) -> Any:
        """The parameter vector from a vector or a mapping of names, checked.

        Raises:
            InputError: unbound or unknown names, a wrong length, values that are not finite.
        """
        names = self.names
        if params is None or (isinstance(params, Mapping) and not params):
            if names:
                raise InputError("the circuit has unbound parameters", got="no values", expected=", ".join(names[:8]))
            return np.zeros(0)
        if isinstance(params, Mapping):
            unknown, missing = sorted(set(params) - set(names)), [n for n in names if n not in params]
            if unknown:
                raise InputError(f"no parameter named {unknown[0]!r}", remedy=did_you_mean(unknown[0], names))
            if missing:
                raise InputError("unbound parameters", got=", ".join(missing[:8]), expected="a value for every name")
            items = [params[n] for n in names]
            traced = any(isinstance(v, jax.Array) for v in items)
            vector = jnp.stack([jnp.asarray(v) for v in items]) if traced else np.asarray(items)
        else:
            vector = params if hasattr(params, "dtype") else np.asarray(params)
        if vector.shape != (len(names),):
            raise InputError(
                "the parameter vector does not fit the circuit",
                got=f"shape {tuple(vector.shape)}",
                expected=f"({len(names)},), in the order of circuit.names",
                remedy="use jax.vmap for a batch of parameter vectors",
            )
        if not isinstance(vector, jax.core.Tracer):
            flat = np.asarray(vector)
            if flat.dtype.kind not in "fiu":
                raise InputError("parameters must be real numbers", got=flat.dtype)
            if not np.all(np.isfinite(flat)):
                bad = [n for n, v in zip(names, flat) if not np.isfinite(v)]
                raise InputError("parameters are not finite", got=", ".join(bad[:8]))
        return vector

    def _with(self, ops, num_qubits: int | None = None) -> "Circuit":
        s = self.structure
        n = s.num_qubits if num_qubits is None else num_qubits
        return Circuit._of(replace(s, ops=ops, num_qubits=n), self._values)


def table_gate(name: str, targets, angles, controls=(), negative=(), extra=None) -> tuple[Gate, tuple[Any, ...]]:
    """A gate of the table without its angles, and these, with their numbers checked; see `Circuit.gate`."""
    name = ALIASES.get(name, name)
    kind = kind_of(name)
    targets, controls, negative = as_indices(targets), as_indices(controls), as_indices(negative)
    angles = tuple(angles) if isinstance(angles, tuple | list) else (angles,)
    expected = {0: None, -1: 0}.get(kind.targets, kind.targets)
    if expected is not None and len(targets) != expected:
        raise InputError(f"gate {name!r}: wrong number of target qubits", got=len(targets), expected=expected)
    if len(angles) != kind.angles:
        raise InputError(f"gate {name!r}: wrong number of parameters", got=len(angles), expected=kind.angles)
    return Gate(name, targets, tuple((q, 1) for q in controls) + tuple((q, 0) for q in negative), (), extra), angles


class GateList(Builder):
    """The builder methods on a growing list: for making long circuits in linear time."""

    def __init__(self, num_qubits: int, num_bits: int = 0):
        self.num_qubits, self.num_bits = num_qubits, num_bits
        self.ops: list[Gate] = []
        self.values: list[Any] = []

    def gate(self, name, targets, angles=(), *, controls=(), negative=(), extra=None) -> "GateList":
        return self._add(*table_gate(name, targets, angles, controls, negative, extra))

    def _add(self, gate: Gate, angles: Sequence[Any]) -> "GateList":
        expressions = []
        for angle in angles:
            expression, value = split_angle(angle, len(self.values))
            expressions.append(expression)
            if value is not None:
                self.values.append(value)
        gate = replace(gate, angles=tuple(expressions))
        _check_gate(gate, self.num_qubits, self.num_bits)
        self.ops.append(gate)
        return self

    def _conditioned(self, condition, body) -> "GateList":
        raise UnsupportedError("a list of gates takes no conditions", remedy="Circuit.when")

    def circuit(self) -> Circuit:
        """The circuit of the gates so far."""
        return Circuit.from_gates(self.num_qubits, self.ops, self.values, self.num_bits)


def _names(ops) -> list[str]:
    seen: dict[str, None] = {}
    for g in _flatten(ops, limit=1):
        for angle in g.angles:
            for key, _ in angle.terms:
                if isinstance(key, str):
                    seen.setdefault(key)
    return list(seen)


def _map_gates(ops, function, *, reverse: bool = False):
    out = []
    for op in ops:
        if isinstance(op, Repeat):
            body = tuple(reversed(op.body)) if reverse else op.body
            if op.fresh and reverse:  # the runs themselves change order, so the names no longer count upwards
                out.extend(function(g) for g in reversed(list(_flatten((op,)))))
            else:
                out.append(replace(op, body=_map_gates(body, function, reverse=reverse)))
        else:
            out.append(function(op))
    return tuple(out)


def _map_keys(ops, change):
    return _map_gates(ops, lambda g: replace(g, angles=tuple(a.rename(change) for a in g.angles)) if g.angles else g)


def _check_gate(gate: Gate, num_qubits: int, num_bits: int) -> None:
    qubits = gate.qubits
    for q in qubits:
        if not 0 <= q < num_qubits:
            raise InputError(f"gate {gate.kind!r}: qubit out of range", got=q, expected=f"0..{num_qubits - 1}")
    if len(set(qubits)) != len(qubits):
        twice = sorted({q for q in qubits if qubits.count(q) > 1})
        raise InputError(
            f"gate {gate.kind!r}: a qubit is used twice", got=f"qubit {twice[0]}", expected="distinct qubits"
        )
    for b in gate.bits + (gate.condition[0] if gate.condition else ()):
        if not 0 <= b < num_bits:
            raise InputError(
                f"{gate.kind!r}: classical bit out of range",
                got=b,
                expected=f"0..{num_bits - 1}",
                remedy="Circuit(n, num_bits)",
            )


jax.tree_util.register_pytree_node(
    Circuit,
    lambda c: ((c.values,), c.structure),
    lambda structure, leaves: Circuit._of(structure, leaves[0]),
)
