"""Sums over edges and nodes of padded graphs."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from sciax.core.errors import InputError
from sciax.core.ops.segment import segment_sum
from sciax.science.graph._batch import PaddedGraph


def sum_to_nodes(messages: Array, receivers: Int[Array, " edges"], nodes: int, *, axis: int = 0) -> Array:
    """Messages summed at their receivers along `axis`; padding (receiver = nodes) is dropped, with a zero gradient.

    With axis=1 the layout of so3 products, (component, edge, channel), is kept.

    Raises:
        InputError: another axis.
    """
    if axis == 0:
        return segment_sum(messages, receivers, nodes)
    if axis != 1:
        raise InputError("messages lie along axis 0 or 1", got=axis)
    zeros = jnp.zeros((messages.shape[0], nodes, *messages.shape[2:]), messages.dtype)
    return zeros.at[:, receivers].add(messages, mode="drop")


def readout(values: Float[Array, "nodes *rest"], graph: PaddedGraph, kind: str = "sum") -> Float[Array, "graphs *rest"]:
    """Sum or mean over the nodes of each graph; graphs without nodes and padding give 0.

    Raises:
        InputError: an unknown kind.
    """
    if kind not in ("sum", "mean"):
        raise InputError(f"unknown readout {kind!r}", expected="sum or mean")
    count = graph.graph_mask.shape[0]
    mask = graph.node_mask.reshape(-1, *[1] * (values.ndim - 1))
    total = sum_to_nodes(jnp.where(mask, values, 0), graph.graph_of_node, count)
    if kind == "sum":
        return total
    sizes = sum_to_nodes(graph.node_mask.astype(values.dtype), graph.graph_of_node, count)
    return total / jnp.maximum(sizes, 1).reshape(-1, *[1] * (values.ndim - 1))
