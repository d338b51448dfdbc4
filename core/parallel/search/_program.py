"""A traced program as a flat list of operations on numbered values; calls inlined, bodies of scans nested."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from sciax.core.inspect._jaxpr import scan_inputs, scan_outputs

_CALLS = frozenset(
    "jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr remat2 checkpoint".split()
)


@dataclass(eq=False)
class Value:
    """An array of the program. `index` counts them in the order of tracing, which is the same at every trace."""

    aval: Any
    index: int = -1

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(getattr(self.aval, "shape", ()))

    @property
    def itemsize(self) -> int:
        """Bytes an entry; 0 for what cannot be split (keys, tokens)."""
        try:
            return np.dtype(self.aval.dtype).itemsize
        except (AttributeError, TypeError):
            return 0


@dataclass(eq=False)
class Op:
    """One operation.

    Attributes:
        name: of the primitive.
        ins: values, or `Constant`s.
        times: how often the loops around it run it.
        body: of a scan.
    """

    name: str
    eqn: Any
    ins: list[Any]
    outs: list[Value]
    times: int
    body: "Block | None" = None
    index: int = -1


@dataclass(eq=False)
class Constant:
    """A literal of the jaxpr."""

    value: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return np.shape(self.value)


@dataclass(eq=False)
class Block:
    """Operations in order, from `ins` (and captured arrays `consts`) to `outs`."""

    ins: list[Value]
    outs: list[Any]
    consts: list[tuple[Value, Any]] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(eq=False)
class Program:
    """`block` with its values and operations numbered, those in bodies of scans included."""

    block: Block
    values: list[Value]
    ops: list[Op]

    @property
    def signature(self) -> tuple[Any, ...]:
        """What two traces of one function share: a plan's inner placements fit a program with the same."""
        return tuple((op.name, tuple(v.shape for v in op.outs)) for op in self.ops)


def trace(function: Callable[..., Any], *args: Any) -> tuple[Program, Any]:
    """The program of `function` at arrays or shapes, without what its results do not need; and the shapes of its results."""
    # From shapes alone: what an argument's placement adds to a trace would make it another program.
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), jax.dtypes.result_type(leaf)), args)
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*shapes)
    block = _flatten(closed.jaxpr, closed.consts, None, 1)
    _prune(block)
    values: dict[Value, None] = {}
    ops: list[Op] = []
    _number(block, values, ops)
    for i, value in enumerate(values):
        value.index = i
    for i, op in enumerate(ops):
        op.index = i
    return Program(block, list(values), ops), shape


def _flatten(jaxpr: Any, consts: Sequence[Any], given: list[Any] | None, times: int) -> Block:
    ins = [Value(v.aval) for v in jaxpr.invars] if given is None else given
    block = Block([v for v in ins if isinstance(v, Value)], [])
    _add(block, jaxpr, consts, ins, times)
    return block


def _add(block: Block, jaxpr: Any, consts: Sequence[Any], given: list[Any], times: int) -> None:
    """Append the equations of `jaxpr` to `block`; its results become `block.outs`."""
    known: dict[Any, Any] = dict(zip(jaxpr.invars, given, strict=True))
    for var, array in zip(jaxpr.constvars, consts, strict=True):
        known[var] = Value(var.aval)
        block.consts.append((known[var], array))

    def read(atom: Any) -> Any:
        return Constant(atom.val) if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        ins = [read(atom) for atom in eqn.invars]
        inner = _inner(eqn) if name in _CALLS else None
        if inner is not None:
            if name in ("remat2", "checkpoint") and eqn.params["differentiated"] and eqn.params["prevent_cse"]:
                # What jax.checkpoint lowers to: without the barrier XLA would merge the second evaluation with the first.
                held = [v for v in ins if isinstance(v, Value)]
                fresh = {v: Value(v.aval) for v in held}
                block.ops.append(Op("optimization_barrier", None, list(fresh), list(fresh.values()), times))
                ins = [fresh.get(v, v) if isinstance(v, Value) else v for v in ins]
            inside, captured = inner
            kept = block.outs
            _add(block, inside, captured, ins, times)
            outs, block.outs = block.outs, kept
            known |= zip(eqn.outvars, outs, strict=True)
            continue
        outs = [Value(v.aval) for v in eqn.outvars]
        known |= zip(eqn.outvars, outs, strict=True)
        op = Op(name, eqn, ins, outs, times)
        if name == "scan":
            body = eqn.params["jaxpr"]
            op.body = _flatten(body.jaxpr, body.consts, None, times * eqn.params["length"])
        block.ops.append(op)
    block.outs = [read(atom) for atom in jaxpr.outvars]


