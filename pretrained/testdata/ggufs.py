"""GGUF files: blocks of each type with the numbers that Python's gguf has, and models of the folders here.

    pip install gguf==0.19.0 safetensors
    python ggufs.py
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


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    os.makedirs(os.path.join(HERE, "gguf"), exist_ok=True)
    blocks()
    model("llama", "llama")
    model("qwen3", "qwen3")
