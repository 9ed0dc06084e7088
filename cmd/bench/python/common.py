"""What the scripts share: the flags, data, clock and lines of `go run ./cmd/bench`."""
import argparse
import json
import resource
import statistics
import sys
import time
from importlib.metadata import version

import numpy as np

STEPS = {"tiny": 10_000, "mlp": 468, "cnn": 100, "linear": 3_000}
WARMUP = {"tiny": 200, "mlp": 20, "cnn": 5, "linear": 100}
BATCH = {"tiny": 8, "mlp": 128, "cnn": 128, "linear": 32, "digits": 32}


def parse(workloads):
    p = argparse.ArgumentParser()
    p.add_argument("--workload", required=True, choices=workloads)
    p.add_argument("--variant", required=True)
    p.add_argument("--batch", type=int)
    p.add_argument("--steps", type=int)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--data", help="the folder in which bench has written the files of images and csv")
    p.add_argument("--turns", action="store_true", help='before each repeat, print "ready" and wait for a line on stdin')
    a = p.parse_args()
    a.batch = a.batch or BATCH.get(a.workload)
    a.steps = a.steps or STEPS.get(a.workload)
    if a.workload == "mlp":
        a.steps = min(a.steps, 60_000 // a.batch)
    return a


def turn(a):
    if a.turns:
        print("ready", flush=True)
        if not sys.stdin.readline():
            sys.exit("standard input ended before the last repeat")


def cpu_seconds():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def measure(a, f):
    """Seconds and processor seconds of each repeat of f."""
    seconds, cpu = [], []
    for _ in range(a.repeats):
        turn(a)
        c, t = cpu_seconds(), time.perf_counter()
        f()
        seconds.append(time.perf_counter() - t)
        cpu.append(cpu_seconds() - c)
    return seconds, cpu


def rss_mb():
    """The largest resident size that the process had."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size >> 20 if sys.platform == "darwin" else size >> 10


def emit(a, unit, values, **extra):
    values = [float(v) for v in values]
    print(json.dumps({
        "workload": a.workload, "impl": "jax", "variant": a.variant, "unit": unit,
        "median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values),
        "values": [float(f"{v:.4g}") for v in values], "rss_mb": rss_mb(), **extra,
        "versions": {n: version(n) for n in (("jax", "optax", "numpy") if extra.get("impl", "jax") == "jax" else ("numpy",))}}), flush=True)


def data(workload):
    """Random inputs and labels with a fixed seed, held in the host's memory."""
    r = np.random.default_rng(0)
    if workload == "tiny":
        x = r.standard_normal((8_192, 4), dtype=np.float32)
        return x, x @ np.array([[1.0], [-2.0], [3.0], [0.5]], np.float32)
    if workload == "digits":  # as many as there are, and as large; what they show does not change the time
        return r.random((1_797, 8, 8, 1), dtype=np.float32), r.integers(0, 10, 1_797).astype(np.int32)
    x = r.standard_normal((60_000, 784), dtype=np.float32)
    y = r.integers(0, 10, 60_000).astype(np.int32)
    return (x.reshape(-1, 28, 28, 1) if workload == "cnn" else x), y


def batches(x, y, batch, steps):
    """So many contiguous slices, in order, beginning again where the data ends."""
    n = len(x) // batch
    for i in range(steps):
        j = (i % n) * batch
        yield x[j:j + batch], y[j:j + batch]
