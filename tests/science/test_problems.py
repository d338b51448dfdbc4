"""Every named problem by every method it names: against its exact solution and against each other."""

import jax
import numpy as np
import pytest

from sciax.core.errors import ConvergenceError, InputError, SingularError, UnsupportedError
from sciax.science import (
    Dirichlet,
    Field,
    Initial,
    Interval,
    Neumann,
    Periodic,
    Problem,
    Rectangle,
    compare,
    div,
    dt,
    grad,
    solve,
)
from sciax.science.problems import names, problem

pytestmark = pytest.mark.usefixtures("x64")

# The rest are run with -m slow: they exercise the same code on other equations.
FAST = ("poisson_1d", "mixed_conditions", "bratu", "helmholtz", "periodic_heat")


def each():
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in names()]


def size(values):
    return float(np.sqrt(np.mean(np.asarray(values) ** 2)))


def with_network():
    return [name for name in names() if "pinn" in problem(name).methods]


@pytest.mark.parametrize("name", each())
def test_methods_agree(name):
    # networks train for ten seconds: they have their own test, below
    check_agreement(problem(name), [m for m in problem(name).methods if m != "pinn"])


@pytest.mark.slow
@pytest.mark.parametrize("name", with_network())
def test_networks_agree(name):
    check_agreement(problem(name), list(problem(name).methods))


def check_agreement(entry, methods):
    solutions = {m: solve(entry.problem, method=m, **entry.methods[m]) for m in methods}
    points = np.random.default_rng(0).uniform(
        entry.problem.domain.lower, entry.problem.domain.upper, (300, entry.problem.dim)
    )
    if entry.exact is not None:
        truth = np.asarray(jax.vmap(entry.exact)(points))
        for method, solution in solutions.items():
            assert size(solution(points, entry.unknown) - truth) < entry.agreement * size(truth), method
    chosen = list(solutions)
    for a in chosen:
        for b in chosen[chosen.index(a) + 1 :]:
            found = compare(solutions[a], solutions[b], field=entry.unknown, points=points)
            assert found.relative < entry.agreement, str(found)


def test_twenty_problems_by_two_methods_and_five_by_four():
    from sciax.science.problems import problems

    every = problems().values()
    assert sum(len(p.methods) >= 2 for p in every) >= 20
    assert sum(len(p.methods) >= 4 for p in every) >= 5


def test_unknown_problem_is_named():
    with pytest.raises(InputError, match="did you mean 'bratu'"):
        problem("bratuu")


u = Field("u")


@pytest.mark.parametrize("order", [2, 4])
def test_observed_order_of_differences(order):
    entry = problem("poisson_1d")
    errors = [float(solve(entry.problem, method="fdm", order=order, cells=c).error(entry.exact)) for c in (32, 64)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_spectral_is_exact_to_rounding():
    entry = problem("poisson_1d")
    s = solve(entry.problem, method="spectral", cells=24)
    assert float(s.error(entry.exact)) < 1e-12
    assert float(s.integrate(u)) == pytest.approx(2 / np.pi, abs=1e-12)


@pytest.mark.parametrize("method", ["fem", "spectral"])
def test_time_stepping_is_of_third_order(method):
    entry = problem("heat")
    options = {"fem": {"order": 3, "cells": 24}, "spectral": {"cells": 20}}[method]
    truth = np.exp(-(np.pi**2) * 0.1)
    errors = [
        float(solve(entry.problem, method=method, **options, time=(0, 0.1), steps=n)([0.5])) - truth for n in (6, 12)
    ]
    assert np.log2(abs(errors[0] / errors[1])) == pytest.approx(3.0, abs=0.15)


@pytest.mark.parametrize("method", ["fem", "spectral", "fdm"])
@pytest.mark.parametrize("kind", ["nonlinear", "transient"])
def test_gradients_through_newton_and_time(method, kind):
    from sciax.science import Parameter, apply

    k = Parameter("k", 1.0)
    small = {"fem": {"order": 2, "cells": 6}, "spectral": {"cells": 8}, "fdm": {"cells": 8}}[method]
    if kind == "nonlinear":
        p = Problem(Interval(), -div((k + u**2) * grad(u)) == apply(jax.numpy.exp, u), Dirichlet(u, 0.1))
    else:
        p = Problem(Interval(), dt(u) - div(k * grad(u)) == 0, Dirichlet(u, 0), Initial(u, lambda x: x[0] * (1 - x[0])))
        small = {**small, "time": (0, 0.2), "steps": 4}
    f = lambda v: solve(p.with_(k=v), method=method, **small).integrate(u)  # noqa: E731
    h = 1e-3
    values = [float(f(1.0 + i * h)) for i in (-2, -1, 1, 2)]
    slope = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
    assert float(jax.grad(f)(1.0)) == pytest.approx(slope, rel=1e-7)


def test_methods_refuse_what_they_cannot_do():
    from sciax.science import box_mesh

    ring = Problem(Interval(), dt(u) - div(grad(u)) == 0, Periodic(u), Initial(u, 0))
    with pytest.raises(UnsupportedError, match="method='fem'"):
        solve(ring, method="fdm", time=(0, 1))
    meshed = Problem(box_mesh([0, 0], [1, 1], 2), -div(grad(u)) == 1, Dirichlet(u, 0))
    with pytest.raises(UnsupportedError, match="method='fem'"):
        solve(meshed, method="spectral")
    with pytest.raises(UnsupportedError, match="fewer cells"):
        solve(Problem(Rectangle(), -div(grad(u)) == 1, Dirichlet(u, 0)), method="fdm", cells=200)


@pytest.mark.parametrize("method", ["fem", "spectral", "fdm"])
def test_bad_problems_are_refused_by_every_method(method):
    with pytest.raises(InputError, match="no condition on a part"):
        solve(Problem(Interval(), -div(grad(u)) == 1, Dirichlet(u, 0, on="left")), method=method)
    with pytest.raises(SingularError):
        solve(Problem(Interval(), -div(grad(u)) == 1, Neumann(u, 0)), method=method)
    with pytest.raises(InputError, match="initial condition"):
        solve(Problem(Interval(), dt(u) - div(grad(u)) == 0, Dirichlet(u, 0)), method=method, time=(0, 1))
    with pytest.raises(InputError, match="time="):
        solve(Problem(Interval(), dt(u) - div(grad(u)) == 0, Dirichlet(u, 0), Initial(u, 0)), method=method)
    # no solution above the fold at lam = 3.51
    from sciax.science import apply

    folded = Problem(Interval(), div(grad(u)) + 10 * apply(jax.numpy.exp, u) == 0, Dirichlet(u, 0))
    with pytest.raises(ConvergenceError) as caught:
        solve(folded, method=method)
    assert caught.value.history
