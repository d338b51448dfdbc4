"""Full-vector modes of a guide's cross-section on the Yee lattice, and derivatives of their index.

Along the guide (w) fields go as exp(i beta w - i w t). With E_t, H_t the transverse fields and H in units of E,

    beta E_t = P H_t,   beta J H_t = S E_t,   S = w^ eps - C' C / w^,   P J' = w^ + G eps_w^-1 G' / w^,

C and G the curl and gradient across. Both are symmetric under the areas of the lattice, so S E_t is the left eigenvector that
belongs to E_t: the derivative of an index needs no second solve. In terms of D_t = eps E_t it is one sparse generalised
eigenproblem, solved by shift and invert (ARPACK).

Source: Z. Zhu, T. G. Brown, Opt. Express 10 (2002) 853 (lattice); A. W. Snyder, J. D. Love, Optical Waveguide Theory (1983),
section 31-6 (reciprocity, derivatives).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from sciax.core.errors import ConvergenceError, InputError, ShapeError
from sciax.elec._constants import C0, Z0

_DIAGS: Any = sparse.diags  # its stubs know one offset only


class Section(NamedTuple):
    """A cross-section on the lattice: axes u, v across, w along (right-handed).

    Attributes:
        eps: (eps_u, eps_v, eps_w) at the points of E_u (u + 1/2, v), E_v (u, v + 1/2), E_w (u, v), each (nu, nv); inf on a
            conductor.
        inv_e, inv_h: pairs of inverse spacings, of nodes (nu,), (nv,) and of half nodes; one number for equal cells.
        mixed: entry (1/eps)_uv at nodes, or None.
        mirror: whether the low side across u, v is a magnetic mirror plane.

    Around the rectangle lies a conductor: E along it is zero at index 0 (unless a mirror is there) and at index n.
    """

    eps: tuple
    inv_e: tuple
    inv_h: tuple
    mixed: Any = None
    mirror: tuple[bool, bool] = (False, False)


class VectorMode(NamedTuple):
    """A guided mode of unit power: sum over the section of area (E_u H_v - E_v H_u) = 1 W.

    Attributes:
        index: effective index.
        wavenumber: beta on the lattice (rad/m).
        e: E_u, E_v, and E_w / i (V/m) at their points.
        h: H_u, H_v, and H_w / i (A/m).
        group_index: c d beta / d w, of the lattice across and continuous along and in time.
    """

    index: float
    wavenumber: float
    e: tuple
    h: tuple
    group_index: float


def _operators(s: Section):
    nu, nv = np.shape(s.eps[0])

    def forward(n, inverse):
        return _DIAGS([np.broadcast_to(np.asarray(inverse, float), (n,))], [0]) @ _DIAGS(
            [-np.ones(n), np.ones(n - 1)], [0, 1], shape=(n, n)
        )

    def backward(n, inverse):
        return _DIAGS([np.broadcast_to(np.asarray(inverse, float), (n,))], [0]) @ _DIAGS(
            [np.ones(n), -np.ones(n - 1)], [0, -1], shape=(n, n)
        )

    one_u, one_v = sparse.identity(nu), sparse.identity(nv)
    du, dv = sparse.kron(forward(nu, s.inv_e[0]), one_v), sparse.kron(one_u, forward(nv, s.inv_e[1]))
    bu, bv = sparse.kron(backward(nu, s.inv_h[0]), one_v), sparse.kron(one_u, backward(nv, s.inv_h[1]))
    return du.tocsr(), dv.tocsr(), bu.tocsr(), bv.tocsr()


def _held(eps: list, mirror: tuple) -> list:
    """Permittivities with inf where the conductor at the low sides holds E."""
    out = [e.copy() for e in eps]
    for axis, free in enumerate(mirror):
        if not free:
            for c in (1 - axis, 2):
                out[c][(0, slice(None)) if axis == 0 else (slice(None), 0)] = np.inf
    return out


def _areas(s: Section):
    """Areas of the points of E_u, E_v, E_w."""
    nu, nv = np.shape(s.eps[0])
    pu, qu = (np.broadcast_to(1 / np.asarray(v[0], float), (nu,)) for v in (s.inv_e, s.inv_h))
    pv, qv = (np.broadcast_to(1 / np.asarray(v[1], float), (nv,)) for v in (s.inv_e, s.inv_h))
    return np.outer(pu, qv), np.outer(qu, pv), np.outer(qu, qv)


def vector_modes(
    section: Section,
    frequency: float,
    *,
    dt: float = 0.0,
    along: float = 0.0,
    count: int = 1,
    near: float | None = None,
) -> list[VectorMode]:
    """Guided modes of a cross-section, highest index first.

    Args:
        section: permittivity and spacings.
        frequency: Hz.
        dt, along: time step (s) and spacing along the guide (m) of the FDTD grid that will carry the modes; 0: continuous.
        count: how many.
        near: index to look around; default just above the largest of the materials.

    Raises:
        InputError: fewer guided modes than asked for (guided: above the index of the rim of the section).
        ConvergenceError: the eigenvalue iteration did not converge.
    """
    shapes = {np.shape(e) for e in section.eps}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2 or min(next(iter(shapes))) < 3:
        raise ShapeError("a cross-section has three permittivities of one 2-D shape, three points or more", got=shapes)
    w = 2 * np.pi * frequency
    w_hat = (2 / dt * np.sin(w * dt / 2) if dt else w) / C0
    raw = [np.asarray(e, float) for e in section.eps]
    eps = [e.ravel() for e in _held(raw, section.mirror)]
    size = eps[0].size
    inverse = [np.where(np.isfinite(e), 1 / e, 0.0) for e in eps]
    du, dv, bu, bv = _operators(section)
    t = _DIAGS([np.concatenate(inverse[:2])], [0]).tocsr()
    if section.mixed is not None and np.any(section.mixed):
        t = t + _mixed(section)
    curl = sparse.hstack([-dv, du])
    back = sparse.vstack([bv, -bu])  # of H_w: (curl H)_t
    # J H_t = (H_v, -H_u): divergence of it under 1/eps_w is E_w
    divergence = sparse.hstack([bu, bv])
    gradient = sparse.vstack([du, dv])
    p = w_hat * sparse.identity(2 * size) + gradient @ _DIAGS([inverse[2]], [0]) @ divergence / w_hat
    s = w_hat * sparse.identity(2 * size) - back @ curl @ t / w_hat
    free = np.nonzero(np.concatenate(inverse[:2]) > 0)[0]
    a = (p @ s).tocsr()[free][:, free].tocsc()
    b = t.tocsr()[free][:, free].tocsc()
    top = max(float(np.max(e[np.isfinite(e)])) for e in eps)
    # A layer may run through two opposite sides of the rim (slab, rib); what it guides lies above the other two.
    low = [1 if m else 0 for m in section.mirror]  # what lies on a mirror plane is not the rim
    sides = [max(float(np.max(np.take(r, [-1] if low[a] else [0, -1], axis=a))) for r in raw) for a in (0, 1)]
    floor = w_hat**2 * float(min(sides)) if np.isfinite(min(sides)) else 0.0
    sigma = w_hat**2 * (near**2 if near is not None else 1.001 * top)
    values: Any
    vectors: Any
    many = min(count + 2, free.size - 2)
    try:
        start = np.cos(1.0 + np.arange(free.size))  # the same answer every time
        values, vectors = linalg.eigs(a, many, M=b, sigma=sigma, v0=start)
    except (linalg.ArpackNoConvergence, RuntimeError) as error:
        raise ConvergenceError(
            "the mode solver did not converge", remedy="ask for fewer modes, or give `near`"
        ) from error
    order = np.argsort(-values.real)
    found: list[VectorMode] = []
    for i in order:
        squared = values[i].real
        if squared <= floor * (1 + 1e-9) or abs(values[i].imag) > 1e-6 * abs(squared):
            continue
        d = np.zeros(2 * size)
        column = vectors[:, i] * np.exp(-1j * np.angle(vectors[np.argmax(np.abs(vectors[:, i])), i]))
        d[free] = column.real
        found.append(_mode(section, d, np.sqrt(squared), w, w_hat, along, t, s, inverse, divergence, curl, eps))
        if len(found) == count:
            return found
    raise InputError(
        f"the cross-section guides {len(found)} modes, {count} are asked for",
        got=f"index squared {values.real.max() / w_hat**2:.4g} beside {floor / w_hat**2:.4g} of the rim",
        remedy="a wider core, a higher frequency, a larger window, or a lower order",
    )


def _mixed(section: Section):
    """Off-diagonal part of 1/eps: E_u from D_v through the nodes they share, as `yee.tensor_offdiagonal`."""
    nu, nv = np.shape(section.eps[0])
    mean = lambda n: _DIAGS([0.5 * np.ones(n), 0.5 * np.ones(n - 1)], [0, -1], shape=(n, n))  # noqa: E731
    to_u, to_v = sparse.kron(mean(nu), sparse.identity(nv)), sparse.kron(sparse.identity(nu), mean(nv))
    entry = _DIAGS([np.ravel(section.mixed)], [0])
    uv = to_u.T @ entry @ to_v
    return sparse.bmat([[None, uv], [uv.T, None]]).tocsr()


def _mode(section, d, beta, w, w_hat, along, t, s, inverse, divergence, curl, eps) -> VectorMode:
    shape = np.shape(section.eps[0])
    size = eps[0].size
    e_t = t @ d
    jh = s @ d / beta  # (H_v, -H_u) in units of E
    e_w = inverse[2] * (divergence @ jh) / w_hat  # E_w = i e_w
    h_w = -(curl @ e_t) / w_hat  # H_w = i h_w
    areas = [a.ravel() for a in _areas(section)]
    power = float(np.sum(areas[0] * e_t[:size] * jh[:size] + areas[1] * e_t[size:] * jh[size:])) / Z0
    scale = 1 / np.sqrt(abs(power))
    sign = np.sign(e_t[np.argmax(np.abs(e_t))]) * scale
    e = tuple((sign * v).reshape(shape) for v in (e_t[:size], e_t[size:], e_w))
    h = tuple((sign * v / Z0).reshape(shape) for v in (-jh[size:], jh[:size], h_w))
    electric = sum(float(np.sum(a * v.ravel() * x)) for a, v, x in zip(areas, e, (d[:size], d[size:])))
    electric *= sign
    finite = np.where(np.isfinite(eps[2]), eps[2], 0.0)
    electric += float(np.sum(areas[2] * finite * e[2].ravel() ** 2))
    magnetic = Z0**2 * sum(float(np.sum(a * v.ravel() ** 2)) for a, v in zip((areas[1], areas[0]), h[:2]))
    pu, pv = (1 / np.asarray(v, float) for v in section.inv_e)
    magnetic += Z0**2 * float(
        np.sum(np.multiply.outer(np.broadcast_to(pu, shape[0]), np.broadcast_to(pv, shape[1])) * h[2] ** 2)
    )
    group = (electric + magnetic) / (2 * Z0)
    k = 2 / along * np.arcsin(beta * along / 2) if along else beta
    return VectorMode(float(k * C0 / w), float(k), e, h, float(group))


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def effective_index(eps: tuple, spacing: tuple[float, float], order: int, dtype: Any, frequency: Any) -> Any:
    """Effective index of a guided mode, differentiable in the permittivity of every point and in the frequency.

    Args:
        eps: (eps_u, eps_v, eps_w), see `Section`.
        spacing: of equal cells across (m).
        order: 0 for the highest index. Of two modes of one index (a round fibre) the derivative is that of whichever came.
        dtype: of the answer.
        frequency: Hz.

    The derivative is d beta = w^/2 sum area d eps |E|^2 / power for the mode with its own left vector, exact on the lattice.
    """
    return _solve(eps, spacing, order, dtype, frequency)[0]


def _solve(eps, spacing, order, dtype, frequency):
    shape = np.shape(eps[0])

    def host(eps, frequency):
        inverse = (1 / spacing[0], 1 / spacing[1])
        section = Section(tuple(np.asarray(e, np.float64) for e in eps), inverse, inverse)
        m = vector_modes(section, float(frequency), count=order + 1)[order]
        # d n = c/w d beta, d beta = w/(2 c Z0) area d eps |E|^2 at unit power
        slopes = [0.5 / Z0 * a * v**2 for a, v in zip(_areas(section), m.e)]
        slope_f = (m.group_index - m.index) / float(frequency)
        return tuple(np.asarray(v, dtype) for v in (m.index, *slopes, slope_f))

    out = tuple(jax.ShapeDtypeStruct(s, dtype) for s in ((), shape, shape, shape, ()))
    return jax.pure_callback(host, out, eps, frequency, vmap_method="sequential")


@effective_index.defjvp
def _effective_index_jvp(spacing, order, dtype, primals, tangents):
    eps, frequency = primals
    index, gu, gv, gw, gf = _solve(eps, spacing, order, dtype, frequency)
    d_eps, d_f = tangents
    change = sum(jnp.sum(g * t) for g, t in zip((gu, gv, gw), d_eps)) + gf * d_f
    return index, jnp.asarray(change, index.dtype)
