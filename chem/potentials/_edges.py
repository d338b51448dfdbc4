"""What all networks compute of an edge: distance, smooth radial features, spherical harmonics."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int

from sciax.core.ops.neighbours import safe_norm
from sciax.core.ops.so3 import spherical_harmonics
from sciax.science.equivariant import envelope, radial_basis


class Edges(NamedTuple):
    """Features of the edges of a graph; everything that multiplies `radial` or `cut` is 0 beyond the cutoff and on padding."""

    centers: Int[Array, " edges"]
    others: Int[Array, " edges"]
    r: Float[Array, " edges"]
    cut: Float[Array, " edges"]
    radial: Float[Array, "edges basis"]
    harmonics: Float[Array, "components edges"]


def edge_features(
    vectors: Float[Array, "edges 3"],
    centers: Int[Array, " edges"],
    others: Int[Array, " edges"],
    cutoff: float,
    basis: int,
    lmax: int,
    *,
    kind: str = "bessel",
    order: int = 5,
) -> Edges:
    """Radial basis times envelope, and harmonics. A zero vector marks padding: it counts as lying at the cutoff."""
    r = safe_norm(vectors, at_zero=cutoff)
    cut = envelope(r, cutoff, "polynomial", order)
    radial = radial_basis(r, cutoff, basis, kind) * cut[:, None]
    return Edges(centers, others, r, cut, radial, spherical_harmonics(vectors, lmax=lmax))
