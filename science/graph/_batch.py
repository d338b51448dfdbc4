"""Padded batches of graphs, in few shapes, so that a program compiles a handful of times and not once a batch."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Int

from sciax.core.errors import InputError, ShapeError


@dataclass(frozen=True)
class Graph:
    """One graph on the host: an edge goes from `senders` to `receivers`.

    `nodes`, `edges` and `globals` hold arrays by name, with leading axes nodes, edges and none.
    """

    senders: np.ndarray
    receivers: np.ndarray
    nodes: Mapping[str, np.ndarray]
    edges: Mapping[str, np.ndarray] = field(default_factory=dict)
    globals: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n, e = self.n_nodes, len(self.senders)
        if len(self.receivers) != e or any(len(v) != e for v in self.edges.values()):
            raise ShapeError("edge arrays differ in length", got={k: len(v) for k, v in self.edges.items()}, expected=e)
        if any(len(v) != n for v in self.nodes.values()):
            raise ShapeError("node arrays differ in length", got={k: len(v) for k, v in self.nodes.items()}, expected=n)
        if e and (
            max(self.senders.max(), self.receivers.max()) >= n or min(self.senders.min(), self.receivers.min()) < 0
        ):
            raise InputError("an edge points to a node that is not there", expected=f"0..{n - 1}")

    @property
    def n_nodes(self) -> int:
        if not self.nodes:
            raise InputError("a graph needs at least one node array")
        return len(next(iter(self.nodes.values())))


class BatchShape(NamedTuple):
    """Room of a batch. Nodes beyond the real ones belong to no graph, edges beyond to no node."""

    graphs: int
    nodes: int
    edges: int


class PaddedGraph(eqx.Module):
    """Graphs side by side. Padding: receivers = number of nodes, graph_of_node = number of graphs (both dropped by sums)."""

    senders: Int[Array, " edges"]
    receivers: Int[Array, " edges"]
    graph_of_node: Int[Array, " nodes"]
    nodes: dict[str, Array]
    edges: dict[str, Array]
    globals: dict[str, Array]
    graph_mask: Bool[Array, " graphs"]

    @property
    def shape(self) -> BatchShape:
        return BatchShape(self.graph_mask.shape[-1], self.graph_of_node.shape[-1], self.senders.shape[-1])

    @property
    def node_mask(self) -> Bool[Array, " nodes"]:
        return self.graph_of_node < self.graph_mask.shape[-1]

    @property
    def edge_mask(self) -> Bool[Array, " edges"]:
        return self.receivers < self.graph_of_node.shape[-1]


def batch_graphs(graphs: Sequence[Graph], shape: BatchShape | None = None) -> PaddedGraph:
    """One `PaddedGraph` of host arrays from graphs with the same array names; edges sorted by receiver.

    Raises:
        InputError: no graphs, different names, or a shape without room (the message says how much is needed).
    """
    if not graphs:
        raise InputError("a batch needs at least one graph")
    need = BatchShape(len(graphs), sum(g.n_nodes for g in graphs), sum(len(g.senders) for g in graphs))
    shape = need if shape is None else shape
    if any(a > b for a, b in zip(need, shape)):
        raise InputError("the batch does not fit its padded shape", got=need, expected=f"at most {shape}")
    first = graphs[0]
    for g in graphs:
        if (g.nodes.keys(), g.edges.keys(), g.globals.keys()) != (
            first.nodes.keys(),
            first.edges.keys(),
            first.globals.keys(),
        ):
            raise InputError("graphs of a batch carry different arrays", got=list(g.nodes), expected=list(first.nodes))
    offsets = np.cumsum([0] + [g.n_nodes for g in graphs])
    senders = np.concatenate([g.senders + o for g, o in zip(graphs, offsets)]).astype(np.int32)
    receivers = np.concatenate([g.receivers + o for g, o in zip(graphs, offsets)]).astype(np.int32)
    order = np.argsort(receivers, kind="stable")

    def pad(array: np.ndarray, length: int, value=0) -> np.ndarray:
        return np.pad(array, [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1), constant_values=value)

    owner = np.repeat(np.arange(len(graphs), dtype=np.int32), [g.n_nodes for g in graphs])
    edge_arrays = {k: np.concatenate([g.edges[k] for g in graphs])[order] for k in first.edges}
    return PaddedGraph(
        senders=pad(senders[order], shape.edges),  # pyright: ignore
        receivers=pad(receivers[order], shape.edges, shape.nodes),  # pyright: ignore
        graph_of_node=pad(owner, shape.nodes, shape.graphs),  # pyright: ignore
        nodes={k: pad(np.concatenate([g.nodes[k] for g in graphs]), shape.nodes) for k in first.nodes},  # pyright: ignore
        edges={k: pad(v, shape.edges) for k, v in edge_arrays.items()},  # pyright: ignore
        globals={k: pad(np.stack([np.asarray(g.globals[k]) for g in graphs]), shape.graphs) for k in first.globals},  # pyright: ignore
        graph_mask=np.arange(shape.graphs) < len(graphs),  # pyright: ignore
    )


def bucket_shapes(
    sizes: Iterable[tuple[int, int]], graphs_per_batch: int, *, most: int = 6
) -> tuple[list[BatchShape], np.ndarray]:
    """At most `most` shapes for a data set of graphs of the given (nodes, edges), and the bucket of each graph.

    Graphs are sorted by edges and split where it wastes least, by dynamic programming over the padded edges; as few shapes
    are taken as keep the padding within 15 %.

    Raises:
        InputError: no graphs, or `most` < 1.
    """
    table = np.array(list(sizes), dtype=np.int64).reshape(-1, 2)
    if not len(table) or most < 1 or graphs_per_batch < 1:
        raise InputError(
            "buckets need graphs, most >= 1 and graphs_per_batch >= 1", got=(len(table), most, graphs_per_batch)
        )
    order = np.lexsort((table[:, 0], table[:, 1]))
    edges, nodes = table[order, 1], table[order, 0]
    ends = np.unique(
        np.searchsorted(edges, np.unique(edges), side="right")
    )  # a bucket ends where the edge count changes
    if len(ends) > 200:
        ends = np.unique(np.append(ends[:: math.ceil(len(ends) / 200)], ends[-1]))
    cost = np.full((most + 1, len(ends) + 1), np.inf)
    cut = np.zeros((most + 1, len(ends) + 1), int)
    cost[:, 0] = 0
    starts = np.concatenate([[0], ends])
    for b in range(1, most + 1):
        for j in range(1, len(ends) + 1):
            last = ends[j - 1]
            total = cost[b - 1, :j] + (last - starts[:j]) * (edges[last - 1] + 1)
            cut[b, j] = int(np.argmin(total))
            cost[b, j] = total[cut[b, j]]
    # every shape is a compilation: take the first number of them that pads by no more than 15 %
    padding = cost[1:, len(ends)] - (edges + 1).sum()
    enough = np.flatnonzero(padding <= 0.15 * edges.sum())
    best = int(enough[0]) + 1 if len(enough) else most
    j, bounds = len(ends), []
    for b in range(best, 0, -1):
        if j == 0:
            break
        bounds.append((starts[cut[b, j]], starts[j]))
        j = cut[b, j]
    bucket = np.zeros(len(table), int)
    shapes = []
    for k, (lo, hi) in enumerate(reversed(bounds)):
        bucket[order[lo:hi]] = k
        size = min(graphs_per_batch, int(hi - lo))
        shapes.append(BatchShape(size, size * int(nodes[lo:hi].max()), max(1, size * int(edges[lo:hi].max()))))
    return shapes, bucket
