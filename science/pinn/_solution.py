"""`PinnSolution`: the trained network as a solution."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.core.errors import InputError, ShapeError
from sciax.science.geometry import BoxDomain
from sciax.science.pde import Problem
from sciax.science.pde._expr import fields_of
from sciax.science.pinn._strong import union
from sciax.science.pinn._system import Model, Prepared, System
from sciax.science.pinn._train import TrainInfo
from sciax.science.solvers._solution import Solution, as_points, expression


class PinnSolution(Solution):
    """Fields given by a network.

    Attributes:
        model: the trained model; `system.values_at(model, points)` is differentiable in it.
        system: lift, mask and residual.
        info: how training went (`TrainInfo`).
        unknowns: name -> value found, of the parameters that were unknown.
    """

    method = "pinn"

    def __init__(self, problem: Problem, system: System, model: Model, info: TrainInfo):
        self.problem, self.system, self.model, self.info = problem, system, model, info
        self._values = jax.jit(system.values_at)

    @property
    def unknowns(self) -> dict[str, Any]:
        """Numbers, and functions of points [k, dim] for unknown coefficients."""

        def function(name: str) -> Any:
            def at(points: Any) -> Array:
                x, single = as_points(jnp.asarray(points, self.system.dtype), self.system.frame.dim)
                out = self.system.coefficient(self.model, name, x.T)
                return out[0] if single else out

            return at

        return {**self.model.unknowns, **{name: function(name) for name in self.system.guesses}}

    @property
    def time(self) -> tuple[float, float] | None:
        """The time interval, where the problem has one."""
        frame = self.system.frame
        return (float(frame.lower[-1]), float(frame.upper[-1])) if frame.timed else None

    def __repr__(self) -> str:
        return f"PinnSolution({', '.join(f.name for f in self.problem.fields)}; loss {self.info.value:.1e})"

    def _whole(self, points: Any, t: Any) -> tuple[Array, bool]:
        """[axes, k] from points in space and times, or points in space and time."""
        frame, given = self.system.frame, jnp.asarray(points, self.system.dtype)
        if frame.timed and t is None:
            if given.ndim == 1 and given.shape[0] == frame.axes:
                return given[:, None], True
            if given.ndim != 2 or given.shape[1] != frame.axes:
                raise InputError(
                    "where in time?", got=given.shape, expected=f"points [k, {frame.axes}] with the time last, or t="
                )
            return given.T, False
        at, single = as_points(given, frame.dim)
        if not frame.timed:
            if t is not None:
                raise InputError("the solution does not depend on time", got=f"t={t}")
            return at.T, single
        times = jnp.asarray(t, self.system.dtype)
        if times.ndim and times.shape != at.shape[:1]:
            raise ShapeError("as many times as points, or one for all", got=times.shape, expected=at.shape[:1])
        low, high = self.time  # type: ignore[misc]
        if bool(jnp.any((times < low - 1e-9 * (high - low)) | (times > high + 1e-9 * (high - low)))):
            raise InputError("outside the time interval", got=t, expected=f"[{low}, {high}]")
        return jnp.concatenate([at, jnp.broadcast_to(times, at.shape[:1])[:, None]], axis=1).T, single

    def __call__(self, points: Any, field: Any = None, *, t: Any = None) -> Array:
        """Values [k] (or [k, components]) at points [k, dim] and time t, or at [k, dim + 1] with the time last."""
        z, single = self._whole(points, t)
        rows = self.system.split(self._values(self.model, z))[self.field(field).name]
        out = rows if rows.ndim == 1 else rows.T
        return out[0] if single else out

    def evaluate(self, what: Any, points: Any, *, t: Any = None) -> Array:
        """An expression in the fields and their derivatives, [k] or [k, components]."""
        z, single = self._whole(points, t)
        expr = expression(what, self.field())
        strong, system = self.system.strong, self.system
        values = {**system.values, **self.model.unknowns}
        if fields_of(expr):
            indices = union(strong.needed([expr], np.asarray(z), values))
        else:
            indices = ((0,) * system.frame.axes,)
        features, lift, mask, places, guesses = system._jets(z, indices)
        data = Prepared(z, features, lift, mask, None, None, jnp.ones(z.shape[1], z.dtype), places, guesses)
        rows = strong.over([expr], z, system.fields(self.model, data), values)
        out = rows[0] if rows.shape[0] == 1 else rows.T
        return out[0] if single else out

    def sample_points(self, count: int = 2000) -> np.ndarray:
        """Points inside the domain; with the time last where there is one."""
        return self.system._draw_interior(count, 5)[0].T

    def integrate(self, what: Any = None, *, t: Any = None) -> Array:
        """Integral over the domain (at time t): Gauss points on boxes, cells of the mesh elsewhere."""
        points, weights = self._rule()
        return jnp.asarray(weights, self.system.dtype) @ self.evaluate(what, points, t=t)

    def _rule(self) -> tuple[np.ndarray, np.ndarray]:
        domain = self.problem.domain
        if isinstance(domain, BoxDomain):
            count = {1: 200, 2: 60, 3: 24}[domain.dim]
            x, w = np.polynomial.legendre.leggauss(count)
            axes = [low + (x + 1) / 2 * length for low, length in zip(domain.lower, domain.extent, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, domain.dim)
            weights = np.ones(1)
            for length in domain.extent:
                weights = np.outer(weights, w * length / 2).ravel()
            return points, weights
        mesh = domain.mesh()
        from sciax.science.geometry._sampling import _simplices

        corners, size = _simplices(mesh)
        d = mesh.dim
        a, b = (
            (0.138196601125011, 0.585410196624969)
            if d == 3
            else ((1 / 6, 2 / 3) if d == 2 else (0.211324865405187, 0.788675134594813))
        )
        bary = np.full((d + 1, d + 1), a) + (b - a) * np.eye(d + 1)
        factor = {1: 1.0, 2: 0.5, 3: 1 / 6}[d]
        points = np.einsum("qk,nkd->nqd", bary, corners).reshape(-1, d)
        return points, np.repeat(size * factor / (d + 1), d + 1)

    @property
    def error_estimate(self) -> float:
        """Root mean square of the residual at new points, in the units of the equation."""
        return self.info.residual

    def grid(self, count: int = 101, times: int = 51) -> tuple[list[np.ndarray], list[str]]:
        """Coordinates of a regular grid over the box (and time)."""
        frame = self.system.frame
        names = [*"xyz"[: frame.dim], *(["t"] if frame.timed else [])]
        n = [count] * frame.dim if frame.dim < 3 else [min(count, 33)] * 3
        n += [times] if frame.timed else []
        return [np.linspace(a, b, k) for a, b, k in zip(frame.lower, frame.upper, n, strict=True)], names

    def to_xarray(self, count: int = 101, times: int = 51) -> Any:
        """The fields on a regular grid over the domain's box; NaN outside of the domain."""
        import xarray as xr

        axes, names = self.grid(count, times)
        shape = tuple(len(a) for a in axes)
        z = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")])
        rows = self.system.split(self._values(self.model, jnp.asarray(z, self.system.dtype)))
        inside = self._inside(z).reshape(shape)
        data = {}
        for f in self.problem.fields:
            value = np.asarray(rows[f.name])
            dims = tuple(names)
            value = value.reshape(shape) if f.components is None else value.reshape(f.components, *shape)
            if f.components is not None:
                dims = (f"{f.name}_component", *dims)
            data[f.name] = (dims, np.where(inside, value, np.nan), {"long_name": f.name})
        coords = {
            n: (n, a, {"axis": n.upper(), "long_name": "time" if n == "t" else n})
            for n, a in zip(names, axes, strict=True)
        }
        attributes = {
            "Conventions": "CF-1.8",
            "method": "physics-informed network",
            "residual": self.info.residual,
            "iterations": self.info.iterations,
        }
        return xr.Dataset(data, coords, attributes)

    def _inside(self, z: np.ndarray) -> np.ndarray:
        domain = self.problem.domain
        if isinstance(domain, BoxDomain):
            return np.ones(z.shape[1], bool)
        x = z[: self.system.frame.dim].T
        if hasattr(domain, "contains"):
            return np.asarray(domain.contains(x))  # type: ignore[attr-defined]
        return _in_mesh(domain.mesh(), x)

    def plot(self, field: Any = None, path: Any = None, title: str | None = None, t: Any = None) -> Any:
        """A matplotlib figure: curves (1-D, several times), (x, t) or (x, y) colours; of 3-D domains the middle plane."""
        from sciax.science.pinn._plot import plot

        return self._save(plot(self, self.field(field), title, t), path)

    def to_netcdf(self, path: Any, **options: Any) -> Path:
        """`to_xarray` into a file."""
        self.to_xarray(**options).to_netcdf(path)
        return Path(path)


def _in_mesh(mesh: Any, x: np.ndarray) -> np.ndarray:
    from sciax.science.geometry._sampling import _simplices

    corners, _ = _simplices(mesh)
    inverse = np.linalg.inv((corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1))
    found = np.zeros(len(x), bool)
    for rows in np.array_split(np.arange(len(x)), max(1, len(x) * len(corners) // 4_000_000)):
        bary = np.einsum("mij,nmj->nmi", inverse, x[rows, None] - corners[None, :, 0])
        found[rows] = ((bary > -1e-9).all(-1) & (bary.sum(-1) < 1 + 1e-9)).any(1)
    return found
