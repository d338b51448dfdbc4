"""Runs on the compiled kernel: which scenes it takes, and how sources and monitors reach it."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from sciax.core.ops.yee import Points, Records, leapfrog_native, native_refusal
from sciax.elec._constants import C0, COMPONENTS, Z0
from sciax.elec._record import Moments


def refusal(plan: Any, prepared: Any, state: Any) -> str | None:
    """Why a scene cannot run on the compiled kernel, None if it can; from shapes alone."""
    reason = native_refusal(state, prepared.coefficients)
    if reason is None and (plan.meters or any(isinstance(b, Moments) for _, b in plan.blocks())):
        reason = "energies and snapshots are taken by XLA, step by step"
    if reason is None and any(t.shape[1:] != (1, 1, 1) for t in prepared.tables):
        reason = "its plane waves change along the faces of their box, which XLA injects"
    return reason


def sampling_interval(plan: Any) -> int:
    """Steps between samples of the running spectra: a quarter of what the band of the sources would need."""
    top = 0.0
    for s in plan.scene.sources:
        try:
            top = max(top, s.waveform.band()[1])
        except Exception:
            return 1  # a signal of the user's own may state no band
    for _, blocks in plan.blocks():
        top = max(top, float(blocks.frequencies.max()))
    return int(np.clip(1.0 / (4.0 * top * plan.scene.dt), 1, 16)) if top > 0 else 16


def currents(plan: Any, prepared: Any, tables: Any) -> Points:
    """Every entry of every source patch; `tables` are rows of the steps to run."""
    shape = plan.lattice.shape
    index, component, patch, value = [], [], [], []
    for n, p in enumerate(prepared.patches):
        box = np.indices(p.profile.shape).reshape(3, -1) + np.asarray(p.start)[:, None]
        index.append(np.ravel_multi_index(tuple(box), shape))
        component.append(np.full(box.shape[1], p.component))
        patch.append(np.full(box.shape[1], n))
        value.append(p.profile.reshape(-1))
    if not index:
        none = np.zeros(0, np.int32)
        return Points(none, none, none, jnp.zeros(0), jnp.zeros((tables, 1)))
    where, what, whose = (np.concatenate(v).astype(np.int32) for v in (index, component, patch))
    return Points(where, what, whose, jnp.concatenate(value), tables)


def probes(plan: Any):
    """Entries that the probes need, and a function from records to their signals."""
    shape, index, component, uses, at = plan.lattice.shape, [], [], [], 0
    for name, p in plan.points.items():
        for c in p.components:
            w = p.weights[c]
            box = np.indices(w.shape).reshape(3, -1) + np.asarray(p.starts[c])[:, None]
            index.append(np.ravel_multi_index(tuple(box), shape))
            component.append(np.full(box.shape[1], COMPONENTS.index(c)))
            uses.append((name, c, slice(at, at + box.shape[1]), w.reshape(-1) / (Z0 if c[0] == "h" else 1.0)))
            at += box.shape[1]
    join = lambda v: np.concatenate(v).astype(np.int32) if v else np.zeros(0, np.int32)  # noqa: E731

    def signals(record):
        out: dict = {name: {} for name in plan.points}
        for name, c, cut, w in uses:
            out[name][c] = record[:, cut] @ jnp.asarray(w, record.dtype)
        return out

    return Records(join(index), join(component)), signals


def uniform_of(scene: Any, params: Any) -> tuple | None:
    """(gain, conductors at low faces) of a scene of one number."""
    plain = not scene.structures and scene.background.lossless and np.ndim(scene.background.permittivity) == 0
    if not plain or any(p.startswith("background") for p in params):
        return None
    low = [faces[0] for faces in scene.boundaries.faces]
    return C0 * scene.dt / float(scene.background.permittivity), tuple(face != "pmc" for face in low)


def chunk(plan: Any, uniform: tuple | None, interval: int, threads: int | None):
    """A jitted (prepared, carry, start, length) -> (carry, signals); length is static."""
    records, signals = probes(plan)

    def run(prepared, carry, start, length: int):
        state, acc = carry
        cut = lambda v: lax.dynamic_slice_in_dim(v, start, length)  # noqa: E731
        table = jnp.stack([cut(t).reshape(length) for t in prepared.tables], 1) if prepared.tables else None
        phasors = {}
        for key, b in plan.blocks():
            rows = [b.phasors(plan.steps, plan.scene.dt, jnp.dtype(plan.scene.dtype), o) for o in (1.0, 0.5)]
            phasors[key] = tuple(interval * cut(jnp.asarray(r)) for r in rows)
        blocks, rest = divmod(length, interval) if acc else (0, length)
        options: dict = {"records": records, "uniform": uniform, "threads": threads}

        def go(state, rows, n):
            points = currents(plan, prepared, n if rows is None else rows)
            return leapfrog_native(state, prepared.coefficients, n, points=points, **options)

        def body(c, x):
            state, acc = c
            rows, turns = x
            state, record = go(state, rows, interval)
            acc = {key: b.add(acc[key], state, *turns[key], prepared.coefficients.wrap) for key, b in plan.blocks()}
            return (state, acc), record

        parts = []
        if blocks:
            fold = lambda v: v[: blocks * interval].reshape(blocks, interval, *v.shape[1:])  # noqa: E731
            turns = jax.tree.map(lambda v: fold(v)[:, -1], phasors)
            xs = (None if table is None else fold(table), turns)
            (state, acc), record = lax.scan(body, (state, acc), xs)
            parts.append(record.reshape(blocks * interval, -1))
        if rest:
            state, record = go(state, None if table is None else table[blocks * interval :], rest)
            parts.append(record)
        return (state, acc), signals(jnp.concatenate(parts) if len(parts) > 1 else parts[0])

    return jax.jit(run, static_argnums=(3,), donate_argnums=(1,))
