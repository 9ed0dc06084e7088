"""The program of main.go in Keras 3: python peer.py [SEED]"""
import os
import random
import sys
import numpy as np

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
from keras import layers

things = ["the soup", "the tea", "the room", "our waiter", "the view", "the bread", "the music", "the whole evening", "the bill"]
praise = ["good", "fine", "a delight", "excellent", "better than we hoped", "lovely"]
blame = ["bad", "cold", "a disaster", "awful", "worse than we feared", "boring"]


def reviews(n):
    draw, texts, good = random.Random(1), [], []
    for _ in range(n):
        clauses = []
        for _ in range(draw.randint(1, 3)):
            turned, last = draw.randint(0, 1), draw.randint(0, 1)
            clauses.append(f"{draw.choice(things)} was {'not ' * turned}{draw.choice([blame, praise][last ^ turned])}")
        texts.append(" but ".join(clauses))
        good.append(last)
    return texts, np.array(good, np.float32)


keras.utils.set_random_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
texts, y = reviews(3000)
words = {w: i + 1 for i, w in enumerate(sorted({w for t in texts for w in t.split()}))}
x = keras.utils.pad_sequences([[words[w] for w in t.split()] for t in texts], padding="post")
train, test = slice(0, 2400), slice(2400, None)
model = keras.Sequential([layers.Embedding(len(words) + 1, 16, mask_zero=True), layers.LSTM(32), layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), keras.losses.BinaryCrossentropy(from_logits=True), metrics=[keras.metrics.BinaryAccuracy(threshold=0)])
model.fit(x[train], y[train], epochs=6, validation_data=(x[test], y[test]), verbose=0)
print(f"test accuracy: {model.evaluate(x[test], y[test], verbose=0)[1]:.3f}")
