"""GGUF files: blocks of each type with the numbers that Python's gguf has, and models of the folders here.

    pip install gguf==0.19.0 safetensors    # check: also torch, transformers and accelerate
    python ggufs.py
    python ggufs.py check FILE…    # compares files that lazo saved by transformers and gguf, as below
"""

import json
import os
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))

import gguf  # noqa: E402
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Kind  # noqa: E402

KINDS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"]
HALVES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
INNER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
         "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def blocks():
    rng = np.random.default_rng(3)
    w, numbers = gguf.GGUFWriter(os.path.join(HERE, "gguf", "blocks.gguf"), "llama"), {}
    w.add_array("list", [1, 2, 3])
    w.add_array("texts", ["a", "", "é"])
    for name in KINDS:
        kind = Kind[name]
        elements, size = GGML_QUANT_SIZES[kind]
        raw = rng.integers(0, 256, (6, 2, size), np.uint8)  # 6 rows of 2 blocks
        for at in HALVES.get(name, []):
            raw[:, :, at:at + 2] = rng.normal(0, 0.1, (6, 2)).astype(np.float16)[:, :, None].view(np.uint8).reshape(6, 2, 2)
        if elements == 1:
            x = rng.normal(0, 1, (6, 2)).astype(np.float32)
            raw = x.astype(np.float16) if name == "F16" else gguf.quants.quantize(x, kind) if name == "BF16" else x
            numbers[name] = gguf.quants.dequantize(raw, kind)
        else:
            raw = raw.reshape(6, 2 * size)
            numbers[name] = gguf.quants.dequantize(raw, kind).astype(np.float32)
        w.add_tensor(name, raw, raw_dtype=kind)
    finish(w)
    save_file(numbers, os.path.join(HERE, "gguf", "blocks.safetensors"))


def permute(x, heads):
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def model(kind, arch):
    config = json.load(open(os.path.join(HERE, kind, "config.json")))
    tensors = load_file(os.path.join(HERE, kind, "model.safetensors"))
    tensors |= {k.removeprefix("head/ForCausalLM/"): v for k, v in load_file(os.path.join(HERE, kind, "expected.safetensors")).items()
                if k.startswith("head/ForCausalLM/")}
    w = gguf.GGUFWriter(os.path.join(HERE, "gguf", kind + ".gguf"), arch)
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    w.add_embedding_length(config["hidden_size"])
    w.add_feed_forward_length(config["intermediate_size"])
    w.add_block_count(config["num_hidden_layers"])
    w.add_head_count(heads)
    w.add_head_count_kv(key_heads)
    w.add_layer_norm_rms_eps(config["rms_norm_eps"])
    w.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    w.add_context_length(config["max_position_embeddings"])
    if arch == "qwen3":
        w.add_key_length(config["head_dim"])
        w.add_value_length(config["head_dim"])
    w.add_pad_token_id(config["pad_token_id"])
    for name, x in tensors.items():
        if name == "score.weight":
            continue
        module, end = name.rsplit(".", 1)
        if module in NAMES:
            to = NAMES[module]
        else:
            _, _, number, inner = module.split(".", 3)
            to = f"blk.{number}.{INNER[inner]}"
            if arch == "llama" and INNER[inner] in ("attn_q", "attn_k"):
                x = permute(x, heads if INNER[inner] == "attn_q" else key_heads)
        w.add_tensor(f"{to}.{end}", np.ascontiguousarray(x))
    finish(w)


def rounding():
    """Numbers and their blocks of Q8_0: halves, zeros, the smallest and the largest numbers."""
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, (64, 32)).astype(np.float32)
    x[0] = 0
    x[1] = np.arange(32) - 15.5  # halves, as the largest one is 127
    x[1, 0] = 127
    x[2] = -x[1]
    x[3] *= 1e-8  # scales that float16 has not
    x[4] *= np.float32(1e-39)  # scales below float32's, of numbers without an inverse
    x[5] *= 1e6
    x[6] = rng.integers(-254, 255, 32) / 2
    x[6, 5] = -127
    x[7:20] *= 10.0 ** rng.uniform(-6, 4, (13, 1)).astype(np.float32)
    with np.errstate(all="ignore"):
        save_file({"numbers": x, "blocks": gguf.quants.quantize(x, Kind.Q8_0)}, os.path.join(HERE, "gguf", "rounding.safetensors"))


