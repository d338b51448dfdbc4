"""Find the operation, and the line of the user's code, that first makes a NaN or an infinity."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.core.inspect._interpret import Interpreter, Op, _join
from sciax.core.inspect._jaxpr import scan_inputs, scan_outputs


@dataclass(frozen=True)
class NonFinite:
    """The first operation with a bad result.

    Attributes:
        kind: "nan" (from inputs without NaN), "overflow" (an infinity from finite inputs).
        op: the operation.
        inputs: description of its operands (smallest, largest).
        count: number of bad entries.
        iteration: loop counters from the outermost loop in.
    """

    kind: str
    op: Op
    inputs: tuple[str, ...]
    count: int
    iteration: tuple[int, ...]

    def __str__(self) -> str:
        steps = f", step {'.'.join(map(str, self.iteration))}" if self.iteration else ""
        return f"{self.kind}: {self.op}{steps}: {self.count} bad entries; operands {', '.join(self.inputs)}"


def locate_nonfinite(
    function: Callable[..., Any], *args: Any, max_steps: int = 100_000, **kwargs: Any
) -> NonFinite | None:
    """Run `function(*args, **kwargs)` operation by operation and report the first NaN or overflow; None if there is none.

    Loops run step by step, so that the report tells the step; compiled speed is lost. For a bad gradient pass
    `jax.grad(f)`: backward operations carry the line of the forward code that they belong to. An infinity that was an input
    or a constant (masking with -inf) is not reported, nor is one made by an operation from other infinities.

    Args:
        max_steps: give up, with an error, after this many steps of one loop.
    """
    if not callable(function):
        raise InputError("locate_nonfinite needs a function", got=type(function).__name__)
    leaves, structure = jax.tree.flatten((args, kwargs))
    dynamic = [i for i, x in enumerate(leaves) if hasattr(x, "dtype") or isinstance(x, (bool, int, float, complex))]

    def flat(*arrays: Any) -> Any:
        values = list(leaves)
        for i, a in zip(dynamic, arrays):
            values[i] = a
        a, k = jax.tree.unflatten(structure, values)
        return function(*a, **k)

    arrays = [jnp.asarray(leaves[i]) for i in dynamic]
    closed = jax.make_jaxpr(flat)(*arrays)
    stepper = _Stepper(max_steps)
    try:
        stepper.run(closed.jaxpr, closed.consts, arrays, "")
    except _Found as found:
        return found.report
    return None


class _Found(Exception):
    def __init__(self, report: NonFinite):
        self.report = report


def _describe(x: Any) -> str:
    a = np.asarray(x)
    if a.size == 0:
        return f"{a.dtype}{list(a.shape)}"
    if a.size == 1:
        return f"{a.dtype} {a.reshape(())}"
    if a.dtype.kind not in "fiu":
        return f"{a.dtype}{list(a.shape)}"
    return f"{a.dtype}{list(a.shape)} in [{a.min():.3g}, {a.max():.3g}]"


def _bad(x: Any) -> tuple[bool, bool]:
    """Whether there is a NaN, whether there is an infinity."""
    dtype = getattr(x, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.inexact):
        return False, False
    a = np.asarray(x)
    if a.dtype.kind not in "fc":
        a = a.astype(np.float32)  # bfloat16
    return bool(np.isnan(a).any()), bool(np.isinf(a).any())


class _Stepper(Interpreter):
    """Runs everything, loops included, in Python."""

    def __init__(self, max_steps: int):
        super().__init__(self._check, into_custom=True)
        self.max_steps, self.steps = max_steps, []

    def _check(self, op: Op, inputs: Any, run: Any) -> list[Any]:
        outputs = run(*inputs)
        before = [_bad(x) for x in inputs]
        nan_in, inf_in = any(b[0] for b in before), any(b[1] for b in before)
        for out in outputs:
            nan, inf = _bad(out)
            if (nan and not nan_in) or (inf and not inf_in and not nan_in):
                a = (
                    np.asarray(out).astype(complex)
                    if np.asarray(out).dtype.kind == "c"
                    else np.asarray(out, np.float64)
                )
                kind = "nan" if nan else "overflow"
                count = int((np.isnan(a) if nan else np.isinf(a)).sum())
                raise _Found(NonFinite(kind, op, tuple(map(_describe, inputs)), count, tuple(self.steps)))
        return outputs

    def _scan(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        p = eqn.params
        consts, carry, xs = scan_inputs(p, inputs)
        _, stacked_vars = scan_outputs(p, eqn.outvars)
        rows: list[list[Any]] = [[] for _ in stacked_vars]
        steps = range(p["length"])
        for k in reversed(steps) if p["reverse"] else steps:
            self.steps.append(k)
            out = self.run(
                p["jaxpr"].jaxpr, p["jaxpr"].consts, [*consts, *carry, *[x[k] for x in xs]], _join(path, "scan")
            )
            self.steps.pop()
            carry, ys = scan_outputs(p, out)
            for row, y in zip(rows, ys):
                row.append(y)
        stacked = []
        for row, var in zip(rows, stacked_vars):
            row = row[::-1] if p["reverse"] else row
            stacked.append(jnp.stack(row) if row else jnp.zeros(var.aval.shape, var.aval.dtype))
        return [*carry, *stacked]

    def _while(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        p = eqn.params
        a, b = p["cond_nconsts"], p["body_nconsts"]
        state, k = inputs[a + b :], 0
        while True:
            go = self.run(
                p["cond_jaxpr"].jaxpr, p["cond_jaxpr"].consts, [*inputs[:a], *state], _join(path, "while_test")
            )[0]
            if not bool(go):
                return state
            if k >= self.max_steps:
                raise InputError(f"the loop had not ended after {k} steps", remedy="raise max_steps=")
            self.steps.append(k)
            state = self.run(
                p["body_jaxpr"].jaxpr, p["body_jaxpr"].consts, [*inputs[a : a + b], *state], _join(path, "while")
            )
            self.steps.pop()
            k += 1

    def _cond(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        branches = eqn.params["branches"]
        k = int(np.clip(int(inputs[0]), 0, len(branches) - 1))
        return self.run(branches[k].jaxpr, branches[k].consts, inputs[1:], _join(path, f"branch{k}"))
