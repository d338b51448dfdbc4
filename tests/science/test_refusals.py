"""Bad problems are refused by name, with a remedy; nothing from inside a library reaches the user."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError, SingularError, UnsupportedError
from sciax.science import (
    Dirichlet,
    Domain,
    Field,
    Neumann,
    Parameter,
    Problem,
    Rectangle,
    Robin,
    box_mesh,
    div,
    grad,
    solve,
)

pytestmark = pytest.mark.usefixtures("x64")

u, k = Field("u"), Parameter("k", 1.0)
square = Rectangle()
plain = -div(k * grad(u)) == 1


def logarithm(x):
    return jnp.log(x[0] - 0.5)


def with_k(value):
    return solve(Problem(square, plain, Dirichlet(u, 0)).with_(k=value)).integrate(u)


def two_parts():
    mesh = box_mesh([0, 0], [1, 1], 2)
    mesh.cell_groups.update(a=np.arange(4), b=np.arange(3, 6))
    return Domain.from_mesh(mesh)


REFUSED = {
    "no such boundary": (lambda: Problem(square, plain, Dirichlet(u, 0, on="lft")), InputError, "did you mean 'left'"),
    "bare boundary": (
        lambda: solve(Problem(square, plain, Dirichlet(u, 0, on=("left", "top")))),
        InputError,
        r"(?s)'right', 'bottom'.*Neumann\(u, 0, on=",
    ),
    "all flux": (lambda: solve(Problem(square, plain, Neumann(u, 0))), SingularError, "up to a constant"),
    "no diffusion": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)).with_(k=0.0)), SingularError, "singular"),
    "nan parameter": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)).with_(k=float("nan"))), InputError, "'k'"),
    "nan function": (
        lambda: solve(Problem(square, -div(logarithm * grad(u)) == 1, Dirichlet(u, 0))), InputError, "'logarithm'"),
    "nan boundary value": (
        lambda: solve(Problem(square, plain, Dirichlet(u, logarithm))), InputError, "'logarithm'"),
    "nan under grad": (
        lambda: jax.grad(with_k)(jnp.nan), InputError, "'k'"),
    "no such parameter": (lambda: Problem(square, plain, Dirichlet(u, 0)).with_(kk=1), InputError, "did you mean 'k'"),
    "parameter without value": (
        lambda: solve(Problem(square, -div(Parameter("c") * grad(u)) == 1, Dirichlet(u, 0))), InputError, "no value"),
    "unknown option": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)), oder=2), InputError, "did you mean 'order'"),
    "unknown method": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)), method="fen"), InputError, "'fem'"),
    "unknown solver": (
        lambda: solve(Problem(square, plain, Dirichlet(u, 0)), solver="drect"), InputError, "did you mean 'direct'"),
    "order": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)), order=4), UnsupportedError, "orders 1 to 3"),
    "contradiction": (
        lambda: solve(Problem(square, plain, Dirichlet(u, 0), Neumann(u, 0, on="left"))), InputError, "contradictory"),
    "outside": (lambda: solve(Problem(square, plain, Dirichlet(u, 0)))([[2.0, 0.0]]), InputError, "outside the mesh"),
    "no such cell group": (
        lambda: solve(Problem(square, -div({"steel": 1.0} * grad(u)) == 1, Dirichlet(u, 0))), InputError, "'steel'"),
    "cells in two groups": (
        lambda: solve(Problem(two_parts(), -div({"a": 1.0, "b": 2.0} * grad(u)) == 1, Dirichlet(u, 0))), InputError, "two of"),
    "cells in no group": (
        lambda: solve(Problem(two_parts(), -div({"a": 1.0} * grad(u)) == 1, Dirichlet(u, 0))), InputError, "none of these"),
    "too many equations": (lambda: Problem(square, plain, plain, Dirichlet(u, 0)), InputError, "one equation for each"),
    "no equation": (lambda: Problem(square, Dirichlet(u, 0)), InputError, "one equation for each"),
    "stranger's condition": (lambda: Problem(square, plain, Dirichlet(Field("v"), 0)), InputError, "no equation"),
    "not a condition": (lambda: Problem(square, plain, 3), InputError, "equations and conditions"),
    "not a domain": (lambda: Problem(plain, Dirichlet(u, 0)), InputError, "domain"),
    "wrong array": (
        lambda: solve(Problem(square, -div(Parameter("c", np.ones(3), on="cells") * grad(u)) == 1, Dirichlet(u, 0))),
        InputError, "wrong shape"),
    "vector times vector": (
        lambda: solve(Problem(square, -div(grad(u)) + grad(u) * grad(u) == 1, Dirichlet(u, 0))), ShapeError, "dot"),
    "vector for a scalar": (
        lambda: solve(Problem(square, -div(grad(u)) + grad(u) == 1, Dirichlet(u, 0))), ShapeError, "does not fit"),
    "coefficient outside": (
        lambda: solve(Problem(square, (lambda x: 1 + x[0]) * div(grad(u)) == 1,
                              Dirichlet(u, 0))), UnsupportedError, "varies in space"),
    "surface": (
        lambda: Domain.from_mesh(box_mesh([0, 0, 0], [1, 1, 1], 1).__class__(np.eye(3), np.array([[0, 1, 2]]), "triangle")),
        InputError, "surface"),
    "truth of an equation": (lambda: bool(u), InputError, "truth value"),
    "empty box": (lambda: Rectangle((0, 0), (1, 0)), InputError, "above"),
    "Robin without flux": (
        lambda: solve(Problem(square, plain, Robin(u, logarithm, 0))), InputError, "'logarithm'"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    act, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        act()
