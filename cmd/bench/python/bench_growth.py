"""How a step of JAX grows, as `go run ./cmd/bench -workload growth`: variants are "variables 100", "batch 512", "devices 4",
"places 128" (of an LSTM), "layers 8" (of a small gpt), and of variables, places and layers with " first step"."""
import argparse
import os
import sys

FIRST = " first step"
VARIANT = sys.argv[sys.argv.index("--variant") + 1]
OF, VALUE = VARIANT.removesuffix(FIRST).split()
if OF == "devices":
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={VALUE}"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import bench_sequence
import common


def chain(n, devices):
    """Dense layers of two variables each, on 16 inputs, under Adam; the batch is sharded over the devices."""
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",))
    whole, sharded = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    tx = optax.adam(1e-3)

    def init(key):
        glorot = jax.nn.initializers.glorot_uniform()
        params = [{"w": glorot(k, (16, 16 if i < n - 1 else 1)), "b": jnp.zeros(16 if i < n - 1 else 1)} for i, k in enumerate(jax.random.split(key, n))]
        return params, tx.init(params)

    def loss(params, x, y):
        for p in params[:-1]:
            x = jax.nn.relu(x @ p["w"] + p["b"])
        return jnp.mean((x @ params[-1]["w"] + params[-1]["b"] - y) ** 2)

    def step(state, x, y):
        value, g = jax.value_and_grad(loss)(state[0], x, y)
        update, opt = tx.update(g, state[1], state[0])
        return (optax.apply_updates(state[0], update), opt), value

    at = {} if devices == 1 else {"in_shardings": (whole, sharded, sharded), "out_shardings": (whole, whole)}
    begin = jax.jit(init) if devices == 1 else jax.jit(init, out_shardings=whole)
    return lambda: begin(jax.random.key(0)), jax.jit(step, donate_argnums=0, **at)


def main():
    a = common.parse(["growth"])
    value = int(VALUE)
    if OF in ("places", "layers"):
        a.batch, a.steps = (32, 2048 // value) if OF == "places" else (16, 10)
        if OF == "layers":
            bench_sequence.WIDTH, bench_sequence.HEADS, bench_sequence.VOCABULARY, bench_sequence.PLACES = 128, 4, 512, 64
        workload = "lstm" if OF == "places" else "gpt"
        begin, one, wait = bench_sequence.training(argparse.Namespace(workload=workload, variant=VALUE, batch=a.batch))
        batches = lambda steps: ((),) * steps
    else:
        a.batch, a.steps = {"batch": value, "devices": 256}.get(OF, 32), 2_000
        x = (np.arange(16 * 16_384) % 17 / 17).astype(np.float32).reshape(-1, 16)
        y = np.zeros((16_384, 1), np.float32)
        box = [None, None, None]
        devices = value if OF == "devices" else 1

        def begin():
            init, box[2] = chain(value // 2 if OF == "variables" else 5, devices)
            box[0] = init()

        def one(x, y):
            box[0], box[1] = box[2](box[0], x, y)
            if devices > 1:  # JAX ends the process if steps that exchange wait for the same threads
                jax.block_until_ready(box[1])

        wait = lambda: jax.block_until_ready(box[:2])
        batches = lambda steps: common.batches(x, y, a.batch, steps)

    def run(steps):
        for batch in batches(steps):
            one(*batch)
        wait()

    def first():
        jax.clear_caches()
        begin()
        run(1)

    first()
    steps = a.steps
    if VARIANT.endswith(FIRST):
        seconds, cpu = common.measure(a, first)
        return common.emit(a, "s", seconds, cpu_s=cpu, batch=a.batch, steps=1)
    run(min(steps, 300))
    seconds, cpu = common.measure(a, lambda: run(steps))
    common.emit(a, "us/step", [1e6 * s / steps for s in seconds], cpu_s=cpu, batch=a.batch, steps=steps)


if __name__ == "__main__":
    main()
