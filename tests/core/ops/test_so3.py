# ruff: noqa: E731, B023
"""Representations of O(3): algebra, harmonics, couplings, Wigner matrices, products, closure under differentiation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import DTypeError, InputError, ShapeError
from sciax.core.ops import so3
from sciax.core.ops.so3 import Irrep, Irreps, Table


def rotations(n, seed=0, improper=False):
    r = np.asarray(so3.random_rotation(jax.random.key(seed), (n,), jnp.zeros(()).dtype))
    return -r if improper else r


def test_irreps_algebra():
    ir = Irreps("32x0e + 8x1o+2e")
    assert ir.dim == 32 + 24 + 5 and ir.multiplicity == 41 and ir.lmax == 2 and str(ir) == "32x0e+8x1o+1x2e"
    assert Irreps("1e+0e+1o+0o").sort() == Irreps("0e+0o+1o+1e")
    assert Irreps("1e+2x0e+1e").regroup() == Irreps("2x0e+2x1e")
    assert Irreps("2x0e+0e+0x1o").simplify() == Irreps("3x0e")
    assert ir.filter("0e+2e") == Irreps("32x0e+2e") and ir.filter(lmax=1) == Irreps("32x0e+8x1o")
    assert ir.filter(lambda m, i: m > 8) == Irreps("32x0e")
    assert ir.count("1o") == 8 and ir.count("1e") == 0
    assert [s.start for s in ir.slices()] == [0, 32, 56]
    assert 2 * Irreps("0e+1o") == Irreps("2x0e+2x1o") and Irreps("0e") + "1o" == Irreps("0e+1o")
    assert Irrep.parse("3y") == Irrep(3, -1) and Irrep(1, -1) * Irrep(1, -1) == [Irrep(0, 1), Irrep(1, 1), Irrep(2, 1)]
    assert Irreps.harmonics(2) == Irreps("0e+1o+2e") and Irreps("") == Irreps() and Irreps().dim == 0


@pytest.mark.parametrize("bad", ["1", "x1o", "2x", "-1x0e", "1o,2e", "ax1o"])
def test_bad_irreps(bad):
    with pytest.raises(InputError):
        Irreps(bad)


def test_first_harmonics_are_the_coordinates(x64):
    v = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
    y = so3.spherical_harmonics(v, lmax=1, normalise=False, normalisation="norm")
    np.testing.assert_allclose(y[1:].T, v, rtol=1e-15)
    # l = 2, m = -2: √15 x z in component normalisation (polar axis y)
    y2 = so3.spherical_harmonics(v, lmax=2, normalise=False)[4]
    np.testing.assert_allclose(y2, np.sqrt(15) * v[:, 0] * v[:, 2], rtol=1e-13)


def test_norms_and_orthogonality(x64):
    """|Y_l|² = 2l + 1 pointwise; ∫ Y Y' = δ by Gauss-Legendre quadrature."""
    y = so3.spherical_harmonics(jnp.asarray(np.random.default_rng(1).normal(size=(6, 3))), lmax=8)
    for l in range(9):
        np.testing.assert_allclose((y[l * l : (l + 1) ** 2] ** 2).sum(0), 2 * l + 1, rtol=1e-12)
    t, w = np.polynomial.legendre.leggauss(10)
    phi = np.arange(20) * 2 * np.pi / 20
    ring = np.sqrt(1 - t**2)
    pts = np.stack([ring[:, None] * np.sin(phi), t[:, None] + 0 * phi, ring[:, None] * np.cos(phi)], -1).reshape(-1, 3)
    y = np.asarray(so3.spherical_harmonics(jnp.asarray(pts), lmax=8, normalisation="integral"))
    gram = (y * np.repeat(w, 20) * 2 * np.pi / 20) @ y.T
    np.testing.assert_allclose(gram, np.eye(81), atol=1e-13)


@pytest.mark.parametrize("normalise", [True, False])
def test_derivatives_at_zero_and_poles(normalise, x64):
    f = lambda v: so3.spherical_harmonics(v, lmax=3, normalise=normalise).sum()
    for v in ([0.0, 0, 0], [0, 1, 0], [0, -1e-20, 0]):
        v = jnp.array(v, float)
        assert np.isfinite(jax.grad(f)(v)).all() and np.isfinite(jax.hessian(f)(v)).all()
    if normalise:
        np.testing.assert_array_equal(jax.grad(f)(jnp.zeros(3)), 0)


