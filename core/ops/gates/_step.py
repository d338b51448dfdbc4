"""One instruction on states, and its undoing with derivatives, in ordinary JAX operations."""

import jax.numpy as jnp
import numpy as np
from jax import lax

_UINT = np.uint32


def _parity(values):
    return lax.population_count(values) & _UINT(1)


def _selectors(index, x, z, cmask, cval):
    """Condition and coefficient index for every amplitude."""
    controlled = index & cmask
    inside = (controlled == cval) | (controlled == (cval ^ (x & cmask)))
    return inside, _parity(index & z).astype(bool)


def step(psi, coefficients, index, x, z, cmask, cval):
    """One instruction on psi (..., N) with coefficients (..., 4)."""
    inside, odd = _selectors(index, x, z, cmask, cval)
    a0, a1, b0, b1 = (coefficients[..., k, None] for k in range(4))
    one, zero = jnp.ones((), psi.dtype), jnp.zeros((), psi.dtype)
    a = jnp.where(inside, jnp.where(odd, a1, a0), one)
    b = jnp.where(inside, jnp.where(odd, b1, b0), zero)
    return a * psi + b * _partner(psi, index, x)


def adjoint_step(psi, lam, coefficients, index, x, z, cmask, cval, flips):
    """Undo one instruction: ((state, conjugated cotangent) before it, derivatives in its coefficients).

    The conjugated cotangent evolves with the dagger like the state.
    """
    undo = _dagger(coefficients, flips)
    before = step(psi, undo, index, x, z, cmask, cval)
    inside, odd = _selectors(index, x, z, cmask, cval)
    zero = jnp.zeros((), psi.dtype)
    bra = jnp.conj(jnp.where(inside, lam, zero))
    even_bra, odd_bra = jnp.where(odd, zero, bra), jnp.where(odd, bra, zero)
    other = _partner(before, index, x)
    sums = [jnp.sum(b * k, axis=-1) for k in (before, other) for b in (even_bra, odd_bra)]
    return (before, step(lam, undo, index, x, z, cmask, cval)), jnp.stack(sums, axis=-1)


def _partner(psi, index, x):
    # The index is in bounds by construction: telling XLA so drops a clamp per amplitude.
    return psi.at[..., index ^ x].get(mode="promise_in_bounds", unique_indices=True)


def _dagger(coefficients, flips):
    """Coefficients of the conjugate transpose of an instruction."""
    a, b = jnp.conj(coefficients[..., :2]), jnp.conj(coefficients[..., 2:])
    return jnp.concatenate([a, jnp.where(flips.astype(bool), b[..., ::-1], b)], axis=-1)
