"""Shallow-water steps per second against dinosaur (SIL3, FFT transforms), float32, same resolution and time step.

python benchmarks/earth_shallow_water.py
"""

import importlib.util
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from sciax.earth.dynamics import ShallowWater, galewsky, gauss_grid

STEPS = 50


def best(function, repeats=5):
    begin = time.perf_counter()
    function()
    first = time.perf_counter() - begin
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return min(times) / STEPS * 1e3, first - min(times)


def ours(truncation, minutes):
    grid = gauss_grid(truncation)
    case = galewsky(grid.latitude, grid.longitude)
    model = ShallowWater(truncation, damping_hours=6.0, dtype=jnp.float32)
    state = model.state(case["u"], case["v"], case["h"])
    advance = eqx.filter_jit(lambda model, state: model.advance(state, 60.0 * minutes, STEPS))
    return best(lambda: jax.block_until_ready(advance(model, state)))


def dinosaur(truncation, minutes):
    from dinosaur import coordinate_systems as cs
    from dinosaur import (
        layer_coordinates,
        scales,
        shallow_water,
        shallow_water_states,
        time_integration,
        units,
        xarray_utils,
    )
    from dinosaur import spherical_harmonic as sh

    specs = units.SimUnits.from_si()
    grid = getattr(sh.Grid, f"T{truncation}")(spherical_harmonics_impl=sh.FastSphericalHarmonics)
    coords = cs.CoordinateSystem(grid, layer_coordinates.LayerCoordinates(1))
    initial, aux = shallow_water_states.barotropic_instability_tc(coords, specs)
    state = initial(jax.random.PRNGKey(0))
    equation = shallow_water.ShallowWaterEquations(
        coords=coords,
        physics_specs=specs,
        orography=np.zeros(coords.horizontal.modal_shape, np.float32),
        reference_potential=aux[xarray_utils.REF_POTENTIAL_KEY],
    )
    dt = specs.nondimensionalize(minutes * scales.units.minute)
    step = time_integration.imex_rk_sil3(equation, dt)
    step = time_integration.step_with_filters(step, [time_integration.exponential_step_filter(coords.horizontal, dt)])
    run = jax.jit(time_integration.repeated(step, STEPS))
    return best(lambda: jax.block_until_ready(run(state)))


def main():
    there = importlib.util.find_spec("dinosaur") is not None
    if not there:
        print("dinosaur is not installed: its column is left out")
    for truncation, minutes in ((42, 20), (85, 10)):
        mine, compile_s = ours(truncation, minutes)
        line = f"T{truncation}: sciax {mine:.2f} ms/step, compile {compile_s:.1f} s"
        if there:
            peer, peer_compile = dinosaur(truncation, minutes)
            line += f" | dinosaur {peer:.2f} ms/step, compile {peer_compile:.1f} s | speed-up {peer / mine:.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
