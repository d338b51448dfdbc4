"""A solution by Fourier series."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.science.pde import Periodic
from sciax.science.solvers._solution import Solution, as_points, expression
from sciax.science.solvers.etdrk._terms import Evaluator


class FourierSolution(Solution):
    """Values on a periodic grid at the saved times, and the Fourier series through them.

    Attributes:
        states: [times, c, *grid]. times: [times].
    """

    method = "etdrk"

    def __init__(self, problem, method, states, values, row: int = -1):
        self.problem, self.etdrk, self.states, self.parameter_values, self.row = problem, method, states, values, row
        self.domain = problem.domain
        self.times = np.linspace(method.time[0], method.time[1], method.saves + 1)
        self.info = {"steps": method.steps, "order": method.order}

    def __repr__(self) -> str:
        return f"FourierSolution({'x'.join(map(str, self.etdrk.shape))} points, order {self.etdrk.order})"

    def snapshot(self, row: int) -> "FourierSolution":
        """The solution at `times[row]`."""
        return FourierSolution(self.problem, self.etdrk, self.states, self.parameter_values, row)

    def _span(self, field) -> slice:
        start = 0
        for f in self.problem.fields:
            if f.name == field.name:
                return slice(start, start + f.size)
            start += f.size
        raise InputError(f"the solution has no field {field.name!r}")

    def values(self, field: Any = None):
        """[*grid] or [*grid, components]."""
        chosen = self.field(field)
        rows = self.states[self.row][self._span(chosen)]
        return rows[0] if chosen.components is None else jnp.moveaxis(rows, 0, -1)

    def __call__(self, points: Any, field: Any = None):
        """Values of the series at points [k, dim]; points outside the box are folded back."""
        chosen, space = self.field(field), self.etdrk.space
        at, single = as_points(points, space.dim)
        at = jnp.asarray(at, self.states.dtype) - jnp.asarray(self.domain.lower, self.states.dtype)
        hat = space.forward(self.states[self.row][self._span(chosen)])
        last = self.etdrk.shape[-1]
        # the real transform holds one of each pair of conjugate waves
        double = np.full(hat.shape[-1], 2.0)
        double[0] = 1.0
        if last % 2 == 0:
            double[-1] = 1.0
        hat = hat * jnp.asarray(double / np.prod(self.etdrk.shape), self.states.dtype)

        def one(x):
            out = hat
            for axis in reversed(range(space.dim)):
                out = out @ jnp.exp(1j * x[axis] * jnp.asarray(space.k[axis].ravel(), x.dtype))
            return jnp.real(out)

        found = jax.lax.map(one, at, batch_size=64)
        found = found[:, 0] if chosen.components is None else found
        return found[0] if single else found

    def sample_points(self, count: int = 2000) -> np.ndarray:
        domain = self.domain
        return np.random.default_rng(0).uniform(domain.lower, domain.upper, (min(count, 500), self.problem.dim))

    def integrate(self, what: Any = None):
        """Integral over the box of a field, an expression in fields with derivatives of any order, or a function of x."""
        method = self.etdrk
        expr = expression(what, self.field())
        hats, start = {}, 0
        waves = method.space.forward(self.states[self.row])
        for f in self.problem.fields:
            part = waves[start : start + f.size]
            hats[f.name] = part[0] if f.components is None else part
            start += f.size
        time = jnp.asarray(self.times[self.row], method.dtype)
        evaluator = Evaluator(method.space, hats, {**self.parameter_values, **method.compiled}, time, method.dtype)
        grid = evaluator.grid(expr)
        dim = method.dim
        return jnp.mean(grid, axis=tuple(range(-dim, 0))) * float(np.prod(self.domain.extent))

    def error(self, exact: Any, field: Any = None):
        """Root mean square difference to an exact solution, a function of x, on the grid, times the root of the volume."""
        x = jnp.asarray(self.etdrk.space.points.reshape(self.problem.dim, -1), self.states.dtype)
        truth = jax.vmap(exact, in_axes=-1)(x)
        values = self.values(field).reshape(truth.shape)
        return jnp.sqrt(jnp.mean((values - truth) ** 2) * float(np.prod(self.domain.extent)))

    def to_xarray(self):
        """The fields on the grid, with coordinates x, y, z and time."""
        import xarray as xr

        dim = self.problem.dim
        names = list("xyz"[:dim])
        axes = [
            a + length * np.arange(n) / n
            for a, length, n in zip(self.domain.lower, self.domain.extent, self.etdrk.shape)
        ]
        coords: dict[str, Any] = {n: (n, a, {"axis": n.upper(), "long_name": n}) for n, a in zip(names, axes)}
        coords["time"] = ("time", self.times, {"axis": "T"})
        states = np.asarray(jax.device_get(self.states))
        data = {}
        for field in self.problem.fields:
            values, dims = states[:, self._span(field)], ["time", f"{field.name}_component", *names]
            if field.components is None:
                values, dims = values[:, 0], ["time", *names]
            data[field.name] = (dims, values, {"long_name": field.name})
        ring = any(isinstance(c, Periodic) for c in self.problem.conditions)
        return xr.Dataset(data, coords, {"Conventions": "CF-1.8", "method": self.method, "periodic": str(ring)})

    def plot(self, field: Any = None, path: Any = None, title: str | None = None):
        """A matplotlib figure: curves at the saved times, or position against time if they are many (1-D); a picture (2-D)."""
        from matplotlib.figure import Figure

        chosen = self.field(field)
        data = self.to_xarray()[chosen.name]
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        if self.problem.dim == 1 and len(self.times) > 12:
            seen = axes.pcolormesh(data.x, data.time, data.values, cmap="viridis", shading="nearest")
            axes.set(xlabel="x", ylabel="t")
            figure.colorbar(seen, ax=axes, label=chosen.name)
        elif self.problem.dim == 1:
            for time, row in zip(self.times, data.values):
                axes.plot(data.x, row, label=f"t = {time:.3g}")
            axes.legend(fontsize=8)
            axes.set(xlabel="x", ylabel=chosen.name)
            axes.grid(alpha=0.3)
        elif self.problem.dim == 2:
            z = np.asarray(self.values(chosen))
            z = np.linalg.norm(z, axis=-1) if z.ndim == 3 else z
            seen = axes.pcolormesh(data.x, data.y, z.T, cmap="RdBu_r", shading="nearest")
            axes.set_aspect("equal")
            axes.set(xlabel="x", ylabel="y")
            figure.colorbar(seen, ax=axes, label=chosen.name)
        else:
            raise InputError("pictures of grids are for one and two dimensions", remedy="plot a slice of to_xarray()")
        shape = " x ".join(map(str, self.etdrk.shape))
        axes.set_title(
            title or f"{chosen.name}: etdrk of order {self.etdrk.order}, {shape} points, t = {self.times[self.row]:.3g}"
        )
        return self._save(figure, path)