def test_single_precision_extremes():
    v = jnp.array([[1e-25, 2e-25, 0], [3e25, 0, 1e25]], jnp.float32)
    y = so3.spherical_harmonics(v, lmax=3)
    np.testing.assert_allclose((y[9:] ** 2).sum(0), 7, rtol=1e-5)


def test_clebsch_gordan_is_orthogonal_and_signed_as_published(x64):
    for a, b in itertools.product(range(4), repeat=2):
        rows = [
            so3.clebsch_gordan(a, b, c).reshape(-1, 2 * c + 1) * np.sqrt(2 * c + 1)
            for c in range(abs(a - b), a + b + 1)
        ]
        q = np.concatenate(rows, 1)
        np.testing.assert_allclose(q.T @ q, np.eye(len(q)), atol=1e-12)
    np.testing.assert_allclose(so3.clebsch_gordan(1, 1, 0)[:, :, 0], np.eye(3) / np.sqrt(3), atol=1e-15)
    levi = so3.clebsch_gordan(1, 1, 1)  # the cross product; e3nn's sign
    assert levi[0, 1, 2] == pytest.approx(1 / np.sqrt(6)) and levi[1, 0, 2] == pytest.approx(-1 / np.sqrt(6))
    with pytest.raises(InputError):
        so3.clebsch_gordan(1, 1, 3)


def test_published_number_of_terms():
    """The 11 parity-allowed l <= 2 couplings have 83 nonzero coefficients (counted with e3nn-jax)."""
    table, paths = so3.product_table(Irreps.harmonics(2), Irreps.harmonics(2), Irreps.harmonics(2))
    assert len(paths) == 11 and len(table) == 83


@pytest.mark.parametrize("l", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("improper", [False, True])
def test_wigner_matrices(l, improper, x64):
    """D(R) Y(v) = Y(Rv); representation; orthogonality; parity (-1)^l under inversion."""
    r, s = rotations(2, l, improper)
    d = lambda m: np.asarray(so3.wigner_d(jnp.asarray(m), l=l))
    v = np.random.default_rng(l).normal(size=(5, 3))
    y = lambda u: np.asarray(so3.spherical_harmonics(jnp.asarray(u), lmax=l))[l * l :]
    np.testing.assert_allclose(d(r) @ y(v), y(v @ r.T), atol=1e-12)
    np.testing.assert_allclose(d(r) @ d(s), d(r @ s), atol=1e-12)
    np.testing.assert_allclose(d(r) @ d(r).T, np.eye(2 * l + 1), atol=1e-12)
    np.testing.assert_allclose(d(-r), (-1) ** l * d(r), atol=1e-12)
    if l == 1:
        np.testing.assert_allclose(d(r), r, atol=1e-13)


def test_rotation_constructors(x64):
    axis, angle = jnp.array([0.0, 3.0, 0]), jnp.asarray(0.7)
    np.testing.assert_allclose(so3.axis_angle_matrix(axis, angle), so3.euler_matrix(0.7, 0.0, 0.0), atol=1e-15)
    e = np.asarray(so3.euler_matrix(0.3, 0.8, -0.4))
    np.testing.assert_allclose(e @ e.T, np.eye(3), atol=1e-15)
    from scipy.spatial.transform import Rotation

    np.testing.assert_allclose(e, Rotation.from_euler("YXY", [0.3, 0.8, -0.4]).as_matrix(), atol=1e-15)
    q = jnp.array([0.3, -0.2, 0.5, 0.1])
    np.testing.assert_allclose(
        so3.quaternion_matrix(q), Rotation.from_quat([-0.2, 0.5, 0.1, 0.3]).as_matrix(), atol=1e-14
    )


def operands(seed, u=3, e=4, lmax=2):
    rng = np.random.default_rng(seed)
    ir = Irreps.harmonics(lmax)
    table, paths = so3.product_table(ir, ir, ir)
    n = ir.dim
    return table, [jnp.asarray(rng.normal(size=s)) for s in ((n, e, u), (n, e, 1), (len(paths), e, u))]


def plain(x, y, w, table):
    """The same sum in three lines of einsum, for autodiff to take apart."""
    dense = np.zeros(table.sizes)
    dense[tuple(table.index.T)] = table.values
    return jnp.einsum("ijpk,ieu,jev,peu->keu", dense, x, y, w)


def test_product_and_all_its_derivatives_against_einsum(x64):
    table, args = operands(0, lmax=1)
    f = lambda *a: so3.multilinear(*a, table=table)
    g = lambda *a: plain(*a, table)
    np.testing.assert_allclose(f(*args), g(*args), atol=1e-12)
    tangents = [jnp.cos(a) for a in args]
    np.testing.assert_allclose(jax.jvp(f, args, tangents)[1], jax.jvp(g, args, tangents)[1], atol=1e-12)
    # the pattern of training on forces: gradient in x and w of |dE/dy|²
    loss = lambda h: lambda x, y, w: (jax.grad(lambda y: (h(x, y, w) ** 2).sum())(y) ** 2).sum()
    for got, expected in zip(jax.jit(jax.grad(loss(f), (0, 2)))(*args), jax.grad(loss(g), (0, 2))(*args)):
        np.testing.assert_allclose(got, expected, rtol=1e-11)
    third = lambda h: jax.jvp(lambda y: jax.grad(loss(h), 0)(args[0], y, args[2]), (args[1],), (tangents[1],))[1]
    np.testing.assert_allclose(third(f), third(g), rtol=1e-10)


def test_derivatives_stay_in_the_kernel():
    """No gather, scatter or dot appears at any order: the transpose of the product is the product."""
    table, args = operands(1, lmax=1)
    loss = lambda x, y, w: (jax.grad(lambda y: (so3.multilinear(x, y, w, table=table) ** 2).sum())(y) ** 2).sum()
    text = str(jax.make_jaxpr(jax.grad(loss, (0, 2)))(*args))
    assert text.count("sciax_multilinear") >= 4
    assert not any(word in text for word in ("gather", "scatter", "dot_general"))


def test_product_under_vmap(x64):
    table, (x, y, w) = operands(2, lmax=1)
    f = lambda x, y, w: so3.multilinear(x, y, w, table=table)
    xs = jnp.stack([x, 2 * x])
    np.testing.assert_allclose(jax.vmap(f, (0, None, None))(xs, y, w)[1], f(2 * x, y, w), atol=1e-12)
    g = jax.vmap(jax.grad(lambda y, x: (f(x, y, w) ** 2).sum()), (None, 0))(y, xs)
    np.testing.assert_allclose(g[1], jax.grad(lambda y: (f(2 * x, y, w) ** 2).sum())(y), rtol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.float64, 1e-12)])
