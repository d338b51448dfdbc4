"""Mode converter from scratch: fundamental to second mode in a square of 1.6 um, features of 120 nm enforced.

    python benchmarks/elec_converter.py [--iterations 28] [--seed 1] [--out design.csv] [--gds design.gds]

Prints worst reflection and transmission over 1260-1300 nm on the grid of the design and on one twice as fine, the measured
smallest features, and the time.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from sciax.elec import Simulation, design, gds
from sciax.elec.demo import converter_powers, converter_scene

PIXELS, PIXEL, RADIUS, LENGTH = 80, 20e-9, 7.0, 6.0  # filter radius and smallest feature in pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=28, help="at each of four steepnesses")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="")
    parser.add_argument("--gds", default="")
    options = parser.parse_args()
    n, width = PIXELS, int(np.ceil(RADIUS))
    c = (np.arange(n) + 0.5) * PIXEL - 0.8e-6
    guide = (np.abs(c) < 0.2e-6) * 1.0
    x, y = np.meshgrid(c, c, indexing="ij")
    # Half grey; a tilt breaks the mirror symmetry, at which the power in the odd mode has no slope.
    tilt = np.sin(np.pi * x / 0.8e-6 + options.seed) * np.sign(y) * np.exp(-((y / 0.5e-6) ** 2))
    start = np.clip(0.5 + 0.15 * tilt + 0.1 * (np.abs(y) < 0.3e-6), 0, 1)
    simulation = Simulation(converter_scene(start, PIXEL), gradient="reversible")

    def filtered(x):
        return design.conic_filter(design.with_border(x, width, low_x=guide, high_x=guide), RADIUS)

    def density(x, beta):
        return design.project(filtered(x), beta)[width:-width, width:-width]

    @jax.jit
    def objective(x, beta):
        def value(x):
            wanted, reflected = converter_powers(simulation({"design.medium.density": density(x, beta)}))
            return jnp.mean(wanted) - 2 * jnp.mean(reflected)

        return jax.value_and_grad(value)(x)

    bound = design.length_bound((n, n), RADIUS)

    @jax.jit
    def limits(x, beta):
        def g(x):
            f = filtered(x)
            found = design.length_violations(f, design.project(f, beta), RADIUS, solid=LENGTH, void=LENGTH)
            return jnp.stack(found) / bound - 1

        return g(x), jax.jacrev(g)(x)

    def constraints(x, beta):
        if beta < 30:  # the topology is found first
            return np.zeros(0), np.zeros((0, n, n))
        return limits(jnp.asarray(x, jnp.float32), beta)

    begin, cpu = time.perf_counter(), time.process_time()
    best, history = design.maximise(
        objective,
        start,
        constraints=constraints,
        betas=(8.0, 16.0, 32.0, 64.0),
        iterations=options.iterations,
        move=0.2,
        span=0.5,
        feasible=0.05,
        price=10.0,
    )
    final = (np.asarray(density(jnp.asarray(best, jnp.float32), 64.0)) > 0.5).astype(float)
    frame = np.asarray(design.with_border(jnp.asarray(final), 20, low_x=guide, high_x=guide))
    solid, void = design.feature_size(frame, PIXEL)
    print(f"{len(history)} evaluations, {time.process_time() - cpu:.0f} CPU s, {time.perf_counter() - begin:.0f} s")
    print(f"smallest solid {solid * 1e9:.0f} nm, smallest void {void * 1e9:.0f} nm")
    for spacing in (PIXEL, PIXEL / 2):
        powers = converter_powers(Simulation(converter_scene(final, spacing, tail=150e-15)).run(chunks=1))
        wanted, reflected = (10 * np.log10(np.asarray(p)) for p in powers)
        print(f"{spacing * 1e9:.0f} nm: worst transmission {wanted.min():.2f} dB, reflection {reflected.max():.1f} dB")
    if options.out:
        np.savetxt(options.out, final, fmt="%d", delimiter=",")
    if options.gds:
        gds.write_gds(options.gds, final, pixel=PIXEL, smooth=False)


if __name__ == "__main__":
    main()
