"""Tables of the usual products: channelwise tensor products and symmetric powers."""

import functools
import itertools
from typing import NamedTuple

import numpy as np

from sciax.core.errors import InputError
from sciax.core.ops.so3._clebsch import clebsch_gordan
from sciax.core.ops.so3._irreps import Irrep, Irreps
from sciax.core.ops.so3._multilinear import Table


class Path(NamedTuple):
    """One coupling of block `a` of the first and `b` of the second factor to the irrep at block `c` of the result."""

    a: int
    b: int
    c: int


def product_paths(first: Irreps, second: Irreps, result: Irreps) -> list[Path]:
    """All couplings that O(3) allows, ordered by result, first, second."""
    return [
        Path(a, b, c)
        for c, (_, z) in enumerate(result)
        for a, (_, x) in enumerate(first)
        for b, (_, y) in enumerate(second)
        if z in x * y
    ]


def _starts(irreps: Irreps) -> list[int]:
    return [0, *itertools.accumulate(ir.dim for _, ir in irreps)]


@functools.cache
def product_table(
    first: Irreps, second: Irreps, result: Irreps, normalise: str = "component"
) -> tuple[Table, list[Path]]:
    """Roles (first, second, weight, result) of the channelwise product; multiplicities are channels and do not appear.

    One weight a path. With "component", inputs whose components have variance 1 give outputs of variance 1 for each path
    (e3nn's normalisation); "norm" keeps Σ C² = 1.

    Raises:
        InputError: no coupling is allowed; unknown normalisation.
    """
    if normalise not in ("component", "norm"):
        raise InputError(f"unknown normalisation {normalise!r}", expected="component or norm")
    paths = product_paths(first, second, result)
    if not paths:
        raise InputError("O(3) allows no coupling", got=f"{first} x {second}", expected=f"something in {result}")
    x, y, z = _starts(first), _starts(second), _starts(result)
    rows, values = [], []
    for p, (a, b, c) in enumerate(paths):
        la, lb, lc = first[a][1].l, second[b][1].l, result[c][1].l
        tensor = clebsch_gordan(la, lb, lc) * (np.sqrt(2 * lc + 1) if normalise == "component" else 1)
        for i, j, k in zip(*np.nonzero(tensor)):
            rows.append((x[a] + i, y[b] + j, p, z[c] + k))
            values.append(tensor[i, j, k])
    return Table(np.array(rows), np.array(values), (x[-1], y[-1], len(paths), z[-1])), paths


@functools.cache
def symmetric_basis(source: Irreps, order: int, target: Irrep) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal basis of the equivariant symmetric maps source^order -> target.

    Returns (monomials, basis): exponents as sorted component indices (n, order), and (paths, target.dim, n) coefficients of
    these monomials. Every equivariant polynomial map that is homogeneous of this order is a combination of the paths.
    The couplings ((x x)_L x)_l span them; a pivoted QR keeps an independent set.
    """
    if order < 1:
        raise InputError("an order is at least 1", got=order)
    starts, dim = _starts(source), _starts(source)[-1]
    index = {m: k for k, m in enumerate(itertools.combinations_with_replacement(range(dim), order))}
    # polynomials per irrep: arrays (paths, dim of irrep, monomials), built up order by order
    have: dict[Irrep, list[np.ndarray]] = {}
    for b, (_, ir) in enumerate(source):
        block = np.zeros((ir.dim, dim))
        block[np.arange(ir.dim), starts[b] + np.arange(ir.dim)] = 1
        have.setdefault(ir, []).append(block)
    first = {ir: list(blocks) for ir, blocks in have.items()}
    for degree in range(2, order + 1):
        monomials = {m: k for k, m in enumerate(itertools.combinations_with_replacement(range(dim), degree))}
        lower = list(itertools.combinations_with_replacement(range(dim), degree - 1))
        times = np.array([[monomials[tuple(sorted((*m, i)))] for i in range(dim)] for m in lower])
        nxt: dict[Irrep, list[np.ndarray]] = {}
        for left, lefts in have.items():
            for right, rights in first.items():
                for out in left * right:
                    if degree == order and out != target:
                        continue
                    c = clebsch_gordan(left.l, right.l, out.l)
                    for p in lefts:
                        for q in rights:
                            full = np.einsum("ijk,im,jn->kmn", c, p, q)
                            block = np.zeros((out.dim, len(monomials)))
                            for k in range(out.dim):
                                np.add.at(block[k], times.ravel(), full[k].ravel())
                            nxt.setdefault(out, []).append(block)
        have = {ir: _independent(blocks) for ir, blocks in nxt.items()}
    blocks = have.get(target, [])
    monomials = np.array(list(index), dtype=np.int32).reshape(-1, order)
    if not blocks:
        return monomials, np.zeros((0, target.dim, len(monomials)))
    return monomials, np.stack(blocks)


def _independent(blocks: list[np.ndarray]) -> list[np.ndarray]:
    """An orthonormal set with the same span; each element stays one equivariant map (combinations act on whole blocks)."""
    kept: list[np.ndarray] = []
    for block in blocks:
        rest = block
        for _ in range(2):  # twice: classical Gram-Schmidt loses digits once
            rest = rest - sum((np.sum(rest * k) * k for k in kept), np.zeros_like(rest))
        size = np.linalg.norm(rest)
        if size > 1e-8 * max(np.linalg.norm(block), 1e-300) and size > 1e-10:
            kept.append(rest / size)
    return kept


@functools.cache
def symmetric_table(source: Irreps, order: int, target: Irrep) -> Table:
    """Roles (source, ... order times, weight, target) of the symmetric contraction: one weight a path of `symmetric_basis`."""
    monomials, basis = symmetric_basis(source, order, target)
    path, k, m = np.nonzero(np.abs(basis) > 1e-12)
    rows = np.column_stack([monomials[m], path, k])
    return Table(rows, basis[path, k, m], (*[_starts(source)[-1]] * order, max(len(basis), 1), target.dim))
