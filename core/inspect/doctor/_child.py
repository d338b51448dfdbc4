"""One of the two processes of the collective probe: `python _child.py PORT RANK` prints a JSON list.

It joins the other through jax.distributed on the loopback, and both compute a sum and a gathered array whose parts they hold.
"""

import json
import sys

import jax


def main(port: str, rank: int) -> None:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank, initialization_timeout=40)
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("x",))
    mine = np.arange(3, dtype=np.float32) + 10.0 * rank  # [0 1 2] and [10 11 12]
    whole = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("x")), mine)
    everywhere = NamedSharding(mesh, PartitionSpec())
    total, squares, gathered = jax.jit(
        lambda v: (jnp.sum(v), jnp.sum(v * v), v), out_shardings=(everywhere, everywhere, everywhere)
    )(whole)
    print(json.dumps([float(total), float(squares), *map(float, np.asarray(gathered))]), flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
