"""Yee steps: our two implementations beside a C loop in two passes and in one, in one process, threads alike.

    python benchmarks/elec_yee.py [cells a side] [--meep] [--fdtdx PYTHON]

Prints million cell updates a second (best of several) and ratios. The C loops are compiled by `cc` on the spot. Meep runs under
the system's Python (Debian: python3-meep), fdtdx under the interpreter that is named.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

C_LOOPS = r"""
#include <stddef.h>
#define AT(i, j, k) (((size_t)(i)*n + (j)) * n + (k))
typedef float real;
#define FIELDS real *ex, real *ey, real *ez, real *hx, real *hy, real *hz
static void h_rows(int n, real c, FIELDS, int i, int j) {
  real *restrict X = hx + AT(i, j, 0), *restrict Y = hy + AT(i, j, 0), *restrict Z = hz + AT(i, j, 0);
  const real *a = ex + AT(i, j, 0),
             *b = ey + AT(i, j, 0), *d = ez + AT(i, j, 0), 
             *aj = ex + AT(i, j + 1, 0), *dj = ez + AT(i, j + 1, 0),
             *bi = ey + AT(i + 1, j, 0), *di = ez + AT(i + 1, j, 0);
#pragma omp simd
  for (int k = 0; k < n - 1; k++) {
    X[k] -= c * ((dj[k] - d[k]) - (b[k + 1] - b[k]));
    Y[k] -= c * ((a[k + 1] - a[k]) - (di[k] - d[k]));
    Z[k] -= c * ((bi[k] - b[k]) - (aj[k] - a[k]));
  }
}
static void e_rows(int n, real c, FIELDS, int i, int j) {
  real *restrict X = ex + AT(i, j, 0), *restrict Y = ey + AT(i, j, 0), *restrict Z = ez + AT(i, j, 0);
  const real *a = hx + AT(i, j, 0),
             *b = hy + AT(i, j, 0), *d = hz + AT(i, j, 0), 
             *aj = hx + AT(i, j - 1, 0), *dj = hz + AT(i, j - 1, 0),
             *bi = hy + AT(i - 1, j, 0), *di = hz + AT(i - 1, j, 0);
#pragma omp simd
  for (int k = 1; k < n - 1; k++) {
    X[k] += c * ((d[k] - dj[k]) - (b[k] - b[k - 1]));
    Y[k] += c * ((a[k] - a[k - 1]) - (d[k] - di[k]));
    Z[k] += c * ((b[k] - bi[k]) - (a[k] - aj[k]));
  }
}
void two_pass(int n, int steps, real c, real *ex, real *ey, real *ez, real *hx, real *hy, real *hz) {
  for (int s = 0; s < steps; s++) {
    for (int i = 0; i < n - 1; i++) for (int j = 0; j < n - 1; j++) h_rows(n, c, ex, ey, ez, hx, hy, hz, i, j);
    for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) e_rows(n, c, ex, ey, ez, hx, hy, hz, i, j);
  }
}
void one_pass(int n, int steps, real c, real *ex, real *ey, real *ez, real *hx, real *hy, real *hz) {
  for (int s = 0; s < steps; s++)
    for (int i = 0; i < n - 1; i++) for (int j = 0; j < n - 1; j++) {
      h_rows(n, c, ex, ey, ez, hx, hy, hz, i, j);
      if (i && j) e_rows(n, c, ex, ey, ez, hx, hy, hz, i, j);
    }
}
"""

MEEP = """
import meep as mp, sys, time
mp.verbosity(0)
n = int(sys.argv[1])
sim = mp.Simulation(cell_size=mp.Vector3(n / 10, n / 10, n / 10), resolution=10,
                    sources=[mp.Source(mp.GaussianSource(0.5, fwidth=0.3), component=mp.Ez, center=mp.Vector3())])
