"""Writes the trajectories and schedules that the tests compare with. Made with optax 0.2.8 and jax 0.10.2; run in this folder:

    python trajectories.py > trajectories.json

All inputs are multiples of powers of two, so that Go makes the same ones from the same formulas. The gradient of step t
is h·(p - target) + noise(t), of parameters w [6, 4] and b [4].
"""
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax import contrib

STEPS = 100
KEPT = [1, 2, 3, 4, 5, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100]


def made(n, a, m, d, t=0):
    return (((np.arange(n) * a + 7 * t) % m - m // 2) / d).astype(np.float32)


SHAPES = {"w": (6, 4), "b": (4,)}
START = {"w": made(24, 5, 11, 8), "b": made(4, 3, 7, 4)}
TARGET = {"w": made(24, 7, 13, 8), "b": made(4, 5, 7, 2)}
H = {"w": (np.arange(24) % 5 + 1) / 8, "b": (np.arange(4) % 3 + 1) / 4}


def tree(flat):
    return {k: jnp.asarray(flat[k], jnp.float32).reshape(SHAPES[k]) for k in SHAPES}


def noise(t):
    n = made(28, 13, 17, 16, t)
    return tree({"w": n[:24], "b": n[24:]})


def gradient(p, t):
    target, h, n = tree(TARGET), tree(H), noise(t)
    return jax.tree.map(lambda p, q, h, n: h * (p - q) + n, p, target, h, n)


def matrices(params):
    return jax.tree.map(lambda p: p.ndim >= 2, params)


def labels(matrix, other):
    return lambda params: jax.tree.map(lambda p: matrix if p.ndim == 2 else other, params)


def muon(rate, **kw):
    dims = lambda params: jax.tree.map(lambda p: contrib.MuonDimensionNumbers() if p.ndim == 2 else optax.MaskedNode(), params)
    link = contrib._muon
    return optax.partition(
        {"muon": optax.chain(link.scale_by_muon(weight_dimension_numbers=dims, **kw), link.scale_by_shape(dims), optax.scale_by_learning_rate(rate)),
         "adam": optax.adam(rate)}, labels("muon", "adam"))


def warm_cosine(peak):
    return optax.warmup_cosine_decay_schedule(0.0, peak, 10, 80, end_value=peak / 100)


RULES = {
    "sgd": optax.sgd(0.1),
    "momentum": optax.sgd(0.05, momentum=0.9),
    "nesterov": optax.sgd(0.05, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.02),
    "adamw": optax.adamw(0.02, weight_decay=0.1),
    "adamw masked": optax.adamw(0.02, weight_decay=0.1, mask=matrices),
    "adamax": optax.adamax(0.02),
    "rmsprop": optax.rmsprop(0.01),
    "adagrad": optax.adagrad(0.1),
    "adadelta": optax.adadelta(0.5),
    "adadelta of Keras": optax.adadelta(0.5, rho=0.95, eps=1e-7),
    "nadam": optax.nadam(0.02),
    "lion": optax.lion(0.01, weight_decay=0.1),
    "lamb": optax.lamb(0.01, weight_decay=0.05),
    "adafactor": optax.adafactor(0.05, min_dim_size_to_factor=4),
    "adafactor whole": optax.adafactor(0.05),
    "adafactor absolute": optax.adafactor(0.01, min_dim_size_to_factor=4, multiply_by_parameter_scale=False, clipping_threshold=0.5),
    "muon": muon(0.02),
    "muon plain": muon(0.02, nesterov=False),
    "clip": optax.chain(optax.clip(0.25), optax.sgd(0.1)),
    "clip by global norm": optax.chain(optax.clip_by_global_norm(1.5), optax.adam(0.02)),
    "accumulate": optax.MultiSteps(optax.adam(0.05), 4).gradient_transformation(),
    "accumulate clipped": optax.MultiSteps(optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(warm_cosine(0.2), momentum=0.9)), 3).gradient_transformation(),
    "schedule": optax.sgd(warm_cosine(0.2), momentum=0.9),
    "schedule adamw": optax.adamw(optax.exponential_decay(0.05, 20, 0.5), weight_decay=0.05),
    "lookahead": optax.lookahead(optax.adam(0.05), 3, 0.25),
    "lookahead of the paper": optax.lookahead(optax.sgd(0.1, momentum=0.9), 5, 0.5),
    "frozen": optax.partition({"trained": optax.adam(0.02), "frozen": optax.set_to_zero()}, labels("trained", "frozen")),
    "masked": optax.chain(optax.masked(optax.clip(0.125), matrices), optax.sgd(0.1)),
    "groups": optax.partition({"matrix": optax.adamw(0.02, weight_decay=0.1), "other": optax.sgd(0.005, momentum=0.5)}, labels("matrix", "other")),
}


def flat(params):
    return [float(str(np.float32(x))) for k in ("w", "b") for x in np.asarray(params[k]).ravel()]


def deviations(eta, gamma):
    """Returns the standard deviations of add_noise's steps: the same draws divided by those of deviation 1."""
    zero, kept = jnp.zeros(1), []
    noise, one = optax.add_noise(eta, gamma, 7), optax.add_noise(1.0, 0.0, 7)
    state, unit = noise.init(zero), one.init(zero)
    for t in range(STEPS):
        update, state = noise.update(zero, state)
        drawn, unit = one.update(zero, unit)
        if t + 1 in KEPT:
            kept.append(float(update[0] / drawn[0]))
    return kept


def trajectory(rule, looks):
    params = optax.LookaheadParams.init_synced(tree(START)) if looks else tree(START)
    fast = lambda: params.fast if looks else params
    state = rule.init(params)
    ema = optax.ema(0.9)
    averages = ema.init(fast())
    step = jax.jit(lambda p, s, g: rule.update(g, s, p))
    kept, averaged = [], None
    for t in range(STEPS):
        updates, state = step(params, state, gradient(fast(), t))
        params = optax.apply_updates(params, updates)
        averaged, averages = ema.update(fast(), averages)
        if t + 1 in KEPT:
            kept.append(flat(fast()))
    return {"parameters": kept, "average": flat(averaged)}


POINTS = sorted(set(list(range(0, 45)) + [49, 50, 51, 59, 60, 61, 99, 100, 101, 119, 120, 121, 200, 1000]))
SCHEDULES = {
    "constant": optax.constant_schedule(0.3),
    "linear": optax.linear_schedule(0.5, 0.1, 40),
    "polynomial": optax.polynomial_schedule(1.0, 0.1, 2.5, 100),
    "exponential": optax.exponential_decay(0.5, 20, 0.5),
    "step decay": optax.exponential_decay(0.5, 20, 0.5, staircase=True),
    "cosine": optax.cosine_decay_schedule(0.5, 100, 0.1),
    "cosine restarts": optax.sgdr_schedule([dict(init_value=0.5, peak_value=0.5, decay_steps=20, warmup_steps=0, end_value=0.05) for _ in range(60)]),
    "one cycle": optax.cosine_onecycle_schedule(100, 0.5),
    "warm-up cosine": optax.warmup_cosine_decay_schedule(0.0, 1.0, 10, 110, 0.01),
    "piecewise": optax.piecewise_constant_schedule(1.0, {10: 0.5, 50: 0.1}),
    "join": optax.join_schedules([optax.linear_schedule(0, 1, 20), optax.constant_schedule(1.0), optax.polynomial_schedule(1, 0, 2, 50)], [20, 50]),
}

json.dump({
    "optax": optax.__version__,
    "steps": KEPT,
    "rules": {name: trajectory(rule, name.startswith("lookahead")) for name, rule in RULES.items()},
    "noise": deviations(0.3, 0.55),
    "points": POINTS,
    "schedules": {name: [float(str(np.float32(s(jnp.int32(t))))) for t in POINTS] for name, s in SCHEDULES.items()},
}, sys.stdout, separators=(",", ":"))
