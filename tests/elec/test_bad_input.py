"""What would make a run meaningless is an error before it, with what was given and what to do."""

import jax
import numpy as np
import pytest

from sciax.core.errors import (
    ConvergenceError,
    FileFormatError,
    InputError,
    PrecisionError,
    ShapeError,
    UnsupportedError,
)
from sciax.elec import (
    C0,
    PEC,
    PML,
    Boundaries,
    Box,
    ContinuousWave,
    Cylinder,
    Dipole,
    Drude,
    FieldMonitor,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Lorentz,
    Medium,
    PlaneWave,
    Probe,
    Ricker,
    Sampled,
    Scene,
    Simulation,
    Structure,
)

UM = 1e-6
F = C0 / UM
PULSE = GaussianPulse(F, F / 4)


def scene(**change):
    options = {
        "grid": Grid.uniform((2 * UM, 2 * UM), 0.05 * UM),
        "sources": [Dipole("s", (0.0, 0.0), "ez", PULSE)],
        "duration": 5e-15,
    } | change
    return Scene(**options)


def disc(medium, at=(0.0, 0.0), radius=0.3 * UM):
    return Structure("disc", Cylinder(at, radius), medium)


BAD = {
    "unstable time step": (lambda: scene(courant=1.01), InputError, "not stable"),
    "no duration": (lambda: scene(duration=0.0), InputError, "duration must be positive"),
    "float64 without x64": (lambda: scene(dtype="float64"), PrecisionError, "switched off"),
    "source in a conductor": (lambda: scene(structures=[disc(PEC)]), InputError, "inside the conductor 'disc'"),
    "structure outside": (
        lambda: scene(structures=[disc(Medium(2.0), (5 * UM, 0.0))]),
        InputError,
        "'disc' lies outside the grid",
    ),
    "monitor outside": (lambda: scene(monitors=[Probe("m", (3 * UM, 0.0))]), InputError, "'m' lies outside"),
    "flux plane outside": (
        lambda: scene(monitors=[FluxMonitor("m", [F], (3 * UM, 0.0))]),
        InputError,
        "'m' lies outside",
    ),
    "source outside": (
        lambda: scene(sources=[Dipole("s", (3 * UM, 0.0), "ez", PULSE)]),
        InputError,
        "'s' lies outside",
    ),
    "source in the absorber": (
        lambda: scene(sources=[Dipole("s", (0.8 * UM, 0.0), "ez", PULSE)]),
        InputError,
        "touches the absorber",
    ),
    "plane wave in the absorber": (
        lambda: scene(sources=[PlaneWave("s", "+x", "ez", PULSE, size=(1.8 * UM, 0.5 * UM))]),
        InputError,
        "touches the absorber",
    ),
    "absorber fills the grid": (lambda: scene(boundaries=Boundaries.all(PML(20))), InputError, "fill the whole x axis"),
    "graded absorber": (
        lambda: scene(
            grid=Grid(np.concatenate([[0.0, 0.1], np.linspace(0.12, 2.0, 60)]) * UM - UM, np.linspace(-UM, UM, 41))
        ),
        InputError,
        "vary by more than half",
    ),
    "faster than light": (lambda: scene(structures=[disc(Medium(0.5))]), InputError, "outrun the grid"),
    "pole too fast": (
        lambda: scene(structures=[disc(Medium(2.0, poles=(Drude(1e18, 1e14),)))]),
        InputError,
        "faster than the time step",
    ),
    "pole that gains energy": (lambda: Lorentz(-0.5, 1e15, 1e13), InputError, "gains energy"),
    "negative damping": (lambda: Lorentz(0.5, 1e15, -1e13), InputError, "Lorentz gamma"),
    "negative conductivity": (lambda: Medium(2.0, conductivity=-1.0), InputError, "conductivity"),
    "unresolved band": (
        lambda: scene(sources=[Dipole("s", (0.0,), "ez", GaussianPulse(8 * F, F))]),
        InputError,
        "not resolved",
    ),
    "one name twice": (lambda: scene(monitors=[Probe("s", (0.0, 0.0))]), InputError, "used twice"),
    "unknown component": (lambda: Dipole("s", (0.0,), "dz", PULSE), InputError, "known: ex"),
    "unknown boundary": (lambda: Boundaries(x="perodic"), InputError, "did you mean 'periodic'"),
    "half periodic": (lambda: Boundaries(x=("periodic", "pec")), InputError, "needs both faces"),
    "longitudinal plane wave": (
        lambda: PlaneWave("s", "+x", "ex", PULSE, size=(UM,)),
        InputError,
        "along the direction of travel",
    ),
    "unknown smoothing": (lambda: scene(smoothing="tensr"), InputError, "did you mean 'tensor'"),
    "grid not increasing": (lambda: Grid(np.array([0.0, 1.0, 0.5])), InputError, "increasing"),
    "grid of one cell": (lambda: Grid.uniform((UM,), UM), InputError, "at least two cells"),
    "negative radius": (lambda: Cylinder((0, 0), -1.0), InputError, "radius"),
    "three permittivities": (lambda: Medium((1.0, 2.0)), ShapeError, "one number or three"),
    "frequency zero": (lambda: FieldMonitor("m", [0.0]), InputError, "must be positive"),
    "tensor smoothing of a metal": (
        lambda: Simulation(scene(structures=[disc(Medium(2.0, poles=(Drude(2e15, 1e14),)))], smoothing="tensor"))(),
        UnsupportedError,
        "needs lossless media",
    ),
    "dark component": (
        lambda: Simulation(scene(monitors=[Probe("m", (0.1 * UM, 0.0), ("hz",))])),
        InputError,
        "no source of this scene",
    ),
    "unknown gradient": (lambda: Simulation(scene(), gradient="reverse"), InputError, "did you mean 'reversible'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name):
    make, error, says = BAD[name]
    with pytest.raises(error, match=says):
        make()


def test_results_name_their_monitors():
    result = Simulation(
        scene(monitors=[Probe("here", (0.1 * UM, 0.0)), FluxMonitor("out", [F], size=(UM, UM), normal="box")])
    )()
    with pytest.raises(InputError, match="did you mean 'here'"):
        result.signal("hear", "ez")
    with pytest.raises(InputError, match="is a Probe"):
        result.flux("here")
    assert result["here"].ez.attrs["units"] == "V m-1" and result["out"].flux.dims == ("frequency",)


def test_divergence_stops_with_step_and_cell():
    """Conductors at both ends of a cell thinner than the time step allows, forced past the checks."""
    built = scene(duration=200e-15)
    object.__setattr__(built, "courant", 1.3)
    with pytest.raises(ConvergenceError, match=r"diverge: ez .* by step") as caught:
        Simulation(built)()
    assert "cell" in str(caught.value)


def test_a_stopped_run_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    built = scene(duration=20e-15, monitors=[Probe("m", (0.3 * UM, 0.0)), FieldMonitor("f", [F])])
    sim, path = Simulation(built), tmp_path / "state.npz"
    whole = sim.run()

    class Stop(Exception):
        pass

    def stop(done, total):
        if done > total // 2:
            raise Stop

    with pytest.raises(Stop):
        sim.run(progress=stop, checkpoint=path)
    rest = []
    again = Simulation(built).run(checkpoint=path, progress=lambda done, total: rest.append(done))
    assert 0 < len(rest) < 6
    np.testing.assert_array_equal(again.signal("m", "ez"), whole.signal("m", "ez"))
    np.testing.assert_array_equal(again.field("f", "ez"), whole.field("f", "ez"))
    with pytest.raises(FileFormatError, match="another scene"):
        Simulation(scene(grid=Grid.uniform((2.5 * UM, 2 * UM), 0.05 * UM), duration=20e-15)).run(checkpoint=path)
    with pytest.raises(FileFormatError, match="other parameters"):  # the same arrays, another amplitude
        sim.run({"s.amplitude": 2.0}, checkpoint=path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(FileFormatError, match="cannot be read"):
        sim.run(checkpoint=path)


def test_signals_of_sources():
    t = np.linspace(0, 40e-15, 4001)
    for w in (GaussianPulse(F, F / 5), Ricker(F), ContinuousWave(F)):
        s = np.asarray(w(t))
        assert np.all(np.isfinite(s)) and abs(s[0]) < 2e-2 and np.abs(s).max() <= 1.0001
    table = Sampled(t, np.sin(2 * np.pi * F * t))
    assert float(table(10.3e-15)) == pytest.approx(np.sin(2 * np.pi * F * 10.3e-15), abs=1e-2)
    assert float(table(1.0)) == 0.0
    with pytest.raises(ShapeError):
        Sampled(t, t[:-1])


def test_vmap_over_parameters():
    sim = Simulation(scene(structures=[disc(Medium(4.0))], monitors=[Probe("m", (0.4 * UM, 0.1 * UM))]))
    eps = np.array([2.0, 4.0], np.float32)
    both = jax.vmap(lambda e: sim({"disc.medium.permittivity": e}).signal("m", "ez"))(eps)
    one = sim({"disc.medium.permittivity": np.float32(4.0)}).signal("m", "ez")
    np.testing.assert_allclose(both[1], one, rtol=1e-4, atol=1e-5 * float(np.abs(one).max()))


def test_conducting_and_dispersive_slabs_absorb_what_they_must():
    """Box monitor around a driven dipole beside a lossy disc: less power leaves than is fed."""
    fed, out = [], []
    for medium in (Medium(2.0), Medium(2.0, conductivity=5e4)):
        built = scene(
            structures=[disc(medium, (0.35 * UM, 0.0), 0.2 * UM)],
            monitors=[
                FluxMonitor("fed", [F], size=(0.2 * UM, 0.2 * UM), normal="box"),
                FluxMonitor("out", [F], (0.1 * UM, 0.0), size=(UM, 0.8 * UM), normal="box"),
            ],
            duration=60e-15,
        )
        result = Simulation(built)()
        fed.append(float(result.flux("fed")[0]))
        out.append(float(result.flux("out")[0]))
    assert out[0] == pytest.approx(fed[0], rel=0.01)
    assert 0 < out[1] < 0.9 * fed[1]


def test_bounds_of_shapes():
    assert (Box((0, 0), (2, 2)) - Cylinder((0, 0), 0.5)).bounds()[0] == (-1.0, 1.0)
