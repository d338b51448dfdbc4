"""Neighbour lists of a random gas (0.1 atoms/Å³, cutoff 5 Å) against vesin: CPU seconds, best of 5, and equal pair sets.

python benchmarks/chem_neighbours.py
"""

import time

import jax
import numpy as np

from sciax.core.ops.neighbours import pairs


def best(f, repeats: int = 5):
    f()
    times = []
    for _ in range(repeats):
        c = time.process_time()
        out = f()
        times.append(time.process_time() - c)
    return min(times), out


def main() -> None:
    try:
        from vesin import NeighborList
    except ImportError:
        print("skipped: the peer vesin is not installed here")
        return
    jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    for n in (10_000, 100_000):
        side = (n / 0.1) ** (1 / 3)
        x, cell = rng.random((n, 3)) * side, np.eye(3) * side
        capacity = int(1.05 * n * 0.1 * 4 / 3 * np.pi * 125)

        def ours(x=x, cell=cell, capacity=capacity):
            found = pairs(x, cell, pbc=True, cutoff=5.0, capacity=capacity)
            jax.block_until_ready(found.count)
            return found

        def theirs(x=x, cell=cell):
            return NeighborList(cutoff=5.0, full_list=True).compute(points=x, box=cell, periodic=True, quantities="ijS")

        (a, mine), (b, peer) = best(ours), best(theirs)
        count = int(mine.count)
        same = count == len(peer[0])
        if same and n <= 10_000:
            rows = [
                np.column_stack([i, j, s]) for i, j, s in ((mine[0][:count], mine[1][:count], mine[2][:count]), peer)
            ]
            rows = [r.astype(np.int64)[np.lexsort(r.T)] for r in rows]
            same = np.array_equal(*rows)
        print(
            f"{n} atoms, {count} pairs (equal: {same}): sciax {a:.3f}, vesin {b:.3f} CPU s, ratio {b / a:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
