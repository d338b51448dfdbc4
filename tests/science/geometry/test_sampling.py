"""Sampling: inside, evenly, with outward normals."""

import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.science import Box, Domain, Rectangle
from sciax.science.geometry import sample_boundary, sample_interior


@pytest.mark.parametrize("kind", ["random", "sobol", "latin"])
@pytest.mark.parametrize(
    "domain", [Rectangle((0, -1), (2, 1)), Domain.from_mesh(Box().mesh(cells=2, kind="hex"))], ids=str
)
def test_interior_is_even(domain, kind):
    """Means and second moments of the uniform distribution."""
    x = sample_interior(domain, 4000, kind=kind, seed=1)
    low, high = domain.mesh().points.min(0), domain.mesh().points.max(0)
    assert x.shape == (4000, domain.dim) and (x >= low).all() and (x <= high).all()
    np.testing.assert_allclose(x.mean(0), (low + high) / 2, atol=0.03)
    np.testing.assert_allclose(x.var(0), (high - low) ** 2 / 12, rtol=0.06)


@pytest.mark.parametrize("mesh", [False, True])
def test_boundary_points_and_normals(mesh):
    box = Box((0, 0, 0), (1, 2, 3))
    domain = Domain.from_mesh(box.mesh(cells=2)) if mesh else box
    found = sample_boundary(domain, 2000, seed=0)
    assert found.measure == pytest.approx(22.0)
    np.testing.assert_allclose(np.linalg.norm(found.normals, axis=1), 1.0)
    # flux of the position vector through the surface is three times the volume
    flux = found.measure * np.mean(np.sum(found.points * found.normals, axis=1))
    assert flux == pytest.approx(18.0, rel=0.05)
    top = sample_boundary(domain, 10, "top")
    np.testing.assert_allclose(top.points[:, 2], 3.0)
    np.testing.assert_allclose(top.normals, np.tile([0, 0, 1.0], (10, 1)), atol=1e-12)


def test_bad_names():
    with pytest.raises(InputError, match="did you mean 'left'"):
        sample_boundary(Rectangle(), 5, "lfet")
    with pytest.raises(InputError, match="did you mean 'sobol'"):
        sample_interior(Rectangle(), 5, kind="sobl")
