"""Splits of a data set of molecules: seeded, without duplicates across parts, and never with an empty part."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sciax.core.errors import InputError, optional_import


class Split(NamedTuple):
    """Indices of the three parts."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray


def _check(n: int, groups: int, fractions) -> tuple[float, float, float]:
    a, b, c = map(float, fractions)
    if min(a, b, c) < 0 or abs(a + b + c - 1) > 1e-9 or a == 0:
        raise InputError("fractions are not three shares of 1", got=fractions, expected="like (0.8, 0.1, 0.1)")
    if groups < sum(f > 0 for f in (a, b, c)):
        raise InputError(f"{groups} groups of molecules do not fill the parts asked for", got=fractions)
    return a, b, c


def _fill(groups: list[list[int]], n: int, fractions) -> Split:
    """Whole groups into train, then valid, then test; a part asked for gets at least one group."""
    wanted = [f > 0 for f in fractions]
    parts: list[list[int]] = [[], [], []]
    for k, group in enumerate(groups):
        left = len(groups) - k
        empty = [p for p in range(3) if wanted[p] and not parts[p]]
        if left <= len(empty):
            place = empty[0]
        elif len(parts[0]) + len(group) <= fractions[0] * n:
            place = 0
        elif wanted[1] and len(parts[0]) + len(parts[1]) + len(group) <= (fractions[0] + fractions[1]) * n:
            place = 1
        else:
            place = 2 if wanted[2] else (1 if wanted[1] else 0)
        parts[place] += group
    return Split(*(np.array(sorted(p), int) for p in parts))


def random_split(mols: Sequence, fractions=(0.8, 0.1, 0.1), *, seed: int = 0) -> Split:
    """At random; molecules with the same canonical SMILES stay together.

    Raises:
        InputError: fractions that are not shares of 1; fewer different molecules than parts.
    """
    chem = optional_import("rdkit.Chem", "chem")
    same: dict[str, list[int]] = {}
    for k, m in enumerate(mols):
        same.setdefault(chem.MolToSmiles(m), []).append(k)
    groups = list(same.values())
    shares = _check(len(mols), len(groups), fractions)
    order = np.random.default_rng(seed).permutation(len(groups))
    return _fill([groups[k] for k in order], len(mols), shares)


def murcko_split(mols: Sequence, fractions=(0.8, 0.1, 0.1), *, seed: int | None = None) -> Split:
    """By Bemis-Murcko scaffold: no scaffold in two parts (J. Med. Chem. 39, 2887 (1996)).

    Largest groups first (into the training part), ties by first row; with a seed, in random order. Acyclic molecules share
    the empty scaffold; a group larger than its part goes where there is room, and no part stays empty.

    Raises:
        InputError: fractions that are not shares of 1; fewer scaffolds than parts.
    """
    scaffold = optional_import("rdkit.Chem.Scaffolds.MurckoScaffold", "chem").MurckoScaffoldSmiles
    found: dict[str, list[int]] = {}
    for k, m in enumerate(mols):
        found.setdefault(scaffold(mol=m, includeChirality=False), []).append(k)
    groups = sorted(found.values(), key=lambda g: (-len(g), g[0]))
    shares = _check(len(mols), len(groups), fractions)
    if seed is not None:
        groups = [groups[k] for k in np.random.default_rng(seed).permutation(len(groups))]
    return _fill(groups, len(mols), shares)
