"""Training steps of PyTorch on the CPU: `mlp` and `cnn` as bench_train.py, `lstm` and `gpt` as bench_sequence.py, each written
as PyTorch's users do: fused Adam; attention by scaled_dot_product_attention behind one product for queries, keys and values.
--impl compiled compiles loss and gradient by torch.compile; it has the variants "first step", without its caches."""
import os
import sys

COMPILED = "--impl" in sys.argv and sys.argv[sys.argv.index("--impl") + 1] == "compiled"
if "--impl" in sys.argv:
    at = sys.argv.index("--impl")
    del sys.argv[at:at + 2]
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
from torch import nn
from torch.nn import functional as F

import common

WIDTH, HEADS, VOCABULARY, PLACES = 256, 8, 2048, 128
UNITS, INPUTS, CLASSES = 128, 32, 10
FIRST = " first step"


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(7 * 7 * 64, 256), nn.ReLU(), nn.Linear(256, 10))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, places, _ = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, places, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, places, WIDTH))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        return (self.norm(self.blocks(x)) @ self.tokens.weight.T).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(INPUTS, UNITS, batch_first=True), nn.Linear(UNITS, CLASSES)

    def forward(self, x):
        _, (h, _) = self.cell(x)
        return self.out(h[0])


def sequence(a):
    """A new model for each call, and the same batch for each step."""
    size = int(a.variant.removesuffix(FIRST))
    a.batch = a.batch or {"lstm": 32, "gpt": 16}[a.workload]
    a.steps = 1 if a.variant.endswith(FIRST) else a.steps or (2048 // size if a.workload == "lstm" else 4)
    if a.workload == "lstm":
        fixed = [torch.randn(a.batch, size, INPUTS), torch.randint(0, CLASSES, (a.batch,))]
        return Lstm, lambda steps: (fixed for _ in range(steps))
    fixed = [torch.randint(0, VOCABULARY, (a.batch, PLACES)) for _ in "xy"]
    fixed[1] = fixed[1].flatten()
    return lambda: Gpt(size), lambda steps: (fixed for _ in range(steps))


def examples(a):
    x, y = common.data(a.workload)
    x, y = torch.from_numpy(x), torch.from_numpy(y).long()
    if a.workload == "cnn":
        x = x.permute(0, 3, 1, 2).contiguous()
    return {"mlp": mlp, "cnn": cnn}[a.workload], lambda steps: common.batches(x, y, a.batch, steps)


def main():
    a = common.parse(["mlp", "cnn", "lstm", "gpt"])
    torch.manual_seed(0)
    counts = a.workload in ("mlp", "cnn")
    new, batches = examples(a) if counts else sequence(a)

    def begin():
        torch.compiler.reset()
        model = new()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)

        def forward(x, y):
            logits = model(x)
            right = (logits.detach().argmax(-1) == y).float().mean() if counts else torch.zeros(())
            return F.cross_entropy(logits, y), right

        return optimizer, torch.compile(forward) if COMPILED else forward

    def run(optimizer, forward, steps):
        total, right = torch.zeros(()), torch.zeros(())
        for x, y in batches(steps):
            optimizer.zero_grad()
            loss, accuracy = forward(x, y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            right += accuracy
        return total.item(), right.item()

    first = a.variant.endswith(FIRST)
    trained = begin()
    run(*trained, common.WARMUP[a.workload] if counts else 2)
    seconds, cpu = common.measure(a, lambda: run(*begin(), 1) if first else run(*trained, a.steps))
    unit, values = "steps/s", [a.steps / s for s in seconds]
    if first:
        unit, values = "s", seconds
    elif not counts:
        unit, values = "ms/step", [1e3 * s / a.steps for s in seconds]
    common.emit(a, unit, values, impl="compiled" if COMPILED else "torch", cpu_s=cpu, batch=a.batch, steps=a.steps,
                torch=torch.__version__, threads=torch.get_num_threads())


if __name__ == "__main__":
    main()
