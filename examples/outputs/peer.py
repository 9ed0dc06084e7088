"""The program of main.go in Keras 3: python peer.py DIGITS_FOLDER [SEED], with the images that examples/images writes"""
import os
import pathlib
import sys
import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
from keras import layers

keras.utils.set_random_seed(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
files = sorted(pathlib.Path(sys.argv[1]).glob("*/*.png"), key=lambda f: f.name)
image = np.stack([keras.utils.img_to_array(keras.utils.load_img(f, color_mode="grayscale")) / 255 for f in files])
digit = np.array([int(f.parent.name) for f in files])
c = np.arange(len(digit)) % 3
colour = np.eye(3, dtype="float32")[c]
rule = np.choose(c, [digit % 2 == 0, digit % 2 == 1, digit >= 5]).astype("float32")
x = {"image": image, "colour": colour}
y = {"digit": digit, "ink": image.mean((1, 2, 3)), "rule": rule}


class Gated(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.value, self.gate = layers.Dense(units), layers.Dense(units, activation="sigmoid")

    def call(self, x):
        return self.value(x) * self.gate(x)


a, b = keras.Input((8, 8, 1), name="image"), keras.Input((3,), name="colour")
h = Gated(32)(layers.Dropout(0.2)(Gated(64)(layers.Flatten()(a))))
logits = layers.Dense(10, name="digit")(h)
both = layers.Concatenate()([layers.Softmax()(logits), b])
outputs = {"digit": logits, "ink": layers.Dense(1, name="ink")(h), "rule": layers.Dense(1, name="rule")(layers.Dense(16, "relu")(both))}
model = keras.Model({"image": a, "colour": b}, outputs)
model.compile(keras.optimizers.Adam(0.003),
              {"digit": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "ink": "mse", "rule": keras.losses.BinaryCrossentropy(from_logits=True)},
              metrics={"digit": "accuracy", "ink": "mae", "rule": keras.metrics.BinaryAccuracy(name="accuracy", threshold=0)}, loss_weights={"digit": 1, "ink": 10, "rule": 0.5})
part = lambda d, s: {k: v[s] for k, v in d.items()}
train, test = slice(0, 1437), slice(1437, None)
model.fit(part(x, train), part(y, train), epochs=15, validation_data=(part(x, test), part(y, test)), verbose=0)
figures = model.evaluate(part(x, test), part(y, test), verbose=0, return_dict=True)
for name in ["digit_accuracy", "ink_mae", "rule_accuracy"]:
    print(f"test {name}: {figures[name]:.3f}")
