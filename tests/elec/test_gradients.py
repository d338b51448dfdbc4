"""Gradients: plain, checkpointed and reversible agree, and all agree with central differences.

One row a combination of source, monitor, boundary, medium and shape; each row differentiates every parameter that it names
along a random direction, in float64.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError, UnsupportedError
from sciax.elec import (
    C0,
    PML,
    Bloch,
    Boundaries,
    Box,
    ContinuousWave,
    Cylinder,
    Debye,
    Density,
    Dipole,
    Drude,
    FieldMonitor,
    FluxMonitor,
    GaussianPulse,
    Grid,
    Lorentz,
    Medium,
    ModeMonitor,
    ModeSource,
    PlaneWave,
    Polygon,
    Probe,
    Ricker,
    Scene,
    Simulation,
    Sphere,
    Structure,
    ring,
)

UM = 1e-6
F = C0 / UM
D = 0.05 * UM
PULSE = GaussianPulse(F, F / 2, delay=3.0)


def scene(structures, sources, monitors, size=(1.3 * UM, 1.2 * UM), boundaries=None, steps=70, **more):
    """A scene to be: float64 scenes are made inside the tests, where 64-bit arrays are on."""

    def make():
        grid = Grid.uniform(size, D)
        faces = Boundaries.all(PML(4)) if boundaries is None else boundaries
        return Scene(
            grid, structures, sources, monitors, faces, steps * 0.95 * grid.courant_limit(), dtype="float64", **more
        )

    make.structures = structures
    return make


def dipole(component="ez", at=(-0.21 * UM, 0.03 * UM)):
    return Dipole("s", at, component, PULSE, 1e-8)


def disc(medium, at=(0.06 * UM, 0.02 * UM)):
    return Structure("disc", Cylinder(at, 0.17 * UM), medium)


SHAPE = {"disc.shape.radius": 0.17 * UM, "disc.shape.center.0": 0.06 * UM, "disc.shape.center.1": 0.02 * UM}
RHO = np.random.default_rng(5).uniform(0.2, 0.8, (5, 4))


def probe(*components):
    return Probe("m", (0.22 * UM, 0.11 * UM), components)


def spectrum(r):
    return jnp.sum(jnp.abs(r.field("m", r.plan.scene.monitors[0].components[0])) ** 2)


def flux(r):
    return jnp.sum(r.flux("m") ** 1)


def square(r):
    return sum(jnp.sum(r.signal("m", c) ** 2) for c in r.plan.scene.monitors[0].components)


MEDIUM = {"disc.medium.permittivity": 4.0}
SOURCE = {"s.amplitude": 1e-8, "s.position.0": -0.21 * UM, "s.position.1": 0.03 * UM}
CASES = {
    "ez dipole, probe of E and H, disc": (
        scene([disc(Medium(4.0))], [dipole()], [probe("ez", "hx", "hy")]),
        {**SHAPE, **MEDIUM, **SOURCE, "s.waveform.delay": 3.0},
        square,
    ),
    "hz dipole, tensor smoothing, flux box": (
        scene(
            [disc(Medium(4.0))],
            [dipole("hz")],
            [FluxMonitor("m", [F, 1.2 * F], size=(0.7 * UM, 0.7 * UM), normal="box")],
        ),
        {**SHAPE, **MEDIUM, **SOURCE},
        flux,
    ),
    "ex dipole inside the structure, spectra, diagonal smoothing": (
        scene(
            [disc(Medium(3.0))],
            [dipole("ex", (0.05 * UM, 0.0))],
            [FieldMonitor("m", [F], components=("ey",))],
            smoothing="diagonal",
        ),
        {**SHAPE, "disc.medium.permittivity": 3.0, "s.position.0": 0.05 * UM},
        spectrum,
    ),
    "plane wave, density under a source-free region": (
        scene(
            [Structure("disc", Box((0.05 * UM, 0.0), (0.3 * UM, 0.25 * UM)), Density(RHO, 1.0, 4.0))],
            [PlaneWave("s", "+x", "ez", PULSE, size=(0.7 * UM, 0.6 * UM))],
            [FieldMonitor("m", [F, 1.1 * F], components=("ez",))],
        ),
        {"disc.medium.density": RHO, "s.amplitude": 1.0},
        spectrum,
    ),
    "overlapping design regions with the source inside": (
        scene(
            [
                Structure("disc", Box((0.05 * UM, 0.0), (0.3 * UM, 0.25 * UM)), Density(RHO, 1.0, 4.0)),
                Structure("other", Box((-0.07 * UM, 0.05 * UM), (0.3 * UM, 0.2 * UM)), Density(RHO[::-1], 1.0, 4.0)),
            ],
            [dipole("ez", (0.0, 0.02 * UM))],
            [FluxMonitor("m", [F], (0.3 * UM, 0.0), (0.0, 0.5 * UM))],
        ),
        {"disc.medium.density": RHO, "other.medium.density": RHO[::-1]},
        flux,
    ),
    "polygon, magnetic wall, conductor": (
        scene(
            [
                Structure(
                    "disc", Polygon(np.array([[-0.113, -0.162], [0.217, -0.108], [0.127, 0.214]]) * UM), Medium(5.0)
                )
            ],
            [Dipole("s", (-0.21 * UM, 0.03 * UM), "ez", Ricker(F / 2), 1e-8)],
            [probe("ez", "hy")],
            boundaries=Boundaries(x=("pmc", PML(4)), y=("pec", "pmc")),
        ),
        {
            "disc.shape.vertices": np.array([[-0.113, -0.162], [0.217, -0.108], [0.127, 0.214]]) * UM,
            "s.waveform.frequency": F / 2,
        },
        square,
    ),
    "Bloch along y": (
        scene(
            [disc(Medium(4.0))],
            [dipole("hz")],
            [FluxMonitor("m", [F], (0.3 * UM, 0.0), (0.0, None))],
            size=(1.3 * UM, 0.6 * UM),
            boundaries=Boundaries(x=PML(4), y=Bloch(2.1e6)),
        ),
        {**SHAPE, **MEDIUM},
        flux,
    ),
    "Bloch wave number": (
        scene(
            [disc(Medium(4.0))],
            [dipole("hz")],
            [FluxMonitor("m", [F], (0.3 * UM, 0.0), (0.0, None))],
            size=(1.1 * UM, 0.5 * UM),
            boundaries=Boundaries(x=PML(4), y=Bloch(2.1e6)),
            steps=40,
        ),
        {"boundaries.y.wavenumber": 2.1e6},
        flux,
    ),
    "Lorentz and Debye poles": (
        scene([disc(Medium(2.0, poles=(Lorentz(1.5, 2e15, 3e14), Debye(0.7, 4e-16))))], [dipole()], [probe("ez")]),
        {
            **SHAPE,
            "disc.medium.poles.0.strength": 1.5,
            "disc.medium.poles.0.frequency": 2e15,
            "disc.medium.poles.0.gamma": 3e14,
            "disc.medium.poles.1.strength": 0.7,
            "disc.medium.poles.1.tau": 4e-16,
        },
        square,
    ),
    "Drude metal, spectra": (
        scene(
            [disc(Medium(1.5, poles=(Drude(4e15, 1e14),)))],
            [dipole("hz")],
            [FieldMonitor("m", [F], components=("hz",))],
        ),
        {
            **SHAPE,
            "disc.medium.poles.0.plasma": 4e15,
            "disc.medium.poles.0.gamma": 1e14,
            "disc.medium.permittivity": 1.5,
        },
        spectrum,
    ),
    "conductive disc and background permittivity": (
        scene(
            [disc(Medium(3.0, conductivity=2e3))],
            [Dipole("s", (-0.21 * UM, 0.03 * UM), "ez", ContinuousWave(F), 1e-8)],
            [probe("ez")],
            background=Medium(1.3),
        ),
        {**SHAPE, "disc.medium.conductivity": 2e3, "background.permittivity": 1.3, "s.waveform.frequency": F},
        square,
    ),
    "three dimensions, sphere, anisotropic box": (
        scene(
            [
                Structure(
                    "box", Box((0.0, -0.05 * UM, 0.0), (0.317 * UM, 0.163 * UM, 0.229 * UM)), Medium((2.0, 3.0, 4.0))
                ),
                Structure("disc", Sphere((0.06 * UM, 0.02 * UM, 0.01 * UM), 0.12 * UM), Medium(3.0)),
            ],
            [Dipole("s", (-0.21 * UM, 0.03 * UM, 0.0), "hy", PULSE, 1e-8)],
            [FluxMonitor("m", [F], (0.22 * UM, 0.0, 0.0), (0.0, 0.3 * UM, 0.3 * UM))],
            size=(0.9 * UM, 0.8 * UM, 0.7 * UM),
            boundaries=Boundaries.all(PML(3)),
            steps=30,
        ),
        {
            "disc.shape.radius": 0.12 * UM,
            "disc.shape.center.2": 0.01 * UM,
            "box.medium.permittivity": np.array([2.0, 3.0, 4.0]),
            "box.shape.size.0": 0.317 * UM,
        },
        flux,
    ),
    "mode source, density between guides, mode amplitudes": (
        scene(
            [
                Structure("in", Box((-0.5 * UM, 0.0), (0.9 * UM, 0.25 * UM)), Medium(6.0)),
                Structure("out", Box((0.5 * UM, 0.0), (0.9 * UM, 0.25 * UM)), Medium(6.0)),
                Structure("disc", Box((0.0, 0.0), (0.3 * UM, 0.25 * UM)), Density(RHO, 1.0, 6.0)),
            ],
            [ModeSource("s", "+x", (-0.35 * UM, 0.0), GaussianPulse(F, F / 4, delay=3.0))],
            [ModeMonitor("m", [F, 1.1 * F], (0.3 * UM, 0.0), "x")],
        ),
        {"disc.medium.density": RHO, "s.amplitude": 1.0},
        lambda r: jnp.sum(jnp.abs(r.modes("m")[0]) ** 2) + 0.3 * jnp.sum(jnp.abs(r.modes("m")[1]) ** 2),
    ),
    "hz plane wave, periodic, magnetic ring by CSG": (
        scene(
            [Structure("disc", ring((0.05 * UM, 0.02 * UM), 0.083 * UM, 0.171 * UM), Medium(3.0, permeability=1.6))],
            [PlaneWave("s", "+x", "ey", PULSE, size=(0.7 * UM, None))],
            [FluxMonitor("m", [F], (0.42 * UM, 0.0), (0.0, None))],
            size=(1.5 * UM, 0.6 * UM),
            boundaries=Boundaries(x=PML(4), y="periodic"),
        ),
        {
            "disc.shape.first.radius": 0.171 * UM,
            "disc.shape.second.radius": 0.083 * UM,
            "disc.medium.permittivity": 3.0,
            "disc.medium.permeability": 1.6,
        },
        flux,
    ),
    "one dimension, signal of the pulse, conductor wall": (
        scene(
            [Structure("disc", Box((0.113 * UM,), (0.217 * UM,)), Medium(4.0))],
            [Dipole("s", (-0.21 * UM,), "ey", PULSE, 1e-8)],
            [probe("ey", "hz")],
            size=(1.3 * UM,),
            boundaries=Boundaries(x=(PML(4), "pec")),
        ),
        {
            "s.waveform.frequency": F,
            "s.waveform.width": F / 2,
            "s.position.0": -0.21 * UM,
            "disc.shape.center.0": 0.113 * UM,
            "disc.shape.size.0": 0.217 * UM,
            "disc.medium.permittivity": 4.0,
        },
        square,
    ),
}
REVERSIBLE = [
    n
    for n, c in CASES.items()
    if all(s.medium.lossless for s in c[0].structures)
    and not {"background", "boundaries"} & {p.split(".")[0] for p in c[1]}
]


def case(name):
    built, params, objective = CASES[name]
    return built(), {k: jnp.asarray(v) for k, v in params.items()}, objective


@pytest.fixture(autouse=True)
def _double(x64):
    pass


@pytest.mark.parametrize("name", CASES)
def test_gradient_equals_central_differences(name):
    built, params, objective = case(name)
    method = "reversible" if name in REVERSIBLE else "checkpoint"
    sim = Simulation(built, gradient=method)
    value = jax.jit(lambda p: objective(sim(p)))
    rng = np.random.default_rng(0)
    turn = {k: jnp.asarray(rng.standard_normal(v.shape)) * jnp.abs(v) for k, v in params.items()}
    grad = jax.jit(jax.grad(lambda p: objective(sim(p))))(params)
    slope = float(sum(jnp.sum(grad[k] * turn[k]) for k in params))
    best = np.inf
    for h in (1e-5, 3e-6, 1e-6):  # the largest step that crosses no kink of a fill fraction wins
        ahead, behind = (value({k: params[k] + s * h * turn[k] for k in params}) for s in (1, -1))
        best = min(best, abs(float((ahead - behind) / (2 * h)) / slope - 1))
    assert best < 1e-6


@pytest.mark.parametrize("name", ["ez dipole, probe of E and H, disc", "Lorentz and Debye poles"])
def test_methods_agree(name):
    built, params, objective = case(name)
    want = jax.jit(jax.grad(lambda p: objective(Simulation(built, gradient="plain")(p))))(params)
    for method in ("checkpoint", "reversible") if name in REVERSIBLE else ("checkpoint",):
        got = jax.jit(jax.grad(lambda p: objective(Simulation(built, gradient=method)(p))))(params)  # noqa: B023
        for k in params:
            np.testing.assert_allclose(
                got[k], want[k], rtol=1e-9, atol=1e-9 * float(jnp.abs(want[k]).max()), err_msg=f"{method} {k}"
            )


def test_auto_says_why():
    lossy, lossless = case("Drude metal, spectra")[0], case("Bloch along y")[0]
    assert Simulation(lossless).gradient == "reversible"
    sim = Simulation(lossy)
    assert sim.gradient == "checkpoint" and "'disc' is lossy" in sim.gradient_reason
    with pytest.raises(UnsupportedError, match="cannot be undone exactly in the lossy"):
        Simulation(lossy, gradient="reversible")


def test_reversible_refuses_a_parameter_inside_the_absorber():
    long = Structure("guide", Box((0.0, 0.0), (np.inf, 0.2 * UM)), Medium(4.0))
    built = scene([long], [dipole()], [probe("ez")])()
    params = {"guide.medium.permittivity": 4.0}
    with pytest.raises(UnsupportedError, match="acts inside an absorber"):
        Simulation(built, gradient="reversible")(params)
    sim = Simulation(built)
    sim(params)
    assert sim.gradient == "checkpoint"


def test_what_has_no_derivative_is_refused_by_name():
    built = case("Bloch along y")[0]
    sim = Simulation(built)
    with pytest.raises(UnsupportedError, match=r"boundaries\.x\.0\.kappa_max.*fixed when the scene is built"):
        jax.grad(lambda v: flux(sim({"boundaries.x.0.kappa_max": v})))(3.0)
    with pytest.raises(InputError, match="along x are not Bloch"):
        sim({"boundaries.x.wavenumber": 1e6})
    with pytest.raises(UnsupportedError, match="monitors sit on lattice points"):
        sim({"m.position.0": 1e-7})
    with pytest.raises(UnsupportedError, match="acts inside an absorber"):
        Simulation(built, gradient="reversible")({"boundaries.y.wavenumber": 2e6})
    wave = scene(
        [],
        [PlaneWave("s", "+x", "ez", PULSE, size=(0.8 * UM, None))],
        [FluxMonitor("m", [F], (0.3 * UM, 0.0), (0.0, None))],
        size=(1.3 * UM, 0.6 * UM),
        boundaries=Boundaries(x=PML(4), y=Bloch(2.1e6)),
    )()
    with pytest.raises(UnsupportedError, match="do not reach the incident wave"):
        jax.grad(lambda v: flux(Simulation(wave)({"boundaries.y.wavenumber": v})))(2.1e6)


def test_wrong_parameters_are_named():
    sim = Simulation(case("Bloch along y")[0])
    with pytest.raises(InputError, match="did you mean 'disc'"):
        sim({"disk.shape.radius": 1.0})
    with pytest.raises(InputError, match="did you mean 'radius'"):
        sim({"disc.shape.radios": 1.0})
    with pytest.raises(ShapeError, match="another shape"):
        sim({"disc.shape.radius": np.ones(2)})
    with pytest.raises(InputError, match="must be positive"):
        sim({"disc.shape.radius": -1.0})


def test_memory_of_the_reversible_gradient_does_not_grow_with_steps():
    """In a closed box; beside absorbers one layer a step is kept."""

    def extra(method, steps):
        built = scene(
            [disc(Medium(4.0))], [dipole()], [FieldMonitor("m", [F])], boundaries=Boundaries.all("pec"), steps=steps
        )()
        sim = Simulation(built, gradient=method)
        compiled = jax.jit(jax.grad(lambda p: spectrum(sim(p)))).lower({"disc.medium.permittivity": 4.0}).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    # per-step tables of the source's signal and of phasors are all that grows
    assert extra("reversible", 800) - extra("reversible", 400) < 400 * 100
    assert extra("plain", 800) - extra("plain", 400) > 400 * 5000
