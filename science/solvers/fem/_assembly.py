"""From a weak form to matrices: pointwise linearisation by JAX, then one matrix product per block, then a scatter.

At a quadrature point the weak integrand is a function from the fields' values and reference gradients, z[component, 1 + dim],
to what multiplies the test function's, w[component, 1 + dim]. Its Jacobian D is all that an element matrix needs to know of
the equation: `K[i, j, e] = sum over q, a, b of psi[q, a, i] psi[q, b, j] D[a, b, q, e]`, with the basis tabulated once on the
reference cell, is a product of a small constant matrix with D.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.science.pde import Env, Field, WeakForm, evaluate
from sciax.science.pde._expr import Expr


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each field's unknowns are in the vector of all.

    Attributes:
        fields: in order.
        orders: element order of each.
        counts: nodes of each.
        offsets: first unknown of each; the last entry is the total.
        starts: first component of each among all components.
    """

    fields: tuple[Field, ...]
    orders: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def offsets(self) -> tuple[int, ...]:
        return tuple(np.concatenate([[0], np.cumsum([c * f.size for c, f in zip(self.counts, self.fields)])]).tolist())

    @property
    def starts(self) -> tuple[int, ...]:
        return tuple(np.concatenate([[0], np.cumsum([f.size for f in self.fields])]).tolist())

    @property
    def size(self) -> int:
        return self.offsets[-1]

    def index(self, name: str) -> int:
        return next(k for k, f in enumerate(self.fields) if f.name == name)

    def unknowns(self, k: int, nodes: np.ndarray, component: int) -> np.ndarray:
        return self.offsets[k] + nodes * self.fields[k].size + component

    def part(self, vector, k: int):
        """The coefficients of field k: [nodes] for a scalar, [nodes, components] for a vector."""
        flat = vector[self.offsets[k] : self.offsets[k + 1]]
        field = self.fields[k]
        return flat if field.components is None else flat.reshape(-1, field.components)


def gather(layout: Layout, k: int, nodes, vector):
    """[n, components, m] coefficients at the local nodes of each cell; `nodes` is [n, m]."""
    field = layout.fields[k]
    part = vector[layout.offsets[k] : layout.offsets[k + 1]].reshape(-1, field.size)
    return jnp.moveaxis(part[nodes], -1, 1)


def unpack(layout: Layout, z, inverse, dtype, dim: int):
    """name -> (value, gradient) from z[components, 1 + dim] in reference coordinates."""
    out = {}
    for k, field in enumerate(layout.fields):
        rows = z[layout.starts[k] : layout.starts[k + 1]]
        value = rows[:, 0]
        slope = (
            jnp.sum(rows[:, 1:, None] * inverse[None], axis=1)
            if inverse is not None
            else jnp.zeros((field.size, dim), dtype)
        )
        scalar = field.components is None
        out[field.name] = (value[0], slope[0]) if scalar else (value, slope)
    return out


def cell_integrand(layout: Layout, forms: tuple[WeakForm, ...], dim: int):
    """The function w(z, rate, point data) of the module's docstring, times the measure."""

    def integrand(z, rate, point, values, t):
        x, inverse, measure = point["x"], point["inverse"], point["measure"]
        fields = unpack(layout, z, inverse, x.dtype, dim)
        rates = {}
        if rate is not None:
            for k, field in enumerate(layout.fields):
                part = rate[layout.starts[k] : layout.starts[k + 1]]
                rates[field.name] = part[0] if field.components is None else part
        env = Env(x, fields, values, point["groups"], point["samples"], rates, None, t)
        rows = []
        for form in forms:
            field = form.test
            source, flux = form.evaluate(env, () if field.components is None else (field.components,), dim)
            source, flux = source.reshape(field.size), flux.reshape(field.size, dim)
            for c in range(field.size):
                turned = [sum(flux[c, i] * inverse[a, i] for i in range(dim)) for a in range(dim)]
                rows.append(jnp.stack([source[c], *turned]))
        return jnp.stack(rows) * measure

    return integrand


