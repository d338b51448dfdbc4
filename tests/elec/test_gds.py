"""GDS: designs out and back, real layouts in, and what cannot be read says so."""

import numpy as np
import pytest

from sciax.core.errors import FileFormatError, InputError, MissingFileError
from sciax.elec import C0, Dipole, GaussianPulse, Grid, Medium, Scene, Simulation, Structure, gds

gdstk = pytest.importorskip("gdstk")
UM = 1e-6


def blob(n=40):
    x = (np.arange(n) + 0.5) / n - 0.5
    r = np.hypot(x[:, None], x[None] * 1.3)
    return 1 / (1 + np.exp((np.abs(r - 0.27) - 0.09) * 60))  # a smooth ring, with a hole


def raster(polygons, n, pixel):
    """Pixels whose centres lie inside."""
    c = (np.arange(n) + 0.5 - n / 2) * pixel * 1e6
    points = np.stack(np.meshgrid(c, c, indexing="ij"), -1).reshape(-1, 2)
    return np.array(gdstk.inside(points, [gdstk.Polygon(p * 1e6) for p in polygons])).reshape(n, n)


@pytest.mark.parametrize("smooth", [False, True])
def test_a_design_comes_back_pixel_by_pixel(smooth, tmp_path):
    rho = blob()
    path = gds.write_gds(tmp_path / "d.gds", rho, pixel=20e-9, smooth=smooth, layer=(3, 7))
    back = gds.read_gds(path)
    assert list(back) == [(3, 7)]
    np.testing.assert_array_equal(raster(back[3, 7], 40, 20e-9), rho > 0.5)


def test_area_of_outlines_and_designs_that_touch_the_border():
    bar = np.zeros((20, 30))
    bar[:, 10:14] = 1
    for smooth in (False, True):
        area = sum(p.area() for p in gds.outlines(bar, 50e-9, smooth=smooth))
        assert area == pytest.approx(20 * 4 * 0.05**2, rel=1e-4)  # um^2
    ring = (blob(80) > 0.5).astype(float)
    assert sum(p.area() for p in gds.outlines(ring, 10e-9, smooth=False)) == pytest.approx(ring.sum() * 1e-4, rel=1e-9)


def test_polygons_come_back_to_a_picometre(tmp_path):
    v = np.array([[0.1234567, -0.2], [1.7, 0.31], [0.4, 1.1]]) * UM
    back = gds.read_gds(gds.write_gds(tmp_path / "p.gds", [v]))[1, 0][0]
    shift = next(k for k in range(3) if np.allclose(np.roll(back, k, axis=0), v, atol=2e-12))
    np.testing.assert_allclose(np.roll(back, shift, axis=0), v, atol=1e-12)


def test_real_layouts(shared_data):
    """The coupler: two 0.45 um guides a gap apart; every polygon of the file within the box that gdstk itself reports."""
    for name in ("coupler_fdtdx.gds", "simple_waveguide_fdtdx.gds"):
        path = shared_data / "elec" / "gds" / name
        found = gds.read_gds(path)
        library = gdstk.read_gds(str(path))
        low, high = library.top_level()[0].bounding_box()
        points = np.concatenate([p for group in found.values() for p in group])
        np.testing.assert_allclose(points.min(0), np.array(low) * library.unit, atol=1e-12)
        np.testing.assert_allclose(points.max(0), np.array(high) * library.unit, atol=1e-12)
        layer = next(iter(found))
        shape = gds.gds_shape(path, layer, (0.0, 0.22 * UM), center=(0.0, 0.0))
        (x0, x1), (y0, y1), z = shape.bounds()
        assert x1 + x0 == pytest.approx(0.0, abs=1e-12) and y1 + y0 == pytest.approx(0.0, abs=1e-12)
        assert z == (0.0, 0.22 * UM)


def test_overlapping_polygons_become_one_shape_without_a_seam(tmp_path):
    left = np.array([[-1.0, -0.2], [0.0, -0.2], [0.0, 0.2], [-1.0, 0.2]]) * UM
    right = left + np.array([1.0 * UM, 0.0])
    shape = gds.gds_shape(gds.write_gds(tmp_path / "g.gds", [left, right]), (1, 0))
    at = np.zeros((1, 1, 1), np.float32), np.full((1, 1, 1), 0.05 * UM, np.float32), np.zeros((1, 1, 1), np.float32)
    assert float(shape.distance(*at)[0, 0, 0]) == pytest.approx(-0.15 * UM, rel=1e-4)  # not 0, as on a seam
    pulse = GaussianPulse(C0 / UM, C0 / UM / 3)
    scene = Scene(
        Grid.uniform((2 * UM, 2 * UM), 0.05 * UM),
        [Structure("guide", shape, Medium(4.0))],
        [Dipole("s", (0.0, 0.0), "ez", pulse)],
        duration=2e-15,
    )
    assert Simulation(scene).scene.steps > 0


def test_bad_layouts(tmp_path):
    with pytest.raises(MissingFileError):
        gds.read_gds(tmp_path / "none.gds")
    (tmp_path / "text.gds").write_text("this is no layout")
    with pytest.raises(FileFormatError, match="not a GDS II file"):
        gds.read_gds(tmp_path / "text.gds")
    good = gds.write_gds(tmp_path / "g.gds", np.ones((4, 4)), pixel=1e-7)
    with pytest.raises(InputError, match="did you mean 'design'"):
        gds.read_gds(good, "desing")
    with pytest.raises(InputError, match="no polygons on layer"):
        gds.read_gds(good, layers=[(9, 9)])
    with pytest.raises(InputError, match="nothing to write"):
        gds.write_gds(tmp_path / "e.gds", np.zeros((4, 4)), pixel=1e-7)
    with pytest.raises(InputError, match="side of its pixels"):
        gds.write_gds(tmp_path / "e.gds", np.ones((4, 4)))
    with pytest.raises(InputError, match="layer and datatype"):
        gds.write_gds(tmp_path / "e.gds", np.ones((4, 4)), pixel=1e-7, layer=(-1, 0))
