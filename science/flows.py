"""Meshes and statements of incompressible flow problems with published answers.

Flow quantities are made dimensionless with density one: `nu` is the kinematic viscosity, the pressure is divided by density.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError
from sciax.science.geometry import Domain, Rectangle
from sciax.science.mesh import Block, Mesh, between, block_mesh, box_mesh
from sciax.science.pde import Dirichlet, Field, Initial, Neumann, Parameter, Periodic, Problem, div, dot, dt, grad

CENTRE, RADIUS, LENGTH, HEIGHT = np.array([0.2, 0.2]), 0.05, 2.2, 0.41
"""The channel of the DFG benchmark (Schaefer & Turek 1996), in metres; the cylinder is 5 mm below the middle."""


def channel_with_cylinder(cells: int = 8, *, outline: Callable[[np.ndarray], np.ndarray] | None = None) -> Mesh:
    """The DFG channel as curved quadrilaterals: four blocks around the obstacle, refined towards it, and one behind.

    Args:
        cells: along a quarter of the obstacle.
        outline: angle [k] -> radius [k] of the obstacle; the cylinder unless given.

    Groups: "cylinder", "walls", "inlet", "outlet".
    """
    if cells < 2:
        raise InputError("at least two cells a quarter", got=cells)
    corners = np.array([[0.4, 0.0], [0.4, HEIGHT], [0.0, HEIGHT], [0.0, 0.0]])
    angles = np.arctan2(*(corners - CENTRE).T[::-1])
    angles[angles < angles[0]] += 2 * np.pi
    sides = (None, "walls", "inlet", "walls")
    blocks = []
    layers = int(np.ceil(1.25 * cells))
    for k, name in enumerate(sides):
        a, b = corners[k], corners[(k + 1) % 4]
        start, end = angles[k], angles[k + 1] if k < 3 else angles[0] + 2 * np.pi

        def arc(s, start=start, end=end):
            angle = start + (end - start) * s
            radius = RADIUS if outline is None else outline(angle)
            return CENTRE + np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.reshape(radius, (-1, 1))

        def side(s, a=a, b=b):
            return a + (b - a) * s[:, None]

        # s runs along the cylinder backwards, so that (s, outward) is positively turned
        def backwards(curve):
            return lambda s: curve(1 - s)

        grade = lambda t: np.expm1(1.6 * t) / np.expm1(1.6)  # noqa: E731
        blocks.append(
            Block(between(backwards(arc), backwards(side), grade), (cells, layers), bottom="cylinder", top=name)
        )

    def wake(p):
        x = 0.4 + (LENGTH - 0.4) * np.expm1(1.3 * p[:, 0]) / np.expm1(1.3)
        return np.stack([x, HEIGHT * p[:, 1]], axis=1)

    blocks.append(Block(wake, (int(2.5 * cells), cells), right="outlet", bottom="walls", top="walls"))
    return block_mesh(blocks)


def flow(domain: Any, *conditions: Any, nu: Any, transient: bool = False) -> Problem:
    """`dv/dt + (v . grad) v - div(nu grad v) + grad p = 0`, `div v = 0`; the natural condition is `nu dv/dn - p n`."""
    v, p = velocity, pressure
    rate = dt(v) if transient else 0
    return Problem(domain, rate + dot(v, grad(v)) - div(nu * grad(v)) + grad(p) == 0, div(v) == 0, *conditions)


velocity, pressure = Field("v", 2), Field("p")


def cylinder_flow(
    cells: int = 8, *, reynolds: float = 20.0, transient: bool = False, mesh: Mesh | None = None
) -> Problem:
    """Flow around the cylinder of the DFG benchmark: 2D-1 at Reynolds number 20, 2D-2 at 100 (parameter `nu`).

    The mean inflow velocity is reynolds / 100 m/s, the viscosity 1e-3 m2/s. With the force `F = -solution.flux("cylinder", "v")`
    the coefficients are `2 F / (U^2 D)`: drag 5.57953523384, lift 0.010618948146 and pressure difference 0.11752016697 at
    Reynolds number 20 (Nabh 1998); Strouhal number 0.3018 at 100.
    """
    top = 1.5 * reynolds / 100

    def inflow(x):
        return jnp.stack([4 * top * x[1] * (HEIGHT - x[1]) / HEIGHT**2, 0 * x[1]])

    conditions: list[Any] = [
        Dirichlet(velocity, 0, on=("walls", "cylinder")),
        Dirichlet(velocity, inflow, on="inlet"),
        Neumann(velocity, 0, on="outlet"),
    ]
    if transient:
        conditions += [Initial(velocity, 0), Initial(pressure, 0)]
    domain = Domain.from_mesh(channel_with_cylinder(cells) if mesh is None else mesh)
    return flow(domain, *conditions, nu=Parameter("nu", 1e-3), transient=transient)


def lid_cavity(cells: int = 24, *, reynolds: float = 1000.0, grading: float = 0.85) -> Problem:
    """Flow in a unit square under a lid that moves with unit speed (parameter `re`).

    On the centre lines at Reynolds number 1000: `min u = -0.3885698`, `max v = 0.3769447`, `min v = -0.5270771`
    (Botella & Peyret 1998). Solve with `continuation={"re": (100.0, 400.0)}`. The walls hold the corners under the lid: held by the
    lid they would leak through the first cells, an error of first order.

    Args:
        cells: along each side, quadrilaterals.
        grading: 0 for even cells, 1 for cosine spacing towards the walls.
    """
    mesh = box_mesh([0, 0], [1, 1], cells, "quad")
    s = mesh.points
    mesh = replace(mesh, points=(1 - grading) * s + grading * (1 - np.cos(np.pi * s)) / 2, cache={})
    lid = Dirichlet(velocity, np.array([1.0, 0.0]), on="top")
    walls = Dirichlet(velocity, 0, on=("left", "right", "bottom"))  # after the lid: the last condition has the corners
    return flow(Domain.from_mesh(mesh), lid, walls, nu=1 / Parameter("re", reynolds))


def taylor_green(nu: float = 0.05) -> tuple[Problem, Callable[..., Any]]:
    """Decaying vortices, periodic on a square of side 2 pi; and the velocity, a function of (x, t).

    `v = (sin x cos y, -cos x sin y) exp(-2 nu t)` (Taylor & Green 1937).
    """

    def exact(x, t=0.0):
        return jnp.stack([jnp.sin(x[0]) * jnp.cos(x[1]), -jnp.cos(x[0]) * jnp.sin(x[1])]) * jnp.exp(-2 * nu * t)

    conditions = Periodic(velocity), Periodic(pressure), Initial(velocity, lambda x: exact(x)), Initial(pressure, 0)
    square = Rectangle((0.0, 0.0), (2 * np.pi, 2 * np.pi))
    return flow(square, *conditions, nu=nu, transient=True), exact
