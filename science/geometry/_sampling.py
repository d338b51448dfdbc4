"""Points inside a domain and on its boundary, area-exact, with normals: random, Sobol or Latin hypercube."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from sciax.core.errors import InputError, UnsupportedError, did_you_mean

KINDS = ("random", "sobol", "latin")


@dataclass(frozen=True)
class BoundaryPoints:
    """Points on a boundary.

    Attributes:
        points: [n, dim].
        normals: [n, dim], outward, of length 1.
        part: [n] index into `names`.
        names: of the parts.
        measure: length or area of all parts together (their number, in one dimension).
    """

    points: Float[np.ndarray, "n dim"]
    normals: Float[np.ndarray, "n dim"]
    part: Int[np.ndarray, " n"]
    names: tuple[str, ...]
    measure: float


def unit_points(count: int, dim: int, kind: str = "sobol", seed: Any = 0) -> Float[np.ndarray, "n dim"]:
    """`count` points in the unit cube.

    Args:
        kind: "random", "sobol" (scrambled) or "latin" (hypercube).
        seed: an int or a NumPy Generator.
    """
    from scipy.stats import qmc

    if count < 0:
        raise InputError("a number of points is not negative", got=count)
    rng = np.random.default_rng(seed)
    if kind == "random" or dim == 0:
        return rng.random((count, dim))
    if kind == "latin":
        return qmc.LatinHypercube(dim, rng=rng).random(count)
    if kind == "sobol":
        # Sobol sequences are balanced at powers of two: draw one, and keep the first `count`.
        return qmc.Sobol(dim, rng=rng).random_base2(max(0, int(count - 1).bit_length()))[:count]
    raise InputError(f"unknown kind of sampling {kind!r}", remedy=did_you_mean(kind, KINDS))


def share(count: int, weights: Any) -> np.ndarray:
    """`count` divided in proportion to `weights`, by largest remainders."""
    weights = np.asarray(weights, dtype=float)
    exact = count * weights / weights.sum()
    whole = np.floor(exact).astype(int)
    rest = np.argsort(-(exact - whole), kind="stable")[: count - whole.sum()]
    whole[rest] += 1
    return whole


def sample_interior(domain: Any, count: int, *, kind: str = "sobol", seed: Any = 0) -> Float[np.ndarray, "n dim"]:
    """Points spread evenly over a domain.

    Args:
        domain: a box, a shape or a mesh domain.

    Raises:
        UnsupportedError: a domain of no known kind.
    """
    from sciax.science.geometry._domain import BoxDomain, MeshDomain

    if isinstance(domain, BoxDomain):
        return domain.lower + domain.extent * unit_points(count, domain.dim, kind, seed)
    if isinstance(domain, MeshDomain):
        return _in_simplices(*_simplices(domain.mesh()), count, kind, seed)
    if hasattr(domain, "sample_interior"):
        return domain.sample_interior(count, kind=kind, seed=seed)
    raise UnsupportedError(f"no sampling for {domain!r}", remedy="a box, a shape, or Domain.from_mesh")


def sample_boundary(
    domain: Any, count: int, on: str | tuple[str, ...] = "boundary", *, kind: str = "sobol", seed: Any = 0
) -> BoundaryPoints:
    """Points spread evenly over boundary parts, in proportion to their lengths or areas.

    Args:
        on: a part, several, or "boundary" for all.

    Raises:
        InputError: no such part.
    """
    from sciax.science.geometry._domain import BoxDomain, MeshDomain

    names = tuple(domain.boundaries) if on == "boundary" else (on,) if isinstance(on, str) else tuple(on)
    for name in names:
        if name not in domain.boundaries:
            raise InputError(f"the domain has no boundary {name!r}", remedy=did_you_mean(name, domain.boundaries))
    if isinstance(domain, BoxDomain):
        return _on_box(domain, count, names, kind, seed)
    if isinstance(domain, MeshDomain):
        return _on_mesh(domain, count, names, kind, seed)
    if hasattr(domain, "sample_boundary"):
        return domain.sample_boundary(count, names, kind=kind, seed=seed)
    raise UnsupportedError(f"no sampling for {domain!r}", remedy="a box, a shape, or Domain.from_mesh")


def _on_box(box: Any, count: int, names: tuple[str, ...], kind: str, seed: Any) -> BoundaryPoints:
    rng = np.random.default_rng(seed)
    areas = [np.prod(np.delete(box.extent, box.side(name)[0])) for name in names]
    points, normals, part = [], [], []
    for k, (name, n) in enumerate(zip(names, share(count, areas), strict=True)):
        axis, upper = box.side(name)
        at = np.insert(unit_points(n, box.dim - 1, kind, rng), axis, float(upper), axis=1)
        points.append(box.lower + box.extent * at)
        normals.append(np.tile(np.eye(box.dim)[axis] * (1 if upper else -1), (n, 1)))
        part.append(np.full(n, k))
    return BoundaryPoints(
        np.concatenate(points), np.concatenate(normals), np.concatenate(part), names, float(sum(areas))
    )


def _simplices(mesh: Any) -> tuple[np.ndarray, np.ndarray]:
    """Corner points [m, dim + 1, dim] of simplices that fill the mesh, and the measure of each."""
    split = {
        "interval": [[0, 1]],
        "triangle": [[0, 1, 2]],
        "tet": [[0, 1, 2, 3]],
        "quad": [[0, 1, 2], [0, 2, 3]],
        "hex": [[0, 1, 3, 4], [1, 2, 3, 6], [1, 4, 5, 6], [3, 4, 6, 7], [1, 3, 4, 6]],
    }[mesh.kind]
    corners = mesh.points[np.concatenate([mesh.corners[:, s] for s in split])]
    return corners, np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1]))


def _in_simplices(corners: np.ndarray, size: np.ndarray, count: int, kind: str, seed: Any) -> np.ndarray:
    """One coordinate of the unit points picks the simplex, the others the place: sorted spacings are uniform barycentrics."""
    d = corners.shape[1] - 1
    u = unit_points(count, d + 1, kind, seed)
    which = np.searchsorted(np.cumsum(size) / size.sum(), u[:, 0], side="right").clip(max=len(size) - 1)
    cuts = np.sort(u[:, 1:], axis=1)
    bary = np.diff(cuts, axis=1, prepend=0.0, append=1.0)
    return np.einsum("nk,nkd->nd", bary, corners[which])


def _on_mesh(domain: Any, count: int, names: tuple[str, ...], kind: str, seed: Any) -> BoundaryPoints:
    mesh = domain.mesh()
    rows = [np.asarray(mesh.facet_groups[name]) for name in names]
    facets, part = np.concatenate(rows), np.repeat(np.arange(len(names)), [len(r) for r in rows])
    nodes = mesh.facets[facets]
    corners = mesh.points[nodes]
    if nodes.shape[1] == 1:
        pick = np.random.default_rng(seed).integers(len(facets), size=count)
        inside = mesh.centres[mesh.facet_cells[facets[pick], 0]]
        at = corners[pick, 0]
        return BoundaryPoints(at, np.sign(at - inside), part[pick], names, float(len(facets)))
    if nodes.shape[1] == 4:
        corners = np.concatenate([corners[:, [0, 1, 2]], corners[:, [0, 2, 3]]])
        part, facets = np.tile(part, 2), np.tile(facets, 2)
    edges = corners[:, 1:] - corners[:, :1]
    normals = np.stack([edges[:, 0, 1], -edges[:, 0, 0]], 1) if mesh.dim == 2 else np.cross(edges[:, 0], edges[:, 1])
    size = np.linalg.norm(normals, axis=1)
    outward = corners.mean(axis=1) - mesh.centres[mesh.facet_cells[facets, 0]]
    normals = normals / size[:, None] * np.sign(np.sum(normals * outward, axis=1))[:, None]
    u = unit_points(count, mesh.dim, kind, seed)
    which = np.searchsorted(np.cumsum(size) / size.sum(), u[:, 0], side="right").clip(max=len(size) - 1)
    bary = np.diff(np.sort(u[:, 1:], axis=1), axis=1, prepend=0.0, append=1.0)
    points = np.einsum("nk,nkd->nd", bary, corners[which])
    scale = 1.0 if mesh.dim == 2 else 0.5
    return BoundaryPoints(points, normals[which], part[which], names, float(size.sum() * scale))
