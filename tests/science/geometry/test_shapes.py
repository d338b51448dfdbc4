"""Shapes: signed distances, combinations, even samples with normals, meshes that finite elements use."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.science import Box, Dirichlet, Field, Neumann, Problem, Rectangle, laplace, solve
from sciax.science.geometry import (
    Cylinder,
    Disk,
    Ellipse,
    Polygon,
    Sphere,
    Torus,
    as_shape,
    sample_boundary,
    sample_interior,
)

L = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
# name -> shape, area or volume, length or area of the boundary
SHAPES = {
    "disk": (Disk((1, 2), 0.5), np.pi / 4, np.pi),
    "ellipse": (Ellipse((0, 0), (2, 1)), 2 * np.pi, 9.688448220547675),  # 8 E(3/4)
    "polygon": (L, 3.0, 8.0),
    "sphere": (Sphere((0, 0, 1), 2), 32 * np.pi / 3, 16 * np.pi),
    "cylinder": (Cylinder((1, 0, 0), 0.5, 2), np.pi / 2, 2.5 * np.pi),
    "torus": (Torus((0, 0, 0), 2, 0.5), np.pi**2, 4 * np.pi**2),
    "box": (as_shape(Box((0, 0, 0), (1, 2, 3))), 6.0, 22.0),
    "plate": (Rectangle() - Disk((0.5, 0.5), 0.2), 1 - 0.04 * np.pi, 4 + 0.4 * np.pi),
    "union": (Disk((0, 0), 1) | Disk((1, 0), 1), 4 * np.pi / 3 + np.sqrt(3) / 2, 8 * np.pi / 3),
    "lens": (Disk((0, 0), 1) & Disk((1, 0), 1), 2 * np.pi / 3 - np.sqrt(3) / 2, 4 * np.pi / 3),
    "moved": (L.scale(2).rotate(0.7).translate((3, -1)), 12.0, 16.0),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_measures_and_normals(name):
    """The share of the surrounding box inside, the size of the boundary, and Gauss' theorem for the position vector."""
    shape, volume, area = SHAPES[name]
    low, high = shape.bounds
    x = low + (high - low) * np.random.default_rng(0).random((200_000, shape.dim))
    inside = shape.contains(x)
    spread = np.prod(high - low) * np.sqrt(inside.mean() * (1 - inside.mean()) / len(x)) + 1e-12
    assert abs(np.prod(high - low) * inside.mean() - volume) < 4 * spread
    found = sample_boundary(shape, 8000, seed=1)
    assert found.measure == pytest.approx(area, rel=0.02)
    np.testing.assert_allclose(shape.distance(found.points), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.normals, axis=1), 1)
    centred = found.points - (low + high) / 2
    flux = found.measure * np.mean(np.sum(centred * found.normals, axis=1))
    assert flux == pytest.approx(shape.dim * volume, rel=0.03)
    assert shape.contains(sample_interior(shape, 500, seed=2)).all()


@pytest.mark.parametrize("name", ["disk", "polygon", "sphere", "cylinder", "torus", "box", "moved"])
def test_distance_is_to_the_nearest_boundary_point(name):
    shape = SHAPES[name][0]
    low, high = shape.bounds
    x = low + (high - low) * np.random.default_rng(1).uniform(-0.3, 1.3, (60, shape.dim))
    surface = sample_boundary(shape, 40_000, seed=0).points
    nearest = np.array([np.linalg.norm(surface - p, axis=1).min() for p in x])
    np.testing.assert_allclose(np.abs(shape.distance(x)), nearest, atol=0.04 * np.max(high - low))
    got = jax.vmap(shape.distance)(jnp.asarray(x))
    np.testing.assert_allclose(got, shape.distance(x), atol=2e-5)


