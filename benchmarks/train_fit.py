"""fit() beside a hand-written lax.scan over the same steps: same network, batch and optimiser; ratio of times per step."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from sciax.core.train import fit

WIDTH, DEPTH, BATCH, STEPS = 128, 3, 1024, 200
KEY = jax.random.key(0)
X = jax.random.normal(KEY, (BATCH, 3))
Y = jnp.sin(X[:, :1]) * X[:, 1:2]
MODEL = eqx.nn.MLP(3, 1, WIDTH, DEPTH, activation=jnp.tanh, key=KEY)
OPTIMIZER = optax.adam(1e-3)


def loss(model, batch, key):
    x, y = batch
    return jnp.mean((jax.vmap(model)(x) - y) ** 2)


params, static = eqx.partition(MODEL, eqx.is_inexact_array)


@jax.jit
def by_hand(params, state):
    def step(carry, _):
        params, state = carry
        value, grads = jax.value_and_grad(lambda p: loss(eqx.combine(p, static), (X, Y), KEY))(params)
        updates, state = OPTIMIZER.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), value

    return jax.lax.scan(step, (params, state), length=STEPS)


def timed(call) -> float:
    start = time.perf_counter()
    jax.block_until_ready(call())
    return time.perf_counter() - start


def fitted(steps: int):
    return fit(MODEL, loss, (X, Y), OPTIMIZER, steps).state.params


def main() -> None:
    state = OPTIMIZER.init(params)
    timed(lambda: by_hand(params, state))
    hand, ours = [], []
    for _ in range(4):
        hand.append(timed(lambda: by_hand(params, state)))
        # Compilation and start are in both calls and cancel in the difference.
        ours.append(timed(lambda: fitted(2 * STEPS)) - timed(lambda: fitted(STEPS)))
    ratio = min(ours) / min(hand)
    print(
        f"fit / hand-written scan: {ratio:.3f}  ({1e3 * min(ours) / STEPS:.2f} ms and {1e3 * min(hand) / STEPS:.2f} ms a step)"
    )


if __name__ == "__main__":
    main()
