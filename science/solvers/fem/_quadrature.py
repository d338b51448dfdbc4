"""Quadrature on reference cells: short symmetric rules where closed forms exist, products of Gauss rules otherwise."""

from functools import cache

import numpy as np
from scipy.special import roots_jacobi

from sciax.science.mesh import CELLS


@cache
def quadrature(kind: str, degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [q, dim] and weights [q] exact for polynomials of total (for quads and hexes: each axis') degree `degree`.

    Triangle and tetrahedron rules of degree 1, 2 (3 and 4 points), triangle degree 4 (6 points, Cowper 1973) and 5 (7 points,
    Radon 1948) are in closed form; others are conical products (Stroud 1971).
    """
    cell = CELLS[kind]
    if cell.dim == 0:
        return np.zeros((1, 0)), np.ones(1)
    n = max(1, degree // 2 + 1)
    if not cell.simplex or cell.dim == 1:
        x, w = np.polynomial.legendre.leggauss(n)
        x, w = (x + 1) / 2, w / 2
        grids = np.meshgrid(*[x] * cell.dim, indexing="ij")
        weights = np.meshgrid(*[w] * cell.dim, indexing="ij")
        return np.stack([g.ravel() for g in grids], axis=1), np.prod([g.ravel() for g in weights], axis=0)
    if degree <= 1:
        return np.full((1, cell.dim), 1 / (cell.dim + 1)), np.array([1 / (2 if cell.dim == 2 else 6)])
    if degree == 2 and cell.dim == 2:
        return np.array([[1, 1], [4, 1], [1, 4]]) / 6, np.full(3, 1 / 6)
    if degree == 2:
        a = (5 - np.sqrt(5)) / 20
        return a + (1 - 4 * a) * np.concatenate([np.zeros((1, 3)), np.eye(3)]), np.full(4, 1 / 24)
    if degree in (3, 4) and cell.dim == 2:
        points, weights = [], []
        for sign in (1, -1):
            a = (8 - np.sqrt(10) + sign * np.sqrt(38 - 44 * np.sqrt(2 / 5))) / 18
            points.append(np.array([[a, a], [1 - 2 * a, a], [a, 1 - 2 * a]]))
            weights.append(np.full(3, (620 + sign * np.sqrt(213125 - 53320 * np.sqrt(10))) / 7440))
        return np.concatenate(points), np.concatenate(weights)
    if degree <= 5 and cell.dim == 2:
        root = np.sqrt(15)
        points, weights = [np.full((1, 2), 1 / 3)], [np.array([9 / 80])]
        for sign in (-1, 1):
            a = (6 + sign * root) / 21
            points.append(np.array([[a, a], [1 - 2 * a, a], [a, 1 - 2 * a]]))
            weights.append(np.full(3, (155 + sign * root) / 2400))
        return np.concatenate(points), np.concatenate(weights)
    # conical product: the cube is collapsed onto the simplex, Jacobi weights absorb the Jacobian
    rules = [roots_jacobi(n, k, 0) for k in range(cell.dim)]
    axes = [(x + 1) / 2 for x, _ in rules]
    scaled = [w / 2 ** (k + 1) for k, (_, w) in enumerate(rules)]
    grids = [g.ravel() for g in np.meshgrid(*axes, indexing="ij")]
    weights = np.prod([g.ravel() for g in np.meshgrid(*scaled, indexing="ij")], axis=0)
    points = np.empty((len(weights), cell.dim))
    left = np.ones(len(weights))
    for axis in range(cell.dim):  # the outermost coordinate carries the highest Jacobi power
        t = grids[cell.dim - 1 - axis]
        points[:, axis] = t * left
        left = left * (1 - t)
    return points, weights