def test_torus_is_sampled_by_area():
    """The outer half of the surface is larger: (pi R + 2 r) / (2 pi R) of it."""
    p = sample_boundary(Torus((0, 0, 0), 1, 0.5), 20_000, kind="random", seed=0).points
    assert np.mean(np.hypot(p[:, 0], p[:, 1]) > 1) == pytest.approx((np.pi + 1) / (2 * np.pi), abs=0.015)


def test_parts_keep_their_names():
    plate = Rectangle() - Disk((0.3, 0.3), 0.1) - Disk((0.7, 0.7), 0.1) - Disk((0.2, 0.8), 0.05).named("drain")
    assert plate.boundaries == ("left", "right", "bottom", "top", "hole", "hole2", "drain", "outer")
    assert set(plate.resolve("outer")) >= {"left", "right", "bottom", "top"}
    hole = sample_boundary(plate, 100, "hole2")
    np.testing.assert_allclose(np.linalg.norm(hole.points - 0.7, axis=1), 0.1)
    np.testing.assert_allclose(hole.normals, (0.7 - hole.points) / 0.1, atol=1e-12)  # out of the plate: into the hole
    with pytest.raises(InputError, match="did you mean 'hole"):
        sample_boundary(plate, 5, "holl")


@pytest.mark.parametrize("name", ["plate", "polygon", "moved", "union", "lens", "ellipse"])
def test_meshes(name):
    shape, volume, _ = SHAPES[name]
    size = 0.08 * float(np.max(shape.bounds[1] - shape.bounds[0]))
    mesh = shape.mesh(size=size)
    assert mesh.volume == pytest.approx(volume, rel=0.02 if name != "polygon" else 1e-12)
    covered = np.unique(np.concatenate(list(mesh.facet_groups.values())))
    np.testing.assert_array_equal(covered, np.sort(mesh.exterior))
    corners = mesh.points[mesh.corners]
    squares = np.sum((corners - np.roll(corners, 1, axis=1)) ** 2, axis=(1, 2))
    assert (4 * np.sqrt(3) * mesh.volumes / squares).min() > 0.3  # 1 for an equilateral triangle


def test_finite_elements_on_a_shape(x64):
    """Heat from the hole: between concentric circles u = log(r) / log(2)."""
    u = Field("u")
    ring = Disk((0, 0), 2) - Disk((0, 0), 1)
    problem = Problem(ring, -laplace(u) == 0.0, Dirichlet(u, 0.0, on="hole"), Dirichlet(u, 1.0, on="disk"))
    s = solve(problem, method="fem", size=0.15)
    r = np.linspace(1.1, 1.9, 9)
    np.testing.assert_allclose(s(np.stack([r, 0 * r], 1)), np.log(r) / np.log(2), atol=4e-3)


@pytest.mark.slow
def test_network_on_a_shape(x64):
    """The same ring with a flux at the hole; the value on the rim is exact by its distance function."""
    u = Field("u")
    ring = Disk((0, 0), 2) - Disk((0, 0), 1)
    problem = Problem(ring, -laplace(u) == 0.0, Neumann(u, -1.0, on="hole"), Dirichlet(u, 3.0, on="outer"))
    s = solve(problem, method="pinn", width=12, depth=2, points=400, adam=200, iterations=300, renew=150)
    r = np.linspace(1, 2, 9)
    got = np.asarray(s(np.stack([r, 0 * r], 1)))
    np.testing.assert_allclose(got, 3 + np.log(r / 2), atol=1e-3)
    assert got[-1] == 3.0


def test_bad_shapes():
    with pytest.raises(InputError, match="positive"):
        Disk((0, 0), -1)
    with pytest.raises(InputError, match="do not meet"):
        Disk((0, 0), 1) & Disk((5, 0), 1)
    with pytest.raises(InputError, match="different dimension"):
        Disk() | Sphere()
    with pytest.raises(InputError, match="only shapes and boxes"):
        Disk() - 3
    with pytest.raises(UnsupportedError, match="3-D"):
        Sphere().mesh()
    with pytest.raises(InputError, match="three or more"):
        Polygon([(0, 0), (1, 1)])
