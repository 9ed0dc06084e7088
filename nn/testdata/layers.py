"""Writes what the layers of Keras and flax compute, and their gradients, for package nn's tests. Made with keras 3.15.0, flax 0.12.8
and jax 0.10.2; run in this folder:

    KERAS_BACKEND=jax JAX_ENABLE_X64=1 python layers.py > layers.json

Numbers are drawn in float32. "outputs" and "gradients" are computed in float64, of the sum of the outputs times "adjoints"; "error" is
how far off the same code is in float32. What a peer has in other shapes is reshaped here to those of package nn.
"""
import json
import sys
import zlib

import flax.linen as linen
import jax
import jax.numpy as jnp
import keras
import numpy as np

B, T, N, U = 3, 5, 4, 6
LENGTHS = np.array([5, 2, 3], np.int32)
MASK = np.arange(T)[None, :] < LENGTHS[:, None]
cases = {}


def case(name, f, inputs, weights, fixed=None):
    """f(weights, inputs, fixed, dtype) gives a list of outputs; inputs and weights are dicts of shapes."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    draw = lambda shape, scale=1.0: (rng.standard_normal(shape) * scale).astype(np.float32)
    x = {k: draw(s) for k, s in inputs.items()}
    w = {k: draw(s, 0.5) for k, s in weights.items()}
    fixed = fixed or {}

    def run(dtype, adjoints=None):
        cast = lambda tree: {k: jnp.asarray(v, dtype) for k, v in tree.items()}
        of = lambda w, x: f(w, x, fixed, dtype)
        outputs = of(cast(w), cast(x))
        assert all(o.dtype == dtype for o in outputs), (name, dtype)
        if adjoints is None:
            adjoints = [draw(o.shape) for o in outputs]
        loss = lambda w, x: sum(jnp.sum(o * jnp.asarray(a, dtype)) for o, a in zip(of(w, x), adjoints))
        gw, gx = jax.grad(loss, argnums=(0, 1))(cast(w), cast(x))
        return adjoints, [np.asarray(o) for o in outputs], {k: np.asarray(v) for k, v in {**gw, **gx}.items()}

    adjoints, outputs, gradients = run("float64")
    _, outputs32, gradients32 = run("float32", adjoints)
    off = lambda a, b: float(np.max(np.abs(a.astype(np.float64) - b.astype(np.float64))))
    # As few digits as say a float32, and 12 of the others.
    short = lambda v: float(str(v)) if v.dtype == np.float32 else float(f"{v:.12g}")
    array = lambda a: {"dims": list(a.shape), "flat": [short(v) for v in a.ravel()]}
    cases[name] = {
        "inputs": {k: array(v) for k, v in x.items()}, "weights": {k: array(v) for k, v in w.items()},
        "fixed": {k: {"dims": list(v.shape), "flat": [int(i) for i in v.ravel()]} for k, v in fixed.items()},
        "adjoints": [array(a) for a in adjoints], "outputs": [array(o) for o in outputs],
        "gradients": {k: array(v) for k, v in gradients.items()},
        "output_errors": [off(a, b) for a, b in zip(outputs, outputs32)],
        "gradient_errors": {k: off(gradients[k], gradients32[k]) for k in gradients}}


def of_keras(name, make, inputs, weights, call=None, fixed=None):
    """A Keras layer whose trainable weights are those of weights, in order. call gives its arguments and what is made of its outputs."""
    call = call or (lambda x, fixed: ((x["x"],), {}))
    layers = {}

    def f(w, x, fixed, dtype):
        args, kw = call(x, fixed)
        if dtype not in layers:
            layers[dtype] = make(dtype)
            layers[dtype](*[np.zeros(a.shape, dtype) for a in args], **kw)
        layer = layers[dtype]
        given = [w[k].reshape(v.shape) for k, v in zip(weights, layer.trainable_variables, strict=True)]
        y, _ = layer.stateless_call(given, [v.value for v in layer.non_trainable_variables], *args, **kw)
        return list(jax.tree.leaves(y))

    case(name, f, inputs, weights, fixed)


seq = {"x": (B, T, N)}
image = {"x": (2, 5, 6, 4)}

# Dense and convolutions
of_keras("dense", lambda t: keras.layers.Dense(U, dtype=t), seq, {"kernel": (N, U), "bias": (U,)})
of_keras("conv1d same", lambda t: keras.layers.Conv1D(3, 3, padding="same", dtype=t), seq, {"kernel": (3, N, 3), "bias": (3,)})
of_keras("conv2d strides", lambda t: keras.layers.Conv2D(3, (3, 2), strides=2, padding="same", dtype=t), image, {"kernel": (3, 2, 4, 3), "bias": (3,)})
of_keras("conv2d strides, even", lambda t: keras.layers.Conv2D(3, 3, strides=2, padding="same", dtype=t), {"x": (2, 6, 8, 4)},
         {"kernel": (3, 3, 4, 3), "bias": (3,)})
of_keras("conv2d dilation", lambda t: keras.layers.Conv2D(3, 2, dilation_rate=(2, 3), dtype=t), image, {"kernel": (2, 2, 4, 3), "bias": (3,)})
of_keras("conv2d groups", lambda t: keras.layers.Conv2D(6, 3, groups=2, padding="same", use_bias=False, dtype=t), image, {"kernel": (3, 3, 2, 6)})
of_keras("conv3d", lambda t: keras.layers.Conv3D(2, 2, strides=(1, 2, 1), padding="same", dtype=t), {"x": (2, 3, 4, 3, 2)}, {"kernel": (2, 2, 2, 2, 2), "bias": (2,)})

of_keras("conv1d causal", lambda t: keras.layers.Conv1D(3, 3, padding="causal", dilation_rate=2, dtype=t), {"x": (2, 7, 4)}, {"kernel": (3, 4, 3), "bias": (3,)})
of_keras("conv1d causal strides", lambda t: keras.layers.Conv1D(3, 4, padding="causal", strides=3, dtype=t), {"x": (2, 8, 4)}, {"kernel": (4, 4, 3), "bias": (3,)})
of_keras("conv2d dilation same", lambda t: keras.layers.Conv2D(4, (2, 3), dilation_rate=(3, 2), padding="same", groups=2, dtype=t), image,
         {"kernel": (2, 3, 2, 4), "bias": (4,)})
of_keras("conv3d valid", lambda t: keras.layers.Conv3D(2, (1, 2, 3), strides=(2, 1, 2), dtype=t), {"x": (2, 4, 3, 6, 2)}, {"kernel": (1, 2, 3, 2, 2), "bias": (2,)})


def strided_and_dilated(w, x, fixed, t):
    """Keras refuses both together."""
    return [jax.lax.conv_general_dilated(x["x"], w["kernel"], (2, 3), [(1, 1), (2, 3)], rhs_dilation=(2, 3), dimension_numbers=("NHWC", "HWIO", "NHWC")) + w["bias"]]


# The paddings of "same" by hand: windows that reach over 3 and 7 places, at 0, 2, 4 of 5 and at 0, 3 of 5.
case("conv2d strides and dilation", strided_and_dilated, {"x": (2, 5, 5, 4)}, {"kernel": (2, 3, 4, 3), "bias": (3,)})

case("conv2d padding", lambda w, x, fixed, t: [jax.lax.conv_general_dilated(x["x"], w["kernel"], (2, 2), [(1, 1), (2, 2)], dimension_numbers=("NHWC", "HWIO", "NHWC"))],
     image, {"kernel": (3, 4, 4, 3)})

# Depthwise, separable
for n in (7, 8):
    of_keras(f"depthwise1d strides {n}", lambda t: keras.layers.DepthwiseConv1D(4, strides=3, padding="same", depth_multiplier=2, dtype=t), {"x": (2, n, 3)},
             {"kernel": (4, 3, 2), "bias": (6,)})
of_keras("depthwise2d", lambda t: keras.layers.DepthwiseConv2D(3, padding="same", dtype=t), image, {"kernel": (3, 3, 4, 1), "bias": (4,)})
of_keras("depthwise2d dilation", lambda t: keras.layers.DepthwiseConv2D((2, 3), dilation_rate=2, depth_multiplier=3, use_bias=False, dtype=t), image, {"kernel": (2, 3, 4, 3)})
of_keras("depthwise1d causal", lambda t: keras.layers.Conv1D(4, 3, groups=4, padding="causal", dilation_rate=2, dtype=t), {"x": (2, 7, 4)},
         {"kernel": (3, 4, 1), "bias": (4,)})
case("separable1d causal", lambda w, x, fixed, t: [jax.lax.conv_general_dilated(
    jnp.pad(x["x"], ((0, 0), (2, 0), (0, 0))), w["depthwise_kernel"].reshape(3, 1, 8), (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC"),
    feature_group_count=4) @ w["pointwise_kernel"][0]], {"x": (2, 7, 4)}, {"depthwise_kernel": (3, 4, 2), "pointwise_kernel": (1, 8, 5)})
of_keras("separable1d", lambda t: keras.layers.SeparableConv1D(5, 3, dilation_rate=2, padding="same", dtype=t), {"x": (2, 6, 3)},
         {"depthwise_kernel": (3, 3, 1), "pointwise_kernel": (1, 3, 5), "bias": (5,)})
of_keras("separable2d", lambda t: keras.layers.SeparableConv2D(5, (3, 2), strides=2, depth_multiplier=2, dtype=t), image,
         {"depthwise_kernel": (3, 2, 4, 2), "pointwise_kernel": (1, 1, 8, 5), "bias": (5,)})

# x[:, -1], and of sequences of different lengths
case("last step", lambda w, x, fixed, t: [x["x"][:, -1]], seq, {})
case("last step lengths", lambda w, x, fixed, t: [x["x"][np.arange(B), fixed["lengths"] - 1]], seq, {}, {"lengths": LENGTHS})

of_keras("global max", lambda t: keras.layers.GlobalMaxPooling2D(dtype=t), image, {})
case("global max lengths", lambda w, x, fixed, t: [jnp.stack([v[:n].max(0) for v, n in zip(x["x"], fixed["lengths"])])], seq, {}, {"lengths": LENGTHS})

# Transposed: every form of padding, with windows and strides of which either is longer
for n, window, stride in ((4, 3, 2), (5, 4, 2), (3, 2, 3), (4, 5, 3), (3, 1, 2), (3, 4, 1)):
    for padding in ("same", "valid"):
        for more in (None, 0, stride - 1) if stride > 1 else (None, 0):
            of_keras(f"transpose1d {n} {window} {stride} {padding} {more}",
                     lambda t: keras.layers.Conv1DTranspose(2, window, strides=stride, padding=padding, output_padding=more, dtype=t), {"x": (2, n, 3)},
                     {"kernel": (window, 2, 3), "bias": (2,)})
of_keras("transpose1d dilation", lambda t: keras.layers.Conv1DTranspose(2, 3, dilation_rate=2, padding="same", dtype=t), {"x": (2, 5, 3)}, {"kernel": (3, 2, 3), "bias": (2,)})
of_keras("transpose2d", lambda t: keras.layers.Conv2DTranspose(3, (3, 4), strides=(2, 3), padding="same", use_bias=False, dtype=t), image, {"kernel": (3, 4, 3, 4)})
of_keras("transpose3d", lambda t: keras.layers.Conv3DTranspose(2, 2, strides=(1, 2, 3), dtype=t), {"x": (2, 2, 3, 2, 3)}, {"kernel": (2, 2, 2, 2, 3), "bias": (2,)})

# Normalisations
of_keras("layer norm", lambda t: keras.layers.LayerNormalization(dtype=t), seq, {"gamma": (N,), "beta": (N,)})
case("layer norm flax", lambda w, x, fixed, t: [linen.LayerNorm(dtype=t, use_fast_variance=False).apply({"params": {"scale": w["gamma"], "bias": w["beta"]}}, x["x"])],
     seq, {"gamma": (N,), "beta": (N,)})
of_keras("rms norm", lambda t: keras.layers.RMSNormalization(dtype=t), seq, {"scale": (N,)})
of_keras("group norm", lambda t: keras.layers.GroupNormalization(2, dtype=t), image, {"gamma": (4,), "beta": (4,)})

# Embeddings and positions
IDS = np.array([[0, 3, 2], [6, 3, 0]], np.int32)
of_keras("embedding", lambda t: keras.layers.Embedding(7, 3, dtype=t), {}, {"embeddings": (7, 3)}, lambda x, fixed: ((fixed["ids"],), {}), {"ids": IDS})


def tied(w, x, fixed, t):
    table = w["embeddings"].at[3].set(0)
    return [table[fixed["ids"]], x["x"] @ table.T]


case("embedding tied, padding", tied, {"x": (2, 3)}, {"embeddings": (7, 3)}, {"ids": IDS})


def sines(w, x, fixed, t):
    at = jnp.arange(T, dtype=t)[:, None] / 10000 ** (jnp.arange(0, N, 2, dtype=t) / N)
    return [x["x"] + jnp.stack([jnp.sin(at), jnp.cos(at)], -1).reshape(T, N)]


case("sinusoidal", sines, seq, {})
case("positions", lambda w, x, fixed, t: [x["x"] + w["embeddings"][:T]], seq, {"embeddings": (8, N)})

# Recurrences
@keras.saving.register_keras_serializable()
def tanh(x):
    """Keras's own computes in float32 whatever it is given."""
    return jnp.tanh(x)


