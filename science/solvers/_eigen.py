"""Eigenvalues and modes of a linear operator by finite elements."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float

from sciax.core.errors import ConvergenceError, InputError, UnsupportedError
from sciax.core.ops.sparse import SolveInfo
from sciax.science.pde import Parameter, Problem
from sciax.science.solvers._base import prepare

if TYPE_CHECKING:
    import xarray

    from sciax.science.solvers.fem._solution import FemSolution

SHIFT = 1e-7
"""Of the largest eigenvalue's size: how far under `near` the operator is factored, so that an eigenvalue at `near` is no pole."""


@dataclass(frozen=True)
class Eigenmodes:
    """Attributes:
    values: eigenvalues, nearest to `near` first; differentiable in the problem's parameters while they are simple, and so
        is the sum of a multiple one.
    modes: one solution each, of weight 1 (integral of its square against the right-hand side's coefficient), its largest
        coefficient positive; constants under derivatives.
    """

    values: Float[Array, " modes"]
    modes: "tuple[FemSolution, ...]"

    def __len__(self) -> int:
        return len(self.modes)

    def to_xarray(self) -> "xarray.Dataset":
        """The modes along a dimension `mode`, with their eigenvalues as a coordinate."""
        import xarray as xr

        data = xr.concat([mode.to_xarray() for mode in self.modes], dim="mode")
        return data.assign_coords(eigenvalue=("mode", np.asarray(jax.lax.stop_gradient(self.values))))


def eigenmodes(
    problem: Problem, eigenvalue: Parameter | str, count: int = 6, *, near: float = 0.0, **options: Any
) -> Eigenmodes:
    """Numbers lambda and functions u other than zero that solve a linear homogeneous problem.

        u, lam = Field("u"), Parameter("lam", 0.0)
        drum = Problem(Disk((0, 0), 1), -laplace(u) == lam * u, Dirichlet(u, 0))
        eigenmodes(drum, lam, 4, order=2, size=0.05).values

    Matrices K and M with K u = lambda M u come from the problem at two values of the parameter; the eigenvalues nearest to
    `near` by Lanczos' iteration on (K - near M)^-1 M (ARPACK). Their derivatives are u' dK u - lambda u' dM u (Magnus, 1985).
    Of order p, eigenvalues converge as h^(2 p).

    Args:
        eigenvalue: the parameter that stands for it, in which the equation is linear.
        count: how many.
        options: of `solve(method="fem")`.

    Raises:
        InputError: sources or boundary values that are not zero, a problem not linear in u and the parameter, more modes than
            unknowns.
        UnsupportedError: an operator that is not symmetric; a call inside `jax.jit`.
        ConvergenceError: the iteration stopped short.
    """
    name = eigenvalue if isinstance(eigenvalue, str) else eigenvalue.name
    if name not in problem.parameters:
        raise InputError(
            f"no parameter {name!r} in the problem to be the eigenvalue",
            got=", ".join(problem.parameters) or "no parameters",
            remedy=f"state the equation as operator(u) == {name} * u with {name} = Parameter({name!r}, 0.0)",
        )
    fem: Any = prepare(problem, "fem", **options)
    if not fem.linear or fem.time is not None:
        raise InputError("an eigenproblem is linear and stationary", got="nonlinear or with dt(u)")
    free, size = fem.free, len(fem.free)
    if not 1 <= count < size:
        raise InputError(
            "as many modes as the mesh can hold",
            got=f"count={count}",
            expected=f"1 to {size - 1}",
            remedy="a finer mesh",
        )
    arrays = fem.arrays if problem.points is None else fem.moved_arrays(problem.points)
    given = fem.values_of(problem)
    still = jax.lax.stop_gradient((arrays, given))
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(still)):
        raise UnsupportedError(
            "eigenmodes compute on the host", got="a call inside jax.jit or vmap", remedy="jax.grad without jit works"
        )
    stiffness, mass = _matrices(fem, still[0], still[1], name)
    found, vectors = _nearest(stiffness, mass, count, near)
    values, modes = [], []
    from sciax.science.solvers.fem._solution import FemSolution

    for number, vector in zip(found, vectors.T, strict=True):
        whole = np.zeros(fem.layout.size)
        whole[free] = vector * np.sign(vector[np.argmax(np.abs(vector))])
        coefficients, number = jnp.asarray(whole, fem.dtype), jnp.asarray(number, fem.dtype)
        here = {**given, name: number}
        # The residual vanishes; its derivative in the parameters is that of the eigenvalue.
        residual, _ = fem._jit_assemble(arrays, here, coefficients, matrix=False)
        values.append(number + coefficients[arrays["free"]] @ residual)
        off = jnp.linalg.norm(jax.lax.stop_gradient(residual)) / np.linalg.norm(abs(stiffness) @ np.abs(vector))
        info = SolveInfo(1, off, 0)
        modes.append(FemSolution(problem.with_(**{name: number}), fem, coefficients, info, here, arrays))
    return Eigenmodes(jnp.stack(values), tuple(modes))


