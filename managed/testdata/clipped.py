"""Writes what optax 0.2.8 and JAX 0.10.2 make of gradients that are clipped by example, for package managed's tests; run in this folder:

    JAX_PLATFORMS=cpu python clipped.py > clipped.json
"""
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

made = lambda *shape: np.asarray((np.arange(np.prod(shape)) * 7 % 11 - 5) / 4, np.float32).reshape(shape)
w, v, x, y = made(3, 4), made(4, 1)[::-1], made(6, 3), made(6, 1)


def loss(weights, x, y):
    return jnp.sum((jnp.tanh(x @ weights[0]) @ weights[1] - y) ** 2)


gradients = jax.vmap(jax.grad(loss), (None, 0, 0))([jnp.asarray(w), jnp.asarray(v)], x, y)
total, clipped = optax.per_example_global_norm_clip(gradients, 4.0)
flat = lambda a: [float(str(v)) for v in np.asarray(a).ravel()]
print(json.dumps({"w": flat(w), "v": flat(v), "x": flat(x), "y": flat(y), "clipped": int(clipped), "gradients": [flat(g / len(x)) for g in total],
                  "loss": float(np.mean([loss([w, v], a, b) for a, b in zip(x, y)]))}))