@pytest.mark.parametrize("lmax", [2, 6])
def test_equivariance_error(dtype, tolerance, lmax, x64):
    """max |f(Dx, Dy) - D f(x, y)| / max |f| for random elements of O(3)."""
    ir = Irreps.harmonics(lmax)
    paths = [p for p in so3.product_paths(ir, ir, ir) if lmax < 3 or (p.a, p.b, p.c) in {(6, 6, 6), (3, 3, 6)}]
    worst = 0.0
    for p in paths if lmax > 2 else [None]:
        parts = (ir, ir, ir) if p is None else (Irreps(ir[p.a][1]), Irreps(ir[p.b][1]), Irreps(ir[p.c][1]))
        table, found = so3.product_table(*parts)
        rng = np.random.default_rng(5)
        x = jnp.asarray(rng.normal(size=(parts[0].dim, 4, 2)), dtype)
        y = jnp.asarray(rng.normal(size=(parts[1].dim, 4, 1)), dtype)
        w = jnp.ones((len(found), 1, 1), dtype)
        for r in (*rotations(2, 3), *rotations(1, 4, improper=True)):
            r = jnp.asarray(r)

            def turn(a, irreps):
                blocks = [so3.wigner_d(r, l=i.l).astype(dtype) for _, i in irreps]
                return jnp.einsum("ij,j...->i...", jax.scipy.linalg.block_diag(*blocks), a, precision="highest")

            f = lambda a, b: so3.multilinear(a, b, w, table=table)
            expected = turn(f(x, y), parts[2])
            error = float(jnp.abs(f(turn(x, parts[0]), turn(y, parts[1])) - expected).max() / jnp.abs(expected).max())
            worst = max(worst, error)
    assert worst < tolerance


