"""Writes masks.json: what a Keras model says of sequences of several lengths, whose mask its Embedding makes.

    KERAS_BACKEND=jax python masks.py > masks.json

Made with Keras 3.15.0, JAX 0.10.2. The names of weights are those of package flaxlike.
"""
import json
import sys

import jax
import jax.numpy as jnp
import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(7)
LENGTHS = [5, 2, 3, 1]
ids = np.array([[rng.integers(1, 7) if i < n else 0 for i in range(5)] for n in LENGTHS], np.int32)
tags = np.array([[rng.integers(0, 3) if i < n else 0 for i in range(5)] for n in LENGTHS], np.int32)
score = rng.standard_normal((4, 1)).astype(np.float32)

x = layers.Input((5,), dtype="int32")
h = layers.Embedding(7, 4, mask_zero=True)(x)
h = layers.LSTM(4, return_sequences=True)(h)
h = layers.Add()([h, layers.MultiHeadAttention(2, 2)(h, h)])
h = layers.Activation("tanh")(h)
h = layers.LayerNormalization()(h)
h = layers.BatchNormalization()(h)
h = layers.Bidirectional(layers.GRU(2, return_sequences=True))(h)
out_tags = layers.Dense(3, name="tags")(h)
out_mean = layers.Dense(1, name="mean")(layers.GlobalAveragePooling1D()(h))
out_last = layers.Dense(1, name="last")(layers.SimpleRNN(3)(h))
model = keras.Model(x, [out_tags, out_mean, out_last])

NAMES = ["tokens/embeddings"] + [f"trunk/0/{n}" for n in ("kernel", "recurrent_kernel", "bias")]
NAMES += [f"trunk/1/0/{part}/{n}" for part in ("query", "key", "value", "output") for n in ("kernel", "bias")]
NAMES += ["trunk/3/gamma", "trunk/3/beta"]
NAMES += ["trunk/4/batch_normalization/scale", "trunk/4/batch_normalization/offset"]
NAMES += [f"trunk/5/{way}/{n}" for way in ("forward", "backward") for n in ("kernel", "recurrent_kernel", "bias")]
HEADS = {"tags": "tags", "mean": "mean/1", "last": "last/1"}
by_layer = {}
for layer in model.layers:
    by_layer.setdefault(type(layer).__name__, []).append(layer)
ordered = [v for kind in ("Embedding", "LSTM", "MultiHeadAttention", "LayerNormalization", "BatchNormalization", "Bidirectional") for layer in by_layer[kind] for v in layer.trainable_variables]
rnn = by_layer["SimpleRNN"][0].trainable_variables
NAMES += [f"last/0/{n}" for n in ("kernel", "recurrent_kernel", "bias")]
ordered += rnn
for layer in by_layer["Dense"]:
    NAMES += [f"{HEADS[layer.name]}/{n}" for n in ("kernel", "bias")]
    ordered += layer.trainable_variables
assert len(NAMES) == len(ordered) == len(model.trainable_variables)
values = {}
for name, v in zip(NAMES, ordered):
    values[v.path] = rng.standard_normal(v.shape).astype(np.float32) / 2
    v.assign(values[v.path])

sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
mse = keras.losses.MeanSquaredError()


def losses(weights, training=False):
    (t, m, l), _ = model.stateless_call(weights, [v.value for v in model.non_trainable_variables], ids, training=training)
    return sparse(tags, t), mse(score, m), mse(score, l)


weights = [v.value for v in model.trainable_variables]
each = losses(weights)
gradients = dict(zip([v.path for v in model.trainable_variables], jax.grad(lambda w: sum(losses(w, training=True)))(weights)))
out = model(ids)
model.compile(loss=[sparse, mse, mse], metrics=[["accuracy", "sparse_categorical_crossentropy"], [], []])
found = model.evaluate(ids, [tags, score, score], batch_size=4, verbose=0, return_dict=True)
flat = lambda a: [float(str(v)) for v in np.asarray(a, np.float32).ravel()]
json.dump({"ids": ids.tolist(), "tags": tags.tolist(), "score": flat(score), "loss": [float(v) for v in each], "total": found["loss"],
           "accuracy": found["tags_accuracy"],
           "outputs": [flat(o) for o in out],
           "weights": {n: {"dims": list(v.shape), "flat": flat(values[v.path]), "gradient": flat(gradients[v.path])} for n, v in zip(NAMES, ordered)}},
          sys.stdout, separators=(",", ":"))
