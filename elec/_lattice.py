"""Index arithmetic of the Yee lattice on a grid with its boundaries."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sciax.elec._scene import Scene


@dataclass(frozen=True)
class Lattice:
    """Array shape, coordinates and spacings of a scene's components (NumPy, float64, metres).

    An axis with a magnetic wall at its high face carries one index more, for the field on that wall.
    """

    shape: tuple[int, int, int]
    nodes: tuple[np.ndarray, ...]  # coordinates of integer indices
    halves: tuple[np.ndarray, ...]  # coordinates of half indices
    inv_e: tuple  # 1 / (node spacing), None for an absent axis
    inv_h: tuple  # 1 / (half-node spacing), doubled on a magnetic wall
    width_nodes: tuple[np.ndarray, ...]  # length of the dual cell around a node
    width_halves: tuple[np.ndarray, ...]  # length of the cell around a half node
    active_e: tuple[bool, bool, bool]
    active_h: tuple[bool, bool, bool]

    def coordinate(self, kind: str, component: int, axis: int) -> np.ndarray:
        """Coordinates of a component ("e" or "h") along an axis."""
        half = (component == axis) == (kind == "e")
        return (self.halves if half else self.nodes)[axis]

    def width(self, kind: str, component: int, axis: int) -> np.ndarray:
        half = (component == axis) == (kind == "e")
        return (self.width_halves if half else self.width_nodes)[axis]


def lattice(scene: Scene) -> Lattice:
    grid, faces = scene.grid, scene.boundaries.faces
    shape, nodes, halves, inv_e, inv_h, wn, wh = [], [], [], [], [], [], []
    for a in range(3):
        e = grid.edges[a]
        if e is None:
            shape.append(1)
            nodes.append(np.zeros(1))
            halves.append(np.zeros(1))
            inv_e.append(None)
            inv_h.append(None)
            wn.append(np.ones(1))
            wh.append(np.ones(1))
            continue
        d = np.diff(e)
        n = d.size
        first = d[0] if not scene.boundaries.wraps(a) else 0.5 * (d[0] + d[-1])
        dual = np.concatenate([[first], 0.5 * (d[1:] + d[:-1])])
        low_half = faces[a][0] == "pmc"
        if low_half:
            dual[0] = d[0] / 2
        extra = faces[a][1] == "pmc"
        if extra:
            d, dual = np.append(d, d[-1]), np.append(dual, d[-1] / 2)
        shape.append(n + extra)
        nodes.append(e[: n + extra])
        halves.append(e[: n + extra] + d / 2)
        inv_e.append(1.0 / d)
        inv_h.append(1.0 / dual)
        wn.append(dual)
        wh.append(d)
    electric, magnetic = _active(scene)
    return Lattice(
        tuple(shape), tuple(nodes), tuple(halves), tuple(inv_e), tuple(inv_h), tuple(wn), tuple(wh), electric, magnetic
    )


def _active(scene: Scene) -> Any:
    """Components that sources can excite: in 2-D and 1-D the polarisations fall apart and the dark ones are left out."""
    axes = scene.grid.active_axes
    if len(axes) == 3:
        return (True,) * 3, (True,) * 3
    start: set[str] = set()
    for s in scene.sources:
        start.add(s.component if hasattr(s, "component") else s.polarization)
    if not start:
        start = {"ex", "ey", "ez"}
    grown = True
    while grown:  # follow d_axis couplings: F_b drives G_c for {axis, b, c} all different
        grown = False
        for f in tuple(start):
            b = "xyz".index(f[1])
            for a in axes:
                if a == b:
                    continue
                other = ("h" if f[0] == "e" else "e") + "xyz"[3 - a - b]
                if other not in start:
                    start.add(other)
                    grown = True
    return tuple(f"e{c}" in start for c in "xyz"), tuple(f"h{c}" in start for c in "xyz")
