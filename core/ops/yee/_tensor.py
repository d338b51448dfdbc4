"""Off-diagonal part of a symmetric material tensor on the Yee lattice.

The tensor lives at nodes (i, j, k); the coupling of Ex(i+1/2) with Ey(j+1/2) passes through the node they share with weight
1/4 both ways, so the whole operator is symmetric and the scheme keeps its energy.
Source: G. R. Werner, J. R. Cary, J. Comput. Phys. 226 (2007) 1085; A. F. Oskooi et al., Opt. Lett. 34 (2009) 2778.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Array, Inexact

from sciax.core.ops._registry import Sample, operator
from sciax.core.ops.yee._curl import shift


def _oracle(fx, fy, fz, xy, xz, yz, *, wrap=(None, None, None)):
    f = [np.asarray(a) for a in (fx, fy, fz)]
    tensor = {(0, 1): xy, (0, 2): xz, (1, 2): yz}
    out = [np.zeros(a.shape, np.result_type(a, np.float64)) for a in f]
    shape = f[0].shape
    for node in np.ndindex(*shape):
        for (a, b), t in tensor.items():
            # edges that meet at the node along a and along b: one ends here, one starts here
            for u, v in ((a, b), (b, a)):
                for du in (0, -1):
                    for dv in (0, -1):
                        p, q = list(node), list(node)
                        p[u] += du
                        q[v] += dv
                        fp = fq = 1.0
                        if p[u] < 0:
                            if wrap[u] is None:
                                continue
                            p[u], fp = shape[u] - 1, wrap[u]
                        if q[v] < 0:
                            if wrap[v] is None:
                                continue
                            q[v], fq = shape[v] - 1, wrap[v]
                        out[u][tuple(p)] += 0.25 * fp * t[node] * f[v][tuple(q)] / fq
    return tuple(out)


def _samples(rng: np.random.Generator) -> Iterable[Sample]:
    for label, shape, wrap in (
        ("ordinary", (4, 3, 5), (None,) * 3),
        ("periodic", (3, 4, 3), (1.0, 1.0, None)),
        ("size one", (1, 1, 1), (None,) * 3),
        ("empty", (0, 2, 2), (None,) * 3),
        ("badly scaled", (2, 3, 2), (None,) * 3),
    ):
        scale = 1e7 if label == "badly scaled" else 1.0
        yield Sample(label, tuple(scale * rng.standard_normal(shape) for _ in range(6)), {"wrap": wrap})


@operator("yee.tensor_offdiagonal", oracle=_oracle, samples=_samples, flops=lambda fx, *rest, **_: 36.0 * np.size(fx))
def tensor_offdiagonal(
    fx: Inexact[Array, "nx ny nz"] | None,
    fy: Inexact[Array, "nx ny nz"] | None,
    fz: Inexact[Array, "nx ny nz"] | None,
    xy: Inexact[Array, "nx ny nz"] | None,
    xz: Inexact[Array, "nx ny nz"] | None,
    yz: Inexact[Array, "nx ny nz"] | None,
    *,
    wrap: tuple = (None, None, None),
) -> tuple:
    """Off-diagonal tensor at nodes applied to a field at edges, giving a field at edges.

    Args:
        fx, fy, fz: field at edges (D, or curl H), None where absent.
        xy, xz, yz: tensor entries at nodes, None for zero.
        wrap: as in `curl_e`.

    Returns:
        Three arrays (None where nothing couples).
    """
    f = (fx, fy, fz)
    tensor = {(0, 1): xy, (0, 2): xz, (1, 2): yz}

    def to_node(a, axis):  # mean of the two edges that meet at a node
        return 0.5 * (a + shift(a, axis, 1, wrap[axis]))

    def to_edge(a, axis):
        return 0.5 * (a + shift(a, axis, -1, wrap[axis]))

    out: list = [None, None, None]
    for (a, b), t in tensor.items():
        if t is None:
            continue
        for u, v in ((a, b), (b, a)):
            if f[v] is None or f[u] is None:
                continue
            term = to_edge(t * to_node(f[v], v), u)
            out[u] = term if out[u] is None else out[u] + term
    return tuple(out)