def with_tanh(layer):
    return lambda *args, **kw: layer(*args, activation=tanh, **kw)


kinds = {"lstm": (with_tanh(keras.layers.LSTM), 4, (4 * U,)), "gru": (with_tanh(keras.layers.GRU), 3, (2, 3 * U)),
         "simple": (with_tanh(keras.layers.SimpleRNN), 1, (U,))}


def counted(f):
    """Keras repeats the last output at places that do not count."""
    return lambda w, x, fixed, t: [o * MASK[..., None].astype(t) if o.ndim == 3 else o for o in f(w, x, fixed, t)]


for kind, (make, gates, bias) in kinds.items():
    of = lambda prefix, n=N: {prefix + "kernel": (n, gates * U), prefix + "recurrent_kernel": (U, gates * U), prefix + "bias": bias}
    states = lambda t, **kw: make(U, return_sequences=True, return_state=True, dtype=t, **kw)
    of_keras(kind, states, seq, of(""))
    of_keras(kind + " last", lambda t: make(U, dtype=t), seq, of(""))
    initial = {f"state{i}": (B, U) for i in range(2 if kind == "lstm" else 1)}
    of_keras(kind + " initial", states, {**seq, **initial}, of(""), lambda x, fixed: ((x["x"],), {"initial_state": [x[k] for k in initial]}))
    real = case
    case = lambda name, f, *rest: real(name, counted(f), *rest)
    masked = lambda x, fixed: ((x["x"],), {"mask": MASK})
    of_keras(kind + " lengths", states, seq, of(""), masked, {"lengths": LENGTHS})
    of_keras(kind + " both lengths", lambda t: keras.layers.Bidirectional(make(U, return_sequences=True, dtype=t), dtype=t), seq,
             {**of("forward/"), **of("backward/")}, masked, {"lengths": LENGTHS})
    case = real
    of_keras(kind + " both last", lambda t: keras.layers.Bidirectional(make(U, dtype=t), dtype=t), seq, {**of("forward/"), **of("backward/")})
    of_keras(kind + " layers", lambda t: keras.Sequential([make(U, return_sequences=True, dtype=t), make(U, return_sequences=True, dtype=t)]), seq,
             {**of("layer_0/"), **of("layer_1/", U)})


