"""Writes functional.json: the parameters after 100 steps of SAM and of MAML, in float64 and in float32.

    pip install jax
    python functional.py > functional.json

Made with JAX 0.10.2. Inputs are made of whole numbers by the same formulas as in functional_test.go.
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
RATE, RADIUS, INNER, STEPS = 0.02, 0.05, 0.2, 100


def made(n, a, m):
    return (np.arange(n) * a % m - m // 2) / 8


def start(dtype):
    return [jnp.asarray(made(12, 5, 11).reshape(3, 4), dtype), jnp.zeros(4, dtype), jnp.asarray(made(4, 3, 7).reshape(4, 1), dtype), jnp.zeros(1, dtype)]


def batch(dtype):
    x = made(24, 7, 17).reshape(8, 3)
    return jnp.asarray(x, dtype), jnp.asarray(made(8, 5, 13).reshape(8, 1), dtype)


def loss(p, x, y):
    h = jnp.tanh(x @ p[0] + p[1])
    return jnp.mean((h @ p[2] + p[3] - y) ** 2)


def sam(p, x, y):
    g = jax.grad(loss)(p, x, y)
    norm = jnp.sqrt(sum(jnp.sum(v * v) for v in g))
    return jax.grad(loss)([w + RADIUS * v / norm for w, v in zip(p, g)], x, y)


def maml(p, x, y):
    def after(p):
        g = jax.grad(loss)(p, x[:4], y[:4])
        return loss([w - INNER * v for w, v in zip(p, g)], x[4:], y[4:])
    return jax.grad(after)(p)


def run(slope, dtype):
    p, (x, y) = start(dtype), batch(dtype)
    step = jax.jit(lambda p: [w - RATE * g for w, g in zip(p, slope(p, x, y))])
    for _ in range(STEPS):
        p = step(p)
    return [float(v) for w in p for v in np.asarray(w, np.float64).ravel()]


json.dump({name: {"float64": run(f, jnp.float64), "float32": run(f, jnp.float32)} for name, f in (("sam", sam), ("maml", maml))}, sys.stdout)
print()
