"""Gradients through far fields, energies, snapshots, beams, oblique waves and three-dimensional modes, against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.elec import (
    C0,
    PML,
    Bloch,
    Boundaries,
    Box,
    Cylinder,
    Dipole,
    EnergyMonitor,
    FarFieldMonitor,
    FluxMonitor,
    GaussianBeam,
    GaussianPulse,
    Grid,
    Medium,
    ModeMonitor,
    ModeSource,
    PlaneWave,
    Scene,
    Simulation,
    SnapshotMonitor,
    Sphere,
    Structure,
)

UM = 1e-6
F = C0 / UM
D = 0.05 * UM
PULSE = GaussianPulse(F, F / 4, delay=3.0)
DISC = Structure("disc", Cylinder((0.05 * UM, 0.0), 0.17 * UM), Medium(4.0))
BALL = Structure("disc", Sphere((0.05 * UM, 0.0, 0.0), 0.12 * UM), Medium(4.0))
GUIDE = Structure("guide", Box((0.0, 0.0, 0.0), (np.inf, 0.4 * UM, 0.3 * UM)), Medium(12.0))
DIPOLE = Dipole("s", (-0.1 * UM, 0.1 * UM), "ez", PULSE, 1e-8)
WAVE = GaussianPulse(F / 1.55, F / 9, delay=3.0)
ANGLES = np.full(5, np.pi / 2), np.arange(5.0)
CASES = {
    "far field": (
        {"sources": [DIPOLE], "monitors": [FarFieldMonitor("m", [F], size=(0.6 * UM, 0.6 * UM))]},
        lambda r: jnp.sum(r.radiation("m", *ANGLES)),
    ),
    "energy": (
        {"sources": [DIPOLE], "monitors": [EnergyMonitor("m", size=(0.7 * UM, 0.7 * UM))], "smoothing": "diagonal"},
        lambda r: 1e15 * r.signal("m", "electric")[-1] + jnp.sum(r.signal("m", "outflow")[:60]),
    ),
    "snapshot": (
        {"sources": [DIPOLE], "monitors": [SnapshotMonitor("m", [3e-15, 6e-15])]},
        lambda r: jnp.sum(r.field("m", "ez") ** 2),
    ),
    "beam": (
        {
            "grid": Grid.uniform((1.3 * UM, 3 * UM), D),
            "sources": [GaussianBeam("s", "+x", "ez", PULSE, (-0.3 * UM, 0.0), 0.5 * UM)],
            "monitors": [FluxMonitor("m", [F], (0.3 * UM,))],
        },
        lambda r: r.flux("m")[0],
    ),
    "oblique wave": (
        {
            "grid": Grid.uniform((1.3 * UM, 0.6 * UM), D),
            "sources": [PlaneWave("s", "+x", "ez", PULSE, size=(0.8 * UM, None))],
            "monitors": [FluxMonitor("m", [F], (0.3 * UM,))],
            "boundaries": Boundaries(x=PML(4), y=Bloch(2e6)),
        },
        lambda r: r.flux("m")[0],
    ),
    "guided mode in three dimensions": (
        {
            "grid": Grid.uniform((1.2 * UM, 1.0 * UM, 0.9 * UM), D),
            "structures": [GUIDE, BALL],
            "sources": [ModeSource("s", "+x", (-0.3 * UM, 0.0, 0.0), WAVE)],
            "monitors": [ModeMonitor("m", [F / 1.55], (0.3 * UM, 0.0, 0.0))],
            "background": Medium(2.0),
            "duration": 13e-15,
        },
        lambda r: jnp.sum(jnp.abs(r.modes("m")[0]) ** 2),
    ),
}


@pytest.mark.parametrize("name", [n if n == "beam" else pytest.param(n, marks=pytest.mark.slow) for n in CASES])
def test_gradient_equals_central_differences(name, x64):
    change, objective = CASES[name]
    options = {
        "grid": Grid.uniform((1.3 * UM, 1.2 * UM), D),
        "structures": [DISC],
        "boundaries": Boundaries.all(PML(4)),
        "duration": 7.8e-15,
        "dtype": "float64",
    }
    sim = Simulation(Scene(**(options | change)), gradient="reversible")
    params = {"disc.shape.radius": 0.12 * UM if "guided" in name else 0.17 * UM, "disc.medium.permittivity": 4.0}
    turn = {"disc.shape.radius": 0.03 * UM, "disc.medium.permittivity": 1.1}
    if name == "beam":
        params |= {"s.waist": 0.5 * UM, "s.amplitude": 1.0}
        turn |= {"s.waist": 0.1 * UM, "s.amplitude": 0.3}
    value = jax.jit(lambda p: objective(sim(p)))
    grad = jax.jit(jax.grad(lambda p: objective(sim(p))))(params)
    slope = float(sum(grad[k] * turn[k] for k in params))
    best = np.inf
    for h in (1e-5, 3e-6, 1e-6):  # the largest step that crosses no kink of a fill fraction wins
        ahead, behind = (value({k: params[k] + s * h * turn[k] for k in params}) for s in (1, -1))
        best = min(best, abs(float((ahead - behind) / (2 * h)) / slope - 1))
    assert best < 1e-6
