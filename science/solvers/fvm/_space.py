"""The rate of change of cell averages: ghost cells, reconstruction at faces, fluxes, differences."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.ops.volume import limited, weno5
from sciax.science.mesh import SIDES
from sciax.science.pde import Env, Periodic, evaluate
from sciax.science.solvers.fvm._problem import Conservation, NoSlip, Reflecting, Transmissive


class Space:
    """A uniform grid of cells with the law's fluxes on its faces.

    Attributes:
        shape, spacing, centres: of the cells along each axis.
        scheme: "constant" (first order), "muscl", "weno5". variables: what is reconstructed. flux: which Riemann solver.
    """

    def __init__(self, problem: Conservation, shape, scheme, limiter, variables, flux, dtype):
        self.law, self.dim, self.dtype = problem.law, problem.dim, dtype
        self.shape = tuple(int(n) for n in shape)
        domain: Any = problem.domain
        self.lower, self.spacing = domain.lower, domain.extent / np.array(self.shape)
        self.centres = [a + h * (np.arange(n) + 0.5) for a, h, n in zip(self.lower, self.spacing, self.shape)]
        self.sides, self.kind, self.flux = problem.at_sides, variables, flux
        self.rebuild: Callable[..., Any] | None = {
            "constant": None, "muscl": partial(limited, limiter=limiter), "weno5": weno5}[scheme]  # fmt: skip
        self.ghosts = {"constant": 1, "muscl": 2, "weno5": 3}[scheme]

    # -- what conditions say -----------------------------------------------------------------------------------------

    def _over(self, axes_points, expr, components, values, t):
        """[components, *points] of an expression on a tensor grid of points."""
        grids = jnp.meshgrid(*(jnp.asarray(p, self.dtype) for p in axes_points), indexing="ij")
        x = jnp.stack([g.ravel() for g in grids])

        def at(point):
            value = evaluate(expr, Env(point, values=values, t=t))
            return jnp.broadcast_to(jnp.asarray(value, self.dtype), (components,))

        return jax.vmap(at, in_axes=-1, out_axes=-1)(x).reshape(components, *(len(p) for p in axes_points))

    def _averages(self, exprs, values, t, after):
        """Averages over cells of `after(rows)`, rows being the expressions at Gauss points."""
        count = self.law.points
        node, weight = np.polynomial.legendre.leggauss(count)
        points = [(c[:, None] + h / 2 * node).ravel() for c, h in zip(self.centres, self.spacing)]
        rows = after(jnp.concatenate([self._over(points, e, n, values, t) for e, n in exprs]))
        for axis in range(self.dim):
            cut = (*rows.shape[: 1 + axis], self.shape[axis], count, *rows.shape[2 + axis :])
            rows = jnp.tensordot(rows.reshape(cut), jnp.asarray(weight / 2, self.dtype), axes=(2 + axis, 0))
        return rows

    def constants(self, values):
        env = Env(jnp.zeros(self.dim, self.dtype), values=values)
        return {n: jnp.asarray(evaluate(e, env), self.dtype) for n, e in self.law.constants.items()}

    def extra(self, values):
        exprs = [(e, 1) for e in self.law.extra.values()]
        if not exprs:
            return jnp.zeros((0, *self.shape), self.dtype)
        return self._averages(exprs, values, None, lambda rows: rows)

    def start(self, initial, values, c, t):
        """Averages of the conserved initial state."""
        exprs = [(initial[f.name].value, f.size) for f in self.law.fields]
        return self._averages(exprs, values, t, lambda w: self.law.conserved(w, c))

    # -- ghost cells -------------------------------------------------------------------------------------------------

    def padded(self, rows, axis, count, values, t):
        """Primitive (and extra) rows with `count` ghost cells at both ends of an axis, which may have been done for others."""
        first, last = SIDES[self.dim][axis]
        here = 1 + axis
        size = rows.shape[here]
        if isinstance(self.sides[first], Periodic):
            return jnp.pad(rows, [(count, count) if k == here else (0, 0) for k in range(rows.ndim)], mode="wrap")
        near = partial(jax.lax.slice_in_dim, rows, axis=here)
        low = self._ghost(first, near(0, min(count, size)), near(0, 1), axis, count, values, t)
        high = self._ghost(last, near(max(size - count, 0), size), near(size - 1, size), axis, count, values, t)
        return jnp.concatenate([low, rows, high], axis=here)

    def _ghost(self, side, near, edge, axis, count, values, t):
        condition, here, m = self.sides[side], 1 + axis, self.law.size
        if isinstance(condition, Transmissive):
            return jnp.repeat(edge, count, axis=here)
        turned = jnp.flip(near, axis=here)
        if isinstance(condition, Reflecting):
            return jnp.concatenate([self.law.mirror(turned[:m], axis), turned[m:]])
        if isinstance(condition, NoSlip):
            wall = evaluate(condition.exprs[0], Env(jnp.zeros(self.dim, self.dtype), values=values, t=t))
            wall = jnp.broadcast_to(jnp.asarray(wall, self.dtype), (self.dim,)).reshape(-1, *(1,) * self.dim)
            return turned.at[1 : 1 + self.dim].set(2 * wall - turned[1 : 1 + self.dim])
        points = list(self.centres)
        points[axis] = np.array([self.lower[axis] + (self.spacing[axis] * self.shape[axis] if side in _ENDS else 0.0)])
        state = jnp.concatenate(
            [self._over(points, condition[f.name].value, f.size, values, t) for f in self.law.fields]
        )
        for k in range(self.dim):  # axes that have ghosts already
            extra = (edge.shape[1 + k] - state.shape[1 + k]) // 2
            if k != axis and extra:
                state = jnp.pad(
                    state, [(extra, extra) if j == 1 + k else (0, 0) for j in range(state.ndim)], mode="edge"
                )
        rows = jnp.concatenate([state, edge[m:]])
        return jnp.repeat(rows, count, axis=here)

    # -- the rate ----------------------------------------------------------------------------------------------------

    def rate(self, q, extra, values, c, t):
        """dq/dt of cell averages [m, *shape]."""
        rows = jnp.concatenate([self.law.primitive(q, c), extra])
        out = jnp.zeros_like(q)
        for axis in range(self.dim):
            out = out + self._along(rows, axis, values, c, t)
        whole = rows[: self.law.size]
        if not self.law.ideal:
            for axis in range(self.dim):
                whole = self.padded(whole, axis, 1, values, t)
            for axis in range(self.dim):
                flux = self.law.diffusive(whole, self.spacing, c, axis)
                out = out - jnp.diff(flux, axis=1 + axis) / self.spacing[axis]
        return out

    def _along(self, rows, axis, values, c, t):
        law, here, h = self.law, 1 + axis, float(self.spacing[axis])
        v = law.edges(self.padded(rows, axis, self.ghosts, values, t), c, self.kind)
        low, high = self._edges(v, axis, c)  # of each cell, one ghost on both ends
        n = self.shape[axis]
        cut = partial(jax.lax.slice_in_dim, axis=here)
        out_of, into = law.face(cut(high, 0, n + 1), cut(low, 1, n + 2), c, self.kind, self.flux, axis)
        total = -(cut(out_of, 1, n + 1) - cut(into, 0, n)) / h
        work = law.inside(cut(low, 1, n + 1), cut(high, 1, n + 1), c, axis)
        return total if work is None else total + work / h

    def _edges(self, v, axis, c):
        """Reconstructed rows at the lower and upper face of every cell, the outermost ghosts left out."""
        here, g, law = 1 + axis, self.ghosts, self.law
        n = v.shape[here]
        middle = jax.lax.slice_in_dim(v, g - 1, n - g + 1, axis=here)
        if self.rebuild is None:
            return middle, middle
        reach = g - 1
        cells = [jax.lax.slice_in_dim(v, k, n - 2 * reach + k, axis=here) for k in range(2 * reach + 1)]
        if self.kind == "characteristic":
            high, low = self._characteristic(cells, axis, c)
        else:
            stencil = jnp.stack(cells)
            high, low = self.rebuild(stencil), self.rebuild(stencil[::-1])
        # near vacuum and strong shocks an edge may not be a state: first order there
        sound = law.sound(low, c, self.kind) & law.sound(high, c, self.kind)
        return jnp.where(sound, low, middle), jnp.where(sound, high, middle)

    def _characteristic(self, cells, axis, c):
        """Each face's stencil in the wave variables of that face, so that waves do not disturb one another."""
        assert self.rebuild is not None
        reach = len(cells) // 2
        middle = cells[reach]

        def one(stencil, beyond):
            forward, back = self.law.project(middle, beyond, c, axis)
            # wave by wave: see the note in core.ops.volume on stacked rows
            return back([self.rebuild(jnp.stack(wave)) for wave in zip(*(forward(s) for s in stencil))])  # type: ignore[misc]

        return one(cells, cells[reach + 1]), one(cells[::-1], cells[reach - 1])

    def courant_rate(self, q, c):
        """Inverse of the largest stable time step, [cells], summed over axes."""
        w = self.law.primitive(q, c)
        total = sum(self.law.speed(w, c, k) / self.spacing[k] for k in range(self.dim))
        return total + 4.0 * self.law.diffusivity(w, c) * float(np.sum(1.0 / self.spacing**2))

    def positive(self, q, c):
        """[quantities, *shape] that must stay positive, NaN counted as the worst."""
        stacked = jnp.stack(self.law.positive(q, c))
        return jnp.where(jnp.isfinite(stacked), stacked, -jnp.inf)


_ENDS = {pair[1] for pairs in SIDES.values() for pair in pairs}
