"""Layers commute with rotations and inversions; products equal their definitions; radial functions end smoothly."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError, ShapeError
from sciax.core.ops.so3 import multilinear, random_rotation, symmetric_table
from sciax.science.equivariant import (
    ChannelwiseProduct,
    FullyConnectedProduct,
    Gate,
    Irreps,
    IrrepsArray,
    Linear,
    NormActivation,
    SymmetricContraction,
    component_rms,
    envelope,
    from_e3nn,
    radial_basis,
    rotate,
    tensor_product,
    to_e3nn,
)

KEY = jax.random.key(0)
IN = Irreps("4x0e+3x1o+2x2e+2x0o+1x1e")


def data(irreps, seed=0, batch=(5,)):
    rng = np.random.default_rng(seed)
    return IrrepsArray(irreps, [jnp.asarray(rng.normal(size=(ir.dim, *batch, mul))) for mul, ir in Irreps(irreps)])


LAYERS = {
    "linear": lambda: Linear(IN, "3x1o+2x0e+1x2e", key=KEY, dtype=jnp.float64),
    "norm": NormActivation,
    "rms": lambda: component_rms,
    "product": lambda: lambda x: tensor_product(x, x, "0e+1o+1e+2e+3o"),
    "fully connected": lambda: (
        lambda x: FullyConnectedProduct(IN, IN, "2x0o+2x1e+1x3o", key=KEY, dtype=jnp.float64)(x, x)
    ),
}


@pytest.mark.parametrize("name", sorted(LAYERS))
def test_layers_commute_with_rotations(name, x64):
    layer, x = LAYERS[name](), data(IN)
    for r in (random_rotation(KEY, (), jnp.float64), -random_rotation(jax.random.key(1), (), jnp.float64)):
        for a, b in zip(layer(rotate(x, r)).chunks, rotate(layer(x), r).chunks):
            np.testing.assert_allclose(a, b, atol=1e-12 * max(1, float(jnp.abs(b).max())))


def test_gate(x64):
    gate = Gate(Irreps("4x0e+3x1o+2x0o"))
    assert gate.gates == 5 and gate.irreps_in == Irreps("5x0e+4x0e+3x1o+2x0o")
    x, r = data(gate.irreps_in), -random_rotation(KEY, (), jnp.float64)
    for a, b in zip(gate(rotate(x, r)).chunks, rotate(gate(x), r).chunks):
        np.testing.assert_allclose(a, b, atol=1e-12)
    with pytest.raises(InputError, match="gate"):
        gate(data("4x0e"))


def test_channelwise_product_has_unit_variance(x64):
    ir = Irreps.harmonics(2)
    product = ChannelwiseProduct(ir, ir, ir)
    rng = np.random.default_rng(0)
    x, w = (jnp.asarray(rng.normal(size=(n, 3000, 8))) for n in (9, product.paths))
    y = jnp.asarray(rng.normal(size=(9, 3000)))
    np.testing.assert_allclose((product(x, y, w) ** 2).mean((1, 2)), 1, atol=0.15)
    with pytest.raises(InputError, match="no coupling"):
        ChannelwiseProduct("0e", "0e", "1o")


@pytest.mark.parametrize("order", [1, 2, 3])
def test_symmetric_contraction_equals_its_definition(order, x64):
    """The matrix-product form against the sum over the table, two species."""
    source, target = Irreps.harmonics(1), Irreps("0e+1o")
    layer = SymmetricContraction(source, target, order, 2, 3, key=KEY, dtype=jnp.float64)
    a, species = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 3))), jnp.array([0, 1, 1, 0, 1])
    expected = []
    for t, (_, ir) in enumerate(target):
        total = jnp.zeros((ir.dim, 5, 3))
        for nu in range(1, order + 1):
            w = jnp.moveaxis(layer.weights[t][nu - 1][species], 1, 0)
            if w.shape[0]:
                total = total + multilinear(*[a] * nu, w, table=symmetric_table(source, nu, ir))
        expected.append(total)
    np.testing.assert_allclose(layer(a, species), jnp.concatenate(expected), atol=1e-12)


def test_e3nn_layout_round_trip():
    x = data("2x0e+3x1o", batch=(4,))
    flat = to_e3nn(x)
    assert flat.shape == (4, 11)
    # channel 1 of 1o: components follow each other
    np.testing.assert_array_equal(flat[:, 2 + 3 : 2 + 6].T, x.chunks[1][:, :, 1])
    for a, b in zip(from_e3nn("2x0e+3x1o", flat).chunks, x.chunks):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ShapeError):
        from_e3nn("3x0e", flat)


@pytest.mark.parametrize("kind", ["polynomial", "cosine", "mollifier"])
def test_envelopes(kind, x64):
    f = lambda r: envelope(r, 2.0, kind)  # noqa: E731
    assert (
        float(f(jnp.array(0.0))) == pytest.approx(1) and float(f(jnp.array(2.0))) == 0 and float(f(jnp.array(9.0))) == 0
    )
    slope = jax.vmap(jax.grad(f))(jnp.array([2 - 1e-7, 2.0, 5.0]))
    assert np.isfinite(slope).all() and abs(slope[0]) < 1e-6
    second = jax.vmap(jax.grad(jax.grad(f)))(jnp.array([2 - 1e-6, 3.0]))
    assert np.isfinite(second).all() and (kind == "cosine" or abs(second[0]) < 1e-3)


@pytest.mark.parametrize("kind", ["bessel", "gaussian", "chebyshev"])
def test_radial_bases(kind, x64):
    b = radial_basis(jnp.linspace(0, 3, 50), 3.0, 6, kind)
    assert b.shape == (50, 6) and np.isfinite(b).all() and np.linalg.matrix_rank(np.asarray(b)) == 6
    if kind == "bessel":
        np.testing.assert_allclose(b[25, 1], np.sqrt(2) * np.sin(2 * np.pi * 25 / 49) / (25 / 49), rtol=1e-12)


def test_bad_input():
    with pytest.raises(InputError, match="polynomial"):
        envelope(jnp.ones(1), 1.0, "polynomail")
    with pytest.raises(InputError, match="bessel"):
        radial_basis(jnp.ones(1), 1.0, 3, "besel")
    with pytest.raises(InputError, match="cannot come out"):
        Linear("2x0e", "1o", key=KEY)
    with pytest.raises(ShapeError):
        IrrepsArray("2x0e", [jnp.zeros((1, 3))])
    with pytest.raises(InputError, match="do not stack"):
        data("2x0e+3x1o").stack()
    with pytest.raises(InputError, match="orders 1 to 3"):
        SymmetricContraction("0e", "0e", 4, 1, 1, key=KEY)
