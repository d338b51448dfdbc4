"""Finite elements against scikit-fem in one process: 50 625 unknowns of -div(k grad u) = f on the unit square, warm.

    python benchmarks/science_fem.py

Both assemble the matrix and the load and solve, on a mesh and with index tables made before (their cost is printed as the
cold line). Every repetition has another coefficient, so that no kept factor is reused. Best of five.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax
import jax.numpy as jnp
import numpy as np

REPEATS = 5


def best(function) -> float:
    times = []
    for i in range(REPEATS + 1):
        start = time.perf_counter()
        function(1.0 + 0.1 * i)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def ours(order: int, cells: int, solver: str):
    from sciax.science import Dirichlet, Field, Parameter, Problem, Rectangle, div, grad, solve

    u, k = Field("u"), Parameter("k", 1.0)

    def exact(x):
        return jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])

    problem = Problem(Rectangle(), -div(k * grad(u)) == (lambda x: 2 * jnp.pi**2 * exact(x)), Dirichlet(u, 0))
    options = {"order": order, "cells": cells, "solver": solver}
    start = time.perf_counter()
    solution = solve(problem, **options)
    jax.block_until_ready(solution.coefficients)
    cold = time.perf_counter() - start
    error = float(solution.error(exact, degree=2 * order))
    warm = best(lambda value: jax.block_until_ready(solve(problem.with_(k=value), **options).coefficients))
    fem = solution.fem
    state = fem._lift(fem.arrays, fem.values_of(problem), None)
    assembly = best(
        lambda value: jax.block_until_ready(fem._jit_assemble(fem.arrays, {"k": jnp.asarray(value)}, state))
    )
    gradient = jax.value_and_grad(lambda value: solve(problem.with_(k=value), **options).integrate(u))
    adjoint = best(lambda value: jax.block_until_ready(gradient(value)))
    return warm, cold, error, assembly, adjoint


def peer(order: int, cells: int):
    import skfem
    from skfem.helpers import dot
    from skfem.helpers import grad as slope

    @skfem.BilinearForm
    def stiffness(u, v, w):
        return w.k * dot(slope(u), slope(v))

    @skfem.LinearForm
    def load(v, w):
        return 2 * np.pi**2 * np.sin(np.pi * w.x[0]) * np.sin(np.pi * w.x[1]) * v

    axis = np.linspace(0, 1, cells + 1)
    start = time.perf_counter()
    mesh = skfem.MeshTri.init_tensor(axis, axis)
    basis = skfem.Basis(mesh, skfem.ElementTriP1() if order == 1 else skfem.ElementTriP2())
    setup = time.perf_counter() - start
    fixed = basis.get_dofs()

    def run(value):
        matrix = stiffness.assemble(basis, k=value)
        return skfem.solve(*skfem.condense(matrix, load.assemble(basis), D=fixed))

    return best(run), setup


def main() -> None:
    try:
        import skfem  # noqa: F401
    except ModuleNotFoundError:
        print("scikit-fem is not installed: pip install 'sciax[bench]'")
        return
    with jax.enable_x64(True):
        for order, cells in ((1, 224), (2, 112)):
            theirs, setup = peer(order, cells)
            print(f"P{order}, h=1/{cells}: scikit-fem {theirs * 1e3:.0f} ms (mesh and basis {setup * 1e3:.0f} ms)")
            for solver in ("direct", "amg"):
                warm, cold, error, assembly, adjoint = ours(order, cells, solver)
                print(
                    f"    sciax {solver:6s} {warm * 1e3:.0f} ms: ratio {warm / theirs:.2f}; assembly {assembly * 1e3:.0f} ms, with "
                    f"gradient {adjoint / warm:.2f} solves, cold {cold:.1f} s, L2 error {error:.3e}"
                )


if __name__ == "__main__":
    main()
