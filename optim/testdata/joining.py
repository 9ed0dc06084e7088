"""Writes where parameters come to that are trained at different times, for each rule and link, alone and in pairs. Made with
optax 0.2.8 and jax 0.10.2, in float64; run in this folder:

    python joining.py > joining.json

The problem is that of trajectories.py, with targets a little off. Each of w and b has an optax optimizer of its own, whose state begins where the
parameter is first trained; it goes on in the steps alone that train the parameter. So it is the reference for groups,
and for parameters of one chain whose links do not mix them.
"""
import json
import sys

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp
import numpy as np
import optax
from optax import contrib

STEPS, RATE = 100, 0.02
BAD = (6, 22, 23, 60)  # the steps with a NaN, for chains that begin with skip_non_finite


def made(n, a, m, d, t=0):
    return (((np.arange(n) * a + 7 * t) % m - m // 2) / d).astype(np.float64)


START = {"w": made(24, 5, 11, 8).reshape(6, 4), "b": made(4, 3, 7, 4)}
OFF = 0.0123  # so that no sign is that of a difference of 0
TARGET = {"w": made(24, 7, 13, 8).reshape(6, 4) + OFF, "b": made(4, 5, 7, 2) + OFF}
H = {"w": ((np.arange(24) % 5 + 1) / 8).reshape(6, 4), "b": (np.arange(4) % 3 + 1) / 4}
NOISE = np.stack([made(28, 13, 17, 16, t) for t in range(STEPS)])
NOISES = {"w": NOISE[:, :24].reshape(STEPS, 6, 4), "b": NOISE[:, 24:]}

T = np.arange(STEPS)
MODES = {
    "late": {"w": T >= 0, "b": T >= 50},
    "in turns": {"w": T % 2 == 0, "b": T % 2 == 1},
    "seldom": {"w": T >= 0, "b": T % 3 == 2},
}


def muon(name):
    if name == "b":
        return optax.scale_by_adam()
    dims = lambda params: jax.tree.map(lambda p: contrib.MuonDimensionNumbers(), params)
    link = contrib._muon
    return optax.chain(link.scale_by_muon(weight_dimension_numbers=dims), link.scale_by_shape(dims))


def schedule(t):
    return optax.warmup_cosine_decay_schedule(0.0, 1.0, 10, 80, end_value=0.01)(t)


# Each link is given what comes after it.
LINKS = {
    "momentum": lambda name, rest: optax.chain(optax.trace(0.9), rest),
    "nesterov": lambda name, rest: optax.chain(optax.trace(0.9, nesterov=True), rest),
    "adam": lambda name, rest: optax.chain(optax.scale_by_adam(), rest),
    "adamax": lambda name, rest: optax.chain(optax.scale_by_adamax(), rest),
    "rmsprop": lambda name, rest: optax.chain(optax.scale_by_rms(decay=0.9, eps=1e-8), rest),
    "adagrad": lambda name, rest: optax.chain(optax.scale_by_rss(), rest),
    "adadelta": lambda name, rest: optax.chain(optax.scale_by_adadelta(), rest),
    "nadam": lambda name, rest: optax.chain(optax.scale_by_adam(nesterov=True), rest),
    "lion": lambda name, rest: optax.chain(optax.scale_by_lion(), rest),
    "lamb": lambda name, rest: optax.chain(optax.scale_by_adam(eps=1e-6), optax.add_decayed_weights(0.05), optax.scale_by_trust_ratio(), rest),
    "adafactor": lambda name, rest: optax.chain(
        optax.scale_by_factored_rms(min_dim_size_to_factor=4), optax.clip_by_block_rms(1.0), optax.scale_by_param_block_rms(), rest),
    "muon": lambda name, rest: optax.chain(muon(name), rest),
    "clip": lambda name, rest: optax.chain(optax.clip(0.25), rest),
    "clip by norm": lambda name, rest: optax.chain(optax.clip_by_global_norm(0.5), rest),
    "clip by global norm": lambda name, rest: optax.chain(optax.clip_by_global_norm(0.75), rest),
    "trust ratio": lambda name, rest: optax.chain(optax.scale_by_trust_ratio(), rest),
    "weight decay": lambda name, rest: optax.chain(optax.add_decayed_weights(0.1), rest),
    "scale": lambda name, rest: optax.chain(optax.scale(0.5), rest),
    "schedule": lambda name, rest: optax.chain(optax.scale_by_schedule(schedule), rest),
    "masked": lambda name, rest: optax.chain(optax.masked(optax.scale_by_adam(), lambda p: jax.tree.map(lambda x: x.ndim == 2, p)), rest),
    "accumulate": lambda name, rest: optax.MultiSteps(rest, 3).gradient_transformation(),
    "skip non-finite": lambda name, rest: optax.apply_if_finite(rest, 10**6),
}


def optimizer(chain, name):
    rule = optax.scale(-RATE)
    for link in reversed(chain):
        rule = LINKS[link](name, rule)
    return rule


def kept(w, b):
    """Numbers that tell where the parameters are: some, and sums with weights."""
    w, b = np.asarray(w).ravel(), np.asarray(b)
    return [float("%.10g" % v) for v in (w[0], w[23], w @ np.arange(1, 25) / 24, b[0], b[3], b @ np.arange(1, 5) / 4)]


def run(chain):
    bad = np.zeros(STEPS)
    if chain[0] == "skip non-finite":
        bad[list(BAD)] = np.nan
    ends = {}
    for name in ("w", "b"):
        rule = optimizer(chain, name)

        def step(carry, now, name=name, rule=rule):
            p, state = carry
            noise, bad, trains = now
            gradient = H[name] * (p - TARGET[name]) + noise + bad
            updates, after = rule.update({"p": gradient}, state, {"p": p})
            new = optax.apply_updates({"p": p}, updates)["p"]
            choose = lambda a, b: jax.tree.map(lambda x, y: jnp.where(trains, x, y), a, b)
            return (choose(new, p), choose(after, state)), None

        @jax.jit
        def whole(trains, name=name, rule=rule, step=step):
            p = jnp.asarray(START[name])
            return jax.lax.scan(step, (p, rule.init({"p": p})), (jnp.asarray(NOISES[name]), jnp.asarray(bad), trains))[0][0]

        for mode, trains in MODES.items():
            ends.setdefault(mode, {})[name] = whole(jnp.asarray(trains[name]))
    return {mode: kept(**end) for mode, end in ends.items()}


chains = [(a,) for a in LINKS] + [(a, b) for a in LINKS for b in LINKS]
json.dump({"optax": optax.__version__, "ends": {", ".join(c): run(c) for c in chains}}, sys.stdout, indent=0)