def quantized():
    """A Llama of Q4_0, whose output and second layer are of Q8_0."""
    rng = np.random.default_rng(7)
    w = gguf.GGUFWriter(os.path.join(HERE, "gguf", "quantized.gguf"), "llama")
    w.add_embedding_length(32)
    w.add_feed_forward_length(64)
    w.add_block_count(2)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_rope_freq_base(1e4)
    w.add_context_length(64)
    w.add_pad_token_id(3)
    sizes = {"attn_q": (32, 32), "attn_k": (16, 32), "attn_v": (16, 32), "attn_output": (32, 32), "ffn_gate": (64, 32), "ffn_up": (64, 32), "ffn_down": (32, 64)}
    shapes = {"token_embd": (60, 32), "output_norm": (32,), "output": (60, 32)}
    for i in range(2):
        shapes |= {f"blk.{i}.{name}": of for name, of in sizes.items()} | {f"blk.{i}.attn_norm": (32,), f"blk.{i}.ffn_norm": (32,)}
    for name, of in shapes.items():
        x = rng.normal(0, 0.2, of).astype(np.float32) + (len(of) == 1)
        kind = Kind.F32 if len(of) == 1 else Kind.Q8_0 if name == "output" or ".1." in name else Kind.Q4_0
        w.add_tensor(name + ".weight", gguf.quants.quantize(x.astype(np.float32), kind), raw_dtype=kind)
    finish(w)


def check(path):
    """Compares the logits of transformers with lazo's, and blocks with those of gguf, of the float32 in FILE.safetensors."""
    import torch
    import transformers

    lazo = load_file(path + ".safetensors")
    reader = gguf.GGUFReader(path)
    arch = reader.fields["general.architecture"].contents()
    heads = {"attn_q": "head_count", "attn_k": "head_count_kv"}
    tensors = {t.name: t for t in reader.tensors}
    for name, x in lazo.items():
        if name.startswith("hf/"):
            module, end = name[3:].rsplit(".", 1)
            to = NAMES.get(module)
            if to is None:
                _, _, number, inner = module.split(".", 3)
                to = f"blk.{number}.{INNER[inner]}"
                if arch == "llama" and INNER[inner] in heads:
                    x = permute(x, reader.fields[f"{arch}.attention.{heads[INNER[inner]]}"].contents())
            t = tensors.pop(f"{to}.{end}")
            assert tuple(t.shape[::-1]) == x.shape, (name, t.shape, x.shape)
            assert (t.tensor_type == Kind.F32) == (x.ndim == 1 or "F32" in os.path.basename(path)), name
            want = gguf.quants.quantize(np.ascontiguousarray(x), t.tensor_type)
            assert want.tobytes() == t.data.tobytes(), name
    assert not tensors, tensors.keys()
    folder, file = os.path.split(path)
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=file, output_loading_info=True, dtype=torch.float32)
    assert not any(info.get(k) for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
    with torch.no_grad():
        out = model.eval()(**{k[3:]: torch.tensor(v.astype(np.int64)) for k, v in lazo.items() if k.startswith("in/")}).logits.numpy()
    off = np.abs(out - lazo["out/logits"]) * lazo["in/attention_mask"][:, :, None]
    print(f"{type(model).__name__} {file}: the largest difference is {off.max():.2g}")
    if "ids" in lazo:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=file)
        text = bytes(lazo["text"]).decode()
        assert tokenizer(text)["input_ids"] == lazo["ids"].tolist(), (text, tokenizer(text)["input_ids"], lazo["ids"].tolist())
        print(f"{file}: {len(lazo['ids'])} ids are equal")
    return off.max() < 5e-5


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        sys.exit(not all([check(path) for path in sys.argv[2:]]))
    os.makedirs(os.path.join(HERE, "gguf"), exist_ok=True)
    blocks()
    rounding()
    quantized()
    model("llama", "llama")
    model("qwen3", "qwen3")
