"""One leapfrog step: coefficients, state, advance and retreat.

    H^{n+1/2} = da H^{n-1/2} - db curl E^n            E^{n+1} = ca E^n + cb (curl H^{n+1/2} - J) - dispersion

Fields are scaled so that E and Z0 H have one unit; cb = c dt / eps_r, db = c dt / mu_r, curls in 1/m. Prepared once, the
coefficients hold the walls as well: a component on a conductor has cb = 0, and no step divides.
"""

from typing import Any

import equinox as eqx
import jax
from jax import lax
from jaxtyping import Array

from sciax.core.ops.yee._cpml import cpml_memory
from sciax.core.ops.yee._curl import along, curl_e, curl_h
from sciax.core.ops.yee._poles import pole_predict
from sciax.core.ops.yee._tensor import tensor_offdiagonal


class Slab(eqx.Module):
    """One absorbing face: indices [start, start + size) along `axis`, with the recursion's coefficients as 1-D arrays."""

    axis: int = eqx.field(static=True)
    start: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    be: Array  # at half nodes: memory of dE, used by H
    ce: Array  # c times the inverse spacing
    bh: Array  # at nodes: memory of dH, used by E
    ch: Array


class Poles(eqx.Module):
    """One pole of the whole grid: scalars p, q and per-component strengths (zero outside its medium)."""

    p: Array
    q: Array
    e_old: tuple
    e_new: tuple


class Coefficients(eqx.Module):
    """All that a step multiplies by. Tuples of three follow x, y, z; None means absent, `ca`/`da` None means one."""

    ca: tuple
    cb: tuple
    da: tuple
    db: tuple
    inv_e: tuple  # inverse node spacing / kappa, for curl E
    inv_h: tuple  # inverse half-node spacing / kappa, for curl H
    wrap: tuple
    slabs: tuple[Slab, ...]
    offdiagonal: tuple  # cb-like entries (c dt (1/eps)_xy, xz, yz) at nodes
    poles: tuple[Poles, ...] = ()
    pole_gain: tuple = (None, None, None)  # 1 / (eps_inf + sum e_new), per component


class State(eqx.Module):
    """E at step n, H at n - 1/2, absorber memories, polarisations (now and before)."""

    e: tuple
    h: tuple
    psi_e: tuple = ()  # for each slab: memories of dH in the two tangential E components
    psi_h: tuple = ()
    poles: tuple = ()  # for each pole: (now, before), tuples of three


def _slab_terms(slab: Slab):
    """The four (target component, source component, sign) of derivatives along the slab's axis; curl's sign."""
    a = slab.axis
    b, c = (a + 1) % 3, (a + 2) % 3
    return ((b, c, -1.0), (c, b, 1.0))  # (curl F)_b has -dF_c/da, (curl F)_c has +dF_b/da


def _cut(array, slab: Slab) -> Any:
    if array is None or array.ndim == 0 or array.shape[slab.axis] == 1:
        return array
    return lax.slice_in_dim(array, slab.start, slab.start + slab.size, axis=slab.axis)


def _slab_difference(f, slab: Slab, forward: bool):
    """Neighbour difference within the slab's index range, reaching one index beyond it where there is one."""
    a, n = slab.axis, f.shape[slab.axis]
    lo, hi = slab.start, slab.start + slab.size
    here = lax.slice_in_dim(f, lo, hi, axis=a)
    pads = [(0, 0, 0)] * 3
    if forward:
        top = min(hi + 1, n)
        other = lax.slice_in_dim(f, lo + 1, top, axis=a)
        pads[a] = (0, slab.size - (top - lo - 1), 0)
        return lax.pad(other, jax.numpy.zeros((), f.dtype), pads) - here
    bottom = max(lo - 1, 0)
    other = lax.slice_in_dim(f, bottom, hi - 1, axis=a)
    pads[a] = (slab.size - (hi - 1 - bottom), 0, 0)
    return here - lax.pad(other, jax.numpy.zeros((), f.dtype), pads)


def _absorb(target, source, gain, memories, slabs, forward: bool, sense: float):
    """Add every slab's memory to `target`; returns the new target and memories."""
    target, kept = list(target), []
    for slab, memory in zip(slabs, memories):
        b, c = (slab.be, slab.ce) if forward else (slab.bh, slab.ch)
        new = []
        for (to, of, sign), psi in zip(_slab_terms(slab), memory):
            if psi is None:
                new.append(None)
                continue
            psi = cpml_memory(
                psi, _slab_difference(source[of], slab, forward), along(b, slab.axis), along(c, slab.axis)
            )
            where = [slice(None)] * 3
            where[slab.axis] = slice(slab.start, slab.start + slab.size)
            target[to] = target[to].at[tuple(where)].add(sense * sign * _cut(gain[to], slab) * psi)
            new.append(psi)
        kept.append(tuple(new))
    return tuple(target), tuple(kept)


def _scaled(c, a):
    return a if c is None else c * a


def advance_h(state: State, k: Coefficients) -> State:
    """H^{n-1/2} -> H^{n+1/2}."""
    curl = curl_e(*state.e, *k.inv_e, wrap=k.wrap)
    h = tuple(
        None if f is None else (_scaled(a, f) if c is None else _scaled(a, f) - b * c)
        for f, a, b, c in zip(state.h, k.da, k.db, curl)
    )
    h, psi = _absorb(h, state.e, k.db, state.psi_h, k.slabs, True, -1.0)
    return eqx.tree_at(lambda s: (s.h, s.psi_h), state, (h, psi))


