"""An interpreter of jaxprs with a hook at every operation: eager, under jit, and under grad alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from sciax.core.errors import InputError
from sciax.core.inspect._jaxpr import scan_inputs, scan_outputs
from sciax.core.inspect._source import scope_of, source_of


@dataclass(frozen=True)
class Op:
    """One operation as a hook sees it.

    Attributes:
        name: the primitive ("dot_general", "tanh").
        scope: the name stack, from `jax.named_scope`, with the loops and calls around it ("scan/layer").
        source: file and line of the user's code.
        params: the primitive's parameters.
        shapes: (shape, dtype) of the outputs.
        index: number of the operation in the program, in the order of tracing.
    """

    name: str
    scope: str
    source: tuple[str, int] | None
    params: dict[str, Any]
    shapes: tuple[tuple[tuple[int, ...], str], ...]
    index: int

    def __str__(self) -> str:
        place = f" at {self.source[0]}:{self.source[1]}" if self.source else ""
        scope = f" in {self.scope}" if self.scope else ""
        return f"{self.name}{scope}{place}"


Hook = Callable[[Op, Sequence[Any], Callable[..., Any]], Any]


def with_hooks(function: Callable[..., Any], hook: Hook, *, into_custom: bool = False) -> Callable[..., Any]:
    """`function`, with `hook(op, inputs, run)` called in place of every operation.

    The hook returns what the operation is to give: `run(*inputs)` for the ordinary result (a list of arrays), or something
    else of the same shapes. It runs when the function is traced: once under jit, at each call otherwise. Bodies of loops and
    branches are entered; functions with a custom derivative are one operation each, so that their rule stays in force.

    Args:
        into_custom: enter functions with custom derivatives too (their rules are then not used).

    Raises:
        InputError: the hook returned other shapes.
    """
    if not callable(function) or not callable(hook):
        raise InputError(
            "with_hooks(function, hook) needs two functions", got=(type(function).__name__, type(hook).__name__)
        )

    def hooked(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        dynamic = [
            i
            for i, x in enumerate(leaves)
            if isinstance(x, (jax.Array, float, int, complex, bool)) or hasattr(x, "dtype")
        ]

        def flat(*arrays: Any) -> Any:
            values = list(leaves)
            for i, a in zip(dynamic, arrays):
                values[i] = a
            a, k = jax.tree.unflatten(structure, values)
            return function(*a, **k)

        arrays = [leaves[i] for i in dynamic]
        closed, shape = jax.make_jaxpr(flat, return_shape=True)(*arrays)
        out = Interpreter(hook, into_custom).run(closed.jaxpr, closed.consts, arrays, "")
        return jax.tree.unflatten(jax.tree.structure(shape), out)

    return hooked


class Interpreter:
    """Evaluates a jaxpr, calling a hook at each equation."""

    def __init__(self, hook: Hook, into_custom: bool = False):
        self.hook, self.into_custom, self.count = hook, into_custom, 0

    def run(self, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], path: str) -> list[Any]:
        values: dict[Any, Any] = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, args))

        def read(atom: Any) -> Any:
            return atom.val if isinstance(atom, Literal) else values[atom]

        for eqn in jaxpr.eqns:
            inputs = [read(v) for v in eqn.invars]
            with jax.named_scope(scope_of(eqn)) if scope_of(eqn) else _NOTHING:
                outputs = self.equation(eqn, inputs, path)
            for var, value in zip(eqn.outvars, outputs):
                values[var] = value
        return [read(v) for v in jaxpr.outvars]

    def equation(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        name = eqn.primitive.name
        special = getattr(self, f"_{name}", None)
        if special is not None:
            return special(eqn, inputs, path)
        inner = _call_jaxpr(eqn)
        if inner is not None and (name in ("jit", "pjit", "closed_call", "core_call", "xla_call") or self.into_custom):
            return self.run(inner.jaxpr, inner.consts, inputs, _join(path, eqn.params.get("name", "")))
        return self.apply(eqn, inputs, path)

    def apply(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        """One primitive, through the hook."""
        scope = _join(path, scope_of(eqn))
        shapes = tuple((tuple(v.aval.shape), str(v.aval.dtype)) for v in eqn.outvars if hasattr(v.aval, "shape"))
        op = Op(eqn.primitive.name, scope, source_of(eqn), dict(eqn.params), shapes, self.count)
        self.count += 1

        def run(*new: Any) -> list[Any]:
            bound = eqn.primitive.get_bind_params(eqn.params)
            subfuns, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair before jax 0.12
            out = eqn.primitive.bind(*subfuns, *new, **params)
            return list(out) if eqn.primitive.multiple_results else [out]

        result = self.hook(op, inputs, run)
        result = list(result) if isinstance(result, (list, tuple)) else [result]
        got = (
            tuple((tuple(jnp.shape(x)), str(jnp.asarray(x).dtype)) for x in result)
            if len(result) == len(shapes)
            else None
        )
        if (eqn.outvars and got is not None and any(a[0] != b[0] or a[1] != b[1] for a, b in zip(got, shapes))) or len(
            result
        ) != len(eqn.outvars):
            raise InputError(
                f"the hook changed the outputs of {op}", got=got or f"{len(result)} values", expected=shapes
            )
        return result

    # -- control flow: rebuilt around interpreted bodies
    def _scan(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        p = eqn.params
        body = p["jaxpr"]
        consts, carry, xs = scan_inputs(p, inputs)

        def step(c: Any, x: Any) -> Any:
            out = self.run(body.jaxpr, body.consts, [*consts, *c, *x], _join(path, "scan"))
            return scan_outputs(p, out)

        last, ys = jax.lax.scan(
            step, list(carry), list(xs), length=p["length"], reverse=p["reverse"], unroll=p["unroll"]
        )
        return [*last, *ys]

    def _while(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        p = eqn.params
        a, b = p["cond_nconsts"], p["body_nconsts"]
        test_consts, body_consts, init = inputs[:a], inputs[a : a + b], inputs[a + b :]
        test, body = p["cond_jaxpr"], p["body_jaxpr"]
        return list(
            jax.lax.while_loop(
                lambda s: self.run(test.jaxpr, test.consts, [*test_consts, *s], _join(path, "while_test"))[0],
                lambda s: self.run(body.jaxpr, body.consts, [*body_consts, *s], _join(path, "while")),
                list(init),
            )
        )

    def _cond(self, eqn: Any, inputs: list[Any], path: str) -> list[Any]:
        index, *operands = inputs
        branches = [
            (lambda *xs, b=b, k=k: self.run(b.jaxpr, b.consts, xs, _join(path, f"branch{k}")))
            for k, b in enumerate(eqn.params["branches"])
        ]
        return list(jax.lax.switch(index, branches, *operands))


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *exc: Any) -> None: ...


_NOTHING = _Nothing()


def _join(path: str, name: str) -> str:
    return "/".join(x for x in (path, name) if x)


def _call_jaxpr(eqn: Any) -> Any:
    """The closed jaxpr that a call-like equation runs, or None."""
    from jax.extend.core import ClosedJaxpr  # type: ignore[attr-defined]

    for key in ("call_jaxpr", "jaxpr", "fun_jaxpr"):
        inner = eqn.params.get(key)
        if inner is None:
            continue
        return inner if hasattr(inner, "jaxpr") else ClosedJaxpr(inner, ())
    return None
