"""Writes series.json: windows by Keras 3.15's timeseries_dataset_from_array, and lags and rolling statistics of two series
by pandas 3.1. Run in this folder:

    KERAS_BACKEND=tensorflow python series.py > series.json
"""
import json
import sys
import keras
import numpy as np
import pandas as pd

rng = np.random.default_rng(3)
n = 24
rows = np.round(rng.normal(10, 3, (n, 2)), 3)
shop = ["b", "a", "a", "b"] * 6
sales = np.round(rng.lognormal(2, 1, n), 2)
sales[9] = np.nan
windows = []
for length, horizon, stride in ((5, 1, 1), (4, 3, 2), (1, 1, 7), (10, 14, 3)):
    targets = np.lib.stride_tricks.sliding_window_view(rows[length:], horizon, 0).swapaxes(1, 2)
    made = keras.utils.timeseries_dataset_from_array(rows, targets, length, sequence_stride=stride, batch_size=None)
    x, y = zip(*((x.numpy().tolist(), y.numpy().tolist()) for x, y in made))
    windows.append({"Length": length, "Horizon": horizon, "Stride": stride, "X": x, "Y": y})
by = pd.DataFrame({"shop": shop, "sales": sales}).groupby("shop")["sales"]
past = {f"sales lag {k}": by.shift(k) for k in (1, 3, 12)}
for w in (1, 2, 5):
    for what in ("mean", "min", "max", "std"):
        past[f"sales {what} {w}"] = by.transform(lambda s: getattr(s.rolling(w), what)())
none = lambda values: [None if np.isnan(v) else float(v) for v in values]
json.dump({"Rows": rows.tolist(), "Windows": windows, "Shop": shop, "Sales": none(sales), "Past": {k: none(v) for k, v in past.items()}}, sys.stdout)
