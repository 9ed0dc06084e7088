"""Writes what JAX 0.10.2 computes, in float64, for package linalg's tests; run in this folder:

    JAX_ENABLE_X64=1 JAX_PLATFORMS=cpu python linalg.py > linalg.json

Of each function: its value, the gradients of the sum of the value times weights, and the gradients of the sum of these times tangents.
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

random = np.random.default_rng(5)
draw = lambda *shape: np.round(random.standard_normal(shape), 4)
half = draw(2, 4, 4)
spd = half @ half.transpose(0, 2, 1) + 0.5 * np.eye(4)
triangle, right = draw(2, 4, 4) + 2 * np.eye(4), draw(2, 4, 3)
solve = lambda lower: jax.vmap(lambda a, b: solve_triangular(a, b, lower=lower))
cases = {}
for name, f, inputs in (("cholesky", jnp.linalg.cholesky, [spd + 0.01 * draw(2, 4, 4)]),
                        ("lower", solve(True), [triangle, right]), ("upper", solve(False), [triangle, right])):
    value = f(*inputs)
    weights, tangents = draw(*value.shape), [draw(*x.shape) for x in inputs]
    every = tuple(range(len(inputs)))
    first = jax.grad(lambda *x: jnp.sum(f(*x) * weights), every)
    second = jax.grad(lambda *x: sum(jnp.sum(g * t) for g, t in zip(first(*x), tangents)), every)
    flat = lambda arrays: [np.asarray(a).tolist() for a in arrays]
    cases[name] = {"inputs": flat(inputs), "weights": weights.tolist(), "tangents": flat(tangents), "value": np.asarray(value).tolist(),
                   "first": flat(first(*inputs)), "second": flat(second(*inputs))}
print(json.dumps(cases, separators=(",", ":")))
print(jnp.linalg.cholesky(jnp.array([[1.0, 2.0], [2.0, 1.0]])), jnp.linalg.cholesky(jnp.zeros((2, 2))), file=sys.stderr)
