"""Gradients by other means than the adjoint rule: parameter shift and finite differences.

They need nothing but expectation values, as a machine gives them, and serve as independent checks.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sciax.core.errors import InputError, UnsupportedError
from sciax.quantum._circuit import Circuit, Structure
from sciax.quantum._kinds import KINDS
from sciax.quantum._pauli import PauliSum
from sciax.quantum._simulate import expectation

METHODS = ("adjoint", "autodiff", "parameter_shift", "finite_difference")


def gradient(
    circuit: Circuit,
    observable: PauliSum,
    params: Any,
    *,
    method: str = "adjoint",
    step: float | None = None,
    **options,
):
    """d <H> / d params as a vector in the order of `circuit.names`.

    Args:
        method: "adjoint" and "autodiff" differentiate the simulation; "parameter_shift" combines values at shifted angles,
            with as many as the gate's generator asks for (two for Pauli rotations, four for their controlled forms and for
            Givens rotations, more for other spectra), exactly; "finite_difference" is the central one of order 4.
        step: of the finite difference (default eps^(1/5)).
        options: passed to `expectation`.

    Raises:
        InputError: an unknown method; UnsupportedError: parameter shift of a gate whose generator is not known, named.
    """
    if method not in METHODS:
        raise InputError("unknown gradient method", got=method, expected=", ".join(METHODS))
    vector = jnp.asarray(circuit.parameter_vector(params))
    if method in ("adjoint", "autodiff"):
        return jax.grad(lambda p: expectation(circuit, observable, p, gradient=method, **options))(vector)
    if method == "finite_difference":
        h = step or float(np.finfo(vector.dtype).eps) ** 0.2
        shifts = h * jnp.array([1.0, -1.0, 2.0, -2.0], vector.dtype)
        weights = jnp.array([8.0, -8.0, -1.0, 1.0], vector.dtype) / (12 * h)
        batch = vector + jnp.eye(len(vector), dtype=vector.dtype)[:, None] * shifts[None, :, None]
        values = jax.vmap(jax.vmap(lambda p: expectation(circuit, observable, p, **options)))(batch)
        return values @ weights
    split, owners = _split(circuit.structure)
    if not owners:
        return jnp.zeros_like(vector)
    # every occurrence of a parameter becomes one of its own; its angle is weight * parameter + rest
    place = {n: k for k, n in enumerate(circuit.names)}
    index = np.array([place[o[0]] for o in owners])
    apart = Circuit._of(split, circuit.values)
    base = vector[index]
    moves = [
        (k, shift / weight, index[k], weight * factor)
        for k, (_, weight, frequencies) in enumerate(owners)
        for shift, factor in shift_rule(frequencies)
    ]
    moved = np.zeros((len(moves), len(owners)))
    for row, (k, shift, _, _) in enumerate(moves):
        moved[row, k] = shift
    outputs, factors = np.array([m[2] for m in moves]), np.array([m[3] for m in moves])
    values = jax.vmap(lambda d: expectation(apart, observable, base + d, **options))(jnp.asarray(moved, vector.dtype))
    return jnp.zeros_like(vector).at[outputs].add(values * jnp.asarray(factors, vector.dtype))


@lru_cache(maxsize=64)
def shift_rule(frequencies: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """(shift, factor) pairs with f'(0) = sum factor f(shift) for every f with these frequencies (and a constant).

    One frequency w gives the two-term rule at +-pi/(2w); two give the four-term rule. In general f' = sum_k c_k (f(s_k) -
    f(-s_k)) with 2 sum_k c_k sin(w_j s_k) = w_j. Source: D. Wierichs et al., Quantum 6, 677 (2022).
    """
    w = np.array(sorted(frequencies))
    m = len(w)
    # equidistant shifts over the half period of the smallest frequency keep the system well conditioned
    s = (2 * np.arange(1, m + 1) - 1) * np.pi / (2 * m * w[0])
    matrix = 2 * np.sin(np.outer(w, s))
    if m > 1 and np.linalg.cond(matrix) > 1e6:
        s = (2 * np.arange(1, m + 1) - 1) * np.pi / (2.3 * m * w[-1])
        matrix = 2 * np.sin(np.outer(w, s))
    c = np.linalg.solve(matrix, w)
    return tuple((float(v), float(k)) for v, k in zip([*s, *-s], [*c, *-c]))


@lru_cache(maxsize=128)
def _split(structure: Structure):
    """The structure with a parameter for every occurrence, and (name, weight, frequencies) of each."""
    from dataclasses import replace

    from sciax.quantum._expression import Expression

    owners, ops = [], []
    for gate in structure.flat():
        angles = []
        for position, angle in enumerate(gate.angles):
            terms = []
            for key, weight in angle.terms:
                if isinstance(key, str) and weight:
                    terms.append((f"o{len(owners)}", weight))
                    owners.append((key, weight, _frequencies(gate, position)))
                else:
                    terms.append((key, weight))
            angles.append(Expression(tuple(terms), angle.constant))
        ops.append(replace(gate, angles=tuple(angles)))
    names = tuple(f"o{k}" for k in range(len(owners)))
    return replace(structure, ops=tuple(ops), names=names, encoder=frozenset()), owners


def _frequencies(gate, position: int) -> tuple[float, ...]:
    """Differences of the eigenvalues of the generator of one angle of a gate."""
    if gate.kind == "channel":
        raise UnsupportedError(
            f"the strength of {gate.extra.name!r} is no rotation angle",
            remedy='method="adjoint" or "finite_difference"',
        )
    if gate.kind == "custom":
        raise UnsupportedError(
            "the generator of a custom gate is not known", remedy='method="adjoint" or "finite_difference"'
        )
    if gate.kind == "rn":
        raise UnsupportedError(
            "one angle of 'rn' has no fixed generator", remedy='method="adjoint" or "finite_difference"'
        )
    if gate.kind == "gphase":
        return (1.0,)
    if gate.kind in ("fsim",):
        # theta: eigenvalues 0, +-1 (differences 1, 2); phi: a phase on one state
        return (1.0, 2.0) if position == 0 else (1.0,)
    base = KINDS[gate.kind].shift
    if gate.controls and gate.kind in (
        "rx",
        "ry",
        "rz",
        "rp",
        *(k for k in KINDS if len(k) == 3 and k[0] == "r" and k[1] in "xyz"),
    ):
        # eigenvalues 0 and +-1/2 of the controlled generator
        return (0.5, 1.0)
    if gate.controls and gate.kind in ("u2", "u3"):
        return (0.5, 1.0) if gate.kind == "u3" and position == 0 else (1.0,)
    return base
