"""Training steps of raw JAX: jax.jit with donated state, steps started without waiting, one wait at the end.

Variants: metric (loss and accuracy summed up on the device, read at the end), log (both read at each step), bar (log and
a progress line), scan (all steps in one lax.scan over data on the device: JAX's floor). "one by one" is metric. A repeat of
digits, variant "later seed", is a training of ten epochs of 44 batches with new parameters, and its test.
"""
import functools
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import common

SHAPES = {
    "tiny": [(4, 1)],
    "linear": [(784, 10)],
    "mlp": [(784, 512), (512, 512), (512, 10)],
    "cnn": [(3, 3, 1, 32), (3, 3, 32, 64), (7 * 7 * 64, 256), (256, 10)],
    "digits": [(3, 3, 1, 16), (3, 3, 16, 32), (2 * 2 * 32, 64), (64, 10)],
}


def dense(p, x):
    return x @ p["w"] + p["b"]


def layers(params, x):
    for p in params[:-1]:
        x = jax.nn.relu(dense(p, x))
    return dense(params[-1], x)


def convolutions(params, x):
    for p in params[:2]:
        x = lax.conv_general_dilated(x, p["w"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + p["b"]
        x = lax.reduce_window(jax.nn.relu(x), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") * 0.25
    return layers(params[2:], x.reshape(x.shape[0], -1))


def loss_and_accuracy(workload, params, x, y):
    predicted = (convolutions if workload in ("cnn", "digits") else layers)(params, x)
    if workload == "tiny":
        return jnp.mean((predicted - y) ** 2), jnp.float32(0)
    loss = optax.softmax_cross_entropy_with_integer_labels(predicted, y).mean()
    return loss, jnp.mean(predicted.argmax(-1) == y)


def make_step(workload):
    tx = {"tiny": optax.sgd(1e-2), "linear": optax.adamw(1e-3)}.get(workload, optax.adam(1e-3))

    def step(state, x, y):
        f = functools.partial(loss_and_accuracy, workload)
        (loss, accuracy), g = jax.value_and_grad(f, has_aux=True)(state["params"], x, y)
        update, opt = tx.update(g, state["opt"], state["params"])
        m = state["metrics"]
        m = {"loss": m["loss"] + loss, "accuracy": m["accuracy"] + accuracy, "n": m["n"] + 1}
        new = {"params": optax.apply_updates(state["params"], update), "opt": opt, "metrics": m}
        return new, {"loss": m["loss"] / m["n"], "accuracy": m["accuracy"] / m["n"]}

    return tx, step


def new_state(workload, tx):
    keys = jax.random.split(jax.random.key(0), len(SHAPES[workload]))
    lecun = jax.nn.initializers.lecun_normal()
    params = [{"w": lecun(k, s), "b": jnp.zeros(s[-1])} for k, s in zip(keys, SHAPES[workload])]
    # An array each: donated arrays may not be one and the same.
    metrics = {k: jnp.zeros((), jnp.float32) for k in ("loss", "accuracy", "n")}
    return {"params": params, "opt": tx.init(params), "metrics": metrics}


class Bar:
    """A progress line, drawn at most every 50 ms."""

    def __init__(self, total):
        self.total, self.last, self.out = total, 0.0, open(os.devnull, "w")

    def update(self, step, values):
        now = time.perf_counter()
        if now - self.last < 0.05 and step < self.total:
            return
        self.last, k = now, 30 * step // self.total
        text = " - ".join(f"{n}: {v:.4f}" for n, v in values.items())
        self.out.write(f"\r{step}/{self.total} [{'=' * k}{'.' * (30 - k)}] {text}")
        self.out.flush()


def main():
    a = common.parse(list(SHAPES))
    tx, step = make_step(a.workload)
    jitted = jax.jit(step, donate_argnums=0)
    xs, ys = common.data(a.workload)
    state = new_state(a.workload, tx)

    @functools.partial(jax.jit, donate_argnums=0, static_argnums=3)
    def scan(state, x, y, steps):
        n = len(x) // a.batch

        def body(s, i):
            j = (i % n) * a.batch
            return step(s, lax.dynamic_slice_in_dim(x, j, a.batch), lax.dynamic_slice_in_dim(y, j, a.batch))[0], None

        return lax.scan(body, state, jnp.arange(steps))[0]

    def run(steps):
        nonlocal state
        if a.variant == "scan":
            state = jax.block_until_ready(scan(state, xs, ys, steps))
            return
        history, bar = [], Bar(steps)
        for i, (x, y) in enumerate(common.batches(xs, ys, a.batch, steps)):
            state, logs = jitted(state, x, y)
            if a.variant in ("log", "bar"):
                history.append({k: float(v) for k, v in logs.items()})
            if a.variant == "bar":
                bar.update(i + 1, history[-1])
        state = jax.block_until_ready(state)

    def seed():
        nonlocal state
        state = new_state(a.workload, tx)
        r = np.random.default_rng(0)
        for _ in range(10):
            order = r.permutation(1_437)
            for i in range(44):
                batch = order[i * a.batch:(i + 1) * a.batch]
                state, _ = jitted(state, xs[batch], ys[batch])
        float(test(state["params"], xs[1_437:], ys[1_437:])[1])

    if a.workload == "digits":
        test = jax.jit(functools.partial(loss_and_accuracy, a.workload))
        seed()
        seconds, cpu = common.measure(a, seed)
        return common.emit(a, "s", seconds, cpu_s=cpu, batch=a.batch, steps=440)
    run(a.steps if a.variant == "scan" else common.WARMUP[a.workload])  # a scan is compiled for its number of steps
    seconds, cpu = common.measure(a, lambda: run(a.steps))
    tiny = a.workload == "tiny"
    common.emit(a, "us/step" if tiny else "steps/s", [1e6 * s / a.steps if tiny else a.steps / s for s in seconds],
                cpu_s=cpu, batch=a.batch, steps=a.steps)


if __name__ == "__main__":
    main()
