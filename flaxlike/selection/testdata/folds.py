"""Writes folds.json: means, deviations and predictions of scikit-learn's cross-validation of least squares.

    pip install numpy scikit-learn
    python folds.py > folds.json

Made with scikit-learn 1.9.1. The folds are those of the file: which row is in which part.
"""
import json
import sys

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import PredefinedSplit, cross_val_predict, cross_validate

# TestCrossValidate_asThePeer prints the part of each row (20 rows, 4 folds, seed 1), which is what is asked for here.
parts = json.loads(sys.argv[1])
x = np.array([[((7 * i) % 20) / 10 - 1, ((3 * i) % 11) / 5 - 1] for i in range(20)], np.float32).astype(float)
y = np.array([2 * a - b + ((5 * i) % 7) / 7 for i, (a, b) in enumerate(x)], np.float32).astype(float)
folds = PredefinedSplit(parts)
found = cross_validate(LinearRegression(), x, y, cv=folds, scoring=["neg_mean_squared_error", "neg_mean_absolute_error"])
names = {"mse": "test_neg_mean_squared_error", "mae": "test_neg_mean_absolute_error"}
json.dump({
    "parts": parts, "x": x.ravel().tolist(), "y": y.tolist(),
    "figures": {k: (-found[v]).tolist() for k, v in names.items()},
    "mean": {k: -found[v].mean() for k, v in names.items()}, "deviation": {k: found[v].std() for k, v in names.items()},
    "predictions": cross_val_predict(LinearRegression(), x, y, cv=folds).tolist(),
}, sys.stdout)
print()
