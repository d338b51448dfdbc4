"""Directed message passing on bonds. K. Yang et al., J. Chem. Inf. Model. 59, 3370 (2019)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sciax.core.errors import InputError
from sciax.science.equivariant import Mlp
from sciax.science.equivariant._random import normal
from sciax.science.graph import PaddedGraph, readout, sum_to_nodes


def reverse_edges(graph: PaddedGraph) -> np.ndarray:
    """For each edge u -> v of a host batch, the index of v -> u; padding points to itself."""
    s, r = np.asarray(graph.senders, np.int64), np.asarray(graph.receivers, np.int64)
    n = graph.shape.nodes + 1
    real = r < graph.shape.nodes
    key, back = np.where(real, s * n + r, -1 - np.arange(len(s))), r * n + s
    order = np.argsort(key)
    place = np.minimum(np.searchsorted(key[order], back), max(len(s) - 1, 0))
    return np.where(real, order[place], np.arange(len(s))).astype(np.int32)


class Dmpnn(eqx.Module):
    """h⁰ = relu(W_i [x_u, e_uv]);  h = relu(h⁰ + W_m Σ_{k≠v} h_ku);  atoms: relu(W_a [x_v, Σ_u h_uv]);  mean over atoms.

    The molecule's vector, with extra features beside it, goes through a perceptron to `tasks` numbers. A molecule without
    bonds gets its atoms' own features.
    """

    first: Array
    mix: Array
    atom: Array
    head: Mlp
    depth: int = eqx.field(static=True)

    def __init__(
        self, atom_size: int, bond_size: int, extra: int, tasks: int, *, hidden: int = 128, depth: int = 3, key: Array
    ):
        if depth < 1 or hidden < 1 or tasks < 1:
            raise InputError("depth, hidden and tasks are at least 1", got=(depth, hidden, tasks))
        k = jax.random.split(key, 4)
        self.first = normal(k[0], (atom_size + bond_size, hidden)) * (2 / (atom_size + bond_size)) ** 0.5
        self.mix = normal(k[1], (hidden, hidden)) * (2 / hidden) ** 0.5
        self.atom = normal(k[2], (atom_size + hidden, hidden)) * (2 / (atom_size + hidden)) ** 0.5
        self.head = Mlp((hidden + extra, hidden, tasks), key=k[3], bias=True)
        self.depth = depth

    def __call__(
        self, graph: PaddedGraph, reverse: Int[Array, " edges"], extra: Float[Array, "graphs extra"]
    ) -> Float[Array, "graphs tasks"]:
        x, n = graph.nodes["x"], graph.nodes["x"].shape[0]
        start = jnp.concatenate([x[graph.senders], graph.edges["e"]], -1) @ self.first
        h = jax.nn.relu(start)

        def step(h, _):
            incoming = sum_to_nodes(h, graph.receivers, n)
            return jax.nn.relu(start + (incoming[graph.senders] - h[reverse]) @ self.mix), None

        h, _ = jax.lax.scan(step, h, None, length=self.depth - 1)
        atoms = jax.nn.relu(jnp.concatenate([x, sum_to_nodes(h, graph.receivers, n)], -1) @ self.atom)
        return self.head(jnp.concatenate([readout(atoms, graph, "mean"), extra], -1))