of_keras("gru reset before", lambda t: with_tanh(keras.layers.GRU)(U, reset_after=False, return_sequences=True, return_state=True, dtype=t), seq,
         {"kernel": (N, 3 * U), "recurrent_kernel": (U, 3 * U), "bias": (3 * U,)})


def flax_gru(w, x, fixed, t):
    cut = lambda v: jnp.split(v, 3, -1)
    (kz, kr, kn), (uz, ur, un), (bz, br, bn), (cz, cr, cn) = cut(w["kernel"]), cut(w["recurrent_kernel"]), cut(w["bias"][0]), cut(w["bias"][1])
    params = {"ir": {"kernel": kr, "bias": br + cr}, "iz": {"kernel": kz, "bias": bz + cz}, "in": {"kernel": kn, "bias": bn},
              "hr": {"kernel": ur}, "hz": {"kernel": uz}, "hn": {"kernel": un, "bias": cn}}
    last, out = linen.RNN(linen.GRUCell(U, dtype=t, param_dtype=t), return_carry=True).apply({"params": {"cell": params}}, x["x"], seq_lengths=fixed["lengths"])
    return [out * MASK[..., None].astype(t), last]


def flax_lstm(w, x, fixed, t):
    cut = lambda v: dict(zip("ifgo", jnp.split(v, 4, -1)))
    k, u, b = cut(w["kernel"]), cut(w["recurrent_kernel"]), cut(w["bias"])
    params = {**{"i" + n: {"kernel": k[n]} for n in "ifgo"}, **{"h" + n: {"kernel": u[n], "bias": b[n]} for n in "ifgo"}}
    (c, h), out = linen.RNN(linen.OptimizedLSTMCell(U, dtype=t, param_dtype=t), return_carry=True).apply({"params": {"cell": params}}, x["x"], seq_lengths=fixed["lengths"])
    return [out * MASK[..., None].astype(t), h, c]


