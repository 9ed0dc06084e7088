"""Writes calibration.json: temperatures by scipy, and Platt's scaling by scikit-learn, of small classifiers.

    pip install numpy scipy scikit-learn
    python calibration.py > calibration.json

Made with scikit-learn 1.9.1 and scipy 1.17.1. scikit-learn stops where the slope is 1e-6; "exact" is the minimum of the
same sum by scipy's Newton method in float64.
"""
import json
import sys

import numpy as np
import scipy
import sklearn
from scipy import optimize, special
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.frozen import FrozenEstimator

print(sklearn.__version__, scipy.__version__, file=sys.stderr)
rng = np.random.default_rng(5)


class Scores(ClassifierMixin, BaseEstimator):
    """A classifier whose decision is its input."""

    def fit(self, x, y):
        self.classes_, self.n_features_in_ = np.unique(y), 1
        return self

    def decision_function(self, x):
        return np.asarray(x)[:, 0]

    def predict(self, x):
        return (self.decision_function(x) > 0).astype(int)


def sigmoid(logits, labels):
    """scikit-learn's scaling of a classifier that is fitted already, and its probabilities."""
    model = CalibratedClassifierCV(FrozenEstimator(Scores().fit(logits[:, None], labels)), method="sigmoid", cv=2)
    model.fit(logits[:, None], labels)
    (classifier,) = model.calibrated_classifiers_
    (one,) = classifier.calibrators
    return -one.a_, -one.b_, model.predict_proba(logits[:, None])[:, 1].tolist()


def temperature(name, n, classes, sure, soft=False):
    logits = rng.normal(size=(n, classes)).round(3)
    labels = (logits + rng.gumbel(size=(n, classes))).argmax(axis=1)
    logits = (logits * sure).astype(np.float32).astype(float)
    rows = np.eye(classes)[labels]
    if soft:
        rows = (0.9 * rows + 0.1 / classes).astype(np.float32).astype(float)

    def loss(b):
        return -(rows * special.log_softmax(b * logits, axis=1)).sum(axis=1).mean()

    b = optimize.minimize_scalar(loss, bounds=(1e-6, 50 / sure), method="bounded", options={"xatol": 1e-13}).x

    def slope(b):
        p = special.softmax(b * logits, axis=1)
        return ((p - rows) * logits).sum()

    b = optimize.brentq(slope, b * 0.9, b * 1.1, xtol=1e-15, rtol=1e-14)
    return {"name": name, "classes": classes, "logits": logits.ravel().tolist(), "labels": labels.tolist(),
            "rows": rows.ravel().tolist() if soft else None, "temperature": 1 / b,
            "probabilities": special.softmax(b * logits, axis=1).ravel().tolist()}


def platt(name, n, sure, shift):
    logits = rng.normal(size=n).round(3)
    labels = (rng.random(n) < special.expit(logits)).astype(int)
    labels[:2] = [0, 1]
    logits = ((logits + shift) * sure).astype(np.float32).astype(float)
    scale, shift, probabilities = sigmoid(logits, labels)
    ones = labels.sum()
    target = np.where(labels == 1, (ones + 1) / (ones + 2), 1 / (n - ones + 2))

    def loss(w):
        s = w[0] * logits + w[1]
        return (np.logaddexp(0, s) - target * s).sum()

    def slope(w):
        d = special.expit(w[0] * logits + w[1]) - target
        return np.array([(d * logits).sum(), d.sum()])

    def second(w):
        p = special.expit(w[0] * logits + w[1])
        h = p * (1 - p)
        return np.array([[(h * logits * logits).sum(), (h * logits).sum()], [(h * logits).sum(), h.sum()]])

    exact = np.array([scale, shift])
    for _ in range(30):
        exact = exact - np.linalg.solve(second(exact), slope(exact))
    return {"name": name, "logits": logits.tolist(), "labels": labels.tolist(), "scale": scale, "shift": shift,
            "probabilities": probabilities, "exact": exact.tolist(), "loss": loss(exact)}


def separable():
    case = platt("a border divides the labels", 30, 1, 0)
    logits = np.array(case["logits"])
    labels = (logits > 0.3).astype(int)
    scale, shift, probabilities = sigmoid(logits, labels)
    return case | {"labels": labels.tolist(), "scale": scale, "shift": shift, "probabilities": probabilities,
                   "exact": None}


def reliability(n, bins):
    p = rng.random(n).round(3)
    y = rng.random(n) < p ** 1.5
    shares, means = calibration_curve(y, p, n_bins=bins)
    at = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], p)
    counts = np.bincount(at, minlength=bins)
    counts = counts[counts > 0]
    return {"bins": bins, "scores": p.tolist(), "positive": y.tolist(), "shares": shares.tolist(),
            "means": means.tolist(), "counts": counts.tolist(),
            "error": float((counts * np.abs(shares - means)).sum() / n)}


json.dump({
    "temperatures": [temperature("too sure", 200, 3, 3), temperature("too careful", 300, 10, 0.3),
                     temperature("two classes", 50, 2, 1), temperature("soft labels", 100, 4, 2, soft=True),
                     temperature("large logits", 100, 3, 1000), temperature("small logits", 100, 3, 0.001)],
    "platt": [platt("as it is", 200, 1, 0), platt("too sure", 300, 5, 1), platt("too careful", 100, 0.01, -3),
              platt("few", 12, 1, 0), platt("far away", 200, 1, 200), separable()],
    "reliability": [reliability(200, 10), reliability(30, 15), reliability(500, 5)],
}, sys.stdout)
print()
