"""Training steps of PyTorch, eager, on the CPU: `cnn` as bench_train.py, `gpt` as bench_sequence.py, each written as
PyTorch's users do: attention by scaled_dot_product_attention behind one product for queries, keys and values."""
import torch
from torch import nn
from torch.nn import functional as F

import common

WIDTH, HEADS, VOCABULARY, PLACES = 256, 8, 2048, 128


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


def main():
    a = common.parse(["cnn", "gpt"])
    torch.manual_seed(0)
    if a.workload == "gpt":
        a.batch, a.steps = a.batch or 16, a.steps or 4
        model = Gpt(int(a.variant))
        fixed = [torch.randint(0, VOCABULARY, (a.batch, PLACES)) for _ in "xy"]

        def batches(steps):
            return ([fixed[0], fixed[1].flatten()] for _ in range(steps))
    else:
        model = cnn()
        x, y = common.data(a.workload)
        x, y = torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(y).long()

        def batches(steps):
            return common.batches(x, y, a.batch, steps)

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def run(steps):
        total, right = torch.zeros(()), torch.zeros(())
        for x, y in batches(steps):
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            if a.workload == "cnn":
                right += (logits.detach().argmax(-1) == y).float().mean()
        return total.item(), right.item()

    run(2 if a.workload == "gpt" else common.WARMUP[a.workload])
    seconds, cpu = common.measure(a, lambda: run(a.steps))
    gpt = a.workload == "gpt"
    common.emit(a, "ms/step" if gpt else "steps/s", [1e3 * s / a.steps if gpt else a.steps / s for s in seconds],
                impl="torch", cpu_s=cpu, batch=a.batch, steps=a.steps, torch=torch.__version__, threads=torch.get_num_threads())


if __name__ == "__main__":
    main()
