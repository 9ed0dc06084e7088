"""Measures lazo beside peers: for each figure a process of each, which take turns repeat by repeat (the first one
changes), so that both see the same machine. Prints a table for each peer; the ratio is the median of the pairs' ratios.

    peers.py BENCH [--repeats N] [--only WORKLOAD,...] [--peer jax,flax,keras,torch,compiled,onnxruntime,sklearn,readers,transformers,llama] [--models FOLDER] [--lines FILE] [--write FILE] [--plugin cpu|cuda|tpu|PATH]
BENCH is the built command bench; beside it, for the workload parquet, BENCH-parquet is that of data/parquet/bench. flax and keras (on JAX) have the workloads lstm and gpt by their own layers, torch has mlp, cnn,
lstm and gpt with its fused Adam, eager; compiled is the same through torch.compile, and the faster of the two counts. onnxruntime has predict, sklearn linear, llama (llama.cpp) the generation of pretrained.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FRESH, DONATED = "256MiB x+1 (fresh output)", "256MiB x+1 (donated)"
# Workload, variant of lazo, variant of JAX, batch, share of the steps that a repeat has, what issue and docs ask for: the
# most that lazo's time may be, as a part of JAX's.
FIGURES = [
    ("tiny", "metric", "metric", 8, 1, None), ("tiny", "metric", "scan", 8, 1, None), ("tiny", "log", "log", 8, 1, None),
    ("tiny", "bar", "bar", 8, 1, None), ("tiny", "one by one", "metric", 8, 1, None),
    ("linear", "metric", "metric", 32, 1, None), ("linear", "bar", "bar", 32, 1, None),
    ("mlp", "metric", "metric", 128, 0.25, 1), ("mlp", "metric", "scan", 128, 0.25, 1), ("mlp", "log", "log", 128, 0.25, 1),
    ("cnn", "metric", "metric", 128, 0.2, 1), ("cnn", "metric", "metric", 32, 0.4, 1),
    ("digits", "later seed", "later seed", 32, 1, 1),
    ("matmul", "1024^3", "1024^3", None, 1, 1 / 0.95), ("matmul", "4096^3", "4096^3", None, 1, 1 / 0.95),
    ("copy", FRESH, FRESH, None, 1, None), ("copy", DONATED, DONATED, None, 1, 1 / 0.95),
    ("inplace", "10", "10", None, 1, 0.9), ("inplace", "150", "150", None, 1, 0.9), ("inplace", "600", "600", None, 1, 0.9),
    ("predict", "1", "1", None, 1, None), ("predict", "8", "8", None, 1, None), ("predict", "64", "64", None, 1, None),
    ("serve", "1", "1", None, 1, None), ("serve", "8", "8", None, 1, None), ("serve", "64", "64", None, 1, None),
    ("ttfs", "first step", "first step", None, 1, None), ("ttfs", "first step cached", "first step cached", None, 1, None),
    ("lstm", "32", "32", None, 1, 1), ("lstm", "128", "128", None, 1, 1), ("lstm", "512", "512", None, 1, 1),
    ("lstm", "32 first step", "32 first step", None, 1, 1), ("lstm", "128 first step", "128 first step", None, 1, 1),
    ("lstm", "512 first step", "512 first step", None, 1, 1),
    ("gpt", "6", "6", None, 1, 1), ("gpt", "6 first step", "6 first step", None, 1, 0.7),
    ("generate", "tokens", "tokens", None, 1, 1), ("generate", "first token", "first token", None, 1, None),
    ("generate", "token 500 / token 10", "token 500 / token 10", None, 1, None),
    *(("growth", v, v, None, 1, 1) for of, values, first in (
        ("variables", (10, 100, 300, 1_000), True), ("batch", (8, 128, 2_048), False), ("devices", (1, 2, 4, 8), False),
        ("places", (32, 512), True), ("layers", (1, 8), True))
      for value in values for v in (f"{of} {value}", f"{of} {value} first step")[:1 + (first and value < 1_000)]),  # JAX compiles 1,000 for over six minutes
    ("images", "jpeg", "jpeg", None, 1, 1), ("images", "png", "png", None, 1, 1),
    ("csv", "numbers", "numbers", None, 1, 1.25), ("csv", "classes", "classes", None, 1, 1.25),
    ("parquet", "numbers", "numbers", None, 1, 2), ("parquet", "classes", "classes", None, 1, 2),
    ("pretrained", "embed", "embed", None, 1, 1), ("pretrained", "finetune", "finetune", None, 1, 1),
    ("pretrained", "lora", "lora", None, 1, 1), ("pretrained", "generate", "generate", None, 1, 1),
]
FEED = {"images", "csv", "parquet"}  # files are read, and nothing is computed: --peer readers has torch's DataLoader, pandas and pyarrow
MODELS = {"pretrained"}  # of --models: --peer transformers has sentence-transformers, transformers and peft on PyTorch
PEERS = {"jax": {f[0] for f in FIGURES} - FEED - MODELS, "readers": FEED, "transformers": MODELS, "flax": {"lstm", "gpt"}, "keras": {"lstm", "gpt"}, "torch": {"mlp", "cnn", "lstm", "gpt"},
         "compiled": {"mlp", "cnn", "lstm", "gpt"}, "onnxruntime": {"predict"}, "sklearn": {"linear"}, "llama": MODELS}
SCRIPTS = {"torch": "bench_torch.py", "compiled": "bench_torch.py", "sklearn": "bench_sklearn.py", "llama": "bench_llama.py"}
METRIC = {"torch", "compiled", "sklearn"}  # they have no other variants of a training than metric
UNASKED = {"serve", "growth"}  # of --only alone
RESIDENT = ("mlp", "metric", "metric")  # the figure whose processes' memory is compared too
STEPS = {"tiny": 10_000, "mlp": 468, "cnn": 100, "linear": 3_000, "digits": 440}


class Side:
    """A process that waits for its turns."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def until(self, wanted):
        """Reads until it is ready for its next repeat, or has printed its result."""
        for text in self.process.stdout:
            if text.strip() == "ready" and not wanted:
                return None
            if text.startswith("{"):
                return json.loads(text)
        raise SystemExit(f"peers: {self.process.args} ended with {self.process.wait()} and no result")

    def repeat(self, last):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.until(wanted=last)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def pair(bench, figure, repeats, peer, plugin, models):
    workload, ours, theirs, batch, share, _ = figure
    options = ["--repeats", str(repeats), "--turns"]
    if batch:
        options += ["--batch", str(batch), "--steps", str(int(share * STEPS[workload]))]
    script = {"ttfs": "bench_ttfs.py", "matmul": "bench_limits.py", "copy": "bench_limits.py", "inplace": "bench_limits.py",
              "predict": "bench_predict.py", "growth": "bench_growth.py", "lstm": "bench_sequence.py", "gpt": "bench_sequence.py", "generate": "bench_sequence.py",
              "images": "bench_feed.py", "csv": "bench_feed.py", "parquet": "bench_feed.py", "pretrained": "bench_pretrained.py"}
    files = tempfile.TemporaryDirectory(prefix="lazo-bench-")
    if workload in FEED:
        options += ["--data", files.name]
    if workload in MODELS:
        options += ["--data", models]
    ours_by = [bench, "-workload", "matmul" if workload == "copy" else workload, "-variant", ours, "-plugin", plugin, *options]
    if workload == "parquet":  # a module of its own, with a command of its own
        ours_by = [bench + "-parquet", "-variant", ours, *options]
    lazo = Side(ours_by)
    try:
        lazo.until(wanted=False)  # one after the other: the second one's warm-up is not to disturb
        its = SCRIPTS.get(peer) or script.get(workload, "bench_train.py")
        theirs_by = [sys.executable, "-B", os.path.join(HERE, its), "--workload", workload, "--variant", theirs,
                     *(["--impl", peer] if peer in ("flax", "keras", "compiled", "onnxruntime") else []), *options]
        if workload == "serve":  # who asks is the same for both
            theirs_by = [bench, "-workload", workload, "-variant", theirs,
                         "-server", f"{sys.executable} -B {os.path.join(HERE, 'bench_serve.py')}", *options]
        jax = Side(theirs_by)
        try:
            jax.until(wanted=False)
            for i in range(repeats):
                results = {}
                for side in (lazo, jax) if i % 2 == 0 else (jax, lazo):
                    results[side] = side.repeat(last=i == repeats - 1)
            return results[lazo], results[jax]
        finally:
            jax.close()
    finally:
        lazo.close()
        files.cleanup()


