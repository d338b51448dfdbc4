"""Half neighbour lists: against the full list, overflow, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sciax.core.errors import InputError
from sciax.core.ops.neighbours import HalfNeighbourList, NeighbourOverflowError, host_pairs

pytest.importorskip("sciax.core.ops.native._pairforces")


@pytest.mark.parametrize("pbc", [(True, True, True), (True, False, True), (False, False, False)])
def test_half_list_is_half_of_the_full_one(pbc):
    """Each pair once: the same distances as the KD-tree's directed pairs, which hold each twice."""
    rng = np.random.default_rng(3)
    cell = np.diag([4.0, 3.5, 5.0]) + np.tril(rng.normal(size=(3, 3)) * 0.3, -1)
    x = rng.uniform(size=(60, 3)) @ cell * 1.3 + 40
    made = HalfNeighbourList.build(x, cell, pbc, cutoff=2.4, skin=0.3)
    n = int(made.count)
    p = jax.tree.map(np.asarray, made.pairs)
    a = np.searchsorted(p.start, np.arange(n), side="right") - 1
    b, code = p.others[:n] % 2**27, p.others[:n] >> 27
    image = np.stack([code // 9, code // 3 % 3, code % 3], -1).astype(int) - 1
    inside = x[p.order] - p.wrap @ cell
    d = np.linalg.norm(inside[b] + image @ cell - inside[a], axis=1)
    i, j, s = host_pairs(x, cell, pbc, 2.7)
    full = np.linalg.norm(x[j] + s @ cell - x[i], axis=1)
    assert 2 * n == len(i)
    np.testing.assert_allclose(np.sort(np.repeat(d, 2)), np.sort(full), atol=1e-9)


def test_half_list_overflow_and_refusals():
    rng = np.random.default_rng(0)
    x, cell = rng.uniform(size=(50, 3)) * 4, np.eye(3) * 4
    good = HalfNeighbourList.build(x, cell, True, cutoff=1.5)
    small = HalfNeighbourList.template(good.reference, cell, True, cutoff=1.5, skin=0.0, room=(10,)).update(x)
    assert bool(small.overflowed) and int(small.pairs.start[-1]) == 0
    with pytest.raises(NeighbourOverflowError, match="too few pairs"):
        small.check()
    assert small.grown(x).capacity >= int(good.count)
    with pytest.raises(InputError, match="thinner than the cutoff"):
        HalfNeighbourList.build(x, cell, True, cutoff=4.5)
    with pytest.raises(InputError, match="not finite"):
        HalfNeighbourList.build(np.full((2, 3), np.nan), cell, True, cutoff=1.5)
    assert not HalfNeighbourList.fits(np.eye(3), (True,) * 3, 1.01, 5)
    thin = good.update(x, jnp.asarray(cell * 0.3, good.reference.dtype))
    with pytest.raises(InputError, match="became thinner"):
        thin.check()
