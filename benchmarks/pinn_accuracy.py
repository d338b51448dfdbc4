"""Accuracy of physics-informed networks on named cases: relative L2 error against time, in float64.

    python benchmarks/pinn_accuracy.py CASE [SECONDS] [--width 20] [--depth 3] [--points 2500] [--iterations 100000] [--seed 0]

Cases: burgers, poisson, kovasznay, and with the data folder beside the checkout (../shared/data) allen-cahn and kdv.
SECONDS is wall time; an hour shows the longer tier. Prints a line for each round: iterations, loss, error, wall and CPU seconds.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from sciax.science import (
    Dirichlet,
    Field,
    Initial,
    Interval,
    Periodic,
    Problem,
    Rectangle,
    div,
    dot,
    dt,
    grad,
    laplace,
)  # fmt: skip
from sciax.science.pinn import NetworkOptions, System, Trainer, TrainOptions, heat_flow, march

DATA = Path(__file__).parents[2] / "shared" / "data" / "pde"
u = Field("u")


def burgers():
    """nu = 0.01/pi; truth: Cole-Hopf by Gauss-Hermite quadrature."""
    nu = 0.01 / np.pi
    problem = Problem(
        Interval(-1, 1),
        dt(u) + u * grad(u)[0] - nu * laplace(u) == 0.0,
        Dirichlet(u, 0.0),
        Initial(u, lambda x: -jnp.sin(jnp.pi * x[0])),
    )
    nodes, weights = np.polynomial.hermite.hermgauss(120)
    x, t = (a.ravel() for a in np.meshgrid(np.linspace(-1, 1, 201), np.linspace(0.01, 1, 100), indexing="ij"))
    y = x[:, None] - np.sqrt(4 * nu * t)[:, None] * nodes
    f = np.exp(-(np.cos(np.pi * y) + 1) / (2 * np.pi * nu))
    return problem, {"time": (0, 1)}, {}, np.stack([x, t]), (-(np.sin(np.pi * y) * f) @ weights / (f @ weights))[None]


def poisson():
    """-laplace u = f with u = sin(pi x) sin(pi y)."""
    source = lambda x: 2 * jnp.pi**2 * jnp.sin(jnp.pi * x[0]) * jnp.sin(jnp.pi * x[1])  # noqa: E731
    problem = Problem(Rectangle(), -laplace(u) == source, Dirichlet(u, 0.0))
    z = np.stack([a.ravel() for a in np.meshgrid(*[np.linspace(0, 1, 101)] * 2)])
    return problem, {}, {"depth": 2, "points": 1200}, z, (np.sin(np.pi * z[0]) * np.sin(np.pi * z[1]))[None]


def kovasznay():
    """Navier-Stokes at Re 40 behind a grid (Kovasznay 1948); the error is the velocity's."""
    v, p, nu = Field("v", 2), Field("p"), 1 / 40
    rate = 1 / (2 * nu) - np.sqrt(1 / (4 * nu**2) + 4 * np.pi**2)

    def exact(x):
        e = jnp.exp(rate * x[0])
        return jnp.stack([1 - e * jnp.cos(2 * jnp.pi * x[1]), rate / (2 * jnp.pi) * e * jnp.sin(2 * jnp.pi * x[1])])

    problem = Problem(
        Rectangle((-0.5, -0.5), (1.0, 1.5)),
        dot(v, grad(v)) - nu * laplace(v) + grad(p) == 0.0,
        div(v) == 0.0,
        Dirichlet(v, exact),
    )
    z = np.stack([a.ravel() for a in np.meshgrid(np.linspace(-0.5, 1, 81), np.linspace(-0.5, 1.5, 81))])
    return problem, {}, {"points": 1500}, z, np.asarray(jax.vmap(exact, 1, 1)(jnp.asarray(z)))


def _table(x, t, values):
    if values.shape[0] != x.size:
        values = values.T
    grid = np.stack([a.ravel() for a in np.meshgrid(x, t, indexing="ij")])
    return grid[:, ::3], values.ravel()[None, ::3]


def allen_cahn():
    """u_t = 1e-4 u_xx + 5 u - 5 u^3, periodic, u0 = x^2 cos(pi x); truth: raissi/AC.mat."""
    from scipy.io import loadmat

    start = lambda x: x[0] ** 2 * jnp.cos(jnp.pi * x[0])  # noqa: E731
    problem = Problem(
        Interval(-1, 1), dt(u) - 1e-4 * laplace(u) + 5 * u**3 - 5 * u == 0.0, Periodic(u), Initial(u, start)
    )
    flow = heat_flow(start, 1e-4, -1.0, 1.0)
    data = loadmat(DATA / "raissi" / "AC.mat")
    z, exact = _table(data["x"].ravel(), data["tt"].ravel(), data["uu"].real)
    return problem, {"time": (0, 1), "lift": flow, "features": (flow,)}, {"harmonics": 3}, z, exact


