"""The multilinear product in blocks equals the whole one, where the last block overlaps and where an operand is shared."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.ops import so3
from sciax.core.ops.so3 import _multilinear


@pytest.mark.parametrize("out", range(4))
def test_blocks_change_nothing(out, monkeypatch):
    monkeypatch.setattr(_multilinear, "BLOCK_BYTES", 0)  # blocks of 16
    ir = so3.Irreps.harmonics(1)
    table, paths = so3.product_table(ir, ir, ir)
    rng = np.random.default_rng(0)
    shapes = [(4, 101, 3), (4, 101, 1), (len(paths), 101, 3), (4, 101, 3)]
    given = [jnp.asarray(rng.normal(size=s)) for r, s in enumerate(shapes) if r != out]
    options = {"table": table, "out": out, "out_batch": shapes[out][1:]}
    a = jax.jit(functools.partial(_multilinear._blocked, **options))(*given)
    b = jax.jit(functools.partial(_multilinear._kernel, **options))(*given)
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
