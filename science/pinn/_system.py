"""A problem as a least-squares system: network, ansatz, residual terms, and what is prepared once for a set of points."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from sciax.core.autodiff import sum_in_blocks
from sciax.core.errors import InputError, UnsupportedError, did_you_mean
from sciax.science.geometry import BoxDomain
from sciax.science.geometry._sampling import sample_boundary, sample_interior, unit_points
from sciax.science.pde import Dirichlet, Expr, Field, Initial, Neumann, Problem, Robin, weak_form
from sciax.science.pde._expr import Add, Constant, Dot, Mul, Normal, Parameter, walk
from sciax.science.pinn._hard import (
    Data,
    Frame,
    box_ansatz,
    box_faces,
    components,
    disagreement,
    frame_of,
    parts_of,
    periodic_axes,
    shape_ansatz,
    value_of,
)
from sciax.science.pinn._interface import Interface
from sciax.science.pinn._jets import Index, Jet, jet_of
from sciax.science.pinn._strong import Strong, union
from sciax.science.pinn._unknown import as_guess, coefficient_networks
from sciax.science.pinn.networks import Embedding, build


class Model(eqx.Module):
    """All that is trained: the network, and unknown parameters of the problem: numbers, and networks of those that are fields."""

    network: Any
    unknowns: dict[str, Array]
    coefficients: dict[str, Any]


class Prepared(eqx.Module):
    """A set of points with everything there that does not depend on the network.

    Attributes:
        points: [axes, n].
        features, lift, mask: jets.
        places: jet of what the networks of unknown coefficients see; None without such.
        guesses: name -> jet of the first guess of an unknown coefficient.
        across: the same points on the other side of an interface, for terms that are differences; else None.
        normals: [dim, n] on a boundary.
        target: [rows, n], what the term should be; None for 0.
        weights: [n], of the points.
    """

    points: Array
    features: Jet
    lift: Jet
    mask: Jet
    normals: Array | None
    target: Array | None
    weights: Array
    places: Jet | None
    guesses: dict[str, Jet]
    across: "Prepared | None" = None


CACHE = 2**19
"""Bytes of one layer's values and derivatives that are worked through together on a CPU: they stay in a core's own cache."""


def block_size(derivatives: int, width: int, dtype: Any) -> int:
    """Points in a block of the loss: a layer of that width, with so many derivatives carried, fills `CACHE`."""
    return max(64, CACHE // (max(derivatives, 1) * width * jnp.dtype(dtype).itemsize))


@dataclass(frozen=True, eq=False)
class Term:
    """One part of the loss.

    Attributes:
        name: "equations", or the condition in words.
        exprs: should vanish (or equal the target).
        indices: derivatives of the network that they need.
        draw: (count, seed) -> points [axes, n], normals or None.
        jump: half the distance along the normals of the two points whose difference the term is; None for one point.
    """

    name: str
    exprs: list[Expr]
    indices: tuple[Index, ...]
    draw: Callable[[int, Any], tuple[np.ndarray, np.ndarray | None]]
    target: np.ndarray | None = None
    jump: float | None = None


@dataclass(frozen=True)
class NetworkOptions:
    """What the network is; `periods` is how many harmonics a periodic axis enters with."""

    network: str = "mlp"
    width: int = 20
    depth: int = 3
    activation: str | None = None
    fourier: int = 0
    fourier_scale: float = 1.0
    harmonics: int = 3


class System:
    """The least-squares system of a problem.

    Attributes:
        frame: box and time interval.
        terms: parts of the loss, the equations first.
        soft: conditions that are terms of the loss; all others hold exactly.
        notes: what was decided.
    """

    def __init__(
        self,
        problem: Problem,
        options: NetworkOptions,
        *,
        time: tuple[float, float] | None,
        hard: bool,
        lift: Callable[..., Any] | None,
        features: tuple[Callable[..., Any], ...],
        unknowns: dict[str, Any],
        observations: tuple[Any, ...],
        key: Key[Array, ""],
        interfaces: tuple[Interface, ...] = (),
    ):
        self.problem, self.options = problem, options
        self.guesses = {name: as_guess(name, v) for name, v in unknowns.items() if callable(v)}
        self.coefficient_fields = {name: Field(f"{name} (unknown)") for name in self.guesses}
        self.strong = Strong(problem, tuple(self.coefficient_fields.values()))
        timed = self.strong.axes > problem.dim
        self.frame: Frame = frame_of(problem, timed, time)
        self.dtype = jnp.result_type(float)
        self.notes: list[str] = []
        self._check_unknowns(unknowns, observations)
        self.unknowns = {n: jnp.asarray(v, self.dtype) for n, v in unknowns.items() if n not in self.guesses}
        self.values = {name: problem.value(name) for name in problem.parameters if name not in unknowns}
        self.values |= self.coefficient_fields
        self.interfaces = interfaces
        self._periodic = periodic_axes(problem)
        if self._periodic and not isinstance(problem.domain, BoxDomain):
            raise UnsupportedError("periodic conditions need a box", got=repr(problem.domain))
        self.soft: list[Any] = []
        self._make_ansatz(hard, lift)
        embed_key, net_key = jax.random.split(key)
        wrapped = (*(self._user(f) for f in features), *(i.feature(problem.dim) for i in interfaces))
        self.embedding = Embedding.make(
            self.frame.lower,
            self.frame.upper,
            periods=dict.fromkeys(self._periodic, options.harmonics),
            fourier=options.fourier,
            scale=options.fourier_scale,
            extra=wrapped,
            key=embed_key,
        )
        self.outputs = sum(f.size for f in problem.fields)
        network = build(
            options.network,
            self.embedding.size,
            self.outputs,
            width=options.width,
            depth=options.depth,
            activation=options.activation,
            key=net_key,
            dtype=self.dtype,
        )
        side_key = jax.random.fold_in(key, 1)
        self.places, coefficients = coefficient_networks(self.frame, tuple(self.guesses), side_key, self.dtype)
        self.model = Model(network, dict(self.unknowns), coefficients)
        self._make_terms(observations)
        self._check_covered()
        self._prepare = {
            indices: jax.jit(lambda z, i=indices: self._jets(z, i)) for indices in {t.indices for t in self.terms}
        }

    def _check_unknowns(self, unknowns: dict[str, Any], observations: tuple[Any, ...]) -> None:
        for name, guess in unknowns.items():
            if name not in self.problem.parameters:
                raise InputError(
                    f"the problem has no parameter {name!r}", remedy=did_you_mean(name, self.problem.parameters)
                )
            if not callable(guess) and not np.isfinite(np.asarray(guess, float)).all():
                raise InputError(f"the first guess of {name!r} is not finite", got=guess)
        if unknowns and not observations:
            raise InputError(
                f"nothing determines {', '.join(unknowns)}", remedy="observations=(Observations(u, points, values),)"
            )

    # -- the ansatz ------------------------------------------------------------------------------------------------------

    def _user(self, function: Callable[..., Any]) -> Data:
        """A function of x, or of (x, t), as one of the whole point."""
        from sciax.science.pde._expr import takes_time

        dim = self.problem.dim
        if takes_time(function):
            if not self.frame.timed:
                raise InputError("a function of (x, t) in a problem without time", got=function)
            return lambda z: jnp.asarray(function(z[:dim], z[dim]))
        return lambda z: jnp.asarray(function(z[:dim]))

    def _make_ansatz(self, hard: bool, lift: Callable[..., Any] | None) -> None:
        problem = self.problem
        box = isinstance(problem.domain, BoxDomain)
        pairs: list[tuple[Data, Data]] = []
        for field in problem.fields:
            for component in [None] if field.components is None else range(field.components):
                pairs.append(self._pair(field, component, hard, box))
        user = None if lift is None else self._user(lift)
        if user is not None and self.soft:
            raise InputError("a lift of one's own needs hard conditions", got="hard=False")

        def stacked_lift(z: Array) -> Array:
            if user is not None:
                return jnp.atleast_1d(user(z))
            return jnp.stack([one(z) for one, _ in pairs])

        def stacked_mask(z: Array) -> Array:
            return jnp.stack([one(z) for _, one in pairs])

        self.lift, self.mask = stacked_lift, stacked_mask
        if user is not None:
            self._check_lift(pairs)

    def _pair(self, field: Field, component: int | None, hard: bool, box: bool) -> tuple[Data, Data]:
        frame, problem = self.frame, self.problem
        conditions = [
            c for c in problem.of_kind(Dirichlet, Initial) if c.field.name == field.name and component in components(c)
        ]
        named = [c for c in conditions if set(self._names(c)) & {*self.unknowns, *self.guesses}]
        if hard and not named:
            if box:
                faces = box_faces(frame, field, component, self.values)
                clash = disagreement(frame, faces)
                if clash <= 1e-6:
                    return box_ansatz(frame, faces)
                self.notes.append(f"values of {field!r} on neighbouring sides differ by {clash:.1e}: soft conditions")
            elif hasattr(problem.domain, "distance_to"):
                return self._shape_pair(field, component)
            elif conditions:
                self.notes.append(f"{problem.domain!r} gives no distances: soft conditions")
        for condition in conditions:
            if condition not in self.soft:
                self.soft.append(condition)
        return (lambda z: jnp.zeros((), z.dtype)), (lambda z: jnp.ones((), z.dtype))

    def _shape_pair(self, field: Field, component: int | None) -> tuple[Data, Data]:
        frame, problem = self.frame, self.problem
        parts, initial = [], None
        start, span = frame.lower[-1], frame.upper[-1] - frame.lower[-1]
        for c in problem.of_kind(Dirichlet):
            if c.field.name == field.name and component in components(c):
                phi = problem.domain.distance_to(parts_of(problem, c))  # type: ignore[attr-defined]
                data = value_of(c.value, frame, self.values, component)
                parts.append(((lambda z, phi=phi: phi(z[: frame.dim])), data))
        for c in problem.of_kind(Initial):
            if c.field.name == field.name and component in components(c):
                data = value_of(c.value, frame, self.values, component)
                initial = ((lambda z: (z[frame.dim] - start) / span), data)
        return shape_ansatz(parts, initial, frame)

    def _names(self, condition: Any) -> list[str]:
        return [n.name for e in condition.exprs for n in walk(e) if isinstance(n, Parameter)]

    def _check_lift(self, pairs: list[tuple[Data, Data]]) -> None:
        """A lift of the user's must have the values that the conditions ask for where the mask vanishes."""
        z = self.frame.lower + (self.frame.upper - self.frame.lower) * unit_points(128, self.frame.axes, "sobol", 2)
        worst, scale = 0.0, 1e-300
        for axis in range(self.frame.axes):
            for end in (self.frame.lower, self.frame.upper):
                at = z.copy()
                at[:, axis] = end[axis]
                points = jnp.asarray(at, self.dtype)
                mine = jax.vmap(self.lift)(points)
                if mine.shape[1] != len(pairs):
                    raise InputError("the lift has the wrong number of values", got=mine.shape[1], expected=len(pairs))
                for i, (auto, mask) in enumerate(pairs):
                    on = np.abs(np.asarray(jax.vmap(mask)(points))) < 1e-12
                    want = np.asarray(jax.vmap(auto)(points))
                    if on.any():
                        worst = max(worst, float(np.abs(np.asarray(mine)[on, i] - want[on]).max()))
                        scale = max(scale, float(np.abs(want[on]).max()))
        if worst > 5e-3 * max(scale, 1e-3):
            raise InputError(
                f"the lift misses the conditions by {worst:.1e}",
                expected="the initial and boundary values at their places",
            )

    # -- terms of the loss -----------------------------------------------------------------------------------------------

    def _make_terms(self, observations: tuple[Any, ...]) -> None:
        values = {**self.values, **self.unknowns}
        frame, problem = self.frame, self.problem
        probe = frame.lower + (frame.upper - frame.lower) * unit_points(1024, frame.axes, "sobol", 3)
        probe = probe.T.astype(self.dtype)
        normals = np.full((frame.dim, probe.shape[1]), frame.dim**-0.5, self.dtype)

        def need(exprs: list[Expr]) -> tuple[Index, ...]:
            return union(self.strong.needed(exprs, probe, values, jnp.asarray(normals)))

        residuals = [e.residual for e in problem.equations]
        self.needs = self.strong.needed(residuals, probe, values)
        terms = [Term("equations", residuals, union(self.needs), self._draw_interior)]
        for c in self.soft + problem.of_kind(Neumann, Robin):
            exprs = [self._condition_residual(c)]
            draw = self._draw_start if isinstance(c, Initial) else self._draw_on(parts_of(problem, c))
            terms.append(Term(repr(c), exprs, need(exprs), draw))
        for interface in self.interfaces:
            scale = float((frame.upper - frame.lower)[: frame.dim].min())
            for field in interface.fields(problem):
                stands = [Dirichlet(field[i] if field.components else field) for i in range(field.size)]
                exprs = [self._natural(c) for c in stands]
                draw = interface.draw(problem.domain, frame, scale, self._times)
                terms.append(
                    Term(f"flux of {field!r} across {interface!r}", exprs, need(exprs), draw, None, 1e-8 * scale)
                )
        for k, seen in enumerate(observations):
            expr, at, data = seen.checked(self)
            name = f"observations {k}"
            target = np.asarray(data, self.dtype)
            terms.append(Term(name, [expr], need([expr]), lambda count, seed, at=at: (at, None), target))
        self.terms = tuple(terms)

    def _condition_residual(self, c: Any) -> Expr:
        u = c.field if c.component is None else c.field[c.component]
        if isinstance(c, Dirichlet | Initial):
            return Add((u, Mul((Constant(-1.0), c.value))))
        flux = self._natural(c)
        if isinstance(c, Robin):
            return Add((flux, Mul((c.coefficient, u)), Mul((Constant(-1.0), c.value))))
        return Add((flux, Mul((Constant(-1.0), c.value))))

    def _natural(self, c: Any) -> Expr:
        """flux . n of the field's own equation, by the weak form that finite elements use."""
        which = [f.name for f in self.problem.fields].index(c.field.name)
        form = weak_form(self.problem.equations[which], c.field)
        if not form.flux:
            raise UnsupportedError(f"{c!r}: the equation of {c.field!r} has no flux", remedy="write it as div(flux)")
        total: Expr = Add(tuple(Dot((term, Normal())) for term in form.flux))
        scale: Expr = Constant(1.0 / form.sign)
        for factor in form.scale:
            scale = scale / factor
        out: Expr = Mul((scale, total))
        return out if c.component is None else out[c.component]

    def _check_covered(self) -> None:
        """Every side needs a condition on each field that is differentiated twice in space."""
        problem = self.problem
        for field in problem.fields:
            if not any(sum(abs(n) for n in a[: self.frame.dim]) >= 2 for a in self.needs[field.name]):
                continue
            covered: set[str] = set()
            if isinstance(problem.domain, BoxDomain):
                covered = {n for n in problem.domain.boundaries if problem.domain.side(n)[0] in self._periodic}
            for c in problem.of_kind(Dirichlet, Neumann, Robin):
                if c.field.name == field.name:
                    covered |= set(parts_of(problem, c))
            every = getattr(problem.domain, "resolve", lambda _: problem.domain.boundaries)("boundary")
            missing = [n for n in every if n not in covered]
            if missing:
                raise InputError(
                    f"no condition on {field!r} along {', '.join(missing)}",
                    remedy="Dirichlet, Neumann, Robin, Periodic",
                )
        if problem.transient:
            started = {c.field.name for c in problem.of_kind(Initial)}
            for field in problem.fields:
                rates = any(a[-1] > 0 for a in self.needs[field.name])
                if rates and field.name not in started:
                    raise InputError(f"no initial value of {field!r}", remedy=f"Initial({field!r}, ...)")

    # -- points ----------------------------------------------------------------------------------------------------------

    def _times(self, count: int, seed: Any) -> np.ndarray:
        low, high = self.frame.lower[-1], self.frame.upper[-1]
        return low + (high - low) * unit_points(count, 1, "sobol", seed)

    def _draw_interior(self, count: int, seed: Any) -> tuple[np.ndarray, np.ndarray | None]:
        frame = self.frame
        if isinstance(self.problem.domain, BoxDomain):
            z = frame.lower + (frame.upper - frame.lower) * unit_points(count, frame.axes, "sobol", seed)
            return z.T, None
        x = sample_interior(self.problem.domain, count, kind="sobol", seed=seed)
        if frame.timed:
            rng = np.random.default_rng(seed)
            x = np.concatenate([x, rng.permutation(self._times(count, rng))], axis=1)
        return x.T, None

    def _draw_start(self, count: int, seed: Any) -> tuple[np.ndarray, np.ndarray | None]:
        x = sample_interior(self.problem.domain, count, kind="sobol", seed=seed)
        return np.concatenate([x, np.full((count, 1), self.frame.lower[-1])], axis=1).T, None

    def _draw_on(self, names: tuple[str, ...]) -> Callable[[int, Any], tuple[np.ndarray, np.ndarray | None]]:
        def draw(count: int, seed: Any) -> tuple[np.ndarray, np.ndarray | None]:
            found = sample_boundary(self.problem.domain, count, names, seed=seed)
            x = found.points
            if self.frame.timed:
                rng = np.random.default_rng(seed)
                x = np.concatenate([x, rng.permutation(self._times(count, rng))], axis=1)
            return x.T, found.normals.T

        return draw

    def _jets(self, z: Array, indices: tuple[Index, ...]) -> tuple[Jet, Jet, Jet, Jet | None, dict[str, Jet]]:
        """Features, lift, mask; what the networks of unknown coefficients see, and the first guesses of these."""
        features, lift, mask = (jet_of(f, z, indices) for f in (self.embedding, self.lift, self.mask))
        if self.places is None:
            return features, lift, mask, None, {}
        dim, places = self.frame.dim, self.places
        guesses = {
            name: jet_of(lambda p, g=g: jnp.atleast_1d(g(p[:dim])), z, indices) for name, g in self.guesses.items()
        }
        return features, lift, mask, jet_of(lambda p: places(p[:dim]), z, indices), guesses

    def prepare(self, term: Term, points: np.ndarray, normals: np.ndarray | None, weights: Any = None) -> Prepared:
        z = jnp.asarray(points, self.dtype)
        n = None if normals is None else jnp.asarray(normals, self.dtype)
        target = None if term.target is None else jnp.asarray(term.target, self.dtype)
        w = jnp.ones(z.shape[1], self.dtype) if weights is None else jnp.asarray(weights, self.dtype)
        prepare = self._prepare[term.indices]

        def at(z: Array, target: Array | None, across: Prepared | None = None) -> Prepared:
            features, lift, mask, places, guesses = prepare(z)
            return Prepared(z, features, lift, mask, n, target, w, places, guesses, across)

        if term.jump is None or n is None:
            return at(z, target)
        still = jnp.zeros((z.shape[0] - n.shape[0], z.shape[1]), self.dtype)
        step = jnp.concatenate([n, still]) * term.jump
        return at(z + step, target, at(z - step, None))

    # -- evaluation ------------------------------------------------------------------------------------------------------

    def split(self, rows: Any) -> dict[str, Any]:
        """Rows of the network's outputs by field: [n] for scalars, [components, n] for vectors."""
        out, at = {}, 0
        for field in self.problem.fields:
            out[field.name] = rows[at] if field.components is None else rows[at : at + field.size]
            at += field.size
        return out

    def fields(self, model: Model, data: Prepared) -> dict[str, dict[Index, Array]]:
        jet = data.lift + data.mask * model.network(data.features)
        by_index = {a: self.split(v) for a, v in jet.parts.items()}
        fields = {f.name: {a: rows[f.name] for a, rows in by_index.items()} for f in self.problem.fields}
        for name, field in self.coefficient_fields.items():
            own = data.guesses[name] + model.coefficients[name](data.places)
            fields[field.name] = {a: v[0] for a, v in own.parts.items()}
        return fields

    def residual(self, term: Term, model: Model, data: Prepared) -> Float[Array, "rows n"]:
        values = {**self.values, **model.unknowns}
        rows = self.strong.over(term.exprs, data.points, self.fields(model, data), values, data.normals)
        if data.across is not None:
            other = data.across
            rows = rows - self.strong.over(term.exprs, other.points, self.fields(model, other), values, other.normals)
        return rows if data.target is None else rows - data.target

    def coefficient(self, model: Model, name: str, points: Float[Array, "dim n"]) -> Float[Array, " n"]:
        """Values of an unknown coefficient."""
        assert self.places is not None
        guess = jax.vmap(self.guesses[name], 1)(points)
        return guess + model.coefficients[name](jax.vmap(self.places, 1, 1)(points))[0]

    def loss(self, model: Model, batch: tuple[tuple[Prepared, ...], Array]) -> Float[Array, ""]:
        """Weighted sum over the terms of their mean square."""
        prepared, weights = batch
        total = jnp.zeros((), self.dtype)
        for k, (term, data) in enumerate(zip(self.terms, prepared, strict=True)):
            points = data.points.shape[-1]

            def squares(model: Model, part: Prepared, term: Term = term) -> Array:
                return jnp.sum(part.weights * jnp.sum(self.residual(term, model, part) ** 2, axis=0))

            block = points
            if jax.default_backend() == "cpu":
                block = block_size(len(term.indices), self.options.width, self.dtype)
            total = total + weights[k] * sum_in_blocks(squares, model, data, block=block) / points
        return total

    def values_at(self, model: Model, points: Float[Array, "axes n"]) -> Float[Array, "outputs n"]:
        """The fields themselves, component by component."""
        lift, mask, features = (jax.vmap(f, 1, 1)(points) for f in (self.lift, self.mask, self.embedding))
        return lift + mask * model.network(features)
