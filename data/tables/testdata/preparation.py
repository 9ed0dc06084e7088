"""Writes preparation.json: what scikit-learn makes of a table with missing values, constant columns and classes that the
training data do not have, and how it divides examples into folds. Made with scikit-learn 1.9 and numpy 2.4; run in this
folder:

    python preparation.py > preparation.json
"""
import json

import numpy as np
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.preprocessing import LabelEncoder, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

rng = np.random.default_rng(7)
n, rest = 41, 13


def holes(values, share=0.2):
    values = np.array(values, float)
    values[rng.random(len(values)) < share] = np.nan
    return values


numbers = {
    "normal": holes(rng.normal(3, 2, n + rest)),
    "whole": holes(rng.integers(0, 6, n + rest)),
    "constant": np.full(n + rest, 0.1),
    "constant with holes": holes(np.full(n + rest, -7.3)),
    "large and close": holes(1e8 + rng.normal(0, 1, n + rest)),
    "close to nothing": 5 + rng.integers(0, 2, n + rest) * 1e-15,
    "tiny": holes(rng.random(n + rest) * 1e-9),
    "wide": holes(rng.lognormal(0, 6, n + rest)),
}
island = rng.choice(["Dream", "Biscoe", "Torgersen", "dream"], n + rest)
island[n:n + 3] = "Mars"
code = rng.choice([2, 9, 10, -1], n + rest)
code[n + 4] = 11

fills = {"mean": SimpleImputer(), "median": SimpleImputer(strategy="median"), "most frequent": SimpleImputer(strategy="most_frequent"),
         "value": SimpleImputer(strategy="constant", fill_value=-1.5)}
scales = {"none": None, "standard": StandardScaler(), "minmax": MinMaxScaler()}
prepared = []
for name, values in numbers.items():
    train, test = values[:n, None], values[n:, None]
    for fill, imputer in fills.items():
        filled = imputer.fit_transform(train)
        for scale, scaler in scales.items():
            of = scaler.fit(filled).transform if scaler else lambda x: x
            prepared.append({"column": name, "fill": fill, "scale": scale,
                             "test": of(imputer.transform(test))[:, 0].tolist()})


def cells(values):
    return ["" if np.isnan(v) else repr(float(v)) for v in values]


def hot(values):
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(values[:n, None])
    number = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=99).fit(values[:n, None])
    return {"classes": [str(c) for c in one_hot.categories_[0]], "test": one_hot.transform(values[n:, None]).tolist(),
            "numbers": [int(v) for v in number.transform(values[n:, None])[:, 0]]}


y = rng.choice([0, 1, 2], 57, p=[0.2, 0.5, 0.3])
groups = rng.integers(0, 12, 57) ** 2
x = np.zeros((57, 1))
folds = {}
for k in (2, 3, 5):
    folds[str(k)] = {
        "plain": [len(t) for _, t in KFold(k).split(x)],
        "stratified": [np.bincount(y[t], minlength=3).tolist() for _, t in StratifiedKFold(k).split(x, y)],
        "grouped": sorted(len(t) for _, t in GroupKFold(k).split(x, groups=groups)),
    }

print(json.dumps({
    "train": n, "numbers": {name: cells(values) for name, values in numbers.items()}, "prepared": prepared,
    "missing": {name: MissingIndicator(features="all").fit(v[:n, None]).transform(v[n:, None])[:, 0].astype(int).tolist()
                for name, v in numbers.items()},
    "island": {"cells": island.tolist(), **hot(island)}, "code": {"cells": [str(c) for c in code], **hot(code)},
    "labels": LabelEncoder().fit_transform(code[:n]).tolist(),
    "y": y.tolist(), "groups": groups.tolist(), "folds": folds,
}, indent=None, separators=(",", ":")))
