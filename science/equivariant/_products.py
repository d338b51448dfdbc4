"""Tensor products as layers: channelwise (weights from outside), fully connected, full, and symmetric powers."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from sciax.core.errors import InputError
from sciax.core.ops.so3 import Irrep, Irreps, clebsch_gordan, multilinear, product_table, symmetric_basis
from sciax.science.equivariant._array import IrrepsArray
from sciax.science.equivariant._random import normal


class ChannelwiseProduct(eqx.Module):
    """x ⊗ y with a weight for each edge, path and channel, paths into one irrep summed: the product of NequIP and MACE.

    Blocks of x have one multiplicity (channels); y has multiplicity 1 (spherical harmonics). Paths into an irrep are
    scaled by 1/√(their number).
    """

    first: Irreps = eqx.field(static=True)
    second: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)

    def __init__(self, first: Irreps | str, second: Irreps | str, keep: Irreps | str):
        """`first`, `second`: single irreps; of `keep`, those that O(3) allows become the target."""
        self.first, self.second = Irreps(first), Irreps(second)
        reached = {ir for (_, a), (_, b) in itertools.product(self.first, self.second) for ir in a * b}
        self.target = Irreps(keep).filter(lambda _, ir: ir in reached)
        if not self.target:
            raise InputError("O(3) allows no coupling", got=f"{self.first} x {self.second}", expected=f"one of {keep}")

    @property
    def paths(self) -> int:
        return len(product_table(self.first, self.second, self.target)[1])

    def __call__(
        self,
        x: Float[Array, "dx edges channels"],
        y: Float[Array, "dy edges"],
        weights: Float[Array, "paths edges channels"],
    ) -> Float[Array, "dz edges channels"]:
        table, paths = product_table(self.first, self.second, self.target)
        count = np.bincount([p.c for p in paths], minlength=len(self.target))
        scale = np.array([count[p.c] ** -0.5 for p in paths]).astype(weights.dtype)
        return multilinear(x, y[..., None], weights * scale[:, None, None], table=table)


def tensor_product(x: IrrepsArray, y: IrrepsArray, keep: Irreps | str | None = None) -> IrrepsArray:
    """All couplings of all channels, multiplicity mul_x · mul_y a path, component normalisation, sorted and regrouped."""
    wanted = None if keep is None else {ir for _, ir in Irreps(keep)}
    found: dict[Irrep, list[Array]] = {}
    for ((_, a), u), ((_, b), v) in itertools.product(zip(x.irreps, x.chunks), zip(y.irreps, y.chunks)):
        for c in a * b:
            if wanted is None or c in wanted:
                cg = jnp.asarray(clebsch_gordan(a.l, b.l, c.l) * np.sqrt(c.dim), u.dtype)
                z = jnp.einsum("ijk,i...u,j...v->k...uv", cg, u, v, precision="highest")
                found.setdefault(c, []).append(z.reshape(*z.shape[:-2], -1))
    if not found:
        raise InputError("no coupling is left", got=f"{x.irreps} x {y.irreps}", expected=str(keep))
    blocks = [(ir, jnp.concatenate(found[ir], -1)) for ir in sorted(found)]
    return IrrepsArray(Irreps([(z.shape[-1], ir) for ir, z in blocks]), [z for _, z in blocks])


class FullyConnectedProduct(eqx.Module):
    """z_w = Σ_paths Σ_uv W_uvw (x_u ⊗ y_v), variance preserving: every channel with every channel."""

    first: Irreps = eqx.field(static=True)
    second: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)
    weights: tuple[tuple[tuple[int, int, Array], ...], ...]

    def __init__(self, first, second, target, *, key: Array, dtype=jnp.float32):
        self.first, self.second, self.target = Irreps(first), Irreps(second), Irreps(target)
        rows = []
        for mul, ir in self.target:
            row = []
            for (i, (mu, a)), (j, (mv, b)) in itertools.product(enumerate(self.first), enumerate(self.second)):
                if ir in a * b:
                    key, draw = jax.random.split(key)
                    row.append((i, j, normal(draw, (mu, mv, mul), dtype)))
            if not row:
                raise InputError(f"{ir} cannot come out of this product", got=f"{self.first} x {self.second}")
            rows.append(tuple(row))
        self.weights = tuple(rows)

    def __call__(self, x: IrrepsArray, y: IrrepsArray) -> IrrepsArray:
        out = []
        for (_, ir), row in zip(self.target, self.weights):
            fan = sum(w.shape[0] * w.shape[1] for _, _, w in row)
            total = 0.0
            for i, j, w in row:
                cg = clebsch_gordan(self.first[i][1].l, self.second[j][1].l, ir.l) * np.sqrt(ir.dim / fan)
                u, v = x.chunks[i], y.chunks[j]
                # channels first (the big sum), then the few components
                t = jnp.einsum("j...v,uvw->j...uw", v, w)
                total = total + jnp.einsum("ijk,i...u,j...uw->k...w", jnp.asarray(cg, u.dtype), u, t)
            out.append(total)
        return IrrepsArray(self.target, out)


class SymmetricContraction(eqx.Module):
    """B_k = Σ_ν Σ_paths W[species, path, channel] · (A ⊗ ... ⊗ A)_path,k for ν = 1..order: MACE's many-body step.

    The monomials of A are formed once a channel and shared by all paths; weights are contracted with the basis first, which
    costs species and not nodes. Source: Batatia et al., NeurIPS 2022 (with an orthonormal basis of symmetric couplings).
    """

    source: Irreps = eqx.field(static=True)
    target: Irreps = eqx.field(static=True)
    order: int = eqx.field(static=True)
    channels: int = eqx.field(static=True)
    weights: tuple[tuple[Array, ...], ...]

    def __init__(self, source, target, order: int, species: int, channels: int, *, key: Array, dtype=jnp.float32):
        if not 1 <= order <= 3:
            raise InputError("symmetric contractions are offered for orders 1 to 3", got=order)
        self.source, self.target, self.order, self.channels = Irreps(source), Irreps(target), order, channels
        rows = []
        for _, ir in self.target:
            row = []
            for nu in range(1, order + 1):
                key, draw = jax.random.split(key)
                paths = len(symmetric_basis(self.source, nu, ir)[1])
                row.append(normal(draw, (species, paths, channels), dtype) / max(paths, 1))
            rows.append(tuple(row))
        self.weights = tuple(rows)

    def __call__(
        self, a: Float[Array, "ds nodes channels"], species: Int[Array, " nodes"]
    ) -> Float[Array, "dt nodes channels"]:
        # Σ_i A_i Σ_jl c_ijl A_j A_l: the inner sums over pairs are one matrix product a channel, for all species at once, and
        # cubic monomials are never formed. Layout (channel, component, node) throughout.
        x = jnp.transpose(a, (2, 0, 1))
        kinds, dims = self.weights[0][0].shape[0], [ir.dim for _, ir in self.target]
        chosen = (species == jnp.arange(kinds)[:, None]).astype(a.dtype)[None, :, None]  # (1, species, 1, nodes)
        n, total = self.source.dim, sum(dims)

        def by_species(coefficients: Array, terms: Array) -> Array:
            """(channels, species, rows, terms) x (channels, terms, nodes) -> (channels, rows, nodes), each node its own."""
            c = coefficients.reshape(self.channels, -1, coefficients.shape[-1])
            y = jnp.matmul(c, terms).reshape(self.channels, kinds, -1, a.shape[1])
            return y[:, 0] if kinds == 1 else jnp.sum(y * chosen, 1)

        out = by_species(self._coefficients(1, a.dtype), x)
        if self.order == 1:
            return jnp.transpose(out, (1, 2, 0))
        j, l = np.array(list(itertools.combinations_with_replacement(range(n), 2))).T
        pairs = x[:, j] * x[:, l]
        coefficients = [self._coefficients(2, a.dtype)]
        if self.order == 3:
            cubic = self._coefficients(3, a.dtype)  # (channels, species, total * n, pairs)
            coefficients.append(cubic)
        rows = by_species(jnp.concatenate(coefficients, 2), pairs)
        out = out + rows[:, :total]
        if self.order == 3:
            inner = rows[:, total:].reshape(self.channels, total, n, -1)
            out = out + jnp.sum(inner * x[:, None], 2)
        return jnp.transpose(out, (1, 2, 0))

    def _coefficients(self, order: int, dtype) -> Array:
        """Basis contracted with the weights: (channels, species, rows, terms)."""
        blocks = []
        for t, (_, ir) in enumerate(self.target):
            basis = _split_basis(self.source, order, ir).astype(dtype)  # (paths, rows, terms)
            blocks.append(jnp.einsum("pkm,zpu->uzkm", basis, self.weights[t][order - 1]))
        return jnp.concatenate(blocks, 2)


@functools.cache
def _split_basis(source: Irreps, order: int, ir: Irrep) -> np.ndarray:
    """`symmetric_basis` as (paths, rows, terms): terms are the monomials; at order 3 rows are (component, first factor) and
    terms the pairs of the other two."""
    monomials, basis = symmetric_basis(source, order, ir)
    if order < 3:
        return basis
    n = source.dim
    pair = {m: k for k, m in enumerate(itertools.combinations_with_replacement(range(n), 2))}
    out = np.zeros((len(basis), ir.dim, n, len(pair)))
    rest = np.array([pair[tuple(m)] for m in monomials[:, 1:].tolist()])
    out[:, :, monomials[:, 0], rest] = basis
    return out.reshape(len(basis), ir.dim * n, len(pair))
