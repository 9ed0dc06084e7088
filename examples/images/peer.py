"""The program of main.go in Keras 3: python peer.py FOLDER [SEED]"""
import os
import sys
import pathlib
import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
from keras import layers

seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
keras.utils.set_random_seed(seed)
files = sorted(pathlib.Path(sys.argv[1]).glob("*/*.png"))
classes = sorted({f.parent.name for f in files})
x = np.stack([keras.utils.img_to_array(keras.utils.load_img(f, color_mode="grayscale")) / 255 for f in files])
y = np.array([classes.index(f.parent.name) for f in files])
order = np.random.default_rng(0).permutation(len(x))
train, test = order[: int(0.8 * len(x))], order[int(0.8 * len(x)):]
model = keras.Sequential([
    layers.RandomRotation(10 / 360, fill_mode="nearest"), layers.RandomZoom(0.1, fill_mode="nearest"),
    layers.Conv2D(16, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dropout(0.3), layers.Dense(len(classes))])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x[train], y[train], epochs=10, validation_data=(x[test], y[test]), verbose=0)
print(f"test accuracy: {model.evaluate(x[test], y[test], verbose=0)[1]:.3f}")
print("the first test image shows", classes[np.argmax(model.predict(x[test][:1], verbose=0))])
