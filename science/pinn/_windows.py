"""Time marching: the interval is cut into windows, each with a network of its own that starts where the one before ends.

A network over a short time has less to learn, and causality holds between windows. Weights carry over from window to window: in
its own scaled time each window looks much like the last.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key

from sciax.core.errors import InputError
from sciax.science.pde import Initial, Problem
from sciax.science.pinn._solution import PinnSolution
from sciax.science.pinn._system import Model, NetworkOptions, System
from sciax.science.pinn._train import Trainer, TrainInfo, TrainOptions


def continued(problem: Problem, system: System, model: Model, t: float) -> Problem:
    """The problem with the values of a trained network at time t as initial values."""
    dim = problem.dim

    def values(field: Any, component: int | None) -> Callable[[Any], Array]:
        def at(x: Any) -> Array:
            z = jnp.append(jnp.asarray(x)[:dim], t)
            out = system.split(system.values_at(model, z[:, None])[:, 0])[field.name]
            return out if component is None else out[component]

        return at

    conditions = [
        Initial(c.field if c.component is None else c.field[c.component], values(c.field, c.component))
        if isinstance(c, Initial)
        else c
        for c in problem.conditions
    ]
    return Problem(problem.domain, *problem.equations, *conditions, values=problem.values)


def march(
    problem: Problem,
    network: NetworkOptions,
    train: TrainOptions,
    edges: np.ndarray,
    options: dict[str, Any],
    seed: int,
    key: Key[Array, ""],
    watch: Callable[..., None] | None = None,
) -> "WindowedSolution":
    """Solve window by window.

    Args:
        edges: times between the windows, first and last included.
        options: of `System` except for `time`; a lift of one's own counts in the first window.
        watch: called as watch(model, iterations, loss, window=k, system=system).

    Raises:
        InputError: a stationary problem, unknowns or observations.
    """
    if options.get("unknowns") or options.get("observations"):
        raise InputError("parameters to be found belong to all windows at once", remedy="windows=1")
    pieces: list[PinnSolution] = []
    now, model = problem, None
    for k in range(len(edges) - 1):
        first, second = jax.random.split(jax.random.fold_in(key, k))
        given = {**options, "time": (float(edges[k]), float(edges[k + 1]))}
        if k:
            given["lift"] = None
        system = System(now, network, **given, key=first)
        trainer = Trainer(system, train, seed + k)
        seen = None
        if watch is not None:
            seen = lambda m, i, v, k=k, system=system: watch(m, i, v, window=k, system=system)  # noqa: E731
        model, info = trainer.run(second, watch=seen, start=model)
        pieces.append(PinnSolution(now, system, model, info))
        now = continued(problem, system, model, float(edges[k + 1]))
    return WindowedSolution(problem, pieces, edges)


class WindowedSolution(PinnSolution):
    """A solution in pieces of time.

    Attributes:
        pieces: one solution a window.
        edges: times between the windows.
        info: sums and worst values over the windows; `pieces[k].info` for each.
    """

    def __init__(self, problem: Problem, pieces: list[PinnSolution], edges: np.ndarray):
        infos = [p.info for p in pieces]
        super().__init__(problem, pieces[0].system, pieces[0].model, _joined(infos))
        self.pieces, self.edges = pieces, np.asarray(edges)
        frame = self.system.frame
        whole = replace(frame, upper=np.append(frame.upper[:-1], edges[-1]))
        self.system = _Whole(self.system, whole)  # type: ignore[assignment]
        self._values = lambda model, z: self._by_window(z, lambda piece, at: piece._values(piece.model, at))

    def __repr__(self) -> str:
        names = ", ".join(f.name for f in self.problem.fields)
        return f"WindowedSolution({names}; {len(self.pieces)} windows, loss {self.info.value:.1e})"

    def _by_window(self, z: Any, get: Callable[[PinnSolution, Array], Array]) -> Array:
        """Rows [.., n] at points [axes, n], each from its window (of two at an edge, the later)."""
        times = np.asarray(z[-1])
        which = np.clip(np.searchsorted(self.edges, times, side="right") - 1, 0, len(self.pieces) - 1)
        order, parts = [], []
        for k, piece in enumerate(self.pieces):
            chosen = np.flatnonzero(which == k)
            if len(chosen):
                order.append(chosen)
                parts.append(get(piece, jnp.asarray(z)[:, chosen]))
        back = np.argsort(np.concatenate(order))
        return jnp.concatenate(parts, axis=-1)[..., back]

    def evaluate(self, what: Any, points: Any, *, t: Any = None) -> Array:
        z, single = self._whole(points, t)

        def get(piece: PinnSolution, at: Array) -> Array:
            out = piece.evaluate(what, at.T)
            return out[None] if out.ndim == 1 else out.T

        rows = self._by_window(z, get)
        out = rows[0] if rows.shape[0] == 1 else rows.T
        return out[0] if single else out

    def sample_points(self, count: int = 2000) -> np.ndarray:
        points = self.pieces[0].sample_points(count)
        low, high = self.edges[0], self.edges[-1]
        share = (points[:, -1] - low) / (self.edges[1] - low)
        return np.concatenate([points[:, :-1], (low + share * (high - low))[:, None]], axis=1)


class _Whole:
    """A window's system seen over the whole time; everything but the frame is that window's."""

    def __init__(self, system: System, frame: Any):
        self._system, self.frame = system, frame

    def __getattr__(self, name: str) -> Any:
        return getattr(self._system, name)


def _joined(infos: list[TrainInfo]) -> TrainInfo:
    return TrainInfo(
        loss=np.concatenate([i.loss for i in infos]),
        adam=infos[0].adam,
        iterations=sum(i.iterations for i in infos),
        value=max(i.value for i in infos),
        fresh=max(i.fresh for i in infos),
        reason=infos[-1].reason,
        seconds=sum(i.seconds for i in infos),
        cpu_seconds=sum(i.cpu_seconds for i in infos),
        parameters=sum(i.parameters for i in infos),
        notes=[n for i in infos for n in i.notes],
        residual=max(i.residual for i in infos),
        optimizer=infos[0].optimizer,
        balance=infos[-1].balance,
    )