sim.init_sim(); sim.fields.step()
best = 1e9
for _ in range(3):
    t = time.perf_counter()
    for _ in range(8): sim.fields.step()
    best = min(best, time.perf_counter() - t)
print("RATE", 1e-6 * n**3 * 8 / best)
"""

FDTDX = """
import sys, time, jax, jax.numpy as jnp, fdtdx
n, steps = int(sys.argv[1]), 10
d = 50e-9
cfg = fdtdx.SimulationConfig(time=1e-15, grid=fdtdx.UniformGrid(spacing=d), dtype=jnp.float32)
cfg = cfg.aset("time", cfg.time_step_duration * steps)
vol = fdtdx.SimulationVolume(partial_real_shape=(n * d,) * 3)
bound = fdtdx.BoundaryConfig.from_uniform_bound(thickness=10, boundary_type=sys.argv[2])
walls, constraints = fdtdx.boundary_objects_from_config(bound, vol)
key = jax.random.PRNGKey(0)
placed = [vol, *walls.values()]
oc, arr, par, cfg, info = fdtdx.place_objects(object_list=placed, config=cfg, constraints=list(constraints), key=key)
arr, oc, info = fdtdx.apply_params(arr, oc, par, key)
f = jax.jit(lambda a: fdtdx.run_fdtd(arrays=a, objects=oc, config=cfg, key=key)[1].fields.E)
jax.block_until_ready(f(arr))
best = 1e9
for _ in range(3):
    t = time.perf_counter(); jax.block_until_ready(f(arr)); best = min(best, time.perf_counter() - t)
