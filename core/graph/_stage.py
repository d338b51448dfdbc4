"""Tracing a branch or a loop body once, into a jaxpr that is then placed inside `lax.cond`, `scan` or `while_loop`.

Each body runs in Python once (again only if a carried dtype has to widen), so nested control flow costs linear tracing time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from sciax.core.graph._values import aval, flatten, is_dynamic, unflatten


@dataclass
class Variable:
    """One carried variable after a body: its structure, and for each leaf the value met and its place among the outputs."""

    structure: Any
    leaves: list[Any]
    slots: list[int | None]  # output number, None for a leaf that is not an array


@dataclass
class Staged:
    """A traced body.

    Attributes:
        run: arrays in, list of output arrays; rebinds the traced operations where it is called.
        avals: of the outputs.
        variables: how outputs and unchanging leaves make up the variables.
        effects: whether it prints or checks.
    """

    run: Callable[..., list[Any]]
    avals: list[Any]
    variables: list[Variable]
    effects: bool
    size: int


def stage(body: Callable[[Sequence[Any]], Sequence[Any]], inputs: Sequence[Any]) -> Staged:
    """Trace `body(inputs) -> variables`; `inputs` are arrays, Python numbers or avals."""
    variables: list[Variable] = []

    def flat(*arrays):
        variables.clear()
        outputs: list[Any] = []
        for value in body(arrays):
            leaves, structure = flatten(value)
            slots: list[int | None] = []
            for leaf in leaves:
                if is_dynamic(leaf):
                    slots.append(len(outputs))
                    outputs.append(jnp.asarray(leaf))
                else:
                    slots.append(None)
            variables.append(Variable(structure, leaves, slots))
        return outputs

    closed = jax.make_jaxpr(flat)(*[aval(x) for x in inputs])
    run = jaxpr_as_fun(closed)
    return Staged(run, list(closed.out_avals), variables, bool(closed.effects), len(closed.jaxpr.eqns))


def assemble(variable: Variable, leaves: Sequence[Any]) -> Any:
    return unflatten(variable.structure, list(leaves))
