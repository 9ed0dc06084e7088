"""Writes the losses of 200 steps of training in JAX, for package nn's TestTrajectories. Made with jax 0.10.2, optax 0.2.8 and numpy 2.4.6;
run in this folder (`make numerics PY=python` does so and compares):

    JAX_PLATFORMS=cpu python trajectories.py > trajectories.json

Each model trains in float64, in float32, and in float32 from five beginnings that differ by one unit in the last place of each weight: how
far rounding alone drives it. Weights and data come from formulas that Go has too, and are numbers of float32.
"""
import gzip
import json
import os
import sys
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

STEPS, ULPS = 200, 5
models = {}


def bits(name, n):
    """n numbers of 64 bits, drawn by the name: splitmix64."""
    with np.errstate(over="ignore"):
        x = np.uint64(zlib.crc32(name.encode())) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def uniform(name, shape, scale=1.0):
    """Numbers from -scale to scale."""
    u = (bits(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)
    return (u * np.float32(scale)).reshape(shape)


def below(name, shape, limit):
    return (bits(name, int(np.prod(shape))) % np.uint64(limit)).astype(np.int32).reshape(shape)


def model(name, rate, weights, data, batch):
    """weights: the shape, the scale and the mean of each; data: arrays of all examples, dealt out in order, again and again."""
    def add(loss):
        if __name__ != "__main__":  # methods.py takes the functions of this script
            return
        n = len(next(iter(data.values())))
        assert n % batch == 0
        opt = optax.adam(rate)

        @jax.jit
        def run(w, fields):
            def step(i, state):
                w, s, losses = state
                l, g = jax.value_and_grad(loss)(w, {k: v[i % (n // batch)] for k, v in fields.items()})
                updates, s = opt.update(g, s, w)
                return optax.apply_updates(w, updates), s, losses.at[i].set(l)

            losses = jnp.zeros(STEPS, jax.tree.leaves(w)[0].dtype)
            return lax.fori_loop(0, STEPS, step, (w, opt.init(w), losses))[2]

        def train(start, dtype):
            # Without x64 as most programs in float32 run: with it optax corrects Adam's averages in float64.
            with jax.enable_x64(dtype == np.float64):
                return trained(start, dtype)

        def trained(start, dtype):
            cast = lambda a: a.astype(dtype) if a.dtype == np.float32 else a
            fields = {k: jnp.asarray(cast(v)).reshape(n // batch, batch, *v.shape[1:]) for k, v in data.items()}
            out = run({k: jnp.asarray(cast(v)) for k, v in start.items()}, fields)
            assert out.dtype == dtype
            return np.asarray(out, np.float64)

        start = beginning(name, weights)
        exact, single = train(start, np.float64), train(start, np.float32)
        moved = [train(s, np.float32) for s in ulps(name, start)]
        off = lambda a: [float(f"{f(np.abs(a - exact)):.3g}") for f in (np.mean, np.max)]
        models[name] = {
            "rate": rate, "batch": batch, "weights": described(weights),
            "losses": [float(f"{v:.13g}") for v in exact], "float32": off(single), "ulps": [off(m) for m in moved]}
        print(f"{name}: loss {exact[0]:.4g} to {exact[-1]:.4g}; float32 off by {off(single)} (mean, greatest); one unit in the last place: "
              f"{models[name]['ulps']}", file=sys.stderr)
    return add


def beginning(name, weights):
    """The weights that training starts from."""
    return {k: uniform(f"{name} {k}", shape, scale) + np.float32(mean) for k, (shape, scale, mean) in weights.items()}


def ulps(name, start):
    """Beginnings that differ from start by one unit in the last place of each weight."""
    for i in range(ULPS):
        up = {k: np.where(bits(f"{name} {k} ulp {i}", v.size).reshape(v.shape) & np.uint64(1), np.inf, -np.inf) for k, v in start.items()}
        yield {k: np.nextafter(v, up[k].astype(np.float32)) for k, v in start.items()}


def described(weights):
    return {k: {"dims": list(s), "scale": scale, "mean": mean} for k, (s, scale, mean) in weights.items()}


def dense(w, at, x):
    return x @ w[at + "/kernel"] + w[at + "/bias"]


def dense_weights(at, n, m, scale=None):
    return {at + "/kernel": ((n, m), scale or round((6 / (n + m)) ** 0.5, 3), 0), at + "/bias": ((m,), 0.1, 0)}


def cross_entropy(logits, y):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[..., None], -1))


# A decoder: the next one of 11 tokens, which follow from the one before and the one before that.
def walk(n, places):
    first, noise = below("tokens", (n, 2), 11), below("noise", (n, places + 1), 3)
    x = np.zeros((n, places + 1), np.int32)
    x[:, :2] = first
    for t in range(2, places + 1):
        x[:, t] = (2 * x[:, t - 1] + x[:, t - 2] + noise[:, t] // 2) % 11
    return x


WIDTH, HEADS, PLACES = 16, 4, 12
tokens = walk(64, PLACES)
blocks = {}
for b in ("block_0", "block_1"):
    for part in ("query", "key", "value", "output"):
        blocks |= dense_weights(f"{b}/attention/{part}", WIDTH, WIDTH)
    for norm in ("norm_0", "norm_1"):
        blocks |= {f"{b}/{norm}/gamma": ((WIDTH,), 0.5, 1), f"{b}/{norm}/beta": ((WIDTH,), 0.1, 0)}
    blocks |= dense_weights(f"{b}/up", WIDTH, 32) | dense_weights(f"{b}/down", 32, WIDTH)


@model("transformer", 3e-3, {"tokens/embeddings": ((11, WIDTH), 0.3, 0), "positions/embeddings": ((PLACES, WIDTH), 0.3, 0), **blocks,
                             **dense_weights("logits", WIDTH, 11)},
       {"x": tokens[:, :-1], "y": tokens[:, 1:]}, 16)
def transformer(w, f):
    x = w["tokens/embeddings"][f["x"]] + w["positions/embeddings"]
    for b in ("block_0", "block_1"):
        def norm(at):
            centred = x - x.mean(-1, keepdims=True)
            return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3) * w[f"{b}/{at}/gamma"] + w[f"{b}/{at}/beta"]
        h = norm("norm_0")
        q, k, v = (dense(w, f"{b}/attention/{p}", h).reshape(*x.shape[:2], HEADS, -1) for p in ("query", "key", "value"))
        # Not jax.nn.dot_product_attention, which has its softmax in float32 in any case.
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
        shares = jax.nn.softmax(jnp.where(np.tri(x.shape[1], dtype=bool), scores, -jnp.inf))
        x = x + dense(w, f"{b}/attention/output", jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape))
        x = x + dense(w, f"{b}/down", jax.nn.gelu(dense(w, f"{b}/up", norm("norm_1")), approximate=False))
    return cross_entropy(dense(w, "logits", x), f["y"])


# Recurrences: a sum over the places, some of them weighted by the number before.
series = uniform("series", (64, 24, 3))
sums = (series[:, :, 0] * np.roll(series[:, :, 1], 1, 1)).sum(1, dtype=np.float64, keepdims=True).astype(np.float32)
UNITS = 16


@model("lstm", 5e-3, {"lstm/kernel": ((3, 4 * UNITS), 0.3, 0), "lstm/recurrent_kernel": ((UNITS, 4 * UNITS), 0.3, 0), "lstm/bias": ((4 * UNITS,), 0.3, 0),
                      **dense_weights("out", UNITS, 1)}, {"x": series, "y": sums}, 16)
def lstm(w, f):
    def place(state, x):
        h, c = state
        i, g, a, o = jnp.split(x @ w["lstm/kernel"] + w["lstm/bias"] + h @ w["lstm/recurrent_kernel"], 4, -1)
        c = jax.nn.sigmoid(g) * c + jax.nn.sigmoid(i) * jnp.tanh(a)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), None
    zero = jnp.zeros((len(f["x"]), UNITS), f["x"].dtype)
    (h, _), _ = lax.scan(place, (zero, zero), f["x"].transpose(1, 0, 2))
    return jnp.mean((dense(w, "out", h) - f["y"]) ** 2)


@model("gru", 5e-3, {"gru/kernel": ((3, 3 * UNITS), 0.3, 0), "gru/recurrent_kernel": ((UNITS, 3 * UNITS), 0.3, 0), "gru/bias": ((2, 3 * UNITS), 0.3, 0),
                     **dense_weights("out", UNITS, 1)}, {"x": series, "n": below("lengths", (64,), 24) + 1, "y": sums}, 16)
def gru(w, f):
    def place(h, at):
        x, t = at
        (z, r, a), (hz, hr, ha) = (jnp.split(v, 3, -1) for v in (x @ w["gru/kernel"] + w["gru/bias"][0], h @ w["gru/recurrent_kernel"] + w["gru/bias"][1]))
        z, r = jax.nn.sigmoid(z + hz), jax.nn.sigmoid(r + hr)
        after = z * h + (1 - z) * jnp.tanh(a + r * ha)
        return jnp.where((t < f["n"])[:, None], after, h), None
    h, _ = lax.scan(place, jnp.zeros((len(f["x"]), UNITS), f["x"].dtype), (f["x"].transpose(1, 0, 2), jnp.arange(f["x"].shape[1])))
    return jnp.mean((dense(w, "out", h) - f["y"]) ** 2)


# The digits, by convolutions, rectifiers and maximum pools.
def conv(w, at, x, stride=1):
    return lax.conv_general_dilated(x, w[at + "/kernel"], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + w[at + "/bias"]


def conv_weights(at, n, m):
    return {at + "/kernel": ((3, 3, n, m), round((6 / (9 * (n + m))) ** 0.5, 3), 0), at + "/bias": ((m,), 0.1, 0)}


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data")
with gzip.open(os.path.join(data, "digits.csv.gz"), "rt") as f:
    rows = np.loadtxt(f, delimiter=",", dtype=np.float32)
rows = np.delete(rows, np.loadtxt(os.path.join(data, "digits_test_rows.txt"), dtype=int), 0)[:1408]
images, labels = (rows[:, :64] / np.float32(16)).reshape(-1, 8, 8, 1), rows[:, 64].astype(np.int32)


@model("cnn", 2e-3, conv_weights("conv_0", 1, 8) | conv_weights("conv_1", 8, 16) | dense_weights("out", 64, 10), {"x": images, "y": labels}, 32)
def cnn(w, f):
    x = pool(jax.nn.relu(conv(w, "conv_0", f["x"])))
    x = pool(jax.nn.relu(conv(w, "conv_1", x)))
    return cross_entropy(dense(w, "out", x.reshape(len(x), -1)), f["y"])


# A critic and a generator with the gradient penalty of Gulrajani et al. 2017: second derivatives of convolutions and pools. Both are updated
# at once, the generator by the critic as it was.
critic_weights = conv_weights("critic/conv_0", 1, 8) | conv_weights("critic/conv_1", 8, 16) | dense_weights("critic/out", 64, 1)


@model("wgan-gp", 1e-3, {**critic_weights, **dense_weights("generator/hidden", 4, 32), **dense_weights("generator/out", 32, 64)},
       {"x": images[:512], "z": uniform("noise of the generator", (512, 4)), "e": uniform("mixture", (512, 1, 1, 1), 0.5) + np.float32(0.5)}, 32)
def wgan(w, f):
    def critic(w, x):
        leaky = lambda x: jnp.where(x > 0, x, 0.2 * x)
        x = leaky(conv(w, "critic/conv_0", x, 2))
        x = pool(leaky(conv(w, "critic/conv_1", x)))
        return dense(w, "critic/out", x.reshape(len(x), -1))[:, 0]
    made = jax.nn.sigmoid(dense(w, "generator/out", jnp.tanh(dense(w, "generator/hidden", f["z"])))).reshape(f["x"].shape)
    fixed, still = lax.stop_gradient(made), lax.stop_gradient({k: v for k, v in w.items() if k.startswith("critic/")})
    slope = jax.grad(lambda x: critic(w, x).sum())(f["e"] * f["x"] + (1 - f["e"]) * fixed)
    penalty = jnp.mean((jnp.sqrt(jnp.sum(slope**2, (1, 2, 3)) + 1e-12) - 1) ** 2)
    return critic(w, fixed).mean() - critic(w, f["x"]).mean() + 10 * penalty - critic(still, made).mean()


# A layer that is the fixed point z = tanh(z·inner + x·outer + bias), with the gradient of the implicit function theorem.
points = uniform("points", (64, 4))
TURNS, STATE = 30, 12


def cell(z, inner, injected):
    return jnp.tanh(z @ inner + injected)


@jax.custom_vjp
def fixed_point(inner, injected):
    return fixed_point_forward(inner, injected)[0]


def fixed_point_forward(inner, injected):
    z = lax.fori_loop(0, TURNS, lambda _, z: cell(z, inner, injected), jnp.zeros_like(injected))
    return cell(z, inner, injected), (z, inner, injected)


def fixed_point_backward(kept, v):
    z, inner, injected = kept
    by_z = jax.vjp(lambda z: cell(z, inner, injected), z)[1]
    u = lax.fori_loop(0, TURNS, lambda _, u: v + by_z(u)[0], v)
    return jax.vjp(lambda inner, injected: cell(z, inner, injected), inner, injected)[1](u)


fixed_point.defvjp(fixed_point_forward, fixed_point_backward)


@model("deq", 5e-3, {"deq/inner": ((STATE, STATE), 0.2, 0), "deq/outer": ((4, STATE), 0.6, 0), "deq/bias": ((STATE,), 0.1, 0), **dense_weights("out", STATE, 1)},
       {"x": points, "y": (points[:, :1] * points[:, 1:2] + points[:, 2:3]).astype(np.float32)}, 16)
def deq(w, f):
    z = fixed_point(w["deq/inner"], f["x"] @ w["deq/outer"] + w["deq/bias"])
    return jnp.mean((dense(w, "out", z) - f["y"]) ** 2)


# MAML (Finn et al. 2017): the gradient through five steps of gradient descent, for each task from the same beginning.
def tasks(n, shots):
    x = uniform("shots", (n, shots, 1), 2.0)
    a, b, c = (uniform(k, (n, 1, 1)) for k in "abc")
    return x, (a * x * x + b * x + c).astype(np.float32)


inputs, targets = tasks(32, 16)


@model("maml", 3e-3, {**dense_weights("hidden", 1, 16, 0.8), **dense_weights("out", 16, 1)},
       {"x": inputs[:, :8], "y": targets[:, :8], "x2": inputs[:, 8:], "y2": targets[:, 8:]}, 4)
def maml(w, f):
    def error(w, x, y):
        return jnp.mean((dense(w, "out", jnp.tanh(dense(w, "hidden", x))) - y) ** 2)

    def task(_, at):
        x, y, x2, y2 = at
        turn = lambda w, _: (jax.tree.map(lambda p, g: p - 0.125 * g, w, jax.grad(error)(w, x, y)), None)
        return None, error(lax.scan(turn, w, None, 5)[0], x2, y2)

    return lax.scan(task, None, (f["x"], f["y"], f["x2"], f["y2"]))[1].mean()


if __name__ == "__main__":
    json.dump(models, sys.stdout, separators=(",", ":"))
    print()