print("RATE", 1e-6 * n**3 * cfg.time_steps_total / best)
"""


def compiled_loops(folder: str):
    source, library = Path(folder) / "loops.c", Path(folder) / "loops.so"
    source.write_text(C_LOOPS)
    subprocess.run(
        ["cc", "-O3", "-march=native", "-fopenmp-simd", "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    return ctypes.CDLL(str(library))


def best_of(call, cells: int, steps: int, repeats: int = 6) -> float:
    """Million cell updates a second."""
    call()
    best = min(_timed(call) for _ in range(repeats))
    return 1e-6 * cells * steps / best


def _rate(text: str) -> float:
    return float(next(line for line in text.splitlines() if line.startswith("RATE")).split()[1])


def _timed(call) -> float:
    t = time.perf_counter()
    call()
    return time.perf_counter() - t


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 128
    if "--two" not in sys.argv:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    import jax
    import jax.numpy as jnp
    import numpy as np

    from sciax.core.ops.yee import (
        Coefficients,
        Slab,
        State,
        advance_e,
        advance_h,
        fence,
        initial_state,
        leapfrog_native,
        native_available,
    )

    steps, cells = 24, n**3
    # noise, not a point: a wave front running into zeros leaves subnormal numbers, which slow the C loops and not XLA
    rng = np.random.default_rng(0)
    start = [rng.standard_normal((n, n, n)).astype(np.float32) for _ in range(6)]
    rate: dict[str, float] = {}

    with tempfile.TemporaryDirectory() as folder:
        library = compiled_loops(folder)
        arrays = [a.copy() for a in start]
        pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]
        for name in ("two_pass", "one_pass"):
            function = getattr(library, name)
            rate[f"C, {name}"] = best_of(lambda: function(n, steps, ctypes.c_float(0.5), *pointers), cells, steps)  # noqa: B023

    none = (None, None, None)
    one = jnp.asarray(1.0, jnp.float32)
    half = jnp.asarray(0.5, jnp.float32)

    def gain(component, full):
        m = np.ones((n, n, n) if full else (1, 1, 1), np.float32)
        for a in range(3):
            if a != component:
                line = np.ones(n, np.float32)
                line[0] = 0
                m = m * line.reshape([-1 if b == a else 1 for b in range(3)])
        return jnp.asarray(0.5 * m)

    def coefficients(full, slabs=()):
        return Coefficients(
            none,
            tuple(gain(c, full) for c in range(3)),
            none,
            (half,) * 3,
            (one,) * 3,
            (one,) * 3,
            none,
            tuple(slabs),
            none,
        )

    def slabs():
        b, c = jnp.full(10, 0.8, jnp.float32), jnp.full(10, -0.1, jnp.float32)
        return [Slab(a, s, 10, b, c, b, c) for a in range(3) for s in (0, n - 10)]

    def fresh(k):
        s = initial_state((n, n, n), jnp.float32, (True,) * 3, (True,) * 3, k.slabs, 0)
        return State(tuple(map(jnp.asarray, start[:3])), tuple(map(jnp.asarray, start[3:])), s.psi_e, s.psi_h)

    def chain(step, k):
        box = [fresh(k)]

        def call():
            box[0] = step(box[0], k)
            jax.block_until_ready(box[0])

        return call

    def xla(s, k):
        return jax.lax.fori_loop(0, steps, lambda _, v: fence(advance_e(fence(advance_h(v, k)), k)), s)

    vacuum, absorbing, dielectric = coefficients(False), coefficients(False, slabs()), coefficients(True)
    t = time.perf_counter()
    program = jax.jit(xla, donate_argnums=0).lower(fresh(vacuum), vacuum).compile()
    compile_time = time.perf_counter() - t
    temporaries = program.memory_analysis().temp_size_in_bytes / (24 * cells)
    rate["XLA, vacuum"] = best_of(chain(program, vacuum), cells, steps, 3)
    t = time.perf_counter()
    program = jax.jit(xla, donate_argnums=0).lower(fresh(absorbing), absorbing).compile()
    compile_absorbing = time.perf_counter() - t
    rate["XLA, CPML on six faces"] = best_of(chain(program, absorbing), cells, steps, 3)
    if native_available():

        def native(threads, levels, uniform):
            walls = (0.5, (True, True, True)) if uniform else None
            return jax.jit(
                lambda s, k: leapfrog_native(s, k, steps, threads=threads, levels=levels, uniform=walls)[0],
                donate_argnums=0,
            )

        for threads in (1, 2) if "--two" in sys.argv else (1,):
            for levels in (1, 2, 4, 6):
                rate[f"native, vacuum, {threads} thread, {levels} levels"] = best_of(
                    chain(native(threads, levels, True), vacuum), cells, steps
                )
            rate[f"native, three permittivities, {threads} thread"] = best_of(
                chain(native(threads, 4, False), dielectric), cells, steps
            )
            rate[f"native, CPML on six faces, {threads} thread"] = best_of(
                chain(native(threads, 4, True), absorbing), cells, steps
            )
    else:
        print("native kernel: not built, skipped")
    if "--meep" in sys.argv:
        run = subprocess.run(["/usr/bin/python3", "-c", MEEP, str(n)], capture_output=True, text=True)
        if run.returncode == 0:
            rate["Meep, float64, metallic walls"] = _rate(run.stdout)
        else:
            print("Meep: not installed under /usr/bin/python3, skipped")
    if "--fdtdx" in sys.argv:
        python = sys.argv[sys.argv.index("--fdtdx") + 1]
        run = subprocess.run([python, "-c", FDTDX, str(n), "pml"], capture_output=True, text=True)
        if run.returncode == 0:
            rate["fdtdx, float32, PML"] = _rate(run.stdout)
        else:
            print("fdtdx: does not run under", python, run.stderr[-300:])
    print(f"{n}^3 cells, float32; XLA compile {compile_time:.2f} s (CPML {compile_absorbing:.2f} s)")
    print(f"temporaries of the XLA step: {temporaries:.1%} of the fields")
    one, two = rate["C, one_pass"], rate["C, two_pass"]
    for name, value in rate.items():
        print(f"{name:45s} {value:8.1f} Mcells/s   {value / one:.2f} of one-pass C   {value / two:.2f} of two-pass C")


if __name__ == "__main__":
    main()
