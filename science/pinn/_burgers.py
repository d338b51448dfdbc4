"""Burgers' equation with a sine at first: the closed form, and a picture of a network beside it."""

from typing import Any

import numpy as np
from jaxtyping import Float


def burgers_truth(
    x: Float[np.ndarray, " n"], t: Float[np.ndarray, " n"], viscosity: float, *, nodes: int = 120
) -> Float[np.ndarray, " n"]:
    """u_t + u u_x = nu u_xx on [-1, 1], u(x, 0) = -sin(pi x), u(+-1, t) = 0 (Cole 1951, Hopf 1950; Basdevant et al. 1986).

        u = - int sin(pi y) f(y) exp(-s^2) ds / int f(y) exp(-s^2) ds,  y = x - sqrt(4 nu t) s,  f = exp(-cos(pi y) / (2 pi nu))

    by Gauss-Hermite quadrature with `nodes` nodes.
    """
    s, w = np.polynomial.hermite.hermgauss(nodes)
    y = x[:, None] - np.sqrt(4 * viscosity * t)[:, None] * s
    exponent = -np.cos(np.pi * y) / (2 * np.pi * viscosity)
    f = np.exp(exponent - exponent.max(axis=1, keepdims=True)) * w
    return -(np.sin(np.pi * y) * f).sum(axis=1) / f.sum(axis=1)


def report_figure(solution: Any, exact: Float[np.ndarray, "x t"], x: np.ndarray, t: np.ndarray) -> Any:
    """Solution, error and loss of a problem in (x, t) with one scalar field."""
    from matplotlib.figure import Figure

    from sciax.science.pinn._plot import loss_history

    grid = np.stack([a.ravel() for a in np.meshgrid(x, t, indexing="ij")], axis=1)
    values = np.asarray(solution(grid)).reshape(exact.shape)
    figure = Figure(figsize=(12.0, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    bound = np.abs(values).max()
    image = left.pcolormesh(t, x, values, cmap="RdBu_r", vmin=-bound, vmax=bound, shading="gouraud")
    figure.colorbar(image, ax=left)
    left.set(title="u of the network", xlabel="t", ylabel="x")
    wrong = np.abs(values - exact)
    image = middle.pcolormesh(t, x, wrong, cmap="magma", shading="gouraud")
    figure.colorbar(image, ax=middle)
    middle.set(title="|u - exact|", xlabel="t", ylabel="x")
    loss_history(right, solution.info)
    right.set_title("loss")
    return figure