def kdv():
    """u_t + u u_x + 0.022^2 u_xxx = 0, periodic, u0 = cos(pi x); truth: jaxpi2/kdv.mat."""
    from scipy.io import loadmat

    problem = Problem(
        Interval(-1, 1),
        dt(u) + u * grad(u)[0] + 0.022**2 * grad(laplace(u))[0] == 0.0,
        Periodic(u),
        Initial(u, lambda x: jnp.cos(jnp.pi * x[0])),
    )
    data = loadmat(DATA / "jaxpi2" / "kdv.mat")
    z, exact = _table(data["x"].ravel(), data["t"].ravel(), data["usol"].real)
    return problem, {"time": (0, 1)}, {"harmonics": 5, "width": 30, "points": 4000}, z, exact


CASES = {"burgers": burgers, "poisson": poisson, "kovasznay": kovasznay, "allen-cahn": allen_cahn, "kdv": kdv}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("seconds", type=float, nargs="?", default=300.0)
    parser.add_argument("--width", type=int)
    parser.add_argument("--depth", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--harmonics", type=int)
    parser.add_argument("--network", default="mlp")
    parser.add_argument("--adam", type=int, default=1000)
    parser.add_argument("--causal", type=float, default=0.0)
    parser.add_argument("--optimizer", default="ssbroyden", help="ssbroyden, lm, natural, lbfgs")
    parser.add_argument("--windows", type=int, default=1)
    parser.add_argument("--end", type=float, help="stop the problem at this time")
    parser.add_argument("--renew", type=int)
    parser.add_argument("--iterations", type=int, default=1_000_000, help="of each window")
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    wall, cpu = time.perf_counter(), time.process_time()
    problem, options, advice, z, exact = CASES[o.case]()

    def choose(name, default):
        given = getattr(o, name)
        return advice.get(name, default) if given is None else given

    network = NetworkOptions(o.network, choose("width", 20), choose("depth", 3), harmonics=choose("harmonics", 3))
    given = {"time": None, "lift": None, "features": (), **options}
    training = TrainOptions(
        points=choose("points", 2500),
        adam=o.adam,
        iterations=o.iterations,
        renew=o.renew,
        causal=o.causal,
        optimizer=o.optimizer,
        seconds=o.seconds / o.windows,
    )
    if o.end is not None:
        given["time"] = (given["time"][0], o.end)
        z, exact = z[:, z[-1] <= o.end], exact[:, z[-1] <= o.end]
    kept, compiled = {}, {}

    def watch(model, iterations, loss, window=0, system=None):
        """Prints the error up to the end of the window."""
        if window not in compiled:
            compiled[window] = jax.jit(system.values_at)
        low, high = (system.frame.lower[-1], system.frame.upper[-1]) if given["time"] else (0.0, 1.0)
        inside = (
            (z[-1] >= low) & ((z[-1] < high) | (window == o.windows - 1))
            if given["time"]
            else np.ones(z.shape[1], bool)
        )
        got = np.asarray(compiled[window](model, jnp.asarray(z[:, inside])))[: exact.shape[0]]
        kept[window] = (np.sum((got - exact[:, inside]) ** 2), np.sum(exact[:, inside] ** 2))
        error = np.sqrt(sum(k[0] for k in kept.values()) / sum(k[1] for k in kept.values()))
        own = np.sqrt(kept[window][0] / kept[window][1])
        print(
            f"{o.case} window {window + 1} {iterations:7d} loss {loss:.2e} relative L2 {error:.2e} (window {own:.2e}) "
            f"wall {time.perf_counter() - wall:.0f} s, CPU {time.process_time() - cpu:.0f} s",
            flush=True,
        )

    key, rest = jax.random.key(o.seed), {"hard": True, "unknowns": {}, "observations": ()}
    if o.windows > 1:
        edges = np.linspace(*given.pop("time"), o.windows + 1)
        given["time"] = True
        options_ = {k: v for k, v in given.items() if k != "time"}
        info = march(problem, network, training, edges, {**options_, **rest}, o.seed, key, watch).info
    else:
        system = System(problem, network, **given, **rest, key=key)
        seen = lambda m, i, v: watch(m, i, v, system=system)  # noqa: E731
        _, info = Trainer(system, training, o.seed).run(jax.random.key(o.seed + 1), watch=seen)
    print(f"{o.case}: {info.parameters} parameters, loss at new points {info.fresh:.2e}, ended by {info.reason}")


if __name__ == "__main__":
    main()
