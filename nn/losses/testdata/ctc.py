"""Writes the CTC losses and gradients of optax, for package losses's TestCTC. Made with jax 0.10.2, optax 0.2.8 and numpy 2.4.6; run in
this folder:

    JAX_PLATFORMS=cpu python ctc.py > ctc.json
"""
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax

FRAMES, CLASSES = 12, 6
LABELS = [[1, 2, 3, 4, 5], [2, 2, 2, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0], [3, 1, 3, 1, 0]]
LENGTHS = [12, 7, 1, 4, 9]


def run(dtype):
    random = np.random.default_rng(1)
    logits = jnp.asarray(random.normal(size=(len(LABELS), FRAMES, CLASSES)) * 3, dtype)
    paddings = jnp.asarray(np.arange(FRAMES)[None] >= np.array(LENGTHS)[:, None], dtype)
    labels = jnp.asarray(LABELS)

    def loss(z):
        each = optax.ctc_loss(z, paddings, labels, jnp.asarray(labels == 0, dtype))
        return each.sum(), each

    slope, each = jax.grad(loss, has_aux=True)(logits)
    return logits, each, slope


with jax.enable_x64(True):
    logits, each, slope = run(jnp.float64)
_, each32, slope32 = run(jnp.float32)
flat = lambda a: [float(v) for v in np.asarray(a, np.float64).ravel()]
print(json.dumps({"labels": LABELS, "lengths": LENGTHS, "frames": FRAMES, "classes": CLASSES, "logits": flat(logits), "losses": flat(each),
                  "gradients": flat(slope), "float32": [float(np.abs(np.asarray(each32, np.float64) - each).max()),
                                                        float(np.abs(np.asarray(slope32, np.float64) - slope).max())]}))
