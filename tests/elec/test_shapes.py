"""Shapes against closed forms: CSG, polygons, triangulated surfaces; areas that fill fractions add up to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError, MissingFileError, ShapeError
from sciax.elec import (
    Boundaries,
    Box,
    Cylinder,
    Dipole,
    GaussianPulse,
    Grid,
    Medium,
    Polygon,
    Scene,
    Sphere,
    Structure,
    Surface,
    read_surface,
    ring,
)
from sciax.elec._lattice import lattice
from sciax.elec._materials import survey

CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], float)
QUADS = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]


def box_triangles(size=(1.0, 2.0, 3.0), center=(0.1, 0.2, -0.3)):
    corners = CORNERS * np.asarray(size) / 2 + np.asarray(center)
    return np.array([corners[list(t)] for q in QUADS for t in ((q[0], q[1], q[2]), (q[0], q[2], q[3]))])


def sphere_triangles(n=24, radius=1.0):
    t, p = np.linspace(0, np.pi, n + 1), np.linspace(0, 2 * np.pi, 2 * n + 1)
    at = lambda i, j: radius * np.array([np.sin(t[i]) * np.cos(p[j]), np.sin(t[i]) * np.sin(p[j]), np.cos(t[i])])  # noqa: E731
    out = []
    for i in range(n):
        for j in range(2 * n):
            if i > 0:
                out.append([at(i, j), at(i + 1, j), at(i, j + 1)])
            if i < n - 1:
                out.append([at(i, j + 1), at(i + 1, j), at(i + 1, j + 1)])
    return np.array(out)


def points(n=300, reach=3.0):
    p = np.random.default_rng(1).uniform(-reach, reach, (3, n)).astype(np.float32)
    return tuple(jnp.asarray(v).reshape(-1, 1, 1) for v in p)


def write_binary_stl(path, triangles):
    with open(path, "wb") as f:
        f.write(bytes(80) + len(triangles).to_bytes(4, "little"))
        for t in triangles.astype("<f4"):
            f.write(np.zeros(3, "<f4").tobytes() + t.tobytes() + bytes(2))


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_box_of_triangles_has_the_distance_of_a_box(scale):
    x = tuple(v * np.float32(scale) for v in points())
    box = Box(np.array([0.1, 0.2, -0.3]) * scale, np.array([1.0, 2.0, 3.0]) * scale)
    surface = Surface(box_triangles() * scale)
    np.testing.assert_allclose(surface.distance(*x), box.distance(*x), atol=3e-6 * scale)
    assert np.allclose(surface.bounds(), box.bounds())


def test_a_sphere_of_triangles_converges():
    x = points()
    exact = np.asarray(Sphere((0.0, 0.0, 0.0), 1.0).distance(*x))
    errors = [np.abs(np.asarray(Surface(sphere_triangles(n)).distance(*x)) - exact).max() for n in (6, 12)]
    assert errors[0] < 0.07 and errors[0] / errors[1] > 3.3  # chords: second order


def test_gradient_of_a_surface_in_its_corners(x64):
    t = box_triangles()
    x = tuple(jnp.asarray(v, jnp.float64) for v in points(40, 1.6))
    f = jax.jit(lambda t: jnp.sum(jnp.sin(Surface(t).distance(*x))))
    turn = t @ np.random.default_rng(0).standard_normal((3, 3)) + 0.3  # neighbours keep their common corners
    slope = float(jnp.sum(jax.grad(f)(jnp.asarray(t)) * turn))
    h = 1e-6
    assert float((f(t + h * turn) - f(t - h * turn)) / (2 * h)) == pytest.approx(slope, rel=1e-6)


def test_stl_files_in_their_unit_and_place(tmp_path):
    write_binary_stl(tmp_path / "part.stl", box_triangles() * 1000)  # in mm
    part = read_surface(tmp_path / "part.stl", unit=1e-3, center=(0.0, 0.0, 0.5))
    x = points()
    np.testing.assert_allclose(part.distance(*x), Box((0.0, 0.0, 0.5), (1.0, 2.0, 3.0)).distance(*x), atol=5e-6)
    with pytest.raises(MissingFileError):
        read_surface(tmp_path / "prt.stl")
    (tmp_path / "bad.stl").write_bytes(b"no triangles here, only words" * 9)
    with pytest.raises(FileFormatError, match="neither ASCII nor binary"):
        read_surface(tmp_path / "bad.stl")
    write_binary_stl(tmp_path / "open.stl", box_triangles()[:-1])
    with pytest.raises(InputError, match="not closed"):
        read_surface(tmp_path / "open.stl")
    with pytest.raises(InputError, match="inside out"):
        Surface(box_triangles()[:, ::-1])
    with pytest.raises(ShapeError):
        Surface(np.zeros((3, 3, 3)))


def filled(shape, dims=2, d=0.05):
    """Area or volume by the lattice's own averaging of the permittivity (1 -> 2) at the nodes."""
    grid = Grid.uniform((4.0,) * dims, d)
    pulse = GaussianPulse(3e8 / 4, 3e8 / 12)
    scene = Scene(
        grid,
        [Structure("s", shape, Medium(2.0))],
        [Dipole("d", (1.4, 1.4), "ez", pulse)],
        boundaries=Boundaries.all("pec"),
        duration=1e-9,
    )
    mean = np.asarray(survey(scene, lattice(scene), "e", [3]).mean, np.float64) - 1.0
    return float(mean.sum()) * d**dims


