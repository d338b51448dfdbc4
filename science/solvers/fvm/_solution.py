"""States of a conservation law on cells."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.science.pde import Env, evaluate
from sciax.science.solvers._solution import Solution, as_points, expression


class CellSolution(Solution):
    """Cell averages at the saved times.

    Attributes:
        states: [times, m, *cells] conserved averages. times: [times].
        info: steps done and the largest Courant number.
        centres: cell centres along each axis.
    """

    method = "fvm"

    def __init__(self, problem, method, states, times, extra, constants, info, values, row: int = -1):
        self.problem, self.fvm, self.states, self.times, self.info, self.row = problem, method, states, times, info, row
        self.extra, self.constants, self.parameter_values = extra, constants, values
        self.domain, self.law = problem.domain, problem.law
        self.centres = method.space.centres

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.fvm.space.shape))
        return f"CellSolution({type(self.law).__name__}, {shape} cells, {self.fvm.scheme}, {self.fvm.flux})"

    def snapshot(self, row: int) -> "CellSolution":
        """The solution at `times[row]`."""
        return CellSolution(self.problem, self.fvm, self.states, self.times, self.extra, self.constants, self.info,
                            self.parameter_values, row)  # fmt: skip

    @property
    def conserved(self):
        """[m, *cells] conserved averages."""
        return self.states[self.row]

    def totals(self, row: int | None = None):
        """[m] integrals of the conserved quantities over the domain."""
        state = self.states[self.row if row is None else row]
        volume = float(np.prod(self.fvm.space.spacing))
        return jnp.sum(state.reshape(state.shape[0], -1), axis=1) * volume

    def _rows(self, state):
        return self.law.primitive(state, self.constants)

    def _span(self, field) -> slice:
        start = 0
        for f in self.problem.fields:
            if f.name == field.name:
                return slice(start, start + f.size)
            start += f.size
        raise InputError(f"the solution has no field {field.name!r}")

    def values(self, field: Any = None):
        """[*cells] or [*cells, components] of a primitive field."""
        chosen = self.field(field)
        rows = self._rows(self.conserved)[self._span(chosen)]
        return rows[0] if chosen.components is None else jnp.moveaxis(rows, 0, -1)

    def __call__(self, points: Any, field: Any = None):
        """Values at points [k, dim], linear between centres, constant in the outer half of boundary cells.

        Raises:
            InputError: a point outside the box.
        """
        chosen = self.field(field)
        dim, domain = self.problem.dim, self.domain
        at, single = as_points(points, dim)
        at = np.asarray(at, dtype=np.float64)
        edge = 1e-9 * domain.extent
        if ((at < domain.lower - edge) | (at > domain.upper + edge)).any():
            raise InputError("points lie outside the domain", got=f"{domain!r}")
        grid = self.values(chosen)
        place = (at - domain.lower) / self.fvm.space.spacing - 0.5
        place = np.clip(place, 0, np.array(self.fvm.space.shape) - 1.0)
        low = np.minimum(place.astype(int), np.array(self.fvm.space.shape) - 2)
        share = place - low
        out: Any = 0.0
        for corner in np.ndindex(*(2,) * dim):
            weight = np.prod(np.where(np.array(corner) == 1, share, 1 - share), axis=1)
            picked = grid[tuple((low + corner).T)]
            out = out + picked * jnp.asarray(weight, grid.dtype).reshape(-1, *(1,) * (picked.ndim - 1))
        return out[0] if single else out

    def sample_points(self, count: int = 2000) -> np.ndarray:
        domain = self.domain
        return np.random.default_rng(0).uniform(domain.lower, domain.upper, (min(count, 2000), self.problem.dim))

    def integrate(self, what: Any = None):
        """Integral over the domain of a primitive field, an expression in them without derivatives, or a function of x."""
        space, fields = self.fvm.space, self.problem.fields
        expr = expression(what, self.field())
        rows = self._rows(self.conserved)
        points = np.stack([g.ravel() for g in np.meshgrid(*self.centres, indexing="ij")])

        def at(x, w):
            held, start = {}, 0
            for f in fields:
                part = w[start : start + f.size]
                held[f.name] = (part[0] if f.components is None else part, None)
                start += f.size
            return evaluate(expr, Env(x, held, values={**self.parameter_values, **self.fvm.compiled}))

        dtype = rows.dtype
        found = jax.vmap(at, in_axes=-1, out_axes=-1)(jnp.asarray(points, dtype), rows.reshape(rows.shape[0], -1))
        return jnp.sum(found, axis=-1) * float(np.prod(space.spacing))

    def to_xarray(self):
        """Primitive fields on the cells with coordinates x, y, z and time; the bed of shallow water beside them."""
        import xarray as xr

        names = list("xyz"[: self.problem.dim])
        coords: dict[str, Any] = {n: (n, c, {"axis": n.upper(), "long_name": n}) for n, c in zip(names, self.centres)}
        coords["time"] = ("time", np.asarray(jax.device_get(self.times)), {"axis": "T"})
        rows = np.asarray(jax.device_get(jax.vmap(self._rows)(self.states)))
        data = {}
        long = {"rho": "density", "v": "velocity", "p": "pressure", "h": "depth"}
        for field in self.problem.fields:
            values, dims = rows[:, self._span(field)], ["time", f"{field.name}_component", *names]
            if field.components is None:
                values, dims = values[:, 0], ["time", *names]
            data[field.name] = (
                dims,
                values,
                {"long_name": long.get(field.name, field.name), "cell_methods": "area: mean"},
            )
        for name, values in zip(self.law.extra, np.asarray(jax.device_get(self.extra))):
            data[name] = (names, values, {"long_name": name})
        attributes = {"Conventions": "CF-1.8", "method": "fvm", "scheme": self.fvm.scheme, "flux": self.fvm.flux}
        return xr.Dataset(data, coords, attributes)

    def plot(self, field: Any = None, path: Any = None, title: str | None = None):
        """A matplotlib figure: cell averages as points on a line at each saved time (1-D), or filled cells (2-D)."""
        from matplotlib.figure import Figure

        chosen = self.field(field)
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        if self.problem.dim == 1:
            for row in range(len(self.states)):
                values = np.asarray(self.snapshot(row).values(chosen))
                axes.plot(self.centres[0], values, ".-", ms=3, lw=0.8, label=f"t = {float(self.times[row]):.3g}")
            if len(self.states) <= 12:
                axes.legend(fontsize=8)
            if chosen.name == "h" and "bed" in self.law.extra:
                axes.fill_between(self.centres[0], np.asarray(self.extra[0]), color="0.8", label="bed")
            axes.set(xlabel="x", ylabel=chosen.name)
            axes.grid(alpha=0.3)
        elif self.problem.dim == 2:
            z = np.asarray(self.values(chosen))
            z = np.linalg.norm(z, axis=-1) if z.ndim == 3 else z
            filled = axes.pcolormesh(*self.centres, z.T, cmap="viridis", shading="nearest")
            axes.set_aspect("equal")
            axes.set(xlabel="x", ylabel="y")
            figure.colorbar(filled, ax=axes, label=chosen.name if chosen.components is None else f"|{chosen.name}|")
        else:
            raise InputError("pictures of grids are for one and two dimensions", remedy="plot a slice of to_xarray()")
        time = float(self.times[self.row])
        shape = " x ".join(map(str, self.fvm.space.shape))
        axes.set_title(
            title or f"{chosen.name}: fvm ({self.fvm.scheme}, {self.fvm.flux}), {shape} cells, t = {time:.3g}"
        )
        return self._save(figure, path)
