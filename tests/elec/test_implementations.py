"""The compiled kernel and XLA give one answer for one scene, sources, monitors and absorbers included."""

import numpy as np
import pytest

from sciax.core.errors import UnsupportedError
from sciax.core.ops.yee import native_available
from sciax.elec import (
    C0,
    PML,
    Boundaries,
    Dipole,
    FieldMonitor,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Medium,
    Probe,
    Scene,
    Simulation,
    Sphere,
    Structure,
)

UM = 1e-6
F = C0 / UM


def box(structures, boundaries=None):
    return Scene(
        Grid.uniform((1.4 * UM, 1.3 * UM, 1.2 * UM), 0.05 * UM),
        structures,
        [
            Dipole("s", (0.02 * UM, 0.0, -0.03 * UM), "ez", GaussianPulse(F, F / 3)),
            Dipole("t", (0.1 * UM, 0.0, 0.0), "hx", GaussianPulse(F, F / 3)),
        ],
        [
            Probe("p", (0.2 * UM, 0.1 * UM, 0.05 * UM), ("ez", "hy")),
            FluxMonitor("out", [F, 1.1 * F], size=(0.6 * UM,) * 3, normal="box"),
            FieldMonitor("plane", [F], size=(None, None, 0.0), components=("ez",)),
        ],
        boundaries or Boundaries.all(PML(6)),
        duration=30e-15,
        smoothing="diagonal",
        dtype="float64",
    )


@pytest.mark.skipif(not native_available(), reason="the compiled kernel is not built here")
@pytest.mark.parametrize("what", [pytest.param("vacuum", marks=pytest.mark.slow), "sphere, mirror plane"])
def test_native_and_xla_agree(what, x64):
    scene = (
        box([])
        if what == "vacuum"
        else box([Structure("ball", Sphere((0.0,), 0.3 * UM), Medium(4.0))], Boundaries(x=("pmc", PML(6))))
    )
    native = Simulation(scene, implementation="native", threads=2)
    assert native.implementation == "native"
    a, b = native(), Simulation(scene, implementation="xla")()
    for c in ("ez", "hy"):
        want = np.asarray(b.signal("p", c))
        np.testing.assert_allclose(a.signal("p", c), want, atol=1e-12 * np.abs(want).max())
    # spectra are sampled every few steps by the kernel, every step by XLA
    # and a record that ends while the sphere still rings is cut at another point
    tolerance = 1e-6 if what == "vacuum" else 2e-3
    np.testing.assert_allclose(a.flux("out"), b.flux("out"), rtol=tolerance)
    want = np.asarray(b.field("plane", "ez"))
    np.testing.assert_allclose(a.field("plane", "ez"), want, atol=tolerance * np.abs(want).max())


def test_what_the_kernel_cannot_do_is_said(x64):
    scene = box([], Boundaries(x="periodic"))
    assert "periodic" in Simulation(scene).implementation_reason or not native_available()
    with pytest.raises(UnsupportedError):
        Simulation(scene, implementation="native")