SQUARE = np.array([[-0.83, -0.61], [0.77, -0.61], [0.77, 0.93], [-0.83, 0.93]])
L_SHAPE = np.array([[-0.8, -0.8], [0.9, -0.8], [0.9, -0.1], [0.1, -0.1], [0.1, 0.7], [-0.8, 0.7]])
LENS = 2 * 0.25 * np.arccos(0.6) - 0.3 * np.sqrt(4 * 0.25 - 0.36)  # two circles of radius 0.5, 0.6 apart
AREAS = {
    "disc": (Cylinder((0.07, 0.02), 0.83), np.pi * 0.83**2),
    "ring": (ring((0.0, 0.0), 0.43, 0.91), np.pi * (0.91**2 - 0.43**2)),
    "square polygon": (Polygon(SQUARE), 1.6 * 1.54),
    "the other way round": (Polygon(SQUARE[::-1]), 1.6 * 1.54),
    "L, not convex": (Polygon(L_SHAPE), 1.7 * 0.7 + 0.9 * 0.8),
    "union": (Cylinder((-0.3, 0.0), 0.5) | Cylinder((0.3, 0.0), 0.5), 2 * np.pi * 0.25 - LENS),
    "intersection": (Cylinder((-0.3, 0.0), 0.5) & Cylinder((0.3, 0.0), 0.5), LENS),
    "difference": (Box((0.0, 0.0), (1.31, 1.17)) - Cylinder((0.0, 0.0), 0.4), 1.31 * 1.17 - np.pi * 0.16),
}


@pytest.mark.parametrize("name", AREAS)
def test_areas_on_the_lattice(name):
    shape, area = AREAS[name]
    assert filled(shape) == pytest.approx(area, rel=3e-3)


@pytest.mark.slow
def test_volumes_on_the_lattice():
    for shape, volume in (
        (Sphere((0.02, 0.0, 0.01), 0.9), 4 / 3 * np.pi * 0.9**3),
        (Surface(box_triangles((1.1, 1.3, 0.9), (0.0, 0.03, 0.0))), 1.1 * 1.3 * 0.9),
        (Cylinder((0.0, 0.0, 0.0), 0.7, 1.3, "x"), np.pi * 0.49 * 1.3),
        (Polygon(L_SHAPE, (-0.61, 0.43)), (1.7 * 0.7 + 0.9 * 0.8) * 1.04),
    ):
        assert filled(shape, 3, 0.1) == pytest.approx(volume, rel=2e-2)