def natural_value(layout: Layout, k: int, component: int | None, coefficient: Expr | None, value: Expr, dim: int):
    """The stated natural flux, `value - coefficient u`, as a function of z, point data, values and time."""
    field = layout.fields[k]
    shape = () if field.components is None or component is not None else (field.components,)

    def natural(z, point, values, t):
        fields = unpack(
            layout, jnp.concatenate([z[:, None], jnp.zeros((z.shape[0], dim), z.dtype)], 1), None, z.dtype, dim
        )
        env = Env(point["x"], fields, values, point["groups"], point["samples"], {}, point["normal"], t)
        out = jnp.broadcast_to(evaluate(value, env), shape)
        if coefficient is not None:
            mine = fields[field.name][0]
            out = out - evaluate(coefficient, env) * (mine if component is None else mine[component])
        out = out * point["measure"]
        if component is not None:
            return jnp.zeros(field.size, z.dtype).at[component].set(out), env
        return out.reshape(field.size), env

    return natural


def facet_integrand(form: WeakForm, natural):
    """What a Neumann or Robin condition adds to the residual of its field: `-sign scale natural v`."""

    def integrand(z, point, values, t):
        out, env = natural(z, point, values, t)
        for factor in form.scale:
            out = out * evaluate(factor, env)
        return -form.sign * out

    return integrand


def over_points(function, shape: tuple[int, int], pointwise: tuple, shared: tuple):
    """`function(*pointwise, *shared)` at every quadrature point of every cell.

    Args:
        shape: (q, m).
        pointwise: pytrees of arrays with trailing axes (q, m), or (1, m) for what is constant on a cell.
        shared: the same at all points.

    Returns:
        The results, with trailing axes (q, m).
    """
    # Arrays go in and come out entry by entry, each a flat axis of points: the programs are then elementwise loops, which XLA
    # compiles to code several times faster than batches of small arrays.
    count = shape[0] * shape[1]

    def split(a):
        flat = jnp.broadcast_to(a, (*a.shape[:-2], *shape)).reshape(-1, count)
        return a.shape[:-2], [flat[i] for i in range(flat.shape[0])]

    leaves, tree = jax.tree.flatten(pointwise)
    parts = [split(leaf) for leaf in leaves]
    shapes: list[tuple[int, ...]] = []

    def at_one(entries):
        rebuilt = [jnp.stack(e).reshape(s) if s else e[0] for (s, _), e in zip(parts, entries)]
        out, out_tree = jax.tree.flatten(function(*jax.tree.unflatten(tree, rebuilt), *shared))
        shapes[:] = [o.shape for o in out]
        at_one.tree = out_tree
        return [[o[index] for index in np.ndindex(o.shape)] for o in out]

    mapped = jax.vmap(at_one)([entries for _, entries in parts])
    joined = [jnp.stack(e).reshape(*s, *shape) for e, s in zip(mapped, shapes)]
    return jax.tree.unflatten(at_one.tree, joined)


def block(test: np.ndarray, trial: np.ndarray, d) -> Any:
    """[i, j, m] element matrices of a pair of components; test, trial [q, a, i]; d [a, b, q, m]."""
    constant = np.einsum("qai,qbj->ijabq", test, trial)
    i, j = constant.shape[:2]
    flat = constant.reshape(i * j, -1)
    return (jnp.asarray(flat, d.dtype) @ d.reshape(flat.shape[1], -1)).reshape(i, j, -1)


def stack_basis(values: np.ndarray, slopes: np.ndarray | None) -> np.ndarray:
    """[q, 1 + dim, n] from values [q, n] and gradients [q, n, dim]; [q, 1, n] without gradients."""
    if slopes is None:
        return values[:, None, :]
    return np.concatenate([values[:, None, :], slopes.transpose(0, 2, 1)], axis=1)
