"""Pretrained models by sentence-transformers, transformers and peft on PyTorch, as `go run ./cmd/bench -workload pretrained`:
the same folder --data, texts and sizes, float32, eager, Adam fused."""
import csv
import os

import torch

import common


def adam(model):
    return torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)


def ids(batch, places):
    return (1000 + 7 * torch.arange(batch * places) % 20_000).view(batch, places)


def embed(a):
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(os.path.join(a.data, "minilm"), device="cpu")
    with open(os.path.join(a.data, "texts.csv"), newline="") as f:
        texts = [row[0] for row in csv.reader(f)][1:][:a.steps or 1024]
    size = a.batch or 32
    return "texts/s", len(texts), size, lambda: model.encode(texts, batch_size=size)


def training(a, model, batch, places, steps, labels):
    model.train()
    optimizer, x, steps = adam(model), ids(batch, places), a.steps or steps
    mask = torch.ones_like(x)

    def run():
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(input_ids=x, attention_mask=mask, labels=labels(x)).loss
            loss.backward()
            optimizer.step()
        loss.item()

    return "ms/step", steps, batch, run


def finetune(a):
    from transformers import AutoModelForSequenceClassification
    model = AutoModelForSequenceClassification.from_pretrained(os.path.join(a.data, "minilm"), num_labels=10)
    return training(a, model, a.batch or 32, 32, 5, lambda x: torch.arange(len(x)) % 10)


def causal(a):
    from transformers import AutoModelForCausalLM
    return AutoModelForCausalLM.from_pretrained(a.data, gguf_file="smollm.gguf", dtype=torch.float32)


def lora(a):
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(causal(a), LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    return training(a, model, a.batch or 4, 64, 2, lambda x: x)


def generate(a):
    model, prompt, tokens = causal(a).eval(), 1000 + torch.arange(16)[None], min(a.steps or 64, 100)

    def run():
        with torch.inference_mode():
            model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)

    return "tokens/s", tokens, 1, run


def main():
    a = common.parse(["pretrained"])
    torch.manual_seed(0)
    unit, n, batch, run = {"embed": embed, "finetune": finetune, "lora": lora, "generate": generate}[a.variant](a)
    run()
    seconds, cpu = common.measure(a, run)
    common.emit(a, unit, [1e3 * s / n if unit == "ms/step" else n / s for s in seconds], cpu_s=cpu, impl="transformers", batch=batch)


if __name__ == "__main__":
    main()
