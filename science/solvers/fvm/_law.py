"""What a finite-volume scheme needs to know of a system of conservation laws `dq/dt + div F(q) = 0`."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from sciax.core.errors import InputError
from sciax.science.pde import Expr, Field


class Law:
    """Base. States are arrays of `size` rows, any shape behind: `w` primitive (what conditions state), `q` conserved.

    Attributes:
        fields: the primitive unknowns, in the order of the rows of `w`.
        constants: numbers or Parameters of the law by name, given to every method as `c`.
        schemes: numerical fluxes, the default first.
        variables: what may be reconstructed at faces, the default of limited slopes first, that of WENO last.
        quantities: names of what must stay positive. ideal: without `diffusive` fluxes.
        points: Gauss points an axis of a cell for averages of what is given; 3 is exact to degree 5, enough for WENO5.
        extra: rows carried beside the state (the bed of shallow water), name -> expression of x.
    """

    schemes: ClassVar[tuple[str, ...]] = ("rusanov",)
    variables: ClassVar[tuple[str, ...]] = ("conserved",)
    quantities: ClassVar[tuple[str, ...]] = ("state",)
    ideal: ClassVar[bool] = True
    points: ClassVar[int] = 3

    def __init__(self, dim: int, fields: tuple[Field, ...], constants: dict[str, Expr], extra: dict[str, Expr]):
        if dim not in (1, 2, 3):
            raise InputError("a conservation law is in 1, 2 or 3 dimensions", got=dim)
        self.dim, self.fields, self.constants, self.extra = dim, fields, constants, extra
        self.size = sum(f.size for f in fields)

    def primitive(self, q: Any, c: Any) -> Any:
        return q

    def conserved(self, w: Any, c: Any) -> Any:
        return w

    def positive(self, q: Any, c: Any) -> tuple[Any, ...]:
        """The `quantities` of a conserved state: negative or not finite where it is none."""
        return (jnp.where(jnp.isfinite(q).all(axis=0), 1.0, -1.0),)

    def speed(self, w: Any, c: Any, direction: int) -> Any:
        """Largest wave speed along an axis."""
        raise NotImplementedError

    def mirror(self, w: Any, direction: int) -> Any:
        """The state behind a wall across an axis."""
        raise NotImplementedError

    def edges(self, rows: Any, c: Any, kind: str) -> Any:
        """Rows that are reconstructed, from primitive and extra rows."""
        return self.conserved(rows[: self.size], c) if kind != "primitive" else rows[: self.size]

    def from_edges(self, v: Any, c: Any, kind: str) -> Any:
        """Conserved state from reconstructed rows."""
        return self.conserved(v, c) if kind == "primitive" else v

    def sound(self, v: Any, c: Any, kind: str) -> Any:
        """Where reconstructed rows are a state at all; elsewhere the cell's average is taken."""
        return jnp.stack([value > 0 for value in self.positive(self.from_edges(v, c, kind), c)]).all(axis=0)

    def project(self, a: Any, b: Any, c: Any, direction: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """Maps to characteristic variables (a list of waves) and back, frozen at the mean of two conserved states."""
        raise NotImplementedError

    def face(self, left: Any, right: Any, c: Any, kind: str, scheme: str, direction: int) -> tuple[Any, Any]:
        """Fluxes out of the left and into the right cell, from reconstructed rows on both sides."""
        raise NotImplementedError

    def inside(self, low: Any, high: Any, c: Any, direction: int) -> Any:
        """Work of the law inside a cell, per unit of length, from its reconstructed rows at both ends; None if there is none."""
        return None

    def diffusive(self, w: Any, spacing: Any, c: Any, direction: int) -> Any:
        """Flux of friction and conduction through faces, from primitive rows with one ghost cell all round."""
        raise NotImplementedError

    def diffusivity(self, w: Any, c: Any) -> Any:
        """Largest diffusivity, for the time step."""
        return 0.0


class ScalarLaw(Law):
    """`du/dt + div f(u) = 0` for one scalar: advection, Burgers, traffic.

    Args:
        flux: a JAX function from u to its flux, a number in one dimension, `[dim]` otherwise.
        dim: of space. name: of the field.
    """

    def __init__(self, flux: Callable[..., Any], dim: int = 1, name: str = "u"):
        if not callable(flux):
            raise InputError("the flux of a scalar law is a function of u", got=flux)
        self.function = flux
        super().__init__(dim, (Field(name),), {}, {})

    @property
    def unknown(self) -> Field:
        return self.fields[0]

    def _flux(self, u, direction):
        """Values and derivatives of one component of the flux over an array."""

        def component(value):
            return jnp.broadcast_to(jnp.asarray(self.function(value)).reshape(-1)[direction], ())

        flat = u.ravel()
        value, slope = jax.vmap(jax.value_and_grad(component))(flat)
        return value.reshape(u.shape), slope.reshape(u.shape)

    def speed(self, w, c, direction):
        return jnp.abs(self._flux(w[0], direction)[1])

    def mirror(self, w, direction):
        return w

    def face(self, left, right, c, kind, scheme, direction):
        (f_l, s_l), (f_r, s_r) = self._flux(left[0], direction), self._flux(right[0], direction)
        speed = jnp.maximum(jnp.abs(s_l), jnp.abs(s_r))
        flux = (0.5 * (f_l + f_r) - 0.5 * speed * (right[0] - left[0]))[None]
        return flux, flux
