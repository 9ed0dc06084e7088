"""Writes peers.json: what scikit-learn, clu and Keras say about the same examples.

    pip install numpy scikit-learn clu keras jax
    KERAS_BACKEND=jax python make_fixtures.py > peers.json

Made with scikit-learn 1.9.1, clu 0.0.12, Keras 3.15.1, JAX 0.10.2. The numbers are float32 written out in full, so that
all sides start from the same bits.
"""
import json
import math
import sys

import jax.numpy as jnp

# clu 0.0.12's Std calls clip by an argument name that newer JAX has dropped.
clip = jnp.clip
jnp.clip = lambda x, *args, a_min=None, **kw: clip(x, *args, **kw) if a_min is None else clip(x, a_min)

import clu.metrics
import keras
import numpy as np
from sklearn import metrics as sk

EXAMPLES, CLASSES = 101, 4
rng = np.random.default_rng(7)
f32 = np.float32

labels = rng.integers(0, CLASSES, EXAMPLES)
logits = rng.normal(size=(EXAMPLES, CLASSES)).astype(f32).round(3)
logits[np.arange(EXAMPLES), labels] += 1
classes = logits.argmax(-1)
truth = (rng.random(EXAMPLES) < 0.4).astype(int)
# On the thresholds of 257, where a curve by thresholds is exact; and anywhere.
grid = np.clip(np.round(rng.normal(0.4 + 0.2 * truth, 0.2) * 256), 0, 256) / 256
anywhere = np.clip(rng.normal(0.4 + 0.2 * truth, 0.2), 0.001, 0.999).astype(f32)
targets = rng.normal(50, 3, EXAMPLES).astype(f32).round(2)
predictions = (targets + rng.normal(0, 1, EXAMPLES).astype(f32)).round(2)
vectors, others = (rng.normal(size=(EXAMPLES, 3)).astype(f32).round(3) for _ in range(2))
weights = rng.integers(0, 4, EXAMPLES).astype(f32) / 2

rows = []


def row(metric, peer, inputs, value, weights):
    value = np.asarray(value, dtype=np.float64)
    rows.append(dict(metric=metric, peer=peer, inputs=inputs, weights=weights, value=value.reshape(-1).tolist()))


def short(x):
    """The fewest digits that give the same float32."""
    if np.ndim(x):
        return [short(v) for v in x]
    return int(x) if isinstance(x, np.integer) else float(str(f32(x)))


def softmax(x):
    e = np.exp(x.astype(np.float64))
    return e / e.sum(-1, keepdims=True)


