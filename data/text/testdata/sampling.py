"""Writes which probabilities temperature, top-k and top-p leave, for package text's tests: the order and the rules of Hugging Face's
transformers (logits_process.py: temperature, then top-k, then top-p), written anew in numpy 2.4 and float64. Run in this folder:

    python sampling.py > sampling.json
"""
import json

import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / e.sum()


def probabilities(logits, temperature, k, p):
    x = logits.astype(np.float64) / temperature
    if k:
        k = min(k, x.size)
        x = np.where(x < np.sort(x)[-k], -np.inf, x)
    if 0 < p < 1:
        order = np.argsort(x, kind="stable")  # ascending: those whose sum is at most 1-p go, but for the last
        gone = np.cumsum(softmax(x)[order]) <= 1 - p
        gone[-1] = False
        x[order[gone]] = -np.inf
    return softmax(x)


rng = np.random.default_rng(17)
cases = []
for n, temperature, k, p in [(5, 1, 0, 0), (5, 0.5, 0, 0), (9, 2, 3, 0), (9, 1, 1, 0), (9, 1, 100, 0), (9, 1, 0, 0.5), (9, 1, 0, 0.9), (9, 0.7, 4, 0.8),
                             (9, 1, 0, 0.01), (9, 1.5, 6, 1), (300, 0.8, 40, 0.95), (300, 1, 0, 0.99), (300, 1.2, 50, 0)]:
    logits = (rng.standard_normal(n) * 3).astype(np.float32)
    if k == 3:
        logits[:] = np.sort(logits)
        logits[-4] = logits[-3]  # two as great as the last of three: both stay
    if k == 6:
        logits[2] = -np.inf
    got = probabilities(logits, temperature, k, p)
    cases.append({"logits": [None if np.isinf(v) else float(str(v)) for v in logits], "temperature": temperature, "top_k": k, "top_p": p,
                  "probabilities": [float(f"{v:.12g}") for v in got]})
print(json.dumps(cases).replace("}, {", "},\n{"))
