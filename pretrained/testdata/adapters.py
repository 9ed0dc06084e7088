"""Adapters of small random models as peft saves them, with outputs and gradients; and a check of adapters that lazo saved.

    pip install torch==2.8.0 transformers==5.23.0 peft==0.21.2 safetensors
    python adapters.py write                   # makes the folders here, of the models of models.py
    python adapters.py check BASE:ADAPTER…     # compares peft's outputs with those in ADAPTER/outputs.safetensors

expected.safetensors has TASK/long/logits, and gradients of logits * random/TASK/logits as models.py has them, by the
names of the tensors in adapter_model.safetensors. References are of float64, rounded to float32. The metadata has the
largest error of torch in float32 for each of them, and the number of trained parameters.
"""

import json
import os
import shutil
import sys

import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from peft.utils import get_peft_model_state_dict
from safetensors.numpy import load_file, save_file

from models import HERE, exactly

torch.set_num_threads(1)
ADAPTERS = {
    "adapter-llama": ("llama", "LlamaForCausalLM", dict(r=4, lora_alpha=6, target_modules=["q_proj", "v_proj", "down_proj", "lm_head"], rank_pattern={"v_proj": 2},
                                                        alpha_pattern={r"layers\.1\.self_attn\.q_proj": 3}, task_type="CAUSAL_LM")),
    "adapter-bert": ("bert", "BertForSequenceClassification", dict(r=3, lora_alpha=5, target_modules=r".*\.(query|output\.dense|pooler\.dense)", use_rslora=True,
                                                                   lora_dropout=0.25, exclude_modules=["1.output.dense"], task_type="SEQ_CLS")),
}


def base_of(kind, name, dtype):
    config = transformers.AutoConfig.from_pretrained(os.path.join(HERE, kind))
    with exactly(dtype):
        model = getattr(transformers, name)(config)
    own = load_file(os.path.join(HERE, kind, "model.safetensors"))
    task = name[name.index("For"):]
    own |= {k.split("/", 2)[2]: v for k, v in load_file(os.path.join(HERE, kind, "expected.safetensors")).items() if k.startswith(f"head/{task}/")}
    result = model.load_state_dict({k: torch.tensor(v) for k, v in own.items()}, strict=False)
    assert not result.missing_keys, result
    model = model.to(dtype).eval()
    model.config._attn_implementation = "eager"
    return model, task


def write_one(folder):
    kind, name, settings = ADAPTERS[folder]
    path = os.path.join(HERE, folder)
    shutil.rmtree(path, ignore_errors=True)
    model, task = base_of(kind, name, torch.float32)
    torch.manual_seed(3)
    model = get_peft_model(model, LoraConfig(**settings))
    model.base_model.model.config._name_or_path = model.peft_config["default"].base_model_name_or_path = kind
    with torch.no_grad():
        for n, p in model.named_parameters():
            if "lora_B" in n or "modules_to_save" in n:
                p += 0.3 * torch.randn_like(p)
    model.save_pretrained(path)
    os.remove(os.path.join(path, "README.md"))
    file = os.path.join(path, "adapter_config.json")
    fields = json.load(open(file))
    if isinstance(fields["target_modules"], list):
        fields["target_modules"].sort()  # of a set
    json.dump(fields, open(file, "w"), indent=2)
    trained, _ = model.get_nb_trainable_parameters()
    of = load_file(os.path.join(HERE, kind, "expected.safetensors"))
    inputs = {k[len("in/long/"):]: torch.tensor(v.astype(np.int64)) for k, v in of.items() if k.startswith("in/long/")}
    both = []
    for dtype in (torch.float64, torch.float32):
        m = PeftModel.from_pretrained(base_of(kind, name, dtype)[0], path, is_trainable=True, autocast_adapter_dtype=False).to(dtype).eval()
        m.base_model.model.config._attn_implementation = "eager"
        with exactly(dtype):
            logits = m(**inputs).logits
        weighting = torch.tensor(of[f"random/{task}/logits"].astype(np.float64)).to(dtype)
        (logits * weighting).sum().backward()
        grads = get_peft_model_state_dict(m, state_dict={n: p.grad for n, p in m.named_parameters() if p.grad is not None})
        if logits.dim() == 3:
            logits = torch.where(inputs["attention_mask"][:, :, None] > 0, logits, torch.nan)
        both.append({f"{task}/long/logits": logits} | {f"grad/{task}/{k}": v for k, v in grads.items()})
    saved = {k for k in load_file(os.path.join(path, "adapter_model.safetensors")) if not k.endswith(".base_layer.weight")}
    assert {k.split("/")[2] for k in both[0] if k.startswith("grad/")} == saved
    tensors = {k: v.float().detach().numpy() for k, v in both[0].items()}
    errors = {k: float((both[1][k].double() - v).abs().nan_to_num().max()) for k, v in both[0].items()}
    save_file(tensors, os.path.join(path, "expected.safetensors"), {"errors": json.dumps(errors), "trained": str(trained)})


def check(pair):
    """Prints the largest difference of peft's outputs to lazo's."""
    base, adapter = pair.split(":")
    name = json.load(open(os.path.join(base, "config.json")))["architectures"][0]
    model = PeftModel.from_pretrained(getattr(transformers, name).from_pretrained(base), adapter).eval()
    wanted = set(load_file(os.path.join(adapter, "adapter_model.safetensors")))
    assert wanted == set(get_peft_model_state_dict(model)), wanted ^ set(get_peft_model_state_dict(model))
    lazo = load_file(os.path.join(adapter, "outputs.safetensors"))
    with torch.no_grad():
        out = model(**{k[3:]: torch.tensor(v.astype(np.int64)) for k, v in lazo.items() if k.startswith("in/")})
    worst = max(float(np.abs(out[k[4:]].numpy() - v).max()) for k, v in lazo.items() if k.startswith("out/"))
    print(f"{name} with an adapter: the largest difference is {worst:.2g}")
    return worst < 1e-5


if __name__ == "__main__":
    if sys.argv[1] == "write":
        for folder in sys.argv[2:] or ADAPTERS:
            write_one(folder)
    else:
        sys.exit(not all([check(pair) for pair in sys.argv[2:]]))