case("gru flax", flax_gru, seq, {"kernel": (N, 3 * U), "recurrent_kernel": (U, 3 * U), "bias": (2, 3 * U)}, {"lengths": LENGTHS})
case("lstm flax", flax_lstm, seq, {"kernel": (N, 4 * U), "recurrent_kernel": (U, 4 * U), "bias": (4 * U,)}, {"lengths": LENGTHS})

# Attention
HEADS, WIDTH, M = 4, 2, 3


def projections(n, memory, keys=HEADS, bias=True):
    sizes = {"query": (n, HEADS * WIDTH), "key": (memory, keys * WIDTH), "value": (memory, keys * WIDTH), "output": (HEADS * WIDTH, n)}
    return {f"{k}/{v}": s if v == "kernel" else s[1:] for k, s in sizes.items() for v in (["kernel", "bias"] if bias else ["kernel"])}


mha = lambda t, **kw: keras.layers.MultiHeadAttention(HEADS, WIDTH, dtype=t, **kw)
own = lambda **kw: lambda x, fixed: ((x["x"], x["x"]), kw)
full = {"full": (np.random.default_rng(5).random((B, T, T)) < 0.6) | np.eye(T, dtype=bool)}
of_keras("attention", mha, seq, projections(N, N), own())
of_keras("attention no bias", lambda t: mha(t, use_bias=False), seq, projections(N, N, bias=False), own())
of_keras("attention causal", mha, seq, projections(N, N), own(use_causal_mask=True))
of_keras("attention lengths", mha, seq, projections(N, N), own(attention_mask=MASK[:, None, :]), {"lengths": LENGTHS})
of_keras("attention causal lengths", mha, seq, projections(N, N), own(attention_mask=MASK[:, None, :], use_causal_mask=True), {"lengths": LENGTHS})
of_keras("attention full", mha, seq, projections(N, N), own(attention_mask=full["full"]), full)
of_keras("attention cross", mha, {**seq, "memory": (B, 7, M)}, projections(N, M), lambda x, fixed: ((x["x"], x["memory"]), {}))
gqa = lambda t: keras.layers.GroupQueryAttention(WIDTH, HEADS, 2, dtype=t)
of_keras("attention grouped", gqa, seq, projections(N, N, 2), own(use_causal_mask=True))
of_keras("attention grouped full", gqa, seq, projections(N, N, 2), own(attention_mask=full["full"]), full)


