"""Lagrange elements P_k and Q_k of any order on every cell kind, and the geometry's own shape functions."""

import itertools
from functools import cache

import numpy as np

from sciax.science.mesh import CELLS
from sciax.science.mesh._cells import geometry_nodes


@cache
def lattice(kind: str, order: int) -> np.ndarray:
    """Nodes of the element as vertex weights [n, vertices], whole numbers that sum to `order**dim` (simplices: `order`).

    The weights name a node by the vertices around it, so the same node seen from two cells has the same weights.
    """
    cell = CELLS[kind]
    if cell.dim == 0 or order == 0:
        return np.ones((1, cell.count), dtype=np.int64) if cell.dim else np.array([[max(order, 1)]])
    if cell.simplex:
        steps = [s for s in itertools.product(range(order + 1), repeat=cell.count) if sum(s) == order]
        weights = np.array(steps, dtype=np.int64)
    else:
        steps = np.array(list(itertools.product(range(order + 1), repeat=cell.dim)), dtype=np.int64)
        corners = cell.vertices.astype(np.int64)
        parts = np.where(corners[None] == 1, steps[:, None], order - steps[:, None])
        weights = parts.prod(axis=2)
    total = weights.sum(axis=1)[0]
    # vertices first, in the cell's order; then by how many vertices share a node (edges, faces, inside)
    alone = np.where((weights == total).any(axis=1), weights.argmax(axis=1), 0)
    rank = np.lexsort((np.arange(len(weights)), alone, (weights > 0).sum(axis=1)))
    return weights[rank]


@cache
def nodes(kind: str, order: int) -> np.ndarray:
    """Reference coordinates [n, dim] of the element's nodes."""
    weights = lattice(kind, order)
    return (weights / weights.sum(axis=1, keepdims=True)) @ CELLS[kind].vertices


def _exponents(kind: str, order: int) -> np.ndarray:
    cell = CELLS[kind]
    every = np.array(list(itertools.product(range(order + 1), repeat=cell.dim)), dtype=np.int64).reshape(-1, cell.dim)
    return every[every.sum(axis=1) <= order] if cell.simplex else every


def _monomials(exponents: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.prod(points[:, None, :] ** exponents[None], axis=2)


def _tabulate(exponents: np.ndarray, at_nodes: np.ndarray, points: np.ndarray):
    """Values [q, n] and gradients [q, n, dim] of the nodal basis spanned by the monomials."""
    coefficients = np.linalg.inv(_monomials(exponents, at_nodes))
    dim = exponents.shape[1]
    values = _monomials(exponents, points) @ coefficients
    gradients = np.zeros((len(points), len(at_nodes), dim))
    for axis in range(dim):
        lowered = exponents.copy()
        lowered[:, axis] = np.maximum(exponents[:, axis] - 1, 0)
        gradients[:, :, axis] = (_monomials(lowered, points) * exponents[:, axis]) @ coefficients
    return values, gradients


def tabulate(kind: str, order: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [q, n] and reference gradients [q, n, dim] of the Lagrange basis at `points`."""
    if CELLS[kind].dim == 0 or order == 0:
        return np.ones((len(points), 1)), np.zeros((len(points), 1, CELLS[kind].dim))
    return _tabulate(_exponents(kind, order), nodes(kind, order), np.asarray(points, float))


def tabulate_geometry(kind: str, count: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same for the shape functions of a cell with `count` geometry nodes, in VTK's order."""
    if CELLS[kind].dim == 0:
        return np.ones((len(points), 1)), np.zeros((len(points), 1, 0))
    order = 1 if count == CELLS[kind].count else 2
    exponents = _exponents(kind, order)
    if len(exponents) > count:  # serendipity: no node inside a face or cell, so no monomial quadratic in two axes
        exponents = exponents[(exponents == 2).sum(axis=1) <= 1]
    return _tabulate(exponents, geometry_nodes(kind, count), np.asarray(points, float))
