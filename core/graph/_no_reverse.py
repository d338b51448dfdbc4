"""An identity that forward mode passes and reverse mode refuses, with a message that says what to do."""

from functools import partial
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from sciax.core.graph._errors import UnboundedLoopError

no_reverse_p = Primitive("no_reverse")


@no_reverse_p.def_impl
def _run(x, *, file, line):
    return x


@no_reverse_p.def_abstract_eval
def _abstract(x, *, file, line):
    return x


def _transpose(_, x, *, file, line):
    raise UnboundedLoopError(
        "reverse-mode differentiation through a loop whose number of steps is only known at run time",
        where=(file, line),
        remedy="give it a bound: @graph(max_steps=N), or `with loop_bound(N):` around the loop; or differentiate in forward mode",
    )


ad.deflinear2(no_reverse_p, _transpose)
batching.primitive_batchers[no_reverse_p] = lambda args, dims, **params: (no_reverse_p.bind(*args, **params), dims[0])
mlir.register_lowering(no_reverse_p, lambda ctx, x, **params: [x])


def no_reverse(tree: Any, where: tuple[str, int] | None) -> Any:
    """`tree`, not to be differentiated in reverse mode."""
    file, line = where or ("<unknown>", 0)
    bind = partial(no_reverse_p.bind, file=file, line=line)
    return jax.tree.map(lambda x: bind(x) if jax.numpy.issubdtype(x.dtype, jax.numpy.inexact) else x, tree)
