"""Peak memory of a jaxpr before it is compiled: a model of XLA's buffer reuse on a CPU.

What the model holds (each seen in XLA's own buffer assignment):

- an elementwise result whose consumers are elementwise or reductions is fused into them; one of several consumers recomputes
  it, unless it is a transcendental, which XLA does not do twice;
- a transposed operand of a matrix product is read in place;
- an elementwise result takes over the memory of an operand that dies with it;
- a loop's next carry is built in the memory of the step's temporaries and copied over the old one;
- a convolution copies its image and kernel to channels-last, where they are not, and the consumer of its result reorders it back,
  into memory of its own.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from jax.extend.core import Literal

from sciax.core.graph._count import FUSED, TRANSCENDENTAL, inner_jaxprs, nbytes

INLINED = frozenset("jit pjit closed_call core_call custom_jvp_call custom_vjp_call remat2 checkpoint".split())
LOOPS = frozenset(("scan", "while", "cond"))


def peak_bytes(jaxpr: Any) -> int:
    """Arguments, results and the largest sum of temporaries that live at one time.

    Equations run in their order. An estimate of XLA's own sum of arguments, temporaries and outputs (docs/accuracy).
    """
    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    given = {*jaxpr.invars, *jaxpr.constvars}
    results = {v for v in jaxpr.outvars if not isinstance(v, Literal)} - given
    held = sum(nbytes(v.aval) for v in (*given, *results))
    return held + _temporaries(_flatten(jaxpr, results))


@dataclass
class _Step:
    name: str
    inputs: list[Any]
    outputs: list[Any]
    extra: int
    foreign: bool  # the result cannot be overwritten in place: its layout is another


@dataclass
class _Program:
    steps: list[_Step]
    kept: set[Any]  # arguments and results: counted by the caller
    ends: set[Any]  # values that live to the end


class _Fresh:
    """A variable of an inlined call, one for each place it is called from."""

    def __init__(self, aval: Any):
        self.aval = aval


def _flatten(jaxpr: Any, results: Iterable[Any], ends: Iterable[Any] = ()) -> _Program:
    """Calls inlined (jit, custom derivatives); loops and branches as single steps that need `extra` bytes inside."""
    steps: list[_Step] = []
    alias: dict[Any, Any] = {}

    def resolve(v: Any) -> Any:
        while not isinstance(v, Literal) and v in alias:
            v = alias[v]
        return v

    def add(j: Any, scope: dict[Any, Any]) -> None:
        for eqn in j.eqns:
            ins = [scope.get(v, v) for v in eqn.invars if not isinstance(v, Literal)]
            outs = [scope.get(v, v) for v in eqn.outvars]
            inner = inner_jaxprs(eqn)
            if eqn.primitive.name in INLINED and inner:
                body = inner[0]
                fresh: dict[Any, Any] = {
                    v: a if isinstance(a, Literal) else scope.get(a, a) for v, a in zip(body.invars, eqn.invars)
                }
                fresh.update((v, _Fresh(v.aval)) for e in body.eqns for v in e.outvars)
                add(body, fresh)
                for target, own in zip(outs, body.outvars):
                    own = own if isinstance(own, Literal) else fresh.get(own, own)
                    if not isinstance(own, Literal):
                        alias[target] = own
                continue
            steps.append(_Step(eqn.primitive.name, ins, outs, _extra(eqn, inner), _foreign_layout(eqn)))

    add(jaxpr, {})
    for step in steps:
        step.inputs = [v for v in map(resolve, step.inputs) if not isinstance(v, Literal)]
    kept = {resolve(v) for v in (*results, *jaxpr.invars, *jaxpr.constvars)}
    return _Program(steps, kept, {resolve(v) for v in ends} - kept)


def _extra(eqn: Any, inner: list[Any]) -> int:
    """Bytes an equation needs while it runs, besides its operands and results."""
    if eqn.primitive.name in LOOPS:
        return max((_inside(body) for body in inner), default=0)
    if eqn.primitive.name == "conv_general_dilated":
        image, kernel = (v.aval for v in eqn.invars[:2])
        numbers = eqn.params["dimension_numbers"]
        copied = (numbers.lhs_spec[1], numbers.rhs_spec[0])
        return sum(nbytes(a) for a, axis in zip((image, kernel), copied) if axis != len(a.shape) - 1)
    return 0


def _foreign_layout(eqn: Any) -> bool:
    """Whether the result stands in memory in another order than its axes say."""
    if eqn.primitive.name != "conv_general_dilated":
        return False
    return eqn.params["dimension_numbers"].out_spec[1] != len(eqn.outvars[0].aval.shape) - 1


def _inside(body: Any) -> int:
    """Memory that one step of a body needs besides what it is given."""
    ends = {v for v in body.outvars if not isinstance(v, Literal)} - set(body.invars)
    return _temporaries(_flatten(body, (), ends))


def _temporaries(program: _Program) -> int:
    steps = program.steps
    consumers: dict[Any, list[str]] = {}
    for step in steps:
        for v in step.inputs:
            consumers.setdefault(v, []).append(step.name)

    def fused(step: _Step) -> bool:
        out = step.outputs[0]
        if len(step.outputs) != 1 or out in program.kept or out in program.ends:
            return False
        users = consumers.get(out, ())
        if step.name == "transpose" and all(user == "dot_general" for user in users):
            return True
        if step.name not in FUSED or not all(user in FUSED or user.startswith("reduce") for user in users):
            return False
        return len(users) <= 1 or step.name not in TRANSCENDENTAL

    # A fused result keeps its own operands alive until its consumer runs.
    virtual: dict[Any, list[Any]] = {}
    last: dict[Any, int] = {}
    for i, step in enumerate(steps):
        step.inputs = list(dict.fromkeys(w for v in step.inputs for w in virtual.get(v, [v])))
        last.update((v, i) for v in step.inputs)
        if step.outputs and fused(step):
            virtual[step.outputs[0]] = step.inputs
    last.update((v, len(steps)) for v in program.ends)
    foreign = {v for step in steps if step.foreign for v in step.outputs}
    live: dict[Any, int] = {}
    peak = now = 0
    for i, step in enumerate(steps):
        dying = [v for v in step.inputs if last[v] == i and v in live]
        for v in step.outputs:
            if v in virtual or v in program.kept or v not in last:
                continue
            reused = next(
                (d for d in dying if step.name in FUSED and d not in foreign and live[d] >= nbytes(v.aval)), None
            )
            if reused is not None:
                dying.remove(reused)
                live[v] = live.pop(reused)
                continue
            live[v] = nbytes(v.aval)
            now += live[v]
        peak = max(peak, now + step.extra)
        for v in dying:
            now -= live.pop(v)
    return peak


__all__ = ["peak_bytes"]
