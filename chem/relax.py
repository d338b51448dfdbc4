"""Relaxation of positions and cells: FIRE and BFGS."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from sciax.chem.potentials import Potential, predict
from sciax.core.errors import ConvergenceError, InputError, UnsupportedError, did_you_mean
from sciax.datasets.atoms import Structure

METHODS = ("fire", "bfgs")

Evaluate = Callable[[Structure], tuple[float, np.ndarray, np.ndarray | None]]
"""A structure -> (energy eV, forces eV/Å, dE/d(strain) eV or None)."""


@dataclass(frozen=True)
class RelaxResult:
    """The relaxed structure with its energy and forces, and how it got there.

    Attributes:
        structure: with energy, forces, and for cell relaxation stress.
        converged: whether the largest force (and stress) fell below the tolerance.
        steps: evaluations used.
        energies, residuals: eV and eV/Å per step.
    """

    structure: Structure
    converged: bool
    steps: int
    energies: list[float] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)


def relax(
    potential: Potential | Evaluate,
    structure: Structure,
    *,
    method: str = "bfgs",
    tolerance: float = 0.01,
    cell: bool = False,
    fixed: np.ndarray | None = None,
    max_steps: int = 500,
    max_move: float = 0.2,
    throw: bool = True,
) -> RelaxResult:
    """Move atoms (and the cell) to a minimum of the energy.

    Args:
        potential: a `Potential`, or any function with the signature `Evaluate`.
        method: "bfgs" (few steps, needs smooth energies) or "fire" (robust; Bitzek et al., PRL 97, 170201 (2006)).
        tolerance: largest force on an atom, eV/Å; for the cell, dE/dε per atom in eV.
        cell: relax the lattice too, through the deformation of the start cell (Tadmor et al., PRB 59, 235 (1999)).
        fixed: (atoms,) bool, atoms that stay (with `cell`, in fractional coordinates).
        throw: raise if not converged; otherwise look at `converged`.

    Raises:
        ConvergenceError: not converged in `max_steps`.
        UnsupportedError: `cell=True` unless periodic in three directions.
        InputError: bad arguments.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}", remedy=did_you_mean(method, METHODS))
    if not (tolerance > 0 and max_steps >= 1 and max_move > 0):
        raise InputError("tolerance, max_move > 0 and max_steps >= 1 are needed", got=(tolerance, max_move, max_steps))
    if cell and not all(structure.pbc):
        raise UnsupportedError(
            "a cell relaxes only where it is periodic in three directions", got=f"pbc={structure.pbc}"
        )
    n = len(structure)
    free = np.ones(n, bool) if fixed is None else ~np.asarray(fixed, bool)
    if free.shape != (n,):
        raise InputError("fixed needs one bool an atom", got=free.shape, expected=(n,))
    evaluate = potential if not isinstance(potential, Potential) else _of_potential(potential)
    weight = float(n) ** 0.5 * 2.0  # makes the deformation's coordinates as stiff as the atoms'

    def unpack(x: np.ndarray) -> Structure:
        if not cell:
            return replace(structure, positions=x.reshape(n, 3), energy=None, forces=None, stress=None)
        deform = np.eye(3) + x[3 * n :].reshape(3, 3) / weight
        positions = x[: 3 * n].reshape(n, 3) @ deform
        return replace(
            structure, positions=positions, cell=structure.cell @ deform, energy=None, forces=None, stress=None
        )

    def gradient(x: np.ndarray):
        s = unpack(x)
        energy, forces, strain = evaluate(s)
        forces = np.where(free[:, None], forces, 0)
        if not cell:
            return s, energy, -forces.ravel(), float(np.sqrt((forces**2).sum(1)).max(initial=0)), forces, None
        if strain is None:
            raise UnsupportedError("this potential gives no strain derivative, which cell relaxation needs")
        deform = np.eye(3) + x[3 * n :].reshape(3, 3) / weight
        pull = np.linalg.solve(deform.T, strain)  # dE/dF with the positions carried along
        g = np.concatenate([(-forces @ deform.T).ravel(), (pull / weight).ravel()])
        residual = max(float(np.sqrt((forces**2).sum(1)).max(initial=0)), float(np.abs(strain).max()) / n)
        return s, energy, g, residual, forces, strain

    start = structure.positions.ravel()
    x = np.concatenate([start, np.zeros(9)]) if cell else start.astype(float)
    step = _Bfgs(len(x)) if method == "bfgs" else _Fire(len(x))
    energies, residuals = [], []
    for k in range(1, max_steps + 1):
        s, energy, g, residual, forces, strain = gradient(x)
        if not np.isfinite(energy) or not np.isfinite(g).all():
            raise ConvergenceError(
                f"the energy is not finite at step {k}", history=residuals, remedy="start nearer to a minimum"
            )
        energies.append(energy)
        residuals.append(residual)
        if residual < tolerance or k == max_steps:
            stress = None if strain is None else strain / s.volume
            done = RelaxResult(
                replace(s, energy=energy, forces=forces, stress=stress), residual < tolerance, k, energies, residuals
            )
            if throw and not done.converged:
                raise ConvergenceError(
                    f"not relaxed in {max_steps} steps: the largest force is {residual:.3g} eV/Å",
                    history=residuals,
                    expected=f"< {tolerance}",
                    remedy="more max_steps, method='fire', or throw=False",
                )
            return done
        move = step(x, g, energy)
        longest = np.sqrt((move.reshape(-1, 3) ** 2).sum(1)).max()
        x = x + move * min(1.0, max_move / max(longest, 1e-300))
    raise AssertionError("unreachable")


def _of_potential(potential: Potential) -> Evaluate:
    def evaluate(s: Structure):
        p = predict(potential, s)[0]
        return p.energy, np.asarray(p.forces, float), p.strain_derivative

    return evaluate


class _Bfgs:
    """Quasi-Newton on the Hessian with absolute eigenvalues, so that a step never climbs."""

    def __init__(self, size: int):
        self.hessian = 70.0 * np.eye(size)  # eV/Å², a stiff bond
        self.last: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, x: np.ndarray, g: np.ndarray, energy: float) -> np.ndarray:
        if self.last is not None:
            dx, dg = x - self.last[0], g - self.last[1]
            hx = self.hessian @ dx
            if dx @ dg > 1e-10 * np.linalg.norm(dx) * np.linalg.norm(dg):  # keeps it positive
                self.hessian += np.outer(dg, dg) / (dx @ dg) - np.outer(hx, hx) / (dx @ hx)
        self.last = x.copy(), g.copy()
        values, vectors = np.linalg.eigh(self.hessian)
        return -vectors @ ((vectors.T @ g) / np.maximum(np.abs(values), 1e-3))


class _Fire:
    """Fast inertial relaxation engine; the published parameters."""

    def __init__(self, size: int):
        self.v, self.dt, self.a, self.good = np.zeros(size), 0.05, 0.1, 0

    def __call__(self, x: np.ndarray, g: np.ndarray, energy: float) -> np.ndarray:
        f = -g
        if f @ self.v > 0:
            self.good += 1
            self.v = (1 - self.a) * self.v + self.a * np.linalg.norm(self.v) * f / max(np.linalg.norm(f), 1e-300)
            if self.good > 5:
                self.dt, self.a = min(self.dt * 1.1, 0.3), self.a * 0.99
        else:
            self.v, self.dt, self.a, self.good = np.zeros_like(f), self.dt * 0.5, 0.1, 0
        self.v = self.v + self.dt * f
        return self.dt * self.v
