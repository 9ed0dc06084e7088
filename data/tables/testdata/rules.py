"""Writes rules.json: what scikit-learn and pandas make of clipped, logarithmic, scaled and binned numbers, dates, rare
classes and texts filled forward, and the FNV-1a hashes. Made with scikit-learn 1.9, pandas 3.1 and numpy 2.4; run in this
folder:

    python rules.py > rules.json
"""
import json

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, QuantileTransformer, RobustScaler, StandardScaler

rng = np.random.default_rng(11)
n, rest = 1203, 40


def holes(values, share=0.1):
    values = np.array(values, float)
    values[rng.random(len(values)) < share] = np.nan
    return values


numbers = {
    "normal": holes(rng.normal(3, 2, n + rest)),
    "ties": holes(rng.integers(0, 5, n + rest)),
    "wide": holes(rng.lognormal(0, 3, n + rest)),
    "constant": np.full(n + rest, 2.5),
    "few": holes(rng.normal(0, 1, 23 + rest)),
}


def clip(train):
    low, high = np.quantile(train, [0.05, 0.9])
    return lambda x: np.clip(x, low, high)


def quantiles(kind):
    return lambda: QuantileTransformer(output_distribution=kind, subsample=None)


steps = {
    "robust": lambda: RobustScaler(),
    "uniform": quantiles("uniform"),
    "normal": quantiles("normal"),
    "bins": lambda: KBinsDiscretizer(7, encode="onehot-dense", strategy="quantile", subsample=None),
    "log": lambda: make_pipeline(FunctionTransformer(lambda x: np.log1p(np.clip(x, -0.5, 100))), StandardScaler()),
}
prepared = []
for name, values in numbers.items():
    rows = len(values) - rest
    imputer = SimpleImputer(strategy="median").fit(values[:rows, None])
    train, test = imputer.transform(values[:rows, None]), imputer.transform(values[rows:, None])
    for step, make in steps.items():
        if step == "bins" and name == "constant":
            continue
        prepared.append({"column": name, "step": step, "test": make().fit(train).transform(test).tolist()})
    prepared.append({"column": name, "step": "clip", "test": clip(train)(test).tolist()})
    forward = pd.Series(values[rows:]).ffill().fillna(imputer.statistics_[0])
    prepared.append({"column": name, "step": "forward", "test": forward.to_numpy()[:, None].tolist()})


def cells(values):
    return ["" if np.isnan(v) else repr(float(v)) for v in values]


texts = ["2024-02-29", "2023-12-31T23:59:58", "1969-07-20 20:17:40", "2000-01-01T00:00", "2026-11-30T06:07:08.500", "1900-03-01"]
dates = pd.Series([pd.Timestamp(t) for t in texts])
names = ["year", "quarter", "month", "day", "day_of_week", "day_of_year", "hour", "minute", "second"]
periods = {"quarter": 4, "month": 12, "day": 31, "day_of_week": 7, "day_of_year": 366, "hour": 24, "minute": 60, "second": 60}
columns = [getattr(dates.dt, part).to_numpy(float) for part in names]
columns.append(((dates - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)).to_numpy(float))
for part, period in periods.items():
    angle = 2 * np.pi * getattr(dates.dt, part).to_numpy(float) / period
    columns += [np.sin(angle), np.cos(angle)]
parts = names + ["days"] + [part + " cycle" for part in periods]
scaled = StandardScaler().fit_transform(np.array(columns[:10]).T)

kind = np.array(list("aaaaaaaabbbbbccdddde") + ["f", "f", "f", "g"])
seen = np.array(["a", "c", "e", "zzz", "d", "f", "g"])
rare = []
for least in (1, 3, 4, 0.2):
    encoder = OneHotEncoder(min_frequency=least, handle_unknown="infrequent_if_exist", sparse_output=False).fit(kind[:, None])
    rare.append({"least": least, "infrequent": least != 1, "test": encoder.transform(seen[:, None]).tolist()})


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


hashes = {text: [fnv1a(text) % buckets for buckets in (3, 1000)] for text in ["", "a", "Zürich", "日本", "longer text" * 9, '"" x f', "Dream x f", "u", "v", "1", "2",
           "3", "a=u", "a=v", "a=", "b=1", "b=2", "b=3"]}
print(json.dumps({
    "rest": rest, "numbers": {name: cells(values) for name, values in numbers.items()}, "prepared": prepared,
    "dates": texts, "parts": parts, "of_dates": np.array(columns).T.tolist(), "scaled": scaled.tolist(),
    "kind": kind.tolist(), "seen": seen.tolist(), "rare": rare, "hashes": hashes,
}, indent=None, separators=(",", ":")))
