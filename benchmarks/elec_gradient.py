"""Time and memory of a gradient through FDTD against the forward run: 64^3 cells, float32, derivative by every cell's density.

python benchmarks/elec_gradient.py [cells a side] [steps]
"""

import os
import sys
import time


def main() -> None:
    os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    import jax
    import jax.numpy as jnp
    import numpy as np

    from sciax.elec import (
        C0,
        PML,
        Boundaries,
        Box,
        Density,
        Dipole,
        FieldMonitor,
        GaussianPulse,
        Grid,
        Scene,
        Simulation,
        Structure,
    )

    n = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 144
    d, f = 50e-9, C0 / 1.5e-6
    grid = Grid.uniform((n * d,) * 3, d)
    for label, faces in (("conducting walls", "pec"), ("CPML on six faces", PML(8))):
        rho = np.full((16, 16, 16), 0.5, np.float32)
        scene = Scene(
            grid,
            [Structure("design", Box((0.0, 0.0, 0.0), (16.3 * d,) * 3), Density(rho, 1.0, 3.0))],
            [Dipole("s", (-12 * d, 0.0, 0.0), "ez", GaussianPulse(f, f / 3, delay=3.0))],
            [FieldMonitor("m", [f], (12 * d, 0.0, 0.0), (0.0, 16 * d, 16 * d))],
            Boundaries.all(faces),
            duration=steps * 0.95 * grid.courant_limit(),
            smoothing="diagonal",
        )
        times: dict[str, float] = {}
        memory: dict[str, float] = {}
        for method in ("forward", "reversible", "checkpoint", "plain"):
            sim = Simulation(scene, gradient="plain" if method == "forward" else method, implementation="xla")

            def objective(r, sim=sim):
                return jnp.sum(jnp.abs(sim({"design.medium.density": r}).field("m", "ez")) ** 2)

            call = jax.jit(objective if method == "forward" else jax.value_and_grad(objective)).lower(rho).compile()
            memory[method] = call.memory_analysis().temp_size_in_bytes / 1e6
            jax.block_until_ready(call(rho))
            best = 1e9
            for _ in range(3):
                t = time.perf_counter()
                jax.block_until_ready(call(rho))
                best = min(best, time.perf_counter() - t)
            times[method] = best
        fields = 24 * n**3 / 1e6
        print(f"{label}, {n}^3 cells, {scene.steps} steps; fields {fields:.1f} MB")
        for method, t in times.items():
            print(
                f"  {method:12s} {t:7.3f} s  {t / times['forward']:5.2f} of forward   {memory[method]:8.1f} MB of temporaries"
            )


if __name__ == "__main__":
    main()
