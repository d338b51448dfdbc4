"""Gaussian beams against the paraxial closed form: width, phase curvature, Gouy phase, one side."""

import numpy as np
import pytest

from sciax.core.errors import InputError, UnsupportedError
from sciax.elec import (
    C0,
    PML,
    Boundaries,
    FieldMonitor,
    FluxMonitor,
    GaussianBeam,
    GaussianPulse,
    Grid,
    Medium,
    Scene,
    Simulation,
)

UM = 1e-6
F = C0 / UM
PULSE = GaussianPulse(F, F / 25, delay=4.0)


def paraxial(r, z, waist, dimension):
    """Field of unit amplitude at the waist (A. E. Siegman, Lasers, 16.3); in 2-D the root of the 3-D factor."""
    k, zr = 2 * np.pi * F / C0, np.pi * waist**2 / UM
    width, gouy = waist * np.sqrt(1 + (z / zr) ** 2), np.arctan(z / zr)
    power = (dimension - 1) / 2
    curved = 0.5 * k * r**2 * z / (z * z + zr * zr)
    return (waist / width) ** power * np.exp(-((r / width) ** 2) + 1j * (k * z + curved - power * gouy))


@pytest.mark.parametrize(
    ("polarization", "focus", "tilt"),
    [
        pytest.param("ez", 0.0, 0.0, marks=pytest.mark.slow),
        ("ey", 1.5 * UM, 0.0),
        pytest.param("ez", 0.0, 0.3, marks=pytest.mark.slow),
    ],
)
def test_beam_in_two_dimensions(polarization, focus, tilt, x64):
    d, waist, start = UM / 16, 1.5 * UM, -1.5 * UM
    scene = Scene(
        Grid.uniform((6 * UM, 9 * UM), d),
        sources=[GaussianBeam("beam", "+x", polarization, PULSE, (start, 0.0), waist, focus, (tilt, 0.0))],
        monitors=[
            FieldMonitor("field", [F], components=(polarization,)),
            FluxMonitor("on", [F], (1.0 * UM,)),
            FluxMonitor("back", [F], (-2.0 * UM,)),
        ],
        duration=PULSE.end() + 25e-15,
        dtype="float64",
    )
    result = Simulation(scene)()
    forward, back = float(result.flux("on")[0]), float(result.flux("back")[0])
    assert forward > 0 and 10 * np.log10(abs(back / forward)) < (-40 if tilt else -55)
    data = result["field"][polarization].isel(frequency=0, z=0)
    i = int(np.argmin(np.abs(data.x.values - 1.2 * UM)))
    y, z = data.y.values, data.x.values[i] - start
    inside = np.abs(y) < 3 * UM
    got = data.values[i] / result.spectrum("beam", [F])[0]
    if tilt:
        # along its own axis the beam is the straight one, seen under an angle
        r, z = y * np.cos(tilt) - z * np.sin(tilt), z * np.cos(tilt) + y * np.sin(tilt)
        width = np.sqrt(np.sum(np.abs(got[inside]) ** 2 * r[inside] ** 2) / np.sum(np.abs(got[inside]) ** 2))
        want = np.abs(paraxial(r, z, waist, 2))[inside]
        assert width == pytest.approx(np.sqrt(np.sum(want**2 * r[inside] ** 2) / np.sum(want**2)), rel=0.1)
        assert abs(y[np.argmax(np.abs(got))] - np.tan(tilt) * (data.x.values[i] - start)) < 2 * d
        return
    want = paraxial(y, z - focus, waist, 2)
    shape = got / got[len(y) // 2] * want[len(y) // 2]
    assert np.abs(shape - want)[inside].max() < 0.01
    assert abs(got[len(y) // 2] / want[len(y) // 2]) == pytest.approx(1.0, abs=0.03)


@pytest.mark.slow
def test_beam_in_three_dimensions(x64):
    d, waist, start = UM / 10, 1.0 * UM, -0.8 * UM
    scene = Scene(
        Grid.uniform((3.2 * UM, 5.2 * UM, 5.2 * UM), d),
        sources=[GaussianBeam("beam", "+x", "ez", PULSE, (start, 0.0, 0.0), waist)],
        monitors=[
            FieldMonitor("field", [F], (0.7 * UM, 0.0, 0.0), (0.0, None, None), components=("ez",)),
            FluxMonitor("on", [F], (0.7 * UM,)),
            FluxMonitor("back", [F], (-1.0 * UM,)),
        ],
        boundaries=Boundaries.all(PML(6)),
        duration=PULSE.end() + 12e-15,
        dtype="float64",
    )
    result = Simulation(scene)()
    assert 10 * np.log10(abs(float(result.flux("back")[0]) / float(result.flux("on")[0]))) < -45
    data = result["field"].ez.isel(frequency=0, x=0)
    y, z = data.y.values[:, None], data.z.values[None, :]
    r = np.hypot(y, z)
    want = paraxial(r, float(data.x) - start, waist, 3)
    middle = len(y) // 2
    shape = data.values / data.values[middle, middle] * want[middle, middle]
    assert np.abs(shape - want)[r < 1.8 * UM].max() < 0.05


def test_beams_say_what_they_need(x64):
    def make(size=(4 * UM, 8 * UM), waist=1.5 * UM, polarization="ez", **more):
        return Simulation(
            Scene(
                Grid.uniform(size, UM / 10),
                sources=[GaussianBeam("beam", "+x", polarization, PULSE, (0.0, 0.0), waist)],
                duration=1e-15,
                **more,
            )
        )()

    with pytest.raises(InputError, match="cuts the beam off along y"):
        make(waist=2.5 * UM)
    with pytest.raises(InputError, match="along the direction of travel"):
        make(polarization="ex")
    with pytest.raises(UnsupportedError, match="lossless background"):
        make(background=Medium(2.0, conductivity=1.0))
    with pytest.raises(InputError, match="two tilts"):
        GaussianBeam("beam", "+x", "ez", PULSE, (0.0,), UM, tilt=(1.5, 0.0))
