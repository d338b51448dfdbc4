"""Programs that run many times: a scan over the repetitions around either implementation."""

from functools import wraps

import jax.numpy as jnp
from jax import lax


def repeated(run):
    """A run of one repetition, `run(psi, coefficients, *, program)`, made a run of all."""

    @wraps(run)
    def all_of_them(psi, coefficients, *, program):
        once = program.once
        if program.repeats == 1:
            return run(psi, coefficients, program=once)
        shape = (*jnp.broadcast_shapes(psi.shape[:-1], coefficients.shape[:-2]), psi.shape[-1])
        body = lambda state, _: (run(state, coefficients, program=once), None)  # noqa: E731
        return lax.scan(body, jnp.broadcast_to(psi, shape), None, length=program.repeats)[0]

    return all_of_them


def repeated_adjoint(adjoint):
    """An adjoint of one repetition, `(state before, d state before, d coefficients)`, made the adjoint of all.

    The state is undone from repetition to repetition, so that the memory stays that of a few states.
    """

    @wraps(adjoint)
    def all_of_them(psi_out, coefficients, cotangent, *, program):
        once = program.once
        if program.repeats == 1:
            return adjoint(psi_out, coefficients, cotangent, program=once)

        def body(carry, _):
            psi, ct, total = carry
            psi, ct, change = adjoint(psi, coefficients, ct, program=once)
            return (psi, ct, total + change), None

        start = (psi_out, cotangent, jnp.zeros_like(coefficients))
        return lax.scan(body, start, None, length=program.repeats)[0]

    return all_of_them
