"""Measures lazo on several plugins: for each figure a process of each, which take turns repeat by repeat (another one
begins each time), so that all see the same machine. Prints a table; ratios are medians over the turns, of a plugin's
time by that of the first one.

    plugins.py BENCH [--repeats N] [--only FIGURE,...] [--lines FILE] NAME=PLUGIN[::XLA_FLAGS] NAME=PLUGIN...
BENCH is the built command bench, PLUGIN what its -plugin takes. The figures' names stand in the table's first column.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from peers import Side

# Name, workload, variant, batch, steps of a repeat (None: the workload's own).
TURNS = [
    ("tiny", "tiny", "metric", 8, 10_000), ("tiny 1 by 1", "tiny", "one by one", 8, 5_000), ("linear", "linear", "metric", 32, 3_000),
    ("mlp", "mlp", "metric", 128, 117), ("mlp log", "mlp", "log", 128, 117),
    ("cnn 32", "cnn", "metric", 32, 40), ("cnn 128", "cnn", "metric", 128, 20), ("matmul", "matmul", "1024^3", None, None),
    ("inplace 10", "inplace", "10", None, None), ("inplace 600", "inplace", "600", None, None),
    ("lstm 32", "lstm", "32", None, None), ("lstm 128", "lstm", "128", None, None), ("gpt", "gpt", "6", None, None),
    ("generate", "generate", "tokens", None, None), ("predict", "predict", "1", None, None),
    ("first cnn step", "ttfs", "first step", None, None), ("first cnn step, cached", "ttfs", "first step cached", None, None),
    ("first lstm step", "lstm", "128 first step", None, None), ("first gpt step", "gpt", "6 first step", None, None),
    ("save", "ckpt", "save: thread blocked, state", None, None),
]
FORWARD = ("s", "ms", "us/step", "ms/step", "us/run", "us")  # units that are a time; all others are a rate
WHOLE = ["digits", "start"]  # a process a repeat


class Plugin:
    def __init__(self, text):
        self.name, equals, rest = text.partition("=")
        self.path, _, self.flags = rest.partition("::")
        if not equals or not self.path:
            raise SystemExit(f"plugins: {text!r}: expected NAME=PLUGIN or NAME=PLUGIN::XLA_FLAGS")
        self.environment = dict(os.environ)
        if self.flags:
            self.environment["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + self.flags).strip()


def order(sides, turn):
    return sides[turn % len(sides):] + sides[:turn % len(sides)]


def turns(bench, figure, plugins, repeats):
    """The values of each plugin, and the lines of the bench."""
    _, workload, variant, batch, steps = figure
    options = ["-workload", workload, "-variant", variant, "-repeats", str(repeats), "-turns"]
    options += ["-batch", str(batch)] if batch else []
    options += ["-steps", str(steps)] if steps else []
    sides, lines = [], {}
    try:
        for p in plugins:  # one after the other: a warm-up is not to disturb the next one's
            sides.append(Side([bench, "-plugin", p.path, *options], env=p.environment))
            sides[-1].until(wanted=False)
        for i in range(repeats):
            for side in order(sides, i):
                lines[side] = side.repeat(last=i == repeats - 1)
    finally:
        for side in sides:
            side.close()
    return [lines[s] for s in sides]


def digits(bench, plugins, repeats):
    """The seconds of the first seed and of a later one, the accuracy and the memory, a process a repeat."""
    got = {p: [] for p in plugins}
    for i in range(repeats):
        for p in order(plugins, i):
            out = subprocess.run([bench, "-plugin", p.path, "-workload", "digits"], env=p.environment, check=True, stdout=subprocess.PIPE, text=True)
            got[p].append(json.loads(out.stdout))
    for key, unit in (("first_s", "s"), ("warm_s", "s"), ("mean", "accuracy"), ("rss_mb", "MB")):
        yield f"digits {key}", unit, [[line[key] for line in got[p]] for p in plugins]


def start(bench, plugins, repeats):
    """Seconds until a process has the plugin open: the first one of a machine, which probes it, and a later one."""
    names = ("start, first", "start, later")
    got = {p: {n: [] for n in names} for p in plugins}
    for i in range(repeats):
        for p in order(plugins, i):
            cache = tempfile.mkdtemp()
            try:
                environment = p.environment | {"XDG_CACHE_HOME": cache}
                for name in names:
                    began = time.monotonic()
                    subprocess.run([bench, "-plugin", p.path, "-workload", "inplace", "-variant", "none"],
                                   env=environment, check=True, stdout=subprocess.DEVNULL)
                    got[p][name].append(time.monotonic() - began)
            finally:
                shutil.rmtree(cache)
    for name in names:
        yield name, "s", [got[p][name] for p in plugins]


def row(name, unit, values, cpu=None):
    forward = unit in FORWARD

    def ratio(of):  # a time by the first one's
        return statistics.median((a / b if forward else b / a) for a, b in zip(of, values[0]))

    cells = []
    for i, of in enumerate(values):
        cell = f"{statistics.median(of):.4g} [{min(of):.4g}–{max(of):.4g}]"
        if i > 0 and unit not in ("accuracy", "MB"):
            cell += f" **{ratio(of):.2f}**"
            if cpu and all(cpu) and min(map(min, cpu)) > 0:
                cell += f", cpu {statistics.median(a / b for a, b in zip(cpu[i], cpu[0])):.2f}"
        cells.append(cell)
    return "| " + " | ".join([name, unit, *cells]) + " |"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bench")
    p.add_argument("plugins", nargs="+", metavar="NAME=PLUGIN[::XLA_FLAGS]")
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--only", default="")
    p.add_argument("--lines", help="a file to append the results to, as JSON lines")
    a = p.parse_args()
    known = [f[0] for f in TURNS] + WHOLE
    chosen = list(filter(None, a.only.split(","))) or known
    if set(chosen) - set(known) or a.repeats < 1:
        p.error(f"--only takes {', '.join(known)}; --repeats is at least 1")
    plugins = [Plugin(text) for text in a.plugins]
    print("| figure | unit | " + " | ".join(q.name for q in plugins) + " |")
    print("|---|---|" + "---|" * len(plugins), flush=True)
    for figure in TURNS:
        if figure[0] not in chosen:
            continue
        lines = turns(a.bench, figure, plugins, a.repeats)
        print(row(figure[0], lines[0]["unit"], [line["values"] for line in lines], [line.get("cpu_s", []) for line in lines]), flush=True)
        if a.lines:
            with open(a.lines, "a") as f:
                f.writelines(json.dumps(line | {"plugin": q.name}) + "\n" for q, line in zip(plugins, lines))
    for name, measure in (("digits", digits), ("start", start)):
        if name in chosen:
            for what, unit, values in measure(a.bench, plugins, a.repeats):
                print(row(what, unit, values), flush=True)


if __name__ == "__main__":
    main()
