"""A solution on a tensor grid."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.science.geometry import BoxDomain
from sciax.science.pde import evaluate
from sciax.science.solvers._solution import Solution, as_points, expression


class GridSolution(Solution):
    """Values at the nodes of a tensor grid, and the interpolant through them.

    Attributes:
        states: [times, unknowns]; one row for a stationary problem.
        times: the times of the rows, or None.
    """

    def __init__(self, problem, method, states, info, values, row: int = -1):
        self.problem, self.collocation, self.states, self.info, self.row = problem, method, states, info, row
        self.method = method.name
        self.parameter_values = values
        self.domain: BoxDomain = problem.domain
        self.times = None if method.time is None else np.linspace(method.time[0], method.time[1], method.saves + 1)

    def __repr__(self) -> str:
        return f"GridSolution({self.method}, {'x'.join(map(str, self.collocation.shape))} nodes)"

    @property
    def coefficients(self):
        return self.states[self.row]

    def snapshot(self, row: int) -> "GridSolution":
        """The solution at `times[row]`."""
        return GridSolution(self.problem, self.collocation, self.states, self.info, self.parameter_values, row)

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
        grid = self.coefficients.reshape(-1, *self.collocation.shape)[self._span(chosen)]
        return grid[0] if chosen.components is None else jnp.moveaxis(grid, 0, -1)

    def __call__(self, points: Any, field: Any = None):
        """Values of the interpolant at points [k, dim].

        Raises:
            InputError: a point outside the box.
        """
        method, chosen = self.collocation, self.field(field)
        at, single = as_points(points, method.dim)
        at = np.asarray(at, dtype=np.float64)
        domain = self.domain
        edge = 1e-9 * (domain.upper - domain.lower)
        if ((at < domain.lower - edge) | (at > domain.upper + edge)).any():
            raise InputError("points lie outside the domain", got=f"{domain!r}")
        grid = self.values(chosen)
        out = grid[None]
        for k, axis in enumerate(method.grid):
            rows = jnp.asarray(axis.rows(at[:, k]), grid.dtype)
            out = jnp.sum(out * rows.reshape(*rows.shape, *(1,) * (out.ndim - 2)), axis=1)
        return out[0] if single else out

    def sample_points(self, count: int = 2000) -> np.ndarray:
        domain = self.domain
        return np.random.default_rng(0).uniform(domain.lower, domain.upper, (min(count, 2000), self.collocation.dim))

    def integrate(self, what: Any = None):
        """Integral over the domain of a field, an expression in fields, or a function of x."""
        method = self.collocation
        expr = expression(what, self.field())
        u = self.coefficients.reshape(method.components, *method.shape)
        slopes = jnp.stack([method._along(a.slope, u, k) for k, a in enumerate(method.grid)], axis=1)
        flat = u.reshape(method.components, -1)
        values = method._pointwise(lambda env: evaluate(expr, env), method._points(None), flat,
                                   slopes.reshape(method.components, method.dim, -1), jnp.zeros_like(flat),
                                   self.parameter_values, None)  # fmt: skip
        weight = method.grid[0].weights
        for axis in method.grid[1:]:
            weight = np.multiply.outer(weight, axis.weights)
        return jnp.sum(values * jnp.asarray(weight.ravel(), values.dtype), axis=-1)

    def error(self, exact: Any, field: Any = None):
        """Root mean square difference to an exact solution, a function of x, at the nodes, times the root of the volume."""
        chosen = self.field(field)
        x = self.collocation._points(None)
        truth = jax.vmap(exact, in_axes=-1)(x)
        values = self.values(chosen).reshape(truth.shape)
        domain = self.domain
        return jnp.sqrt(jnp.mean((values - truth) ** 2) * np.prod(domain.upper - domain.lower))

    def to_xarray(self):
        """The fields on the grid, with coordinates x, y, z and, for transient problems, time."""
        import xarray as xr

        method = self.collocation
        names = list("xyz"[: method.dim])
        coords = {n: (n, a.nodes, {"axis": n.upper(), "long_name": n}) for n, a in zip(names, method.grid)}
        states = np.asarray(jax.device_get(self.states)).reshape(len(self.states), method.components, *method.shape)
        data = {}
        for field in self.problem.fields:
            values = states[:, self._span(field)]
            dims = ["time", f"{field.name}_component", *names]
            if field.components is None:
                values, dims = values[:, 0], ["time", *names]
            if self.times is None:
                values, dims = values[0], dims[1:]
            data[field.name] = (dims, values, {"long_name": field.name})
        if self.times is not None:
            coords["time"] = ("time", self.times, {"axis": "T"})
        return xr.Dataset(data, coords, {"Conventions": "CF-1.8", "method": self.method})

    def plot(self, field: Any = None, path: Any = None, title: str | None = None):
        """A matplotlib figure: curves (1-D, the saved times of a transient problem) or filled contours (2-D)."""
        from matplotlib.figure import Figure

        method, chosen = self.collocation, self.field(field)
        fine = [np.linspace(a, b, 201) for a, b in zip(self.domain.lower, self.domain.upper)]
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        if method.dim == 1:
            rows = range(len(self.states)) if self.times is not None else [self.row]
            for row in rows:
                label = None if self.times is None else f"t = {self.times[row]:.3g}"
                axes.plot(fine[0], np.asarray(self.snapshot(row)(fine[0][:, None], chosen)), label=label)
            if self.times is not None and len(self.times) <= 12:
                axes.legend(fontsize=8)
            axes.set(xlabel="x", ylabel=chosen.name)
            axes.grid(alpha=0.3)
        elif method.dim == 2:
            x, y = np.meshgrid(*fine, indexing="ij")
            z = np.asarray(self(np.stack([x.ravel(), y.ravel()], axis=1), chosen))
            z = np.linalg.norm(z, axis=1) if z.ndim == 2 else z
            filled = axes.contourf(x, y, z.reshape(x.shape), levels=30, cmap="viridis")
            axes.set_aspect("equal")
            axes.set(xlabel="x", ylabel="y")
            figure.colorbar(filled, ax=axes, label=chosen.name)
        else:
            raise InputError("pictures of grids are for one and two dimensions", remedy="plot a slice of to_xarray()")
        axes.set_title(title or f"{chosen.name}: {self.method}, {' x '.join(map(str, method.shape))} nodes")
        return self._save(figure, path)
