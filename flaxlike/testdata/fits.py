"""Writes fits.json: the histories of six networks that Keras fits, from 20 seeds each, for flaxlike's TestFits_asKeras.

    KERAS_BACKEND=jax python fits.py > fits.json

Made with Keras 3.15.0, JAX 0.10.2. The data come from formulas that the test has too. All settings are Keras's defaults, but for what is
written here; the last batch of an epoch is a short one in all six.
"""
import json
import sys
import zlib

import keras
import numpy as np
from keras import layers

SEEDS, HELD = 20, 96


def bits(name, n):
    """n numbers of 64 bits, drawn by the name: splitmix64."""
    with np.errstate(over="ignore"):
        x = np.uint64(zlib.crc32(name.encode())) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def uniform(name, *shape):
    """Numbers of float32 from -1 to 1."""
    u = (bits(name, int(np.prod(shape))) >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - np.float32(1)
    return u.reshape(shape)


def below(name, limit, *shape):
    return (bits(name, int(np.prod(shape))) % np.uint64(limit)).astype(np.int32).reshape(shape)


def classes(**more):
    return dict(loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **more)


def tabular():
    x = uniform("tabular", 600, 8)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int32) + (x[:, 2] > 0.25)
    build = lambda: keras.Sequential([layers.Dense(32, activation="relu"), layers.Dense(16, activation="relu"), layers.Dense(3)])
    return x, y, build, classes(optimizer="adam")


def images():
    y = below("image classes", 4, 300)
    rows, columns = np.arange(8)[:, None], np.arange(8)[None, :]
    x = uniform("images", 300, 8, 8, 1) + ((rows + 2 * columns) % 4 == y[:, None, None])[..., None].astype(np.float32)
    build = lambda: keras.Sequential([
        layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.Activation("relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dropout(0.3), layers.Dense(4)])
    return x, y, build, classes(optimizer=keras.optimizers.RMSprop(0.01))


def text():
    length = 3 + below("text lengths", 10, 400)
    x = np.where(np.arange(12)[None, :] < length[:, None], 1 + below("text", 19, 400, 12), 0)
    y = (x[:, :12] == 1).any(1).astype(np.float32)[:, None]
    build = lambda: keras.Sequential([layers.Embedding(20, 8, mask_zero=True), layers.LSTM(8), layers.Dense(1)])
    return x, y, build, dict(loss=keras.losses.BinaryCrossentropy(from_logits=True), optimizer=keras.optimizers.Adam(0.01),
                             metrics=[keras.metrics.BinaryAccuracy(name="accuracy", threshold=0)])


def attention():
    x = below("attention", 16, 300, 8)
    many = (x < 8).sum(1)
    y = (many > 3).astype(np.int32) + (many > 4)

    def build():
        tokens = keras.Input((8,), dtype="int32")
        h = layers.Embedding(16, 16)(tokens)
        h = layers.LayerNormalization()(layers.Add()([h, layers.MultiHeadAttention(2, 8)(h, h)]))
        h = layers.Add()([h, layers.Dense(16)(layers.Dense(32, activation="relu")(h))])
        return keras.Model(tokens, layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.LayerNormalization()(h))))
    return x, y, build, classes(optimizer=keras.optimizers.AdamW(0.01))


def outputs():
    x = uniform("outputs", 400, 6)
    y = {"kind": (x[:, 0] > 0).astype(np.int32) + (x[:, 1] > 0.5), "size": x[:, 2:3] - 2 * x[:, 3:4] * x[:, 4:5] + 1}

    def build():
        inputs = keras.Input((6,))
        h = layers.Dense(16, activation="relu")(inputs)
        return keras.Model(inputs, {"kind": layers.Dense(3, name="kind")(h), "size": layers.Dense(1, name="size")(h)})
    return x, y, build, dict(
        loss={"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.5},
        metrics={"kind": ["accuracy"], "size": ["mae"]}, optimizer=keras.optimizers.SGD(0.05, momentum=0.9))


def regression():
    x = uniform("regression", 300, 10, 3)
    y = x[:, -1, 0:1] + x[:, -2, 1:2] * 2
    build = lambda: keras.Sequential([layers.GRU(8), layers.Dense(1, kernel_regularizer=keras.regularizers.L2(0.01))])
    return x, y, build, dict(loss="mse", metrics=["mae"], optimizer=keras.optimizers.Adam(0.01))


def part(v, a, b):
    return {k: u[a:b] for k, u in v.items()} if isinstance(v, dict) else v[a:b]


found = {}
for network in [tabular, images, text, attention, outputs, regression]:
    x, y, build, compile = network()
    n = len(x) - HELD
    model = build()
    model.build((None,) + x.shape[1:])
    model.compile(**compile)
    model.optimizer.build(model.trainable_variables)
    start = [np.array(v) for v in model.optimizer.variables]
    for seed in range(SEEDS):  # one model, so that it is compiled once
        keras.utils.set_random_seed(seed)
        fresh = build()
        fresh.build((None,) + x.shape[1:])
        model.set_weights(fresh.get_weights())
        for v, of in zip(model.optimizer.variables, start):
            v.assign(of)
        history = model.fit(x[:n], part(y, 0, n), epochs=4, validation_data=(x[n:], part(y, n, n + HELD)), verbose=0).history
        for name, values in history.items():
            found.setdefault(network.__name__, {}).setdefault(name, []).append([values[0], values[-1]])
        print(network.__name__, seed, {k: round(v[0], 4) for k, v in history.items()}, file=sys.stderr)
for figures in found.values():
    for name, runs in figures.items():  # of the first epoch and of the last: mean and deviation
        figures[name] = [[round(float(f(epoch)), 6) for f in (np.mean, lambda v: np.std(v, ddof=1))] for epoch in np.transpose(runs)]
json.dump({"keras": keras.__version__, "seeds": SEEDS, "fits": found}, sys.stdout)
print()