def flax_attention(w, x, fixed, t):
    part = lambda k, bias, *dims: {"kernel": w[k + "/kernel"].reshape(dims), "bias": w[k + "/bias"].reshape(bias)}
    params = {k: part(k, (HEADS, WIDTH), N, HEADS, WIDTH) for k in ("query", "key", "value")} | {"out": part("output", N, HEADS, WIDTH, N)}
    layer = linen.MultiHeadDotProductAttention(HEADS, qkv_features=HEADS * WIDTH, dtype=t)
    return [layer.apply({"params": params}, x["x"], mask=linen.make_causal_mask(np.ones((B, T))))]


case("attention flax", flax_attention, seq, projections(N, N))


def rotary(w, x, fixed, t):
    width = 4
    angle = jnp.arange(T, dtype=t)[:, None] / 10000 ** (jnp.arange(0, width, 2, dtype=t) / width)
    cos, sin = jnp.cos(angle)[:, None], jnp.sin(angle)[:, None]

    def turned(v):
        a, b = jnp.split(v, 2, -1)
        return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    q, k, v = ((x["x"] @ w[n + "/kernel"]).reshape(B, T, -1, width) for n in ("query", "key", "value"))
    y = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True)
    return [y.reshape(B, T, -1) @ w["output/kernel"]]


