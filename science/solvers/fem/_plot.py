"""Pictures of finite element solutions."""

import jax
import numpy as np

from sciax.science.solvers.fem._element import lattice, nodes


def _triangulation(fem, k):
    """Triangles over all nodes of a field of a 2-D mesh: cells cut along their lattice."""
    from matplotlib.tri import Triangulation

    mesh, numbering, order = fem.mesh, fem.numbers[k], fem.layout.orders[k]
    at = nodes(mesh.kind, order)
    if mesh.kind == "triangle" and order == 1:
        local = np.array([[0, 1, 2]])
    else:
        grid = {tuple(np.rint(p * order).astype(int)): i for i, p in enumerate(at)}
        local = []
        for (i, j), a in grid.items():
            b, c, d = grid.get((i + 1, j)), grid.get((i, j + 1)), grid.get((i + 1, j + 1))
            if b is not None and c is not None:
                local.append((a, b, c))
            if b is not None and c is not None and d is not None:
                local.append((b, d, c))
        local = np.array(local)
    assert len(lattice(mesh.kind, order)) == len(at)
    triangles = numbering.cells[:, local].reshape(-1, 3)
    return Triangulation(numbering.points[:, 0], numbering.points[:, 1], triangles)


def plot(solution, field, title):
    from matplotlib.figure import Figure

    fem, mesh = solution.fem, solution.mesh
    k = fem.layout.index(field.name)
    values = np.asarray(jax.device_get(solution.values(field)), dtype=np.float64)
    label = field.name
    if values.ndim == 2:
        values, label = np.linalg.norm(values, axis=1), f"|{field.name}|"
    figure = Figure(figsize=(7, 5), layout="constrained")
    if mesh.dim == 1:
        axes = figure.add_subplot()
        order = np.argsort(fem.numbers[k].points[:, 0])
        axes.plot(fem.numbers[k].points[order, 0], values[order])
        axes.set(xlabel="x", ylabel=label)
        axes.grid(alpha=0.3)
    elif mesh.dim == 2:
        axes = figure.add_subplot()
        triangulation = _triangulation(fem, k)
        span = np.ptp(values)
        filled = axes.tripcolor(triangulation, values, shading="gouraud", cmap="viridis")
        if span > 1e-12 * max(abs(values).max(), 1e-300):
            axes.tricontour(triangulation, values, levels=10, colors="white", linewidths=0.6, alpha=0.7)
        if len(mesh.cells) <= 3000:
            corners = mesh.points[mesh.facets]
            from matplotlib.collections import LineCollection

            axes.add_collection(LineCollection(list(corners), colors="black", linewidths=0.25, alpha=0.35))
        outline = mesh.points[mesh.facets[mesh.exterior]]
        from matplotlib.collections import LineCollection

        axes.add_collection(LineCollection(list(outline), colors="black", linewidths=1.0))
        axes.set_aspect("equal")
        axes.set(xlabel="x", ylabel="y")
        figure.colorbar(filled, ax=axes, label=label, shrink=0.85)
    else:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        axes = figure.add_subplot(projection="3d")
        faces = mesh.facets[mesh.exterior]
        where = fem.numbers[k].vertex_unknowns
        norm = Normalize(values.min(), values.max())
        colours = colormaps["viridis"](norm(values[where[faces]].mean(axis=1)))
        axes.add_collection3d(
            Poly3DCollection(list(mesh.points[faces]), facecolors=colours, edgecolors="black", linewidths=0.1)
        )  # type: ignore[attr-defined]
        low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
        axes.set(
            xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]), xlabel="x", ylabel="y", zlabel="z"
        )  # type: ignore[call-arg]
        axes.set_box_aspect(high - low)  # type: ignore[arg-type]
        figure.colorbar(ScalarMappable(norm, "viridis"), ax=axes, label=label, shrink=0.7)
    axes.set_title(title or f"{label}: {len(mesh.cells)} {mesh.kind} cells, order {fem.layout.orders[k]}")
    return figure