def row(figure, lazo, jax):
    rate = lazo["unit"] not in ("s", "ms", "us/step", "ms/step", "us/run", "ratio")
    times = [[1 / v if rate else v for v in line["values"]] for line in (lazo, jax)]
    ratios = sorted(x / y for x, y in zip(*times))  # below 1 lazo is faster
    cpu = [x / y for x, y in zip(lazo.get("cpu_s", []), jax.get("cpu_s", [])) if y > 0]

    def cell(line):
        return f"{line['median']:.4g} [{line['min']:.4g}–{line['max']:.4g}]"

    workload, ours, theirs, batch, _, most = figure
    return "| " + " | ".join([
        f"`{workload}`" + (f" {batch}" if workload == "cnn" else ""), ours if ours == theirs else f"{ours}, JAX's {theirs}",
        lazo["unit"], cell(jax), cell(lazo), f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}–{ratios[-1]:.2f}]",
        f"{min(times[0]) / min(times[1]):.2f}", f"{statistics.median(cpu):.2f}" if cpu else "", f"{most:.2f}" if most else ""]) + " |"


NAMES = {"jax": "raw JAX", "keras": "Keras"}


def table(a, peer, chosen):
    """The lines of one peer's table, printed as they come."""
    name, lines = NAMES.get(peer, peer), []

    def add(line):
        print(line, flush=True)
        lines.append(line)

    began, versions = time.strftime("%Y-%m-%d, %H:%M", time.gmtime()), {}
    add(f"| workload | variant | unit | {name} | lazo | time, lazo/{name} | of the best repeats | of processor time | at most |")
    add("|---|---|---|---|---|---|---|---|---|")
    for figure in FIGURES:
        if figure[0] not in chosen or (peer == "torch" and "first step" in figure[1]):  # eager code has no compilation to compare
            continue
        if peer in METRIC and figure[0] in STEPS and figure[1:3] != ("metric", "metric"):
            continue
        if peer == "llama" and figure[1] != "generate":
            continue
        lazo, theirs = pair(a.bench, figure, a.repeats, peer, a.plugin, a.models)
        versions |= lazo.get("versions", {}) | theirs.get("versions", {})
        if peer in METRIC or peer == "onnxruntime":
            figure = *figure[:-1], 1 if figure[0] == "predict" or "first step" in figure[1] else 0.9
        add(row(figure, lazo, theirs))
        if figure[0] in ("serve", "predict"):
            for share in ("p50", "p99"):
                by = [line[share + "_us"] for line in (theirs, lazo)]
                add(f"| `{figure[0]}` | {figure[1]} | {share}, us | {by[0]:.0f} | {by[1]:.0f} | {by[1] / by[0]:.2f} | | | |")
        if figure[0] in MODELS:
            add(f"| `{figure[0]}` | {figure[1]}: peak resident | MB | {theirs['rss_mb']} | {lazo['rss_mb']} | {lazo['rss_mb'] / theirs['rss_mb']:.2f} | | | 1.00 |")
        if figure[:3] == RESIDENT and peer == "jax":
            a_part = lazo["rss_mb"] / theirs["rss_mb"]
            add(f"| `{figure[0]}` | peak resident, with the data's 188 MB | MB | {theirs['rss_mb']} | {lazo['rss_mb']} | {a_part:.2f} | | | 0.70 |")
        if a.lines:
            with open(a.lines, "a") as f:
                f.write(json.dumps(lazo) + "\n" + json.dumps(theirs) + "\n")
    of = ", ".join(f"{k} {v}" for k, v in versions.items())
    return [f"{began} UTC, {os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f} at the end (15 minutes), {a.repeats} repeats; {of}.", "", *lines]


