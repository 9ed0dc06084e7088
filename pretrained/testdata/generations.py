"""Writes what transformers generates with the small random models of models.py: greedy, with a repetition penalty, and beams.

    pip install torch==2.8.0 transformers==5.23.0 safetensors
    python generations.py > generations.json
"""

import json
import os

import numpy as np
import torch
import transformers
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
torch.set_num_threads(1)
transformers.logging.set_verbosity_error()


def model_of(kind):
    folder = os.path.join(HERE, kind)
    config = transformers.AutoConfig.from_pretrained(folder)
    weights = {k: v for k, v in load_file(os.path.join(folder, "model.safetensors")).items() if not k.startswith("score")}
    head = "head/ForCausalLM/"
    weights |= {k[len(head):]: v for k, v in load_file(os.path.join(folder, "expected.safetensors")).items() if k.startswith(head)}
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected and all(k == "lm_head.weight" and config.tie_word_embeddings for k in missing), (missing, unexpected)
    return model


def cases(kind):
    rng = np.random.default_rng(len(kind))
    prompts = [[int(i) for i in rng.integers(5, 60, n)] for n in (6, 1, 3, 9)]
    for prompt in prompts:
        yield prompt, dict(max_new_tokens=10)
        yield prompt, dict(max_new_tokens=10, repetition_penalty=1.7)
    if kind in ("llama", "qwen3"):
        for i, (beams, penalty, early, eos) in enumerate([
                (2, 1.0, False, [7]), (3, 1.0, False, [5, 20, 41]), (3, 0.0, "never", [5, 20, 41]), (4, 2.0, "never", [8, 9, 10, 33]), (3, 1.0, True, [8, 9, 10, 33]),
                (4, -1.0, False, [5, 20, 41]), (3, 0.5, True, list(range(5, 60, 7))), (2, 1.5, False, list(range(6, 60, 5))), (5, 1.0, "never", list(range(5, 60, 4))),
                (2, 1.0, False, None)]):
            for prompt in prompts[:1 + i % 4]:
                yield prompt, dict(max_new_tokens=9, num_beams=beams, length_penalty=penalty, early_stopping=early, eos_token_id=eos)
        for beams, repetition in [(3, 1.6), (2, 0.8)]:
            yield prompts[3], dict(max_new_tokens=9, num_beams=beams, repetition_penalty=repetition, length_penalty=1.0, early_stopping=False, eos_token_id=[5, 20, 41])


rows = []
for kind in ("llama", "llama3", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3"):
    model = model_of(kind)
    for prompt, settings in cases(kind):
        settings.setdefault("eos_token_id", None)
        model.generation_config = transformers.GenerationConfig(pad_token_id=3)
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0, len(prompt):].tolist()
        stop = settings["eos_token_id"] or []
        ends = [i for i, t in enumerate(out) if t in stop]
        rows.append({"kind": kind, "prompt": prompt, **settings, "tokens": out[:ends[0] + 1] if ends else out})
print(json.dumps(rows).replace("}, {", "},\n{"))
