"""Writes which probabilities temperature, top-k and top-p leave, for package text's tests: the order and the rules of Hugging Face's
transformers (logits_process.py: temperature, then top-k, then top-p), written anew in numpy 2.4 and float64; and
cases with repetition_penalty and min_p by transformers' own processors, 5.23.0 with torch 2.8.0 in float64. Run in this folder:

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

import torch  # noqa: E402
from transformers import LogitsProcessorList  # noqa: E402
from transformers.generation import logits_process as lp  # noqa: E402

rng = np.random.default_rng(18)
for n, repetition, temperature, k, p, least in [(9, 1.5, 1, 0, 0, 0), (9, 0.5, 0.7, 0, 0, 0), (9, 0, 1, 0, 0, 0.1), (9, 0, 2.5, 0, 0, 0.3), (9, 2, 0.8, 5, 0.9, 0.05),
                                                (300, 1.3, 1.1, 40, 0.95, 0.02), (300, 1.1, 1.7, 0, 0, 0.2), (300, 3, 0.4, 0, 0.8, 0.01), (9, 0, 1, 0, 0, 1)]:
    logits, text = (rng.standard_normal(n) * 3).astype(np.float32), [int(i) for i in rng.integers(0, n, n // 3)] + [4, 4]
    all = LogitsProcessorList()
    if repetition:
        all.append(lp.RepetitionPenaltyLogitsProcessor(float(repetition)))
    all.append(lp.TemperatureLogitsWarper(float(temperature)))
    if k:
        all.append(lp.TopKLogitsWarper(k))
    if p:
        all.append(lp.TopPLogitsWarper(p))
    if least:
        all.append(lp.MinPLogitsWarper(float(least)))
    got = torch.softmax(all(torch.tensor([text]), torch.tensor(logits)[None].double())[0], -1)
    cases.append({"logits": [float(str(v)) for v in logits], "repetition": repetition, "text": text, "temperature": temperature, "top_k": k, "top_p": p, "min_p": least,
                  "probabilities": [float(f"{v:.12g}") for v in got.tolist()]})
print(json.dumps(cases).replace("}, {", "},\n{"))
