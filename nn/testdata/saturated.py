"""Gradients of attention whose softmax is saturated, by JAX in float64 and float32: python saturated.py > saturated.json

Inputs are drawn normal and times a scale. In "ties" each place is one of four, so that several keys share the greatest
score, and the gradient by the scores is a difference of equal numbers: 0 but for rounding.
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
PLACES, WIDTH, HEADS = 12, 8, 2
NAMES = ["query", "key", "value", "output"]


def loss(p, x, w):
    heads = lambda y: y.reshape(PLACES, HEADS, -1).transpose(1, 0, 2)
    q, k, v = (heads(x @ p[n]) for n in NAMES[:3])
    a = jax.nn.softmax(q * np.asarray((WIDTH // HEADS) ** -0.5, q.dtype) @ k.transpose(0, 2, 1), -1)
    return (((a @ v).transpose(1, 0, 2).reshape(PLACES, WIDTH) @ p["output"]) * w).sum()


def gradients(dtype, p, x, w):
    cast = lambda t: jax.tree.map(lambda a: jnp.asarray(a, dtype), t)
    return jax.jit(jax.grad(loss))(cast(p), cast(x), cast(w))


rows = []
for scale in [1, 30, 1000]:
    for ties in [False, True]:
        r = np.random.default_rng(7 + scale)
        rounded = lambda a: a.astype(np.float16).astype(np.float32)
        x = rounded(r.normal(size=(PLACES, WIDTH)) * scale)
        if ties:
            x = x[r.integers(0, 4, size=PLACES)]
        p = {n: rounded(r.normal(size=(WIDTH, WIDTH)) * 0.35) for n in NAMES}
        w = rounded(r.normal(size=(PLACES, WIDTH)))
        exact, single = gradients(jnp.float64, p, x, w), gradients(jnp.float32, p, x, w)
        rows.append({
            "scale": scale, "ties": ties, "x": x.ravel().tolist(), "w": w.ravel().tolist(),
            "kernels": {n: p[n].ravel().tolist() for n in NAMES},
            "gradients": {n: [float("%.9g" % v) for v in np.asarray(exact[n]).ravel()] for n in NAMES},
            "error": {n: float(np.abs(np.asarray(single[n], np.float64) - np.asarray(exact[n])).max()) for n in NAMES},
        })
json.dump(rows, sys.stdout)
