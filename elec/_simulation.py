"""Running a scene: a pure function of parameters, with the gradient method of choice."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from sciax.core.errors import ConvergenceError, InputError, UnsupportedError
from sciax.core.ops.yee import State, advance_e, advance_h, fence, initial_state, retreat_e, retreat_h
from sciax.elec._checkpoint import fingerprint, load, save
from sciax.elec._checks import one_of
from sciax.elec._compiled import chunk, refusal, sampling_interval, uniform_of
from sciax.elec._energy import EnergyMonitor, EnergyPlan
from sciax.elec._farfield import FarFieldMonitor, check_box
from sciax.elec._guides import VectorModePlan
from sciax.elec._lattice import lattice
from sciax.elec._modes import ModeMonitor, ModePlan
from sciax.elec._monitors import FieldMonitor, FluxMonitor, Probe, SnapshotMonitor
from sciax.elec._params import apply, leaf_at
from sciax.elec._prepare import Prepared, prepare
from sciax.elec._record import point, region, surfaces
from sciax.elec._result import Result
from sciax.elec._reversible import reversible_scan
from sciax.elec._scene import Scene

GRADIENTS = ("auto", "plain", "checkpoint", "reversible")
IMPLEMENTATIONS = ("auto", "xla", "native")


class Plan:
    """Static part of a simulation; compared by identity, so that it can ride through jit."""

    def __init__(self, scene: Scene):
        self.scene = scene
        self.lattice = lattice(scene)
        self.steps = scene.steps
        self.points = {m.name: point(scene, self.lattice, m) for m in scene.monitors if isinstance(m, Probe)}
        self.meters = {
            m.name: EnergyPlan(scene, self.lattice, m) for m in scene.monitors if isinstance(m, EnergyMonitor)
        }
        self.monitors: dict[str, Any] = {}
        for m in scene.monitors:
            if isinstance(m, ModeMonitor):
                solve = VectorModePlan if len(scene.grid.active_axes) == 3 else ModePlan
                self.monitors[m.name] = solve(scene, self.lattice, m)
            elif isinstance(m, FieldMonitor | SnapshotMonitor):
                self.monitors[m.name] = region(scene, self.lattice, m)
            elif isinstance(m, FluxMonitor):
                if isinstance(m, FarFieldMonitor):
                    check_box(scene, m)
                self.monitors[m.name] = surfaces(scene, self.lattice, m)
        for name, r in self.monitors.items():
            for c in r.blocks.lo if hasattr(r, "blocks") else ():
                on = (self.lattice.active_e if c[0] == "e" else self.lattice.active_h)["xyz".index(c[1])]
                if not on:
                    raise InputError(f"monitor {name!r}: no source of this scene excites {c!r}")

    def blocks(self):
        """(key, Blocks) of every accumulator."""
        for name, item in self.monitors.items():
            if isinstance(item, tuple):
                for i, face in enumerate(item):
                    yield (name, i), face.blocks
            else:
                yield (name, None), item.blocks


class Simulation:
    """A scene made ready to run.

    `Simulation(scene)(params)` is a pure function: parameters by path ("disc.shape.radius") to a `Result`. It runs under
    jit, grad and vmap; called with plain numbers it also watches for divergence.

    Args:
        scene: the scene.
        gradient: how reverse-mode gradients pass through the steps. "plain" stores every step; "checkpoint" stores about
            2 sqrt(steps) states and steps twice; "reversible" steps back from the final state and stores only one layer of
            field at each absorber, and needs lossless media. "auto" takes reversible where it is exact, else checkpoint;
            `gradient_reason` says why.
        implementation: of runs with plain numbers: "native" is the compiled CPU kernel, "xla" everything; "auto" takes the
            kernel where it is installed and does the scene, `implementation_reason` says why not. Traced calls run on XLA.
        threads: of the compiled kernel; default SCIAX_THREADS or the cores of the process.

    Raises:
        UnsupportedError: a scene or parameter that the gradient method cannot do exactly, before the run.
    """

    def __init__(self, scene: Scene, gradient: str = "auto", implementation: str = "auto", threads: int | None = None):
        one_of(gradient, GRADIENTS, "gradient method")
        one_of(implementation, IMPLEMENTATIONS, "implementation")
        self.scene = scene
        self.plan = Plan(scene)
        lossy = [
            n
            for n, m in (("background", scene.background), *((s.name, s.medium) for s in scene.structures))
            if not (m.lossless or m.perfect_conductor)
        ]
        if gradient == "reversible" and lossy:
            raise UnsupportedError(
                f"a step cannot be undone exactly in the lossy or dispersive medium of {lossy[0]!r}",
                got='gradient="reversible"',
                remedy='gradient="checkpoint"',
            )
        self._asked = gradient
        self.gradient = gradient
        if gradient == "auto":
            self.gradient = "checkpoint" if lossy else "reversible"
            self.gradient_reason = (
                f"checkpoint: {lossy[0]!r} is lossy or dispersive, so a step cannot be undone"
                if lossy
                else "reversible: every medium is lossless"
            )
        else:
            self.gradient_reason = f"{gradient}: asked for"
        self._prepare = jax.jit(lambda params: prepare(apply(scene, params), scene, self.plan.lattice))
        self._chunk = jax.jit(self._scan, static_argnums=(3,), donate_argnums=(1,))
        self._threads = threads
        reason = "asked for" if implementation == "xla" else self._native_refusal()
        if implementation == "native" and reason is not None:
            raise UnsupportedError(
                f"the compiled kernel cannot run this scene: {reason}", remedy='implementation="xla" or "auto"'
            )
        self.implementation = "native" if reason is None else "xla"
        self.implementation_reason = "the compiled kernel takes this scene" if reason is None else reason

    def _native_refusal(self) -> str | None:
        if jax.default_backend() != "cpu":
            return "it runs on CPU"
        return refusal(self.plan, jax.eval_shape(self._prepare, {}), jax.eval_shape(self._start)[0])

    # -- one step ---------------------------------------------------------------------------------------------------------
    def _start(self):
        plan, scene = self.plan, self.scene
        dtype = jnp.dtype(scene.dtype)
        field_dtype = jnp.result_type(dtype, jnp.complex64) if scene.boundaries.complex else dtype
        shapes = jax.eval_shape(self._prepare, {})
        state = initial_state(
            plan.lattice.shape,
            field_dtype,
            plan.lattice.active_e,
            plan.lattice.active_h,
            shapes.coefficients.slabs,
            len(shapes.coefficients.poles),
        )
        return state, {key: b.zeros(dtype) for key, b in plan.blocks()}

    def _inputs(self, prepared: Prepared):
        """What changes from step to step: table rows (differentiated) and phasors (constants)."""
        phasors = {}
        for key, b in self.plan.blocks():
            phasors[key] = tuple(
                jnp.asarray(b.phasors(self.plan.steps, self.scene.dt, jnp.dtype(self.scene.dtype), o))
                for o in (1.0, 0.5)
            )
        return prepared.tables, phasors

    def _inject(self, fields: tuple, prepared: Prepared, rows, electric: bool, sense: float) -> tuple:
        out = list(fields)
        for patch, row in zip(prepared.patches, rows):
            if (patch.component < 3) != electric:
                continue
            c = patch.component % 3
            where = tuple(slice(s, s + n) for s, n in zip(patch.start, patch.profile.shape))
            out[c] = out[c].at[where].add((sense * patch.profile * row).astype(out[c].dtype))
        return tuple(out)

    def _step(self, carry, prepared: Prepared, rows, phasors):
        state, acc = carry
        before, k = state, prepared.coefficients
        state = advance_h(state, k)
        state = fence(eqx.tree_at(lambda s: s.h, state, self._inject(state.h, prepared, rows, False, 1.0)))
        state = advance_e(state, k)
        state = fence(eqx.tree_at(lambda s: s.e, state, self._inject(state.e, prepared, rows, True, 1.0)))
        new = {key: b.add(acc[key], state, *phasors[key], k.wrap) for key, b in self.plan.blocks()}
        signals = {name: p.read(state) for name, p in self.plan.points.items()}
        signals |= {name: m.read(before, state, k) for name, m in self.plan.meters.items()}
        return (state, new), signals

    def _unstep(self, state: State, before, prepared: Prepared, rows, layers):
        """The state one step earlier; `layers` are the fields beside the absorbers then, `before` is not used."""
        k = prepared.coefficients
        high, low = layers
        state = eqx.tree_at(lambda s: s.e, state, self._inject(state.e, prepared, rows, True, -1.0))
        state = eqx.tree_at(lambda s: s.h, state, _put(state.h, k.slabs, low, 0))
        state = fence(retreat_e(state, k))
        state = eqx.tree_at(lambda s: s.e, state, _put(state.e, k.slabs, high, 1))
        state = eqx.tree_at(lambda s: s.h, state, self._inject(state.h, prepared, rows, False, -1.0))
        return fence(retreat_h(state, k))

    def _layers(self, before: State, after: State, prepared: Prepared):
        """E beside high absorbers before the step, H beside low ones in its middle: all that stepping back needs of them."""
        slabs = prepared.coefficients.slabs
        return _take(before.e, slabs, 1), _take(after.h, slabs, 0)

    # -- runs -------------------------------------------------------------------------------------------------------------
    def _scan(self, prepared: Prepared, carry, start, length: int):
        tables, phasors = self._inputs(prepared)
        cut = lambda v: lax.dynamic_slice_in_dim(v, start, length)  # noqa: E731
        xs = jax.tree.map(cut, (tables, phasors))
        return lax.scan(lambda c, x: self._step(c, prepared, *x), carry, xs)

    def _differentiable(self, params):
        prepared = self._prepare(params)
        carry = self._start()
        tables, phasors = self._inputs(prepared)
        light = eqx.tree_at(lambda p: p.tables, prepared, ())
        if self.gradient == "plain":
            return lax.scan(lambda c, x: self._step(c, light, *x), carry, (tables, phasors))
        if self.gradient == "checkpoint":
            return self._checkpointed(light, carry, tables, phasors)
        return reversible_scan(self._step, self._unstep, self._layers, carry, light, tables, phasors)

    def _checkpointed(self, light, carry, tables, phasors):
        """Segments of about sqrt(steps), each recomputed on the way back."""
        steps = self.plan.steps
        length = max(int(np.sqrt(steps)), 1)
        whole = steps // length

        @jax.checkpoint
        def segment(c, light, x):
            return lax.scan(lambda c, x: self._step(c, light, *x), c, x)

        xs = (tables, phasors)
        head = jax.tree.map(lambda v: v[: whole * length].reshape(whole, length, *v.shape[1:]), xs)
        carry, signals = lax.scan(lambda c, x: segment(c, light, x), carry, head)
        signals = jax.tree.map(lambda v: v.reshape(whole * length, *v.shape[2:]), signals)
        if whole * length < steps:
            carry, more = segment(carry, light, jax.tree.map(lambda v: v[whole * length :], xs))
            signals = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), signals, more)
        return carry, signals

    def _result(self, carry, signals) -> Result:
        state, acc = carry
        raw: dict = dict(signals)
        for name, item in self.plan.monitors.items():
            raw[name] = [acc[(name, i)] for i in range(len(item))] if isinstance(item, tuple) else acc[(name, None)]
        return Result(raw, state, self.plan)

    def _check_params(self, params: Mapping[str, Any]) -> None:
        for full in params:
            head, *rest = full.split(".")
            groups = {s.name: s for s in (*self.scene.structures, *self.scene.sources)}
            if head in groups:
                leaf_at(groups[head], rest, full)
        if self.gradient != "reversible":
            return
        for full in params:
            head = full.split(".")[0]
            if head in ("background", "boundaries"):
                touching = any(
                    self.scene.boundaries.thickness(a, s) for a in self.scene.grid.active_axes for s in (0, 1)
                )
            else:
                structure = next((s for s in self.scene.structures if s.name == head), None)
                touching = structure is not None and self._reaches_absorber(structure.shape.bounds())
            if touching and self._asked == "reversible":
                raise UnsupportedError(
                    f"parameter {full!r} acts inside an absorber, whose steps cannot be undone",
                    got='gradient="reversible"',
                    remedy='gradient="checkpoint", or keep the structure out of the PML',
                )
            if touching:
                self.gradient = "checkpoint"
                self.gradient_reason = f"checkpoint: parameter {full!r} acts inside an absorber"
                return

    def _reaches_absorber(self, bounds) -> bool:
        for a in self.scene.grid.active_axes:
            lo, hi = self.scene.interior(a)
            margin = self.scene.grid.steps(a).max()
            if self.scene.boundaries.thickness(a, 0) and bounds[a][0] < lo + margin:
                return True
            if self.scene.boundaries.thickness(a, 1) and bounds[a][1] > hi - margin:
                return True
        return False

    def __call__(self, params: Mapping[str, Any] | None = None) -> Result:
        params = dict(params or {})
        self._check_params(params)
        traced = any(isinstance(v, Tracer) for v in jax.tree.leaves(params))
        traced = traced or isinstance(jnp.zeros(()) + 0, Tracer)  # inside someone's jit
        if traced:
            return self._result(*self._differentiable(params))
        return self.run(params)

    def run(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
        chunks: int = 10,
        decay: float | None = None,
        checkpoint: str | Path | None = None,
    ) -> Result:
        """Run with plain numbers, in chunks between which the host looks at the fields.

        Args:
            params: as in a call.
            progress: called with (steps done, steps in all) after each chunk.
            chunks: how often to look.
            decay: stop once the largest E has fallen to this fraction of its peak after the sources have ended.
            checkpoint: a file (.npz) to write after each chunk and, if it is there, to continue from.

        Raises:
            ConvergenceError: the fields diverge; names the step and the cell.
        """
        params = dict(params or {})
        self._check_params(params)
        apply(self.scene, params, checked=True)
        prepared = self._prepare(params)
        carry, steps = self._start(), self.plan.steps
        length = max(-(-steps // chunks), 1)
        advance = self._chunk
        if self.implementation == "native":
            interval = sampling_interval(self.plan)
            length = -(-length // interval) * interval
            advance = chunk(self.plan, uniform_of(self.scene, params), interval, self._threads)
        done, parts, peak = 0, [], 0.0
        path = Path(checkpoint) if checkpoint is not None else None
        mark = fingerprint(self.plan, prepared) if path is not None else ""
        if path is not None and path.exists():
            names = (*self.plan.points, *self.plan.meters)
            done, carry, parts = load(path, carry, steps, names, mark)
        quiet = max((s.waveform.end() for s in self.scene.sources if hasattr(s.waveform, "end")), default=0.0)
        while done < steps:
            n = min(length, steps - done)
            carry, signals = advance(prepared, carry, done, n)
            parts.append(signals)
            done += n
            top = self._largest(carry[0], done)
            peak = max(peak, top)
            if path is not None:
                save(path, done, carry, parts, mark)
            if progress is not None:
                progress(done, steps)
            if decay is not None and done * self.scene.dt > quiet and top < decay * peak:
                break
        signals = jax.tree.map(lambda *v: jnp.concatenate(v), *parts)
        if done < steps:  # stopped early: the rest of every signal is silence
            signals = jax.tree.map(lambda v: jnp.pad(v, (0, steps - done)), signals)
        return self._result(carry, signals)

    def _largest(self, state: State, step: int) -> float:
        found = [(c, f) for c, f in zip("xyz", state.e) if f is not None]
        tops = [float(jnp.max(jnp.abs(f))) for _, f in found]
        top = max(tops)
        if np.isfinite(top) and top < 1e30:
            return top
        for (c, f), t in zip(found, tops):
            if not np.isfinite(t) or t == top:
                a = np.abs(np.asarray(f))
                cell = np.unravel_index(int(np.argmax(np.where(np.isfinite(a), a, np.inf))), a.shape)
                raise ConvergenceError(
                    f"the fields diverge: e{c} is {t} by step {step}",
                    got=f"cell {tuple(map(int, cell))}",
                    remedy="lower courant; check media with poles and the grading of the grid",
                )
        raise AssertionError

    def compiled(self, params: Mapping[str, Any] | None = None):
        """A jitted function of nothing that runs all steps; for timing and for looking at the compiled program."""
        prepared = self._prepare(dict(params or {}))
        return jax.jit(partial(self._scan, length=self.plan.steps)), (prepared, self._start(), 0)


def _slab_layers(fields, slabs, side: int):
    for s in slabs:
        at_low = s.start == 0
        if at_low != (side == 0):
            continue
        index = s.size - 1 if at_low else s.start
        for c in range(3):
            if c != s.axis and fields[c] is not None:
                yield s.axis, c, index


def _take(fields, slabs, side: int):
    return [lax.slice_in_dim(fields[c], i, i + 1, axis=a) for a, c, i in _slab_layers(fields, slabs, side)]


def _put(fields, slabs, layers, side: int):
    out = list(fields)
    for (a, c, i), layer in zip(_slab_layers(fields, slabs, side), layers):
        out[c] = lax.dynamic_update_slice_in_dim(out[c], layer, i, axis=a)
    return tuple(out)