case("attention rotary", rotary, seq, {"query/kernel": (N, 8), "key/kernel": (N, 8), "value/kernel": (N, 8), "output/kernel": (8, N)})



def weighted(q, k, v, scale, cap=None):
    """Causal attention of [batch, places, heads, width], with a soft cap."""
    scores = jnp.einsum("bqhw,bkhw->bhqk", q, k) * scale
    if cap:
        scores = cap * jnp.tanh(scores / cap)
    scores = jnp.where(jnp.tril(jnp.ones((T, T), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhw->bqhw", jax.nn.softmax(scores), v).reshape(B, T, -1)


def capped(w, x, fixed, t):
    q, k, v = ((x["x"] @ w[n + "/kernel"]).reshape(B, T, 2, 4) for n in ("query", "key", "value"))
    return [weighted(q, k, v, 0.9, 1.5) @ w["output/kernel"]]


case("attention scale and cap", capped, seq, {"query/kernel": (N, 8), "key/kernel": (N, 8), "value/kernel": (N, 8), "output/kernel": (8, N)})


def fused(w, x, fixed, t):
    q, k, v = jnp.split((x["x"] @ w["qkv/kernel"] + w["qkv/bias"]).reshape(B, T, 8, 2), (4, 6), 2)
    return [weighted(q, jnp.repeat(k, 2, 2), jnp.repeat(v, 2, 2), 2**-0.5) @ w["output/kernel"] + w["output/bias"]]




def no_key_bias(w, x, fixed, t):
    q, k, v = ((x["x"] @ w[n + "/kernel"] + w.get(n + "/bias", 0)).reshape(B, T, 4, 2) for n in ("query", "key", "value"))
    return [weighted(q, k, v, 2**-0.5) @ w["output/kernel"] + w["output/bias"]]


case("attention no key bias", no_key_bias, seq, {k: v for k, v in projections(N, N).items() if k != "key/bias"})
case("quick gelu", lambda w, x, fixed, t: [x["x"] * jax.nn.sigmoid(1.702 * x["x"])], seq, {})
case("attention fused", fused, seq, {"qkv/kernel": (N, 16), "qkv/bias": (16,), "output/kernel": (8, N), "output/bias": (N,)})
case("rms norm one plus", lambda w, x, fixed, t: [x["x"] * jax.lax.rsqrt(jnp.mean(x["x"] ** 2, -1, keepdims=True) + 1e-6) * (1 + w["scale"])], seq, {"scale": (N,)})


class Windows(keras.layers.Layer):
    """Scales each window by its own mean and deviation, and the forecast back to the units of the second column."""

    def __init__(self, dtype):
        super().__init__(dtype=dtype)
        self.head = keras.layers.Dense(2, dtype=dtype)

    def call(self, x):
        mean, deviation = keras.ops.mean(x, 1, keepdims=True), keras.ops.std(x, 1, keepdims=True)
        y = self.head(keras.ops.reshape((x - mean) / deviation, (x.shape[0], -1)))
        return y * deviation[:, 0, 1:2] + mean[:, 0, 1:2]


of_keras("window scale", Windows, seq, {"1/kernel": (T * N, 2), "1/bias": (2,)})

# Initializers: the deviation and the greatest number of large kernels
begins = {}
for name in ("glorot_uniform", "glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal",
             "random_normal", "random_uniform", "truncated_normal", "zeros", "ones"):
    for shape in ((400, 300), (3, 5, 40, 100), (3, 3, 3, 30, 60), (50000,)):
        v = np.asarray(keras.initializers.get(name)(shape), np.float64)
        begins[f"{name} {' '.join(map(str, shape))}"] = {"deviation": float(v.std()), "mean": float(v.mean()), "greatest": float(np.abs(v).max())}

json.dump({"cases": cases, "begins": begins}, sys.stdout, separators=(",", ":"))