def _matrices(fem: Any, arrays: Any, values: dict[str, Any], name: str) -> tuple[Any, Any]:
    """K and M of K u = lambda M u on the free unknowns."""
    import scipy.sparse

    zero = jnp.zeros(fem.layout.size, fem.dtype)
    parts = []
    for number in (0.0, 1.0, 2.0):
        here = {**values, name: jnp.asarray(number, fem.dtype)}
        lift = fem._jit_start(arrays, here)
        residual, data = fem._jit_assemble(arrays, here, zero)
        source, edge = float(jnp.abs(residual).max()), float(jnp.abs(lift).max())
        if source > 0 or edge > 0:
            raise InputError(
                "an eigenproblem has neither sources nor boundary values",
                got=f"a source of size {source:.3g}, boundary values up to {edge:.3g}",
                remedy="leave them out of the equation and of the conditions",
            )
        parts.append(np.asarray(data, np.float64))
    scale = np.abs(parts[0]).max() + np.abs(parts[1]).max()
    if np.abs(parts[2] - 2 * parts[1] + parts[0]).max() > 1e-5 * scale:
        raise InputError(f"the equation is not linear in {name}", remedy=f"operator(u) == {name} * weight * u")
    if not np.any(parts[0] != parts[1]):
        raise InputError(f"{name} does not enter the equation", remedy=f"operator(u) == {name} * u")
    p = fem.pattern
    stiffness, mass = (
        scipy.sparse.csr_matrix((data, (np.asarray(p.rows), np.asarray(p.cols))), shape=p.shape)
        for data in (parts[0], parts[0] - parts[1])
    )
    for matrix, what in ((stiffness, "the operator"), (mass, f"the factor of {name}")):
        skew = abs(matrix - matrix.T).max()
        if skew > 1e-5 * abs(matrix).max():
            raise UnsupportedError(
                f"{what} is not symmetric",
                got=f"a skew part of {skew / abs(matrix).max():.1e} of its size",
                remedy="eigenmodes need a self-adjoint problem: no transport terms",
            )
    if (mass.diagonal() < 0).any():
        raise InputError(f"the factor of {name} is negative somewhere", remedy=f"operator(u) == {name} * positive * u")
    return stiffness, mass


def _nearest(stiffness: Any, mass: Any, count: int, near: float) -> tuple[np.ndarray, np.ndarray]:
    import scipy.sparse.linalg

    largest = np.abs(stiffness.diagonal()).max() / mass.diagonal().max()
    try:
        # A start of its own makes the modes the same in every call.
        start = np.random.default_rng(0).standard_normal(stiffness.shape[0])
        found, vectors = scipy.sparse.linalg.eigsh(
            stiffness.tocsc(), count, mass.tocsc(), sigma=near - SHIFT * max(largest, abs(near)), v0=start
        )
    except scipy.sparse.linalg.ArpackError as error:
        raise ConvergenceError(
            "the eigenvalue iteration stopped short", got=str(error), remedy="fewer modes"
        ) from error
    order = np.argsort(np.abs(found - near), kind="stable")
    return found[order], vectors[:, order]
