"""Prints minima of standard functions that optuna's TPESampler and RandomSampler find: python minima.py > minima.json

optuna 4.5.0. Of 40 seeds, the quartiles of the lowest of 60 values.
"""

import json
import math
import statistics
import warnings

import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore")

A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991], [2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]


def sphere(t):
    return sum((t.suggest_float(f"x{i}", -5, 5) - 1) ** 2 for i in range(3))


def branin(t):
    x, y = t.suggest_float("x0", -5, 10), t.suggest_float("x1", 0, 15)
    return (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def hartmann(t):
    x = [t.suggest_float(f"x{i}", 0, 1) for i in range(6)]
    return -sum(c * math.exp(-sum(a * (v - p * 1e-4) ** 2 for a, p, v in zip(A[i], P[i], x))) for i, c in enumerate([1, 1.2, 3, 3.2]))


def rosenbrock(t):
    x = [t.suggest_float(f"x{i}", -2, 2) for i in range(3)]
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(2))


def mixed(t):
    rate, units = t.suggest_float("rate", 1e-5, 1, log=True), t.suggest_int("units", 4, 256)
    kind = t.suggest_categorical("kind", ["a", "b", "c", "d"])
    return (math.log10(rate) + 2.5) ** 2 + ((units - 96) / 64) ** 2 + {"a": 1, "b": 0, "c": 0.5, "d": 2}[kind]


found = {}
for f in [sphere, branin, hartmann, rosenbrock, mixed]:
    found[f.__name__] = {}
    for name, sampler in {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}.items():
        best = []
        for seed in range(40):
            study = optuna.create_study(sampler=sampler(seed=seed))
            study.optimize(f, n_trials=60)
            best.append(study.best_value)
        found[f.__name__][name] = statistics.quantiles(best, n=4)
print(json.dumps(found, indent=1))