def _inner(eqn: Any) -> tuple[Any, Sequence[Any]] | None:
    for key in ("call_jaxpr", "jaxpr", "fun_jaxpr"):
        inner = eqn.params.get(key)
        if inner is not None:
            return (inner.jaxpr, inner.consts) if hasattr(inner, "jaxpr") else (inner, ())
    return None


def _prune(block: Block) -> None:
    """Drop operations whose results nobody reads, as XLA will."""
    needed = {v for v in block.outs if isinstance(v, Value)}
    kept = []
    for op in reversed(block.ops):
        if any(v in needed for v in op.outs) or (op.eqn is not None and op.eqn.effects):
            kept.append(op)
            needed |= {v for v in op.ins if isinstance(v, Value)}
    block.ops = kept[::-1]
    block.consts = [(v, array) for v, array in block.consts if v in needed]
    for op in block.ops:
        if op.body is not None:
            _prune(op.body)


def _number(block: Block, values: dict[Value, None], ops: list[Op]) -> None:
    values |= dict.fromkeys([*block.ins, *(v for v, _ in block.consts)])
    for op in block.ops:
        ops.append(op)
        if op.body is not None:
            _number(op.body, values, ops)
        values |= dict.fromkeys(op.outs)


def evaluate(
    block: Block,
    args: Sequence[Any],
    read: Callable[[Op, int, Any], Any] = lambda op, port, array: array,
    write: Callable[[Value, Any], Any] = lambda value, array: array,
    between: Callable[[Op, list[Any]], list[Any]] = lambda op, arrays: arrays,
) -> list[Any]:
    """Run the program, with `read` at each operand, `write` at each value made, `between` at each operation's raw results."""
    known: dict[Value, Any] = {v: write(v, a) for v, a in zip(block.ins, args, strict=True)}
    known |= {v: write(v, a) for v, a in block.consts}

    def look(atom: Any) -> Any:
        return atom.value if isinstance(atom, Constant) else known[atom]

    for op in block.ops:
        inputs = [read(op, port, look(atom)) for port, atom in enumerate(op.ins)]
        if op.body is not None:
            outputs = _scan(op, inputs, read, write, between)
        elif op.eqn is None:
            outputs = list(jax.lax.optimization_barrier(tuple(inputs)))
        else:
            bound = op.eqn.primitive.get_bind_params(op.eqn.params)
            subfuns, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair before jax 0.12
            raw = op.eqn.primitive.bind(*subfuns, *inputs, **params)
            outputs = list(raw) if op.eqn.primitive.multiple_results else [raw]
        known |= {v: write(v, a) for v, a in zip(op.outs, between(op, outputs), strict=True)}
    return [look(v) for v in block.outs]


def _scan(op: Op, inputs: list[Any], read: Any, write: Any, between: Any) -> list[Any]:
    p, body = op.eqn.params, op.body
    consts, carry, xs = scan_inputs(p, inputs)
    assert body is not None

    def step(c: Any, x: Any) -> Any:
        outs = evaluate(body, [*consts, *c, *x], read, write, between)
        return scan_outputs(p, [between_out(i, a) for i, a in enumerate(outs)])

    def between_out(i: int, array: Any) -> Any:
        """The next carry goes where the carry is."""
        return write(body.ins[len(consts) + i], array) if i < len(carry) else array

    last, ys = jax.lax.scan(step, list(carry), list(xs), length=p["length"], reverse=p["reverse"], unroll=p["unroll"])
    return [*last, *ys]
