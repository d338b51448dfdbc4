"""Interfaces between materials: a kink of the solution where a coefficient jumps, with the flux continuous.

|phi|, phi being a function that vanishes on the interface, joins the inputs of the network: it then has a kink there, and nowhere
else (cusp-capturing networks, Tseng, Lin, Hu & Lai 2023). The continuity of the flux is one more term of the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from sciax.core.errors import InputError
from sciax.science.geometry import BoxDomain
from sciax.science.geometry._sampling import sample_interior
from sciax.science.pde import Field, Problem
from sciax.science.pinn._hard import Frame

NEWTON = 8  # steps of the projection onto the interface


@dataclass(frozen=True, eq=False)
class Interface:
    """Where materials meet: `Interface(Disk((.5, .5), .2))`, or `Interface(lambda x: x[0] - 0.3)`.

    Attributes:
        where: a shape, whose boundary it is, or a smooth function of x that vanishes there (its gradient must not).
        fields_named: names of the fields with a kink; all that have a flux if none is named.
    """

    where: Any
    fields_named: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.where) and not hasattr(self.where, "distance"):
            raise InputError("an interface is a shape or a function of x", got=repr(self.where))

    def __repr__(self) -> str:
        return f"Interface({getattr(self.where, '__name__', None) or repr(self.where)})"

    def level(self, x: Array) -> Array:
        """phi at one point [dim]."""
        return self.where.distance(x) if hasattr(self.where, "distance") else self.where(x)

    def feature(self, dim: int) -> Callable[[Array], Array]:
        return lambda z: jnp.abs(self.level(z[:dim]))

    def fields(self, problem: Problem) -> list[Field]:
        """Fields the flux condition is about."""
        from sciax.science.pde import weak_form

        chosen = [f for f in problem.fields if not self.fields_named or f.name in self.fields_named]
        with_flux = [f for f, e in zip(problem.fields, problem.equations, strict=True) if weak_form(e, f).flux]
        found = [f for f in chosen if f in with_flux]
        if not found:
            raise InputError(
                f"{self!r}: no field has a flux across it", remedy="write the equation as -div(k * grad(u)) == f"
            )
        return found

    def draw(
        self, domain: Any, frame: Frame, scale: float, times: Callable[[int, Any], np.ndarray]
    ) -> Callable[[int, Any], tuple[np.ndarray, np.ndarray | None]]:
        """(count, seed) -> points on the interface inside of the domain [axes, n], and its normals."""

        def newton(x: Array) -> tuple[Array, Array, Array]:
            for _ in range(NEWTON):
                value, slope = jax.value_and_grad(self.level)(x)
                x = x - value * slope / jnp.maximum(slope @ slope, 1e-30)
            value, slope = jax.value_and_grad(self.level)(x)
            return x, slope / jnp.maximum(jnp.linalg.norm(slope), 1e-30), jnp.abs(value)

        project = jax.jit(jax.vmap(newton))

        def points(count: int, seed: Any) -> tuple[np.ndarray, np.ndarray | None]:
            rng = np.random.default_rng(seed)
            found, normals = np.zeros((0, frame.dim)), np.zeros((0, frame.dim))
            for _ in range(20):
                tried = sample_interior(domain, 4 * count, kind="random", seed=rng)
                x, n, off = (np.asarray(v) for v in project(jnp.asarray(tried)))
                low, high = frame.lower[: frame.dim], frame.upper[: frame.dim]
                good = (off < 1e-10 * scale) & ((x > low) & (x < high)).all(1)
                if not isinstance(domain, BoxDomain) and hasattr(domain, "contains"):
                    good &= np.asarray(domain.contains(x))
                # Near ones only: far points crowd where the level set bends towards them.
                good &= np.linalg.norm(x - tried, axis=1) < 0.15 * scale
                found, normals = np.concatenate([found, x[good]]), np.concatenate([normals, n[good]])
                if len(found) >= count:
                    break
            if len(found) < count:
                raise InputError(
                    f"{self!r} does not cross the domain", got=f"{len(found)} of {count} points found on it"
                )
            z = found[:count]
            if frame.timed:
                z = np.concatenate([z, rng.permutation(times(count, rng))], axis=1)
            return z.T, normals[:count].T

        return points
