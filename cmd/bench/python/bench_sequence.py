"""Training steps of an LSTM and of a decoder-only transformer, and the latter's greedy generation with caches, as
`go run ./cmd/bench -workload lstm,gpt,generate`. A variant is the size (places, layers), or the size and "first step": from
nothing to the end of the first step, with initial values and compilation. --impl flax and --impl keras (on JAX) have the
same models by their own layers; generate is raw JAX's alone."""
import os
import sys
import time

IMPL = "jax"
if "--impl" in sys.argv:
    at = sys.argv.index("--impl")
    IMPL = sys.argv[at + 1]
    del sys.argv[at:at + 2]
os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

import common

UNITS, INPUTS, CLASSES = 128, 32, 10
WIDTH, HEADS, VOCABULARY, PLACES = 256, 8, 2048, 128
PROMPT, LENGTH = 16, 640
FIRST = " first step"


def cross_entropy(logits, y):
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


# Raw JAX. As in nn.LSTM, what the inputs contribute is one product before the loop.

def lstm_init(key):
    k = jax.random.split(key, 3)
    glorot, orthogonal = jax.nn.initializers.glorot_uniform(), jax.nn.initializers.orthogonal()
    return {"w": glorot(k[0], (INPUTS, 4 * UNITS)), "u": orthogonal(k[1], (UNITS, 4 * UNITS)),
            "b": jnp.concatenate([jnp.zeros(UNITS), jnp.ones(UNITS), jnp.zeros(2 * UNITS)]),
            "out": glorot(k[2], (UNITS, CLASSES)), "out_b": jnp.zeros(CLASSES)}


def lstm(p, x):
    given = jnp.swapaxes(x, 0, 1) @ p["w"] + p["b"]

    def turn(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ p["u"], 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[0], UNITS))
    (h, _), _ = lax.scan(turn, (zeros, zeros), given)
    return h @ p["out"] + p["out_b"]


def gpt_init(key, layers, places=PLACES):
    glorot = jax.nn.initializers.glorot_uniform()
    keys = iter(jax.random.split(key, 6 * layers + 2))

    def dense(n, m):
        return {"w": glorot(next(keys), (n, m)), "b": jnp.zeros(m)}

    def norm():
        return {"g": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}

    return {"tokens": jax.random.uniform(next(keys), (VOCABULARY, WIDTH), minval=-0.05, maxval=0.05),
            "positions": glorot(next(keys), (places, WIDTH)), "norm": norm(),
            "blocks": [{"norm_0": norm(), "q": dense(WIDTH, WIDTH), "k": dense(WIDTH, WIDTH), "v": dense(WIDTH, WIDTH), "o": dense(WIDTH, WIDTH),
                        "norm_1": norm(), "up": dense(WIDTH, 4 * WIDTH), "down": dense(4 * WIDTH, WIDTH)} for _ in range(layers)]}


def dense(p, x):
    return x @ p["w"] + p["b"]


def norm(p, x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-3) * p["g"] + p["b"]


def heads(x):
    return x.reshape(*x.shape[:2], HEADS, WIDTH // HEADS)


def attend(q, k, v, mask):
    weights = jnp.einsum("bqhd,bkhd->bhqk", q / np.sqrt(WIDTH // HEADS), k)
    weights = jax.nn.softmax(jnp.where(mask, weights, jnp.finfo(jnp.float32).min))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(*q.shape[:2], WIDTH)


def block(p, x, attention):
    """attention is of the queries, keys and values of new places."""
    h = norm(p["norm_0"], x)
    x = x + dense(p["o"], attention(*(heads(dense(p[n], h)) for n in "qkv")))
    return x + dense(p["down"], jax.nn.gelu(dense(p["up"], norm(p["norm_1"], x))))


def gpt(p, ids):
    n = ids.shape[1]
    mask = jnp.tril(jnp.ones((n, n), bool))
    x = p["tokens"][ids] + p["positions"][:n]
    for b in p["blocks"]:
        x = block(b, x, lambda q, k, v: attend(q, k, v, mask))
    return norm(p["norm"], x) @ p["tokens"].T


def decode(p, state, ids):
    """The greedy next token behind ids, that follow the places of the caches."""
    caches, at = state
    n = ids.shape[1]
    mask = jnp.arange(LENGTH) <= at + jnp.arange(n)[:, None]
    x = p["tokens"][ids] + lax.dynamic_slice_in_dim(p["positions"], at, n)
    new = []
    for b, (keys, values) in zip(p["blocks"], caches):
        def attention(q, k, v):
            both = lax.dynamic_update_slice_in_dim(keys, k, at, 1), lax.dynamic_update_slice_in_dim(values, v, at, 1)
            new.append(both)
            return attend(q, *both, mask)

        x = block(b, x, attention)
    logits = norm(p["norm"], x[:, -1]) @ p["tokens"].T
    return (new, at + n), logits.argmax(-1).astype(jnp.int32)[:, None]


def jax_training(workload, size):
    tx = optax.adam(1e-3)
    model = lstm if workload == "lstm" else gpt

    def init(key):
        params = lstm_init(key) if workload == "lstm" else gpt_init(key, size)
        return params, tx.init(params)

    def step(state, x, y):
        loss, g = jax.value_and_grad(lambda p: cross_entropy(model(p, x), y))(state[0])
        update, opt = tx.update(g, state[1], state[0])
        return (optax.apply_updates(state[0], update), opt), loss

    return lambda: jax.jit(init)(jax.random.key(0)), jax.jit(step, donate_argnums=0)


def flax_training(workload, size, x):
    from flax import linen as nn

    class Lstm(nn.Module):
        @nn.compact
        def __call__(self, x):
            (_, h), _ = nn.RNN(nn.OptimizedLSTMCell(UNITS), return_carry=True)(x)
            return nn.Dense(CLASSES)(h)

    class Gpt(nn.Module):
        @nn.compact
        def __call__(self, ids):
            tokens = nn.Embed(VOCABULARY, WIDTH)
            x = tokens(ids) + nn.Embed(PLACES, WIDTH)(jnp.arange(ids.shape[1]))
            mask = nn.make_causal_mask(ids)
            for _ in range(size):
                x = x + nn.MultiHeadDotProductAttention(HEADS)(nn.LayerNorm()(x), mask=mask)
                x = x + nn.Dense(WIDTH)(nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x))))
            return tokens.attend(nn.LayerNorm()(x))

    model, tx = Lstm() if workload == "lstm" else Gpt(), optax.adam(1e-3)

    def init(key):
        params = model.init(key, x)
        return params, tx.init(params)

    def step(state, x, y):
        loss, g = jax.value_and_grad(lambda p: cross_entropy(model.apply(p, x), y))(state[0])
        update, opt = tx.update(g, state[1], state[0])
        return (optax.apply_updates(state[0], update), opt), loss

    return lambda: jax.jit(init)(jax.random.key(0)), jax.jit(step, donate_argnums=0)