def advance_e(state: State, k: Coefficients) -> State:
    """E^n -> E^{n+1}, polarisations with it."""
    curl = curl_h(*state.h, *k.inv_h, wrap=k.wrap)
    if any(t is not None for t in k.offdiagonal):
        return _advance_e_tensor(state, k, curl)
    e = tuple(
        None if f is None else (_scaled(a, f) if c is None else _scaled(a, f) + b * c)
        for f, a, b, c in zip(state.e, k.ca, k.cb, curl)
    )
    e, psi = _absorb(e, state.h, k.cb, state.psi_e, k.slabs, False, 1.0)
    state_new = eqx.tree_at(lambda s: (s.e, s.psi_e), state, (e, psi))
    return _advance_poles(state, state_new, k) if k.poles else state_new


def _advance_e_tensor(state: State, k: Coefficients, curl) -> State:
    """With a full tensor the absorber's memory joins the curl before the tensor acts."""
    one = jax.numpy.ones((), next(f.dtype for f in state.e if f is not None))
    curl, psi = _absorb(curl, state.h, (one,) * 3, state.psi_e, k.slabs, False, 1.0)
    mixed = tensor_offdiagonal(*curl, *k.offdiagonal, wrap=k.wrap)
    e = []
    for f, a, b, c, m in zip(state.e, k.ca, k.cb, curl, mixed):
        if f is not None:
            f = _scaled(a, f) + b * c
            f = f if m is None else f + m
        e.append(f)
    return eqx.tree_at(lambda s: (s.e, s.psi_e), state, (tuple(e), psi))


def _advance_poles(old: State, new: State, k: Coefficients) -> State:
    """Take the growth of the polarisations out of E; closed form of the coupling through e_new."""
    e, memories = list(new.e), [([], []) for _ in k.poles]
    for i, f in enumerate(new.e):
        if f is None:
            for now, before in memories:
                now.append(None)
                before.append(None)
            continue
        growth, predicted = 0.0, []
        for pole, (now, before) in zip(k.poles, old.poles):
            ahead = pole_predict(now[i], before[i], old.e[i], pole.p, pole.q, pole.e_old[i])
            predicted.append(ahead)
            growth = growth + (ahead - now[i])
        # `f` holds ca E + cb curl with cb = c dt gain: the vacuum part is already divided by (eps + sum e_new).
        e[i] = f - k.pole_gain[i] * growth
        for pole, ahead, (now, _) in zip(k.poles, predicted, memories):
            now.append(ahead + pole.e_new[i] * e[i])
        for (now, _), (_, before) in zip(old.poles, memories):
            before.append(now[i])
    poles = tuple((tuple(now), tuple(before)) for now, before in memories)
    return eqx.tree_at(lambda s: (s.e, s.poles), new, (tuple(e), poles))


def retreat_e(state: State, k: Coefficients) -> State:
    """E^{n+1} -> E^n where nothing damps (ca = 1, no poles); absorber memories are left as they are."""
    curl = curl_h(*state.h, *k.inv_h, wrap=k.wrap)
    mixed = (None,) * 3
    if any(t is not None for t in k.offdiagonal):
        mixed = tensor_offdiagonal(*curl, *k.offdiagonal, wrap=k.wrap)
    e = []
    for f, b, c, m in zip(state.e, k.cb, curl, mixed):
        if f is not None and c is not None:
            f = f - b * c
            f = f if m is None else f - m
        e.append(f)
    return eqx.tree_at(lambda s: s.e, state, tuple(e))


def retreat_h(state: State, k: Coefficients) -> State:
    """H^{n+1/2} -> H^{n-1/2} where nothing damps."""
    curl = curl_e(*state.e, *k.inv_e, wrap=k.wrap)
    h = tuple(f if f is None or c is None else f + b * c for f, b, c in zip(state.h, k.db, curl))
    return eqx.tree_at(lambda s: s.h, state, h)


def fence(state: State) -> State:
    """Keep the compiler from fusing half steps into each other, which would compute every curl twice."""
    return lax.optimization_barrier(state)


def initial_state(shape, dtype, active_e, active_h, slabs, n_poles: int) -> State:
    """Zero fields; `active_e`, `active_h` say which of the three components exist."""
    zeros = lambda on, s=shape: jax.numpy.zeros(s, dtype) if on else None  # noqa: E731

    def memories(active):
        out = []
        for slab in slabs:
            s = tuple(slab.size if a == slab.axis else m for a, m in enumerate(shape))
            # a memory exists where both the target and the source component do
            other = active_h if active is active_e else active_e
            out.append(tuple(zeros(active[to] and other[of], s) for to, of, _ in _slab_terms(slab)))
        return tuple(out)

    e, h = tuple(map(zeros, active_e)), tuple(map(zeros, active_h))
    poles = tuple((tuple(map(zeros, active_e)), tuple(map(zeros, active_e))) for _ in range(n_poles))
    return State(e, h, memories(active_e), memories(active_h), poles)
