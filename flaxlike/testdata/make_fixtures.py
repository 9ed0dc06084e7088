"""Writes keras.json: what Keras's losses and metrics say about the same examples.

    pip install numpy keras jax
    KERAS_BACKEND=jax python make_fixtures.py > keras.json

Made with Keras 3.15.1, JAX 0.10.2. The numbers are multiples of 1/8, so that both sides start from the same bits. Where lazo takes
logits, Keras is told so, or given the softmax of them.
"""
import json
import sys

import keras
import numpy as np

N = 6
rng = np.random.default_rng(3)


def eighths(low, high, *shape):
    return rng.integers(low * 8, high * 8 + 1, shape).astype(np.float32) / 8


logits, targets = eighths(-3, 3, N, 4), eighths(-4, 4, N, 4)
numbers = (rng.permutation(64)[: N * 4].reshape(N, 4) - 32).astype(np.float32) / 8 + 1 / 16  # no two are equal: slopes are told
numbers = numbers.astype(np.float32)
positive, counts = eighths(0, 4, N, 4) + 0.125, rng.integers(0, 5, (N, 4)).astype(np.float32)
shares = eighths(0, 1, N, 4)
one_hot = np.eye(4, dtype=np.float32)[rng.integers(0, 4, N)]
soft = np.eye(4, dtype=np.float32)[rng.integers(0, 4, N)] / 2 + np.eye(4, dtype=np.float32)[rng.integers(0, 4, N)] / 2
bits = rng.integers(0, 2, (N, 4)).astype(np.float32)
signs = bits * 2 - 1
vectors = np.where(np.arange(N)[:, None] == 1, 0, numbers).astype(np.float32)  # one of zeros
far = numbers * 4
softmax = np.asarray(keras.ops.softmax(logits))

losses = keras.losses
ROWS = [
    ("poisson", losses.Poisson(), counts, positive, positive),
    ("log_cosh", losses.LogCosh(), targets, far, far),
    ("mean_absolute_percentage_error", losses.MeanAbsolutePercentageError(), targets, numbers, numbers),
    ("mean_squared_logarithmic_error", losses.MeanSquaredLogarithmicError(), counts, numbers, numbers),
    ("cosine_similarity", losses.CosineSimilarity(), targets, vectors, vectors),
    ("mean_squared_error", losses.MeanSquaredError(), targets, numbers, numbers),
    ("mean_absolute_error", losses.MeanAbsoluteError(), targets, numbers, numbers),
    ("huber", losses.Huber(), targets, numbers, numbers),
    ("hinge", losses.Hinge(), signs, numbers, numbers),
    ("squared_hinge", losses.SquaredHinge(), signs, numbers, numbers),
    ("categorical_hinge", losses.CategoricalHinge(), one_hot, numbers, numbers),
    ("kl_divergence", losses.KLDivergence(), soft, softmax, logits),
    ("categorical_crossentropy", losses.CategoricalCrossentropy(from_logits=True), soft, logits, logits),
    ("binary_crossentropy", losses.BinaryCrossentropy(from_logits=True), bits, logits, logits),
    ("categorical_focal_crossentropy", losses.CategoricalFocalCrossentropy(from_logits=True), soft, logits, logits),
    ("binary_focal_crossentropy", losses.BinaryFocalCrossentropy(from_logits=True), bits, logits, logits),
    ("dice", losses.Dice(), bits, shares, shares),
    ("tversky", losses.Tversky(), bits, shares, shares),
    ("huber", losses.Huber(delta=2.5), targets, numbers, numbers, dict(delta=2.5)),
    ("categorical_focal_crossentropy", losses.CategoricalFocalCrossentropy(from_logits=True, gamma=0.5, alpha=0.75), soft, logits, logits, dict(gamma=0.5, alpha=0.75)),
    ("binary_focal_crossentropy", losses.BinaryFocalCrossentropy(from_logits=True, gamma=3.5), bits, logits, logits, dict(gamma=3.5)),
    ("binary_focal_crossentropy", losses.BinaryFocalCrossentropy(apply_class_balancing=True, from_logits=True, gamma=1, alpha=0.875), bits, logits, logits, dict(gamma=1, alpha=0.875)),
]


def slope(loss, y, given, output):
    """The gradient in what lazo is given."""
    import jax

    through = keras.ops.softmax if given is not output else lambda x: x
    slopes = np.asarray(jax.grad(lambda x: loss(y, through(x)))(output)).ravel().tolist()
    return [s if np.isfinite(s) else None for s in slopes]  # Keras's cosine has none at a vector of zeros


def row(name, loss, y, given, output, settings={}):
    return dict(**settings, name=name, labels=y.ravel().tolist(), output=output.ravel().tolist(), value=float(loss(y, given)), gradient=slope(loss, y, given, output))


units = 3
sequence, weights = eighths(-2, 2, 2, 5, 4), [eighths(-1, 1, 4, 3 * units), eighths(-1, 1, units, 3 * units), eighths(-1, 1, 2, 3 * units)]
gru = keras.layers.GRU(units)
gru.build(sequence.shape)
gru.set_weights(weights)
gru_row = dict(input=sequence.ravel().tolist(), weights=[w.tolist() for w in weights], output=np.asarray(gru(sequence)).ravel().tolist())

# What metrics by name say of probabilities, each in a bin of its own of AUC's 200, and of numbers that are no probabilities.
K = keras.metrics
bins = (rng.permutation(198)[:40] + 0.5) / 199
one = bins.astype(np.float32).reshape(40, 1)
ones = (bins + rng.normal(0, 0.3, 40) > 0.5).astype(np.float32).reshape(40, 1)
three, threes = bins[:39].astype(np.float32).reshape(13, 3), rng.integers(0, 2, (13, 3)).astype(np.float32)
beyond = (one * 2 - 0.5).astype(np.float32)
classed = np.asarray(keras.ops.softmax(np.log(three / (1 - three))))
hot = np.eye(3, dtype=np.float32)[rng.integers(0, 3, 13)]


def told(y, p, **metrics):
    for m in metrics.values():
        m.update_state(y, p)
    values = {k: float(m.result()) for k, m in metrics.items()}
    return dict(labels=y.ravel().tolist(), output=p.ravel().tolist(), width=y.shape[1], values=values)


cuts = dict(
    sigmoid=told(ones, one, accuracy=K.BinaryAccuracy(), acc=K.BinaryAccuracy(), binary_accuracy=K.BinaryAccuracy(), precision=K.Precision(), recall=K.Recall(),
                 f1=K.F1Score("macro", 0.5), f1_score=K.F1Score("macro", 0.5), mean_iou=K.BinaryIoU(), auc=K.AUC()),
    numbers=told(ones, beyond, accuracy=K.BinaryAccuracy(), binary_accuracy=K.BinaryAccuracy(), precision=K.Precision(), recall=K.Recall(),
                 f1=K.F1Score("macro", 0.5), mean_iou=K.BinaryIoU()),
    several=told(threes, three, binary_accuracy=K.BinaryAccuracy(), f1=K.F1Score("macro", 0.5), auc=K.AUC()),
    softmax=told(hot, classed, accuracy=K.CategoricalAccuracy(), binary_accuracy=K.BinaryAccuracy(), auc=K.AUC()),
)
out = ",\n".join("  " + json.dumps(row(*r)) for r in ROWS)
sys.stdout.write(f'{{"keras": "{keras.__version__}", "losses": [\n{out}],\n"gru": {json.dumps(gru_row)},\n"cuts": {json.dumps(cuts)}}}\n')
