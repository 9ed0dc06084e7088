"""The loss of sentence-transformers' MultipleNegativesRankingLoss and its gradients, for the model in bert.

    python pairs.py            # writes pairs.safetensors; requirements as models.py

In it are in/texts/NAME (inputs), and for pairs and for triples: KIND/loss and KIND/grad/NAME. References are of float64,
rounded to float32. The metadata has the largest error of torch in float32 for each of them.
"""

import json
import os
import shutil
import tempfile

import numpy as np
import torch
from safetensors.numpy import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

HERE = os.path.dirname(os.path.abspath(__file__))
TENSORS, ERRORS = {}, {}


def inputs():
    rng = np.random.default_rng(5)
    for prefix, longest in {"": 5, "positive_": 9, "negative_": 7}.items():
        ids = rng.integers(5, 60, (6, longest))
        mask = np.ones_like(ids)
        for row in range(1, 6):
            mask[row, rng.integers(2, longest + 1):] = 0
        yield prefix, dict(input_ids=ids * mask, attention_mask=mask, token_type_ids=rng.integers(0, 2, ids.shape))


def model(dtype):
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(HERE, "bert", name), folder)
        shutil.copy(os.path.join(HERE, "tokenizer.json"), folder)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
            json.dump({"tokenizer_class": "PreTrainedTokenizerFast"}, f)
        body = Transformer(folder)
    return SentenceTransformer(modules=[body, Pooling(16, "mean")], device="cpu").to(dtype).eval()


def computed(dtype, texts):
    m = model(dtype)
    loss = MultipleNegativesRankingLoss(m, scale=20.0)([{k: torch.tensor(v) for k, v in of.items()} for of in texts], None)
    loss.backward()
    grads = {"grad/" + k.removeprefix("0.auto_model.").removeprefix("0.model."): p.grad for k, p in m.named_parameters() if p.grad is not None}
    return {"loss": loss.reshape(1)} | grads


if __name__ == "__main__":
    texts = dict(inputs())
    TENSORS |= {f"in/texts/{p}{k}": v.astype(np.int32) for p, of in texts.items() for k, v in of.items()}
    for kind, n in {"pairs": 2, "triples": 3}.items():
        exact, single = (computed(dtype, list(texts.values())[:n]) for dtype in (torch.float64, torch.float32))
        for name, v in exact.items():
            TENSORS[f"{kind}/{name}"] = v.float().detach().numpy()
            ERRORS[f"{kind}/{name}"] = float((single[name].double() - v).abs().max().detach())
        print(kind, "loss", float(exact["loss"]), len(exact), "arrays")
    save_file(TENSORS, os.path.join(HERE, "pairs.safetensors"), {"errors": json.dumps(ERRORS)})
