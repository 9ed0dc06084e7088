"""Writes curves.json: what scikit-learn says of curves and areas of small classifications.

    pip install numpy scikit-learn
    python curves.py > curves.json

Made with scikit-learn 1.9.1. Scores are rounded, so that both sides start from the same bits and many are equal.
"""
import json
import sys
import warnings

import numpy as np
from sklearn import metrics as sk

warnings.simplefilter("ignore")
rng = np.random.default_rng(11)


def binary(name, labels, scores):
    labels, scores = np.asarray(labels, bool), np.asarray(scores, float)
    case = {"name": name, "positive": labels.tolist(), "scores": scores.tolist()}
    if labels.any() and not labels.all():
        fpr, tpr, _ = sk.roc_curve(labels, scores, drop_intermediate=False)
        case["roc"] = {"X": fpr.tolist(), "Y": tpr.tolist(), "Area": sk.roc_auc_score(labels, scores)}
    if labels.any():
        precision, recall, _ = sk.precision_recall_curve(labels, scores)
        case["pr"] = {"X": recall[::-1].tolist(), "Y": precision[::-1].tolist(),
                      "Area": sk.average_precision_score(labels, scores)}
    return case


curves = []
for n, digits in [(5, 3), (40, 1), (200, 2), (300, 6)]:
    scores = rng.random(n).round(digits)
    labels = rng.random(n) < scores
    labels[:2] = [True, False]
    curves.append(binary(f"{n} examples, {digits} digits", labels, scores))
curves += [
    binary("one score", [True, False, True, False, False], [0.5] * 5),
    binary("all right", [False, False, True, True], [0.1, 0.2, 0.8, 0.9]),
    binary("all wrong", [True, True, False, False], [0.1, 0.2, 0.8, 0.9]),
    binary("rare", [True] + [False] * 99, rng.random(100).round(2)),
    binary("logits", rng.random(60) < 0.5, rng.normal(size=60).round(1) * 100),
    binary("all positive", [True, True, True], [0.2, 0.2, 0.7]),
    binary("all negative", [False, False], [0.2, 0.7]),
]

several = []
for classes, left_out in [(3, -1), (4, 2), (2, -1)]:
    labels = rng.integers(0, classes, 80)
    labels[labels == left_out] = 0
    scores = rng.random((80, classes)).round(1)
    scores[np.arange(80), labels] += 0.3
    case = {"labels": labels.tolist(), "scores": scores.tolist(),
            "predicted": scores.argmax(axis=1).tolist(),
            "confusion": sk.confusion_matrix(labels, scores.argmax(axis=1), labels=range(classes)).tolist(),
            "auc": [], "ap": []}
    for k in range(classes):
        there = (labels == k).any()
        case["auc"].append(sk.roc_auc_score(labels == k, scores[:, k]) if there else None)
        case["ap"].append(sk.average_precision_score(labels == k, scores[:, k]) if there else None)
    several.append(case)

json.dump({"curves": curves, "several": several}, sys.stdout)
print()