for w in (None, weights):
    weighted = "none" if w is None else "weights"
    kw = dict(sample_weight=w)
    every = list(range(CLASSES))

    def scikit(metric, inputs, value):
        row(metric, "scikit-learn", inputs, value, weighted)

    def specificity(i):
        return sk.recall_score(labels != i, classes != i, **kw)

    scikit("Accuracy", "labels logits", sk.accuracy_score(labels, classes, **kw))
    scikit("TopK(2)", "labels logits", sk.top_k_accuracy_score(labels, logits, k=2, **kw))
    scikit("ConfusionMatrix(4)", "labels logits", sk.confusion_matrix(labels, classes, **kw))
    scikit("CrossEntropy", "labels logits", sk.log_loss(labels, softmax(logits), **kw))
    scikit("Perplexity", "labels logits", math.exp(sk.log_loss(labels, softmax(logits), **kw)))
    for average in ("macro", "micro", "weighted", "per class"):
        a = dict(labels=every, average=None if average == "per class" else average, zero_division=0, **kw)
        scikit(f"Precision(4, {average})", "labels logits", sk.precision_score(labels, classes, **a))
        scikit(f"Recall(4, {average})", "labels logits", sk.recall_score(labels, classes, **a))
        scikit(f"F1(4, {average})", "labels logits", sk.f1_score(labels, classes, **a))
        scikit(f"FBeta(2)(4, {average})", "labels logits", sk.fbeta_score(labels, classes, beta=2, **a))
        scikit(f"IoU(4, {average})", "labels logits", sk.jaccard_score(labels, classes, **a))
    scikit("Specificity(4, per class)", "labels logits", [specificity(i) for i in every])
    a = dict(zero_division=0, **kw)
    yes = anywhere > 0.5
    scikit("Precision(2, binary)", "truth anywhere>0.5", sk.precision_score(truth, yes, **a))
    scikit("Recall(2, binary)", "truth anywhere>0.5", sk.recall_score(truth, yes, **a))
    scikit("F1(2, binary)", "truth anywhere>0.5", sk.f1_score(truth, yes, **a))
    scikit("Specificity(2, binary)", "truth anywhere>0.5", sk.recall_score(1 - truth, ~yes, **a))
    scikit("Accuracy", "truth anywhere>0.5", sk.accuracy_score(truth, yes, **kw))
    scikit("AUC(257)", "truth grid", sk.roc_auc_score(truth, grid, **kw))
    scikit("AveragePrecision(257)", "truth grid", sk.average_precision_score(truth, grid, **kw))
    scikit("MeanSquaredError", "targets predictions", sk.mean_squared_error(targets.astype(float), predictions.astype(float), **kw))
    scikit("RootMeanSquaredError", "targets predictions", sk.root_mean_squared_error(targets.astype(float), predictions.astype(float), **kw))
    scikit("MeanAbsoluteError", "targets predictions", sk.mean_absolute_error(targets.astype(float), predictions.astype(float), **kw))
    x, y, v = targets.astype(float), predictions.astype(float), np.ones(EXAMPLES) if w is None else w.astype(float)
    c = np.cov(x, y, aweights=v, ddof=0)
    row("Pearson", "NumPy", "targets predictions", c[0, 1] / np.sqrt(c[0, 0] * c[1, 1]), weighted)
    apart = np.average(x, weights=v) - np.average(y, weights=v)
    row("Concordance", "NumPy", "targets predictions", 2 * c[0, 1] / (c[0, 0] + c[1, 1] + apart**2), weighted)
    scikit("R2", "targets predictions", sk.r2_score(targets.astype(float), predictions.astype(float), **kw))

    def keras_(metric, inputs, m, y, p):
        m.update_state(y, p, sample_weight=w)
        row(metric, "Keras", inputs, m.result(), weighted)

    k = keras.metrics
    keras_("Accuracy", "labels logits", k.SparseCategoricalAccuracy(), labels, logits)
    keras_("TopK(2)", "labels logits", k.SparseTopKCategoricalAccuracy(k=2), labels, logits)
    keras_("CrossEntropy", "labels logits", k.SparseCategoricalCrossentropy(from_logits=True), labels, logits)
    keras_("AUC(200)", "truth anywhere", k.AUC(num_thresholds=200), truth, anywhere)
    keras_("Precision(2, binary)", "truth anywhere>0.5", k.Precision(), truth, anywhere)
    keras_("Recall(2, binary)", "truth anywhere>0.5", k.Recall(), truth, anywhere)
    one_hot, hard = np.eye(CLASSES)[labels], np.eye(CLASSES)[classes]
    keras_("FBeta(2)(4, macro)", "labels logits", k.FBetaScore(average="macro", beta=2.0), one_hot, hard)
    keras_("MeanIoU(4)", "labels logits", k.MeanIoU(CLASSES, dtype="float32"), labels, classes)
    keras_("MeanIoU(5)", "labels classes", k.MeanIoU(5, dtype="float32"), labels, classes)  # of which one is not there
    keras_("IoU(2, macro)", "truth anywhere>0.5", k.BinaryIoU(threshold=0.5, dtype="float32"), truth, anywhere)
    for at in (0.25, 0.7):
        keras_(f"PrecisionAtRecall({at})", "truth anywhere", k.PrecisionAtRecall(at, num_thresholds=200), truth, anywhere)
        keras_(f"RecallAtPrecision({at})", "truth anywhere", k.RecallAtPrecision(at, num_thresholds=200), truth, anywhere)
        keras_(f"SensitivityAtSpecificity({at})", "truth anywhere", k.SensitivityAtSpecificity(at, num_thresholds=200), truth, anywhere)
        keras_(f"SpecificityAtSensitivity({at})", "truth anywhere", k.SpecificityAtSensitivity(at, num_thresholds=200), truth, anywhere)
    if w is None:  # with weights Keras's is no mean of theirs
        keras_("Pearson", "targets predictions", k.PearsonCorrelation(axis=0), targets, predictions)
        keras_("Concordance", "targets predictions", k.ConcordanceCorrelation(axis=0), targets, predictions)
    keras_("CosineSimilarity", "vectors others", k.CosineSimilarity(axis=-1), vectors, others)
    keras_("RootMeanSquaredError", "targets predictions", k.RootMeanSquaredError(), targets, predictions)
    keras_("R2", "targets predictions", k.R2Score(), targets[:, None], predictions[:, None])

    # clu knows masks, not weights: examples of weight 0 are masked out.
    mask = None if w is None else jnp.asarray(w > 0)

    def clu_(metric, inputs, cls, **outputs):
        if mask is not None:
            outputs["mask"] = mask
        row(metric, "clu", inputs, cls.from_model_output(**outputs).compute(), "none" if mask is None else "mask")

    clu_("Mean", "targets", clu.metrics.Average, values=jnp.asarray(targets))
    clu_("Mean", "vectors", clu.metrics.Average, values=jnp.asarray(vectors))
    clu_("StandardDeviation", "vectors", clu.metrics.Std, values=jnp.asarray(vectors))
    clu_("Accuracy", "labels logits", clu.metrics.Accuracy, labels=jnp.asarray(labels, jnp.int32), logits=jnp.asarray(logits))

data = dict(labels=labels, classes=classes, logits=logits, truth=truth, grid=grid, anywhere=anywhere, targets=targets, predictions=predictions,
            vectors=vectors, others=others, weights=weights)
lines = [f'  "{name}": {json.dumps(short(x))}' for name, x in data.items()]
out = ['{"data": {', ",\n".join(lines), '},\n"rows": [', ",\n".join("  " + json.dumps(r) for r in rows), "]}"]
sys.stdout.write("\n".join(out) + "\n")
