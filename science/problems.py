"""Named problems, each with the methods that solve it and how far these agree.

    entry = problems()["bratu"]
    a, b = (solve(entry.problem, method=m, **entry.methods[m]) for m in ("fem", "spectral"))
    compare(a, b).relative < entry.agreement

Errors and differences are relative, in L2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.science.geometry import Box, Interval, Rectangle
from sciax.science.pde import (
    Dirichlet,
    Field,
    Initial,
    Neumann,
    Periodic,
    Problem,
    Robin,
    Time,
    apply,
    coordinates,
    div,
    dot,
    dt,
    grad,
    isotropic,
    sym,
    trace,
)


@dataclass(frozen=True)
class NamedProblem:
    """A problem with what is known of it.

    Attributes:
        name, about: what it is.
        problem: the statement.
        methods: method -> options with which `agreement` holds.
        agreement: largest relative L2 difference between any two of the methods.
        exact: the solution (at the final time), a function of x, where there is one.
        source: where the problem or its solution is from.
    """

    name: str
    about: str
    problem: Problem
    methods: Mapping[str, Mapping[str, Any]]
    agreement: float
    exact: Callable[..., Any] | None = None
    source: str = "manufactured"
    unknown: str = field(default="u")


_ALL: dict[str, Callable[[], NamedProblem]] = {}


def _named(function: Callable[[], NamedProblem]) -> Callable[[], NamedProblem]:
    made = cache(function)
    _ALL[function.__name__] = made
    return made


def problems() -> dict[str, NamedProblem]:
    """All named problems."""
    return {name: make() for name, make in sorted(_ALL.items())}


def names() -> list[str]:
    return sorted(_ALL)


def problem(name: str) -> NamedProblem:
    """One by name.

    Raises:
        InputError: no such problem, with the nearest name.
    """
    from sciax.core.errors import InputError, did_you_mean

    if name not in _ALL:
        raise InputError(f"no problem is named {name!r}", remedy=did_you_mean(name, _ALL))
    return _ALL[name]()


u = Field("u")
LINE = {"fem": {"order": 3, "cells": 48}, "spectral": {"cells": 32}, "fdm": {"order": 6, "cells": 96}}
NET = {"width": 10, "depth": 2, "points": 200, "adam": 0, "optimizer": "lm", "iterations": 60, "renew": 20}
LINE_NET = {**LINE, "pinn": NET}
PLANE = {"fem": {"order": 2, "cells": 20}, "spectral": {"cells": 16}, "fdm": {"order": 4, "cells": 24}}
PLANE_NET = {**PLANE, "pinn": {**NET, "width": 12, "points": 500}}


def _timed(base: Mapping[str, Mapping[str, Any]], end: float, steps: int) -> dict[str, dict[str, Any]]:
    return {name: {**options, "time": (0.0, end), "steps": steps} for name, options in base.items()}


def _wave(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


@_named
def poisson_1d() -> NamedProblem:
    p = Problem(Interval(), -div(grad(u)) == (lambda x: jnp.pi**2 * _wave(x)), Dirichlet(u, 0))
    return NamedProblem("poisson_1d", "-u'' = f", p, LINE_NET, 1e-6, _wave)


@_named
def poisson_2d() -> NamedProblem:
    p = Problem(Rectangle(), -div(grad(u)) == (lambda x: 2 * jnp.pi**2 * _wave(x)), Dirichlet(u, 0))
    return NamedProblem("poisson_2d", "-lap u = f on the unit square", p, PLANE, 1e-4, _wave)


@_named
def poisson_3d() -> NamedProblem:
    p = Problem(Box(), -div(grad(u)) == (lambda x: 3 * jnp.pi**2 * _wave(x)), Dirichlet(u, 0))
    methods = {"fem": {"order": 2, "cells": 6, "kind": "hex"}, "spectral": {"cells": 8}}
    return NamedProblem("poisson_3d", "-lap u = f on the unit cube", p, methods, 2e-3, _wave)


@_named
def torsion() -> NamedProblem:
    p = Problem(Rectangle(), -div(grad(u)) == 1, Dirichlet(u, 0))
    return NamedProblem(
        "torsion", "Prandtl's stress function of a square bar", p, PLANE, 3e-4, None, "Timoshenko & Goodier"
    )


@_named
def laplace_harmonic() -> NamedProblem:
    def exact(x):
        return jnp.exp(x[0]) * jnp.sin(x[1])

    p = Problem(Rectangle(), div(grad(u)) == 0, Dirichlet(u, exact))
    return NamedProblem(
        "laplace_harmonic", "a harmonic function from its boundary values", p, PLANE_NET, 1e-5, exact, "closed form"
    )


@_named
def variable_conductivity() -> NamedProblem:
    def k(x):
        return 1 + x[0] ** 2 + 0.5 * jnp.sin(3 * x[1])

    def f(x):
        flux = lambda y: k(y) * jax.grad(_wave)(y)  # noqa: E731
        return -jnp.trace(jax.jacfwd(flux)(x))

    p = Problem(Rectangle(), -div(k * grad(u)) == f, Dirichlet(u, 0))
    return NamedProblem("variable_conductivity", "-div(k(x) grad u) = f", p, PLANE_NET, 2e-4, _wave)


@_named
def anisotropic() -> NamedProblem:
    tensor = np.array([[3.0, 1.0], [1.0, 1.0]])

    def f(x):
        return -jnp.trace(tensor @ jax.hessian(_wave)(x))

    p = Problem(Rectangle(), -div(tensor @ grad(u)) == f, Dirichlet(u, 0))
    return NamedProblem("anisotropic", "diffusion with a full conductivity tensor", p, PLANE, 2e-4, _wave)


@_named
def mixed_conditions() -> NamedProblem:
    def exact(x):
        return jnp.cos(x[0]) * jnp.exp(-x[1])

    p = Problem(
        Rectangle(), -div(grad(u)) + u == exact, Dirichlet(u, exact, on="left"),
        Neumann(u, lambda x: -jnp.sin(x[0]) * jnp.exp(-x[1]), on="right"),
        Robin(u, 2.0, lambda x: 3 * exact(x), on="bottom"), Neumann(u, lambda x: -exact(x), on="top"),
    )  # fmt: skip
    return NamedProblem("mixed_conditions", "a value, fluxes and a transfer on the four sides", p, PLANE, 1e-5, exact)


@_named
def reaction_layer() -> NamedProblem:
    e = 0.05

    def exact(x):
        return jnp.cosh((x[0] - 0.5) / e) / jnp.cosh(0.5 / e)

    p = Problem(Interval(), -div(e**2 * grad(u)) + u == 0, Dirichlet(u, 1))
    return NamedProblem("reaction_layer", "boundary layers of a reaction", p, LINE_NET, 2e-5, exact, "closed form")


@_named
def advection_diffusion() -> NamedProblem:
    e = 0.1

    def exact(x):
        return (jnp.exp((x[0] - 1) / e) - jnp.exp(-1 / e)) / (1 - jnp.exp(-1 / e))

    p = Problem(
        Interval(), -div(e * grad(u)) + grad(u)[0] == 0, Dirichlet(u, 0, on="left"), Dirichlet(u, 1, on="right")
    )
    return NamedProblem("advection_diffusion", "an outflow layer", p, LINE_NET, 1e-5, exact, "closed form")


@_named
def helmholtz() -> NamedProblem:
    k = 12.0

    def exact(x):
        return jnp.sin(k * x[0]) / np.sin(k)

    p = Problem(Interval(), div(grad(u)) + k**2 * u == 0, Dirichlet(u, 0, on="left"), Dirichlet(u, 1, on="right"))
    return NamedProblem("helmholtz", "standing waves, indefinite", p, LINE, 1e-4, exact, "closed form")


@_named
def rotating_wind() -> NamedProblem:
    x, y = coordinates(2)

    def wind(p):
        return jnp.stack([0.5 - p[1], p[0] - 0.5])

    p = Problem(Rectangle(), -div(0.1 * grad(u)) + dot(wind, grad(u)) == x * y, Dirichlet(u, 0))
    return NamedProblem(
        "rotating_wind", "advection in a vortex with diffusion", p, PLANE, 5e-4, None, "methods against each other"
    )


@_named
def bratu() -> NamedProblem:
    theta = 1.5171645990507543  # theta = sqrt(2 lam) cosh(theta / 4), lam = 1, the lower branch

    def exact(x):
        return -2 * jnp.log(jnp.cosh((x[0] - 0.5) * theta / 2) / np.cosh(theta / 4))

    p = Problem(Interval(), div(grad(u)) + apply(jnp.exp, u) == 0, Dirichlet(u, 0))
    return NamedProblem("bratu", "u'' + exp u = 0, ignition", p, LINE_NET, 1e-6, exact, "Bratu 1914")


@_named
def nonlinear_conduction() -> NamedProblem:
    def exact(x):  # (1 + u) u' is constant: u + u^2/2 = 3/2 x
        return -1 + jnp.sqrt(1 + 3 * x[0])

    p = Problem(Interval(), -div((1 + u) * grad(u)) == 0, Dirichlet(u, 0, on="left"), Dirichlet(u, 1, on="right"))
    return NamedProblem(
        "nonlinear_conduction", "conductivity that grows with temperature", p, LINE, 1e-6, exact, "Kirchhoff 1894"
    )


@_named
def poisson_boltzmann() -> NamedProblem:
    p = Problem(
        Interval(), -div(0.1 * grad(u)) + apply(jnp.sinh, u) == 0, Dirichlet(u, 1, on="left"), Neumann(u, 0, on="right")
    )
    return NamedProblem(
        "poisson_boltzmann", "potential in an electrolyte at a charged wall", p, LINE_NET, 1e-6, None, "Gouy-Chapman"
    )


@_named
def minimal_surface() -> NamedProblem:
    def scherk(x):
        return jnp.log(jnp.cos(0.8 * (x[0] - 0.5)) / jnp.cos(0.8 * (x[1] - 0.5))) / 0.8

    slope = apply(lambda g: 1 / jnp.sqrt(1 + jnp.sum(g**2)), grad(u))
    p = Problem(Rectangle(), -div(slope * grad(u)) == 0, Dirichlet(u, scherk))
    return NamedProblem("minimal_surface", "a soap film: Scherk's surface", p, PLANE, 1e-4, scherk, "Scherk 1835")


@_named
def elasticity() -> NamedProblem:
    v = Field("u", 2)
    mu, lam = 1.0, 2.0

    def exact(x):
        return jnp.stack([_wave(x), x[0] * (1 - x[0]) * x[1] * (1 - x[1])])

    def stress(x):
        g = jax.jacfwd(exact)(x)
        return mu * (g + g.T) + lam * jnp.trace(g) * jnp.eye(2)

    def force(x):
        return -jnp.trace(jax.jacfwd(stress)(x), axis1=1, axis2=2)

    strain = sym(grad(v))
    p = Problem(Rectangle(), -div(2 * mu * strain + lam * isotropic(trace(strain), strain)) == force, Dirichlet(v, 0))
    methods = {"fem": {"order": 2, "cells": 10}, "spectral": {"cells": 14}}
    return NamedProblem("elasticity", "plane strain of a clamped square", p, methods, 2e-3, exact)


@_named
def heat() -> NamedProblem:
    def exact(x):
        return jnp.exp(-(jnp.pi**2) * 0.1) * _wave(x)

    p = Problem(Interval(), dt(u) - div(grad(u)) == 0, Dirichlet(u, 0), Initial(u, _wave))
    return NamedProblem("heat", "a sine that decays", p, _timed(LINE, 0.1, 20), 1e-4, exact, "Fourier 1822")


@_named
def heat_with_moving_wall() -> NamedProblem:
    t = Time()
    p = Problem(
        Interval(), dt(u) - div(0.2 * grad(u)) == 0, Dirichlet(u, apply(jnp.sin, 3 * t), on="left"),
        Robin(u, 1.0, 0.0, on="right"), Initial(u, 0),
    )  # fmt: skip
    return NamedProblem("heat_with_moving_wall", "a wall whose temperature swings", p, _timed(LINE, 1.0, 40), 1e-3, None,
                        "methods against each other")  # fmt: skip


@_named
def fisher() -> NamedProblem:
    p = Problem(
        Interval(),
        dt(u) - div(0.01 * grad(u)) == u * (1 - u),
        Neumann(u, 0),
        Initial(u, lambda x: jnp.exp(-20 * x[0] ** 2)),
    )
    return NamedProblem("fisher", "a front of growth", p, _timed(LINE, 2.0, 20), 1e-4, None, "Fisher 1937")


@_named
def burgers() -> NamedProblem:
    nu = 0.1

    def exact(x, t=0.5):
        # the travelling wave u = 1 - tanh((x - t) / (2 nu))
        return 1 - jnp.tanh((x[0] - t) / (2 * nu))

    p = Problem(
        Interval(-1, 2), dt(u) + u * grad(u)[0] - div(nu * grad(u)) == 0,
        Dirichlet(u, lambda x, t: exact(x, t)), Initial(u, lambda x: exact(x, 0.0)),
    )  # fmt: skip
    return NamedProblem("burgers", "a viscous shock that travels", p, _timed(LINE, 0.5, 40), 1e-3, exact, "closed form")


@_named
def allen_cahn() -> NamedProblem:
    e = 0.1
    p = Problem(
        Interval(-1, 1), dt(u) - div(e**2 * grad(u)) == u - u**3, Neumann(u, 0),
        Initial(u, lambda x: 0.5 * jnp.cos(jnp.pi * x[0]) + 0.1),
    )  # fmt: skip
    return NamedProblem("allen_cahn", "two phases part", p, _timed(LINE, 2.0, 20), 1e-4, None, "Allen & Cahn 1979")


@_named
def periodic_heat() -> NamedProblem:
    def exact(x):
        return jnp.exp(-0.1) * jnp.sin(x[0])

    p = Problem(Interval(0, 2 * np.pi), dt(u) - div(grad(u)) == 0, Periodic(u), Initial(u, lambda x: jnp.sin(x[0])))
    ring = _timed({"spectral": {"cells": 24}}, 0.1, 10)
    return NamedProblem("periodic_heat", "a wave on a ring that decays", p, ring, 1e-6, exact,
                        "Fourier 1822")  # fmt: skip


@_named
def kovasznay() -> NamedProblem:
    v, pressure = Field("v", 2), Field("p")
    re = 40.0
    lam = re / 2 - np.sqrt(re**2 / 4 + 4 * np.pi**2)

    def exact(x):
        e = jnp.exp(lam * x[0])
        return jnp.stack([1 - e * jnp.cos(2 * jnp.pi * x[1]), lam / (2 * jnp.pi) * e * jnp.sin(2 * jnp.pi * x[1])])

    p = Problem(
        Rectangle((-0.5, -0.5), (1.0, 0.5)), -div(1 / re * grad(v)) + dot(v, grad(v)) + grad(pressure) == 0, div(v) == 0,
        Dirichlet(v, exact),
    )  # fmt: skip
    return NamedProblem("kovasznay", "laminar flow behind a grid, Re 40", p, {"fem": {"order": 2, "cells": (12, 8)}}, 5e-3, exact,
                        "Kovasznay 1948", "v")  # fmt: skip