def parts(text, peer):
    """What stands before, in and behind the place of a peer's table."""
    begin, end = f"<!-- table of {peer} -->\n", "<!-- end of the table -->\n"
    if text.count(begin) != 1 or end not in text.split(begin)[1]:
        raise SystemExit(f"peers: expected one line {begin.strip()!r} and behind it {end.strip()!r}")
    before, rest = text.split(begin)
    inside, behind = rest.split(end, 1)
    return before + begin, inside, end + behind


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bench")
    p.add_argument("--repeats", type=int, default=7)
    p.add_argument("--only", default="")
    p.add_argument("--peer", default="jax", help=f"one or several of {','.join(PEERS)}")
    p.add_argument("--plugin", default="cpu", help="of lazo: cpu, cuda, tpu or a path; JAX takes the devices that it finds, or $JAX_PLATFORMS")
    p.add_argument("--models", help="for --peer transformers and llama, a folder with minilm, smollm.gguf and texts.csv: see bench_pretrained.py and bench_llama.py")
    p.add_argument("--lines", help="a file to append the results to, as JSON lines")
    p.add_argument("--write", help="a document whose tables, a place for each peer, are replaced")
    a = p.parse_args()
    peers, only = a.peer.split(","), set(filter(None, a.only.split(",")))
    if set(peers) - set(PEERS) or a.repeats < 1:
        p.error(f"--peer takes {', '.join(PEERS)}; --repeats is at least 1")
    if not a.models and any(PEERS[peer] == MODELS for peer in peers):
        p.error("--peer transformers and --peer llama need --models")
    known = set().union(*(PEERS[peer] for peer in peers))
    if only - known:
        p.error(f"--only takes {', '.join(sorted(known))}")
    if a.write:
        if only:
            p.error("--write replaces whole tables: it goes without --only")
        for peer in peers:
            parts(open(a.write).read(), peer)
    for peer in peers:
        lines = table(a, peer, only & PEERS[peer] if only else PEERS[peer] - UNASKED)
        if a.write:
            before, _, behind = parts(open(a.write).read(), peer)
            with open(a.write, "w") as f:
                f.write(before + "\n".join(lines) + "\n" + behind)


if __name__ == "__main__":
    main()
