"""The exact solution of Riemann's problem for an ideal gas."""

from typing import Any

import numpy as np
from scipy.optimize import root_scalar

from sciax.core.errors import InputError


def exact_riemann(left: Any, right: Any, speed: Any, gamma: float = 1.4) -> np.ndarray:
    """Density, velocity and pressure on rays x/t between two constant states.

    The pressure between the waves solves `f_l(p) + f_r(p) + u_r - u_l = 0` with f the jump of velocity over a shock
    (Rankine-Hugoniot) or a rarefaction (Riemann invariant); the rest is explicit.

    Args:
        left, right: (density, velocity, pressure), positive density and pressure.
        speed: x/t, any shape.
        gamma: ratio of heat capacities.

    Returns:
        [3, *speed.shape].

    Raises:
        InputError: states that are none, or so fast apart that a vacuum opens between them.

    Source: Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics (2009), chapter 4.
    """
    states = [tuple(map(float, s)) for s in (left, right)]
    if any(s[0] <= 0 or s[2] <= 0 for s in states):
        raise InputError("density and pressure of both states are positive", got=states)
    sound = [np.sqrt(gamma * p / rho) for rho, _, p in states]
    jump = states[1][1] - states[0][1]
    if jump >= 2 * sum(sound) / (gamma - 1):
        raise InputError("the states part so fast that a vacuum opens between them", got=states)

    def over(p, state, c):
        rho, _, p0 = state
        if p > p0:
            return (p - p0) * np.sqrt(2 / rho / ((gamma + 1) * p + (gamma - 1) * p0))
        return 2 * c / (gamma - 1) * ((p / p0) ** ((gamma - 1) / (2 * gamma)) - 1)

    def mismatch(p):
        return over(p, states[0], sound[0]) + over(p, states[1], sound[1]) + jump

    top = max(states[0][2], states[1][2])
    while mismatch(top) < 0:
        top *= 4
    p = root_scalar(mismatch, bracket=(1e-300, top), xtol=1e-300, rtol=1e-14, maxiter=500).root
    u = 0.5 * (states[0][1] + states[1][1] + over(p, states[1], sound[1]) - over(p, states[0], sound[0]))

    rays = np.asarray(speed, dtype=np.float64)
    out = np.zeros((3, *rays.shape))
    for sign, (rho0, u0, p0), c0 in zip((-1.0, 1.0), states, sound):
        side = sign * (rays - u) > 0 if sign > 0 else rays <= u
        # in the frame where this side lies on the right: s grows outwards
        s, u_in, u_out = sign * rays, sign * u, sign * u0
        if p > p0:
            front = u_out + c0 * np.sqrt((gamma + 1) / (2 * gamma) * p / p0 + (gamma - 1) / (2 * gamma))
            ratio = (gamma - 1) / (gamma + 1)
            rho = np.where(s > front, rho0, rho0 * (p / p0 + ratio) / (ratio * p / p0 + 1))
            velocity, pressure = np.where(s > front, u_out, u_in), np.where(s > front, p0, p)
        else:
            head, tail = u_out + c0, u_in + c0 * (p / p0) ** ((gamma - 1) / (2 * gamma))
            c = np.clip((2 * c0 + (gamma - 1) * (s - u_out)) / (gamma + 1), 1e-300, None)
            fan = np.stack([rho0 * (c / c0) ** (2 / (gamma - 1)), s - c, p0 * (c / c0) ** (2 * gamma / (gamma - 1))])
            inner = np.stack(np.broadcast_arrays(rho0 * (p / p0) ** (1 / gamma), u_in, p, s)[:3])
            outer = np.stack(np.broadcast_arrays(rho0, u_out, p0, s)[:3])
            rho, velocity, pressure = np.where(s > head, outer, np.where(s < tail, inner, fan))
        out = np.where(side, np.stack([rho, sign * velocity, pressure]), out)
    return out