def keras_training(workload, size, x):
    import keras
    from keras import layers

    def attention(h):
        return layers.MultiHeadAttention(HEADS, WIDTH // HEADS)(h, h, use_causal_mask=True)

    if workload == "lstm":
        model = keras.Sequential([layers.Input(x.shape[1:]), layers.LSTM(UNITS), layers.Dense(CLASSES)])
    else:
        ids = layers.Input((PLACES,), dtype="int32")
        tokens = layers.Embedding(VOCABULARY, WIDTH)
        h = tokens(ids) + layers.Embedding(PLACES, WIDTH)(keras.ops.arange(PLACES))
        for _ in range(size):
            h = h + attention(layers.LayerNormalization()(h))
            h = h + layers.Dense(WIDTH)(layers.Dense(4 * WIDTH, activation=keras.activations.gelu)(layers.LayerNormalization()(h)))
        logits = layers.Dense(VOCABULARY, use_bias=False)(layers.LayerNormalization()(h))
        model = keras.Model(ids, logits)
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def training(a):
    """Functions that begin and that make one step, waiting for nothing; and one that waits."""
    size = int(a.variant.removesuffix(FIRST))
    r = np.random.default_rng(0)
    if a.workload == "lstm":
        x, y = r.standard_normal((a.batch, size, INPUTS), dtype=np.float32), r.integers(0, CLASSES, a.batch).astype(np.int32)
    else:
        x, y = (r.integers(0, VOCABULARY, (a.batch, PLACES)).astype(np.int32) for _ in "xy")
    box = [None, None, None]
    if IMPL == "keras":
        def begin():
            box[0] = keras_training(a.workload, size, x)

        def step():
            box[1] = box[0].train_on_batch(x, y)

        return begin, step, lambda: float(box[1])

    def begin():
        init, box[2] = jax_training(a.workload, size) if IMPL == "jax" else flax_training(a.workload, size, x)
        box[0] = init()

    def step():
        box[0], box[1] = box[2](box[0], x, y)

    return begin, step, lambda: jax.block_until_ready(box)


def train(a):
    begin, step, wait = training(a)
    steps = 1 if a.variant.endswith(FIRST) else a.steps

    def first():
        jax.clear_caches()
        begin()
        step()
        wait()

    def run():
        for _ in range(steps):
            step()
        wait()

    first()
    if a.variant.endswith(FIRST):
        seconds, cpu = common.measure(a, first)
        return common.emit(a, "s", seconds, cpu_s=cpu, impl=IMPL, batch=a.batch, steps=1)
    step()
    wait()
    seconds, cpu = common.measure(a, run)
    common.emit(a, "ms/step", [1e3 * s / steps for s in seconds], cpu_s=cpu, impl=IMPL, batch=a.batch, steps=steps)


def generate(a):
    """One sequence, token by token, each read on the host."""
    params = jax.jit(lambda k: gpt_init(k, 6, LENGTH))(jax.random.key(0))
    prompt = np.arange(PROMPT, dtype=np.int32)[None]
    step = jax.jit(decode, donate_argnums=1)
    took = []

    def run():
        took.clear()
        start = time.perf_counter()
        state = [(jnp.zeros((1, LENGTH, HEADS, WIDTH // HEADS)),) * 2 for _ in range(6)], jnp.int32(0)
        state = jax.tree.map(jnp.copy, state)
        ids = prompt
        for _ in range(a.steps):
            state, token = step(params, state, ids)
            ids = np.asarray(token)
            now = time.perf_counter()
            took.append(now - start)
            start = now

    run()
    values = []

    def one():
        run()
        values.append(generated(a.variant, took))

    _, cpu = common.measure(a, one)
    common.emit(a, {"tokens": "tokens/s", "first token": "ms"}.get(a.variant, "ratio"), values, cpu_s=cpu, batch=1, steps=a.steps)


def generated(variant, took):
    if variant == "tokens":
        return len(took) / sum(took)
    if variant == "first token":
        return 1e3 * took[0]
    return np.median(took[-21:]) / np.median(took[1:22])


def main():
    a = common.parse(["lstm", "gpt", "generate"])
    a.batch = a.batch or {"lstm": 32, "gpt": 16, "generate": 1}[a.workload]
    if a.workload == "generate":
        a.steps = a.steps or 512
        return generate(a)
    a.steps = a.steps or (2048 // int(a.variant.removesuffix(FIRST)) if a.workload == "lstm" else 4)
    train(a)


if __name__ == "__main__":
    main()