@pytest.mark.parametrize(
    ("order", "target", "paths"), [(1, "0e", 1), (2, "0e", 3), (2, "1o", 2), (2, "1e", 0), (3, "0e", 5), (3, "1o", 5)]
)
def test_symmetric_basis(order, target, paths, x64):
    """Numbers of couplings by characters of O(3) on symmetric powers of 0e+1o+2e; equivariance of each."""
    source, irrep = Irreps.harmonics(2), Irrep.parse(target)
    monomials, basis = so3.symmetric_basis(source, order, irrep)
    assert len(basis) == paths == _multiplicity(order, irrep)
    if not len(basis):
        return
    gram = np.einsum("pkm,qkm->pq", basis, basis)
    np.testing.assert_allclose(gram, np.eye(len(basis)), atol=1e-10)
    x = np.random.default_rng(0).normal(size=9)
    (r,) = rotations(1, 6, improper=True)
    d = [np.asarray(so3.wigner_d(jnp.asarray(r), l=l)) for l in range(3)]
    turned = np.concatenate([d[0] @ x[:1], d[1] @ x[1:4], d[2] @ x[4:]])
    f = lambda v: basis @ np.prod(v[monomials], 1)
    parity = 1 if irrep.p == (-1) ** irrep.l else -1
    np.testing.assert_allclose(f(turned), f(x) @ (parity * d[irrep.l]).T, atol=1e-12)


def _multiplicity(order, irrep):
    """<χ_target, χ_Sym^order> over O(3) by Weyl integration, from power sums of the character of 0e+1o+2e."""
    t = (np.arange(400) + 0.5) * np.pi / 400
    total = 0.0
    for sign in (1, -1):  # proper, improper
        chi = lambda l, p, k: (sign**k if p == -1 else 1) * np.sin((2 * l + 1) * k * t / 2) / np.sin(k * t / 2)
        power = [sum(chi(l, (-1) ** l, k) for l in range(3)) for k in range(1, order + 1)]
        h = {1: lambda: power[0], 2: lambda: (power[0] ** 2 + power[1]) / 2}
        h[3] = lambda: (power[0] ** 3 + 3 * power[0] * power[1] + 2 * power[2]) / 6
        total += np.mean(h[order]() * chi(irrep.l, irrep.p, 1) * (1 - np.cos(t))) / 2
    return round(total)


def test_symmetric_table_contracts(x64):
    source, target = Irreps.harmonics(2), Irrep.parse("1o")
    table = so3.symmetric_table(source, 3, target)
    monomials, basis = so3.symmetric_basis(source, 3, target)
    rng = np.random.default_rng(0)
    a, w = rng.normal(size=(9, 2, 3)), rng.normal(size=(len(basis), 1, 3))
    got = so3.multilinear(*[jnp.asarray(a)] * 3, jnp.asarray(w), table=table)
    expected = np.einsum("pkm,mnu,pxu->knu", basis, np.prod(a[monomials], 1), w)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_agrees_with_e3nn(x64):
    e3nn = pytest.importorskip("e3nn_jax")
    v = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    theirs = e3nn.spherical_harmonics(e3nn.Irreps.spherical_harmonics(6), e3nn.IrrepsArray("1o", v), True).array
    np.testing.assert_allclose(so3.spherical_harmonics(v, lmax=6).T, theirs, atol=1e-12)
    c = np.asarray(e3nn.clebsch_gordan(2, 3, 4))
    np.testing.assert_allclose(so3.clebsch_gordan(2, 3, 4), c / np.linalg.norm(c), atol=1e-6)


def test_bad_input():
    v = jnp.zeros((2, 3))
    with pytest.raises(InputError, match="component"):
        so3.spherical_harmonics(v, lmax=1, normalisation="componet")
    with pytest.raises(InputError):
        so3.spherical_harmonics(v, lmax=-1)
    with pytest.raises(ShapeError):
        so3.spherical_harmonics(jnp.zeros((3, 2)), lmax=1)
    with pytest.raises(DTypeError):
        so3.spherical_harmonics(v + 1j, lmax=1)
    with pytest.raises(ShapeError):
        so3.wigner_d(v, l=1)
    with pytest.raises(InputError, match="no coupling"):
        so3.product_table(Irreps("0e"), Irreps("0e"), Irreps("1o"))
    table = Table(np.array([[0, 1, 0]]), np.ones(1), (1, 2, 1))
    with pytest.raises(ShapeError, match="number of operands"):
        so3.multilinear(jnp.zeros((1, 2)), table=table)
    with pytest.raises(ShapeError, match="does not fit"):
        so3.multilinear(jnp.zeros((2, 2)), jnp.zeros((2, 2)), table=table)
    with pytest.raises(ShapeError, match="rank"):
        so3.multilinear(jnp.zeros((1, 2)), jnp.zeros((2, 2, 1)), table=table)
    with pytest.raises(ShapeError, match="broadcast"):
        so3.multilinear(jnp.zeros((1, 2)), jnp.zeros((2, 3)), table=table)
    with pytest.raises(InputError, match="outside"):
        Table(np.array([[0, 2, 0]]), np.ones(1), (1, 2, 1))
