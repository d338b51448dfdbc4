"""Reverse-mode gradients of a scan whose steps can be undone, without storing its states."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax


def reversible_scan(step, unstep, layers, carry, shared, rows, constants):
    """`lax.scan(step, carry, (rows, constants))`, differentiated by stepping back from the final state.

    Args:
        step: ((state, sums), shared, row, constant) -> ((state, sums), output); linear in state and sums, and `sums` only
            ever added to, so that its value plays no part in the derivative.
        unstep: (state after, state before (unused), shared, row, layers) -> state before.
        layers: (state before, state after, shared) -> what of a step must be stored for its undoing.
        carry: (state, sums) at the start; not differentiated.
        shared: what every step uses; only leaves that are differentiated get a cotangent.
        rows: per-step inputs that may be differentiated; constants: those that may not.

    Returns:
        ((state, sums), outputs).

    The backward pass costs one step back, and one transposed step with the accumulation of the shared cotangents.
    """

    def forward(vjp_arg, keep: bool):
        shared, rows = vjp_arg

        def body(c, x):
            new, out = step(c, shared, *x)
            return new, (out, layers(c[0], new[0], shared) if keep else None)

        (final, (outputs, kept)) = lax.scan(body, carry, (rows, constants))
        return (final, outputs), kept

    @eqx.filter_custom_vjp
    def run(vjp_arg, constants, carry):
        return forward(vjp_arg, False)[0]

    @run.def_fwd
    def run_fwd(perturbed, vjp_arg, constants, carry):
        out, kept = forward(vjp_arg, True)
        return out, (out[0][0], kept)

    @run.def_bwd
    def run_bwd(residuals, grad_obj, perturbed, vjp_arg, constants, carry):
        state, kept = residuals
        shared, rows = vjp_arg
        (grad_carry, grad_out) = grad_obj
        wanted_shared, wanted_rows = perturbed
        active, frozen = eqx.partition(shared, wanted_shared)
        (template, outputs) = jax.eval_shape(lambda: forward(vjp_arg, False)[0])
        bar = _zeros_like(template, grad_carry)
        grad_out = _zeros_like(outputs, grad_out)
        sums = jax.tree.map(jnp.zeros_like, carry[1])
        row_active, row_frozen = eqx.partition(rows, wanted_rows)

        def body(c, x):
            state, bar, total = c
            row_a, row_f, constant, kept, out_bar = x
            row = eqx.combine(row_a, row_f)
            before = unstep(state, None, shared, row, kept)

            def once(c, act, row_a):
                return step(c, eqx.combine(act, frozen), eqx.combine(row_a, row_f), constant)

            _, pull = jax.vjp(once, (before, sums), active, row_a)
            bar, part, row_bar = pull((bar, out_bar))
            return (before, bar, jax.tree.map(jnp.add, total, part)), row_bar

        zero = jax.tree.map(jnp.zeros_like, active)
        (_, _, total), rows_bar = lax.scan(
            body, (state, bar, zero), (row_active, row_frozen, constants, kept, grad_out), reverse=True
        )
        return total, rows_bar

    return run((shared, rows), constants, carry)


def _zeros_like(template: Any, value: Any):
    """Cotangents with None (no gradient) filled in by zeros."""

    def fill(t, g):
        return None if t is None else jnp.zeros(t.shape, t.dtype) if g is None else g

    return jax.tree.map(fill, template, value, is_leaf=lambda v: v is None)
