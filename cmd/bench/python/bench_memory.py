"""The memory workload of `go run ./cmd/bench -workload memory`, in JAX: layers of width x width weights under Adam, state
donated. Prints lines with the largest resident size after the first step and at the end.

    bench_memory.py LAYERS WIDTH BATCH STEPS
"""
import json
import sys

import jax
import jax.numpy as jnp
import optax

import common

LAYERS, WIDTH, BATCH, STEPS = map(int, sys.argv[1:])


def line(variant, steps, mb):
    print(json.dumps({
        "workload": "memory", "impl": "jax", "variant": variant, "unit": "MB", "median": mb, "min": mb, "max": mb, "n": 1,
        "values": [mb], "batch": BATCH, "steps": steps, "versions": {"jax": jax.__version__, "optax": optax.__version__}}))


tx = optax.adam(1e-3)
init = jax.nn.initializers.glorot_uniform()
params = [init(k, (WIDTH, WIDTH)) for k in jax.random.split(jax.random.key(0), LAYERS)]
state = params, tx.init(params)
del params
x = y = jnp.zeros((BATCH, WIDTH))


def step(state, x, y):
    params, optimizer = state

    def loss(params):
        h = x
        for w in params:
            h = jax.nn.relu(h @ w)
        return jnp.mean((h - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(params)
    updates, optimizer = tx.update(gradients, optimizer)
    return (optax.apply_updates(params, updates), optimizer), value


step = jax.jit(step, donate_argnums=0)
state, value = step(state, x, y)
value.block_until_ready()
line("peak, first step", 1, common.rss_mb())
for _ in range(STEPS - 1):
    state, value = step(state, x, y)
    value.block_until_ready()
line("peak", STEPS, common.rss_mb())
