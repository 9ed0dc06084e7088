"""Small random models as transformers saves them, with outputs and gradients; and a check of folders that lazo saved.

    pip install torch==2.8.0 transformers==5.23.0 sentence-transformers==6.2.0 safetensors
    python models.py write            # makes the folders here
    python models.py check FOLDER…    # compares transformers' outputs with those in FOLDER/outputs.safetensors
    python models.py sentences MODEL FILE  # writes ids and embeddings of 1,000 texts: paragraphs of Python's library

Each folder has config.json and model.safetensors of a model that classifies texts. In expected.safetensors are:
in/BATCH/NAME (inputs), head/TASK/NAME (weights of other heads), TASK/BATCH/OUTPUT (outputs), and grad/TASK/NAME, the
gradients of the sum over the outputs for the long batch of output * random/TASK/OUTPUT. The other batches are for the
task Model alone. Outputs of decoders at padding are NaN. References are of float64, rounded to float32. The metadata has the largest error of torch in float32
for each of them.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from transformers import models  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = dict(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=28,
             initializer_range=0.3)
TASKS = ["Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM"]
IMAGE_TASKS = ["Model", "ForImageClassification"]
PAIR_TASKS = ["Model", "ForConditionalGeneration"]
DECODER_TASKS = ["Model", "ForSequenceClassification", "ForTokenClassification", "ForCausalLM"]
WHOLE = ["ForSequenceClassification", "ForImageClassification", "ForMaskedLM", "ForCausalLM", "ForConditionalGeneration"]  # gradients of all weights; of others those of the head
LAYERS = SIZES | dict(num_attention_heads=4, num_key_value_heads=2, pad_token_id=3, bos_token_id=1, eos_token_id=2, max_position_embeddings=64)
LLAMA3 = dict(rope_type="llama3", rope_theta=50.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
GEMMA = LAYERS | dict(hidden_size=4, num_attention_heads=2, num_key_value_heads=1, head_dim=6, intermediate_size=20, query_pre_attn_scalar=7, sliding_window=4,
                      layer_types=["sliding_attention", "full_attention"])
T5 = dict(vocab_size=60, d_model=4, d_kv=3, d_ff=6, num_heads=2, num_layers=1, num_decoder_layers=2, decoder_start_token_id=0, initializer_factor=1.5)
MODELS = {
    "bert": ("Bert", SIZES | dict(hidden_act="gelu")),
    "bert-tanh": ("Bert", SIZES | dict(hidden_act="gelu_new", pad_token_id=3, type_vocab_size=3)),
    "roberta": ("Roberta", SIZES | dict(type_vocab_size=1, pad_token_id=1, max_position_embeddings=30)),
    "xlm-roberta": ("XLMRoberta", SIZES | dict(type_vocab_size=1, pad_token_id=1, max_position_embeddings=30, hidden_act="relu")),
    "distilbert": ("DistilBert", dict(vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=28, initializer_range=0.3)),
    "mpnet": ("MPNet", SIZES),
    "llama": ("Llama", LAYERS),
    "llama3": ("Llama", LAYERS | dict(rope_parameters=LLAMA3, head_dim=10, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "mistral": ("Mistral", LAYERS | dict(sliding_window=4, rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0))),
    "qwen2": ("Qwen2", LAYERS | dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": ("Qwen3", LAYERS | dict(head_dim=8, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "gpt2": ("GPT2", dict(vocab_size=60, n_embd=4, n_layer=2, n_head=2, n_positions=28, pad_token_id=3, bos_token_id=1, eos_token_id=2, initializer_range=0.4)),
    "gemma2": ("Gemma2", GEMMA | dict(attn_logit_softcapping=2.0, final_logit_softcapping=4.0)),
    "gemma3": ("Gemma3Text", GEMMA | dict(final_logit_softcapping=4.0, rope_parameters=dict(
        full_attention=dict(rope_type="linear", rope_theta=1e3, factor=4.0), sliding_attention=dict(rope_type="default", rope_theta=50.0)))),
    "vit": ("ViT", dict(hidden_size=4, num_hidden_layers=2, num_attention_heads=2, intermediate_size=6, image_size=[8, 12], patch_size=[4, 3], initializer_range=0.4)),
    "resnet": ("ResNet", dict(embedding_size=4, hidden_sizes=[8, 12], depths=[1, 2], layer_type="bottleneck")),
    "resnet-basic": ("ResNet", dict(embedding_size=4, hidden_sizes=[4, 6], depths=[1, 1], layer_type="basic", hidden_act="gelu", downsample_in_first_stage=True)),
    "t5": ("T5", T5 | dict(feed_forward_proj="relu")),
    "t5-gated": ("T5", T5 | dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False, relative_attention_num_buckets=8, relative_attention_max_distance=20, initializer_factor=0.7)),
    "clip": ("CLIP", dict(text_config=dict(vocab_size=60, hidden_size=8, intermediate_size=10, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=28,
                                           bos_token_id=1, eos_token_id=40), projection_dim=5, initializer_factor=4.0,
                          vision_config=dict(hidden_size=4, intermediate_size=6, num_hidden_layers=1, num_attention_heads=2, image_size=8, patch_size=4))),
    "whisper": ("Whisper", dict(vocab_size=40, num_mel_bins=5, d_model=4, encoder_layers=1, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=1,
                                encoder_ffn_dim=6, decoder_ffn_dim=5, max_source_positions=6, max_target_positions=10, pad_token_id=3, bos_token_id=1, eos_token_id=2,
                                decoder_start_token_id=4, init_std=0.4)),
}
BOTH = ["clip"]
PAIRS = ["t5", "t5-gated", "whisper"]
IMAGES = ["vit", "resnet", "resnet-basic"]
IMAGE_SIZES = {"vit": (8, 12), "resnet": (10, 7), "resnet-basic": (12, 20)}
DECODERS = ["llama", "llama3", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3"]
SMALL = ["gpt2", "gemma2", "gemma3"]  # gradients of all weights for one task
CLASSES = {"GPT2ForCausalLM": "GPT2LMHeadModel", "Gemma3TextForCausalLM": "Gemma3ForCausalLM"}


@contextlib.contextmanager
def exactly(dtype):
    """In float64, models compute also those parts in float64 that they convert to float32."""
    names = torch.float, torch.float32, torch.Tensor.float
    if dtype == torch.float64:
        torch.float = torch.float32 = torch.float64
        torch.Tensor.float = torch.Tensor.double
    try:
        yield
    finally:
        torch.float, torch.float32, torch.Tensor.float = names


def batches(config, kind):
    """A long padded batch, and one with holes in its masks."""
    rng = np.random.default_rng(7)
    if kind in IMAGES:
        for name, rows in {"long": 3, "hole": 2}.items():
            height, width = IMAGE_SIZES[kind]
            yield name, dict(pixel_values=torch.tensor(rng.standard_normal((rows, 3, height, width)).astype(np.float32)))
        return
    pad = config.text_config.pad_token_id if kind in BOTH else config.pad_token_id
    longest = 14 if kind in SMALL else 25
    sizes = {"long": (3, longest), "hole": (2, 9)} | ({"left": (2, 12)} if kind in DECODERS else {})
    for name, (rows, places) in sizes.items():
        ids = rng.integers(5, config.text_config.vocab_size if kind in BOTH else config.vocab_size, (rows, places))
        mask = np.ones((rows, places), np.int64)
        if name == "long":
            for row, length in enumerate([longest, 11, 3]):
                ids[row, length:], mask[row, length:] = pad, 0
        if name == "left":
            ids[1, :5], mask[1, :5] = pad, 0
        if name == "hole":
            mask[0, :2], mask[1, 3:5], mask[1, 8] = 0, 0, 0
        of = dict(input_ids=ids, attention_mask=mask)
        if kind.startswith("bert"):
            of["token_type_ids"] = rng.integers(0, config.type_vocab_size, (rows, places))
        if kind in BOTH:
            for row, at in enumerate([6, 7, 2][:rows]):
                ids[row, at] = 40
            of["pixel_values"] = rng.standard_normal((rows, 3, 8, 8)).astype(np.float32)
        if kind in PAIRS:
            next_ids = rng.integers(5, config.vocab_size, (rows, 7))
            next_mask = np.ones_like(next_ids)
            next_mask[-1, 3:] = 0
            next_ids[:, 0], next_ids[-1, 3:] = config.decoder_start_token_id, pad
            of |= dict(decoder_input_ids=next_ids, decoder_attention_mask=next_mask)
            if kind == "whisper":
                of = dict(decoder_input_ids=next_ids, decoder_attention_mask=next_mask, input_features=rng.standard_normal((rows, 5, 12)).astype(np.float32))
        yield name, {k: torch.tensor(v) for k, v in of.items()}


def class_of(prefix, task):
    return getattr(transformers, CLASSES.get(prefix + task, prefix + task), None)


def outputs_of(out, task):
    names = ["last_hidden_state", "pooler_output", "text_embeds", "image_embeds", "logits_per_text", "logits_per_image"] if task == "Model" else ["start_logits", "end_logits"] if task == "ForQuestionAnswering" else ["logits"]
    return {n: channels_last(out[n]) for n in names if n in out and out[n] is not None}


def channels_last(x):
    """Images as lazo has them. A pooled image has no axes of places."""
    return x if x.dim() != 4 else x.flatten(1) if x.shape[2:] == (1, 1) else x.permute(0, 2, 3, 1)


def in_files(model):
    """Names in files by those of parameters, which are others for some architectures."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = load_file(os.path.join(folder, "model.safetensors"))
    names = {k: [n for n, v in saved.items() if v.shape == p.shape and np.array_equal(v, p.detach().numpy())] for k, p in model.named_parameters()}
    assert all(len(n) == 1 for n in names.values()), names
    return {k: n[0] for k, n in names.items()}


def perturb(model):
    """Biases and norms are zeros and ones at first, which would hide mistakes."""
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p += 0.2 * torch.randn_like(p)
        for m in model.modules():
            if isinstance(m, torch.nn.BatchNorm2d):
                m.running_mean += 0.2 * torch.randn_like(m.running_mean)
                m.running_var *= 0.5 + torch.rand_like(m.running_var)
                m.num_batches_tracked += 3


def untie(model):
    """transformers ties the weights of new models of version 1.1, but not those of files that have both."""
    model.lm_head.weight = torch.nn.Parameter(0.3 * torch.randn_like(model.lm_head.weight))


def parameters(model):
    """Shared weights have the name of the embeddings."""
    for name, p in model.named_parameters():
        if p is model.get_input_embeddings().weight:
            name = next(n for n, q in model.base_model.named_parameters() if q is p)
            name = name if model.base_model is model else model.base_model_prefix + "." + name
        yield name, p


def poolings(model, config, kind):
    """Sentence embeddings, by sentence-transformers' Pooling."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    for batch, of in batches(config, kind):
        if batch == "hole":
            hidden = model(**of).last_hidden_state
            modes = list(Pooling.POOLING_MODES) + [("cls", "mean")]
            return {f"pool/{mode if isinstance(mode, str) else '+'.join(mode)}": Pooling(config.hidden_size, mode)(
                dict(token_embeddings=hidden, attention_mask=of["attention_mask"]))["sentence_embedding"] for mode in modes}


def write_one(kind):
    prefix, settings = MODELS[kind]
    torch.manual_seed(sum(map(ord, kind)))
    config = getattr(transformers, prefix + "Config")(**settings, num_labels=3, id2label={0: "red", 1: "green", 2: "blue"},
                                                      label2id={"red": 0, "green": 1, "blue": 2})
    main_task = "Model" if kind in BOTH else "ForImageClassification" if kind in IMAGES else PAIR_TASKS[1] if kind in PAIRS else "ForSequenceClassification"
    main = class_of(prefix, main_task)(config)
    if kind == "t5-gated":
        untie(main)
    perturb(main)
    base = main.base_model.state_dict()
    folder = os.path.join(HERE, kind)
    shutil.rmtree(folder, ignore_errors=True)
    main.save_pretrained(folder)
    if os.path.exists(os.path.join(folder, "generation_config.json")):
        os.remove(os.path.join(folder, "generation_config.json"))
    tensors, errors = {}, {}
    rng = np.random.default_rng(11)

    def keep(name, exact, single):
        errors[name] = float((single.double() - exact).abs().nan_to_num().max().detach())
        tensors[name] = exact.float().detach().numpy().copy()

    for task in DECODER_TASKS + (["ForQuestionAnswering"] if kind == "gpt2" else []) if kind in DECODERS else IMAGE_TASKS if kind in IMAGES else PAIR_TASKS if kind in PAIRS else ["Model"] if kind in BOTH else TASKS:
        if class_of(prefix, task) is None:
            continue
        if task == main_task:
            model = main
        else:
            task_config = type(config)(**config.to_dict())
            if task == "ForQuestionAnswering":
                task_config.num_labels = 2
            model = class_of(prefix, task)(task_config)
            perturb(model)
            result = model.base_model.load_state_dict(base, strict=False)
            assert all(k.startswith(("pooler.", "lm_head.", "proj_out.")) for k in result.unexpected_keys), result
            if task != "Model":
                own = {k: v for k, v in model.state_dict().items() if not k.startswith(model.base_model_prefix + ".")}
                tied = ("decoder.weight", "decoder.bias", "vocab_projector.weight", "proj_out.weight") + (("lm_head.weight",) if config.tie_word_embeddings and kind in DECODERS else ())
                tensors |= {f"head/{task}/{k}": v.detach().numpy().copy() for k, v in own.items() if not k.endswith(tied)}
            elif result.missing_keys:  # a pooler that the classifier lacks
                own = {k: v for k, v in model.state_dict().items() if k in result.missing_keys}
                tensors |= {f"head/{task}/{k}": v.detach().numpy().copy() for k, v in own.items()}
        grads, weighting, pooled = [], {}, []
        for dtype in (torch.float64, torch.float32):
            with exactly(dtype):
                m = model.__class__(model.config)
            if kind == "t5-gated" and task != "Model":
                untie(m)
            m.load_state_dict(model.state_dict())
            m = m.to(dtype).eval()
            m.config._attn_implementation = "eager"
            total, outs = 0, {}
            for batch, of in batches(config, kind):
                if batch != "long" and task != "Model":
                    continue
                tensors |= {f"in/{batch}/{k}": np.ascontiguousarray((v.transpose(1, 2) if k == "input_features" else channels_last(v)).numpy(), np.float32 if v.is_floating_point() else np.int32) for k, v in of.items()}
                with exactly(dtype):
                    out = m(**{k: v.to(dtype) if v.is_floating_point() else v for k, v in of.items()})
                for name, v in outputs_of(out, task).items():
                    compared = of["decoder_attention_mask" if kind in PAIRS else "attention_mask"][:, :, None] > 0 if kind in DECODERS + PAIRS and v.dim() == 3 else torch.ones_like(v, dtype=bool)
                    outs[f"{task}/{batch}/{name}"] = torch.where(compared, v, torch.nan)
                    if batch == "long":
                        at = f"{task}/{name}"
                        if at not in weighting:
                            weighting[at] = rng.integers(-4, 5, tuple(v.shape)) * compared.numpy()
                        total = total + (v * torch.tensor(weighting[at]).to(dtype)).sum()
            total.backward()
            renamed = in_files(model) if kind in IMAGES + BOTH else {}
            grads.append((outs, {renamed.get(k, k): p.grad for k, p in (m.named_parameters() if kind in IMAGES + BOTH else parameters(m)) if p.grad is not None}))
            if task == "Model" and kind == "bert":
                pooled.append(poolings(m, config, kind))
        tensors |= {f"random/{k}": v.astype(np.int8) for k, v in weighting.items()}
        for name, exact in grads[0][0].items():
            keep(name, exact, grads[1][0][name])
        for name, exact in grads[0][1].items():
            if task in (WHOLE[1:] if kind in SMALL else WHOLE) or kind in BOTH or not (name.startswith(model.base_model_prefix + ".") or task == "Model"):
                keep(f"grad/{task}/{name}", exact, grads[1][1][name])
        for name in pooled[0] if pooled else []:
            keep(name, pooled[0][name], pooled[1][name])
    if kind == "resnet":
        m = main.__class__(config)
        m.load_state_dict(main.state_dict())
        m = m.double().train()
        m(pixel_values=dict(batches(config, kind))["long"]["pixel_values"].double())
        tensors |= {f"trained/{k}": v.numpy().astype(np.int64 if v.dim() == 0 else np.float32) for k, v in m.named_buffers()}
    if kind == "mpnet":
        from transformers.models.t5.modeling_t5 import T5Attention

        far = torch.arange(-299, 300)
        for name, both in {"both": True, "causal": False}.items():
            tensors[f"buckets/{name}"] = T5Attention._relative_position_bucket(far, both, 32, 128).numpy().astype(np.int8)
    save_file(tensors, os.path.join(folder, "expected.safetensors"), {"errors": json.dumps(errors)})


def check(folder):
    """Prints the largest difference of Python's outputs to lazo's, in outputs.safetensors."""
    config = json.load(open(os.path.join(folder, "config.json")))
    lazo = load_file(os.path.join(folder, "outputs.safetensors"))
    of = {k[3:]: torch.tensor(v.transpose(0, 3, 1, 2) if v.ndim == 4 else v.transpose(0, 2, 1) if v.ndim == 3 else v.astype(np.int64)) for k, v in lazo.items() if k.startswith("in/")}
    name = config["architectures"][0]
    with torch.no_grad():
        if os.path.exists(os.path.join(folder, "modules.json")):
            from sentence_transformers import SentenceTransformer

            name = "SentenceTransformer"
            out = SentenceTransformer(folder, device="cpu")(of)
        else:
            model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
            assert not any(info.get(k) for k in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
            out = model.eval()(**of)
    worst = 0
    for k, v in lazo.items():
        if k.startswith("out/"):
            off = np.abs(channels_last(out[k[4:]]).numpy() - v)
            mask = of.get("decoder_attention_mask", of.get("attention_mask"))
            if v.ndim == 3 and mask is not None:
                off *= mask[:, :, None].numpy()  # eager attention gives padding other numbers
            worst = max(worst, float(off.max()))
    print(f"{name}: the largest difference is {worst:.2g}")
    return worst < 5e-5  # two backends in float32; a mistake is above 1e-2


def sentences(folder, path):
    import ast

    from sentence_transformers import SentenceTransformer

    texts, library = [], os.path.dirname(os.__file__)
    for name in sorted(n for n in os.listdir(library) if n.endswith(".py")):
        for node in ast.walk(ast.parse(open(os.path.join(library, name), encoding="utf-8").read())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                    text = " ".join(paragraph.split())
                    if len(text) > 30 and text not in texts:
                        texts.append(text)
    texts = texts[:: len(texts) // 1000][:1000]
    model = SentenceTransformer(folder, device="cpu")
    of = model.tokenize(texts)
    tensors = {f"in/{k}": v.numpy().astype(np.int32) for k, v in of.items() if hasattr(v, "numpy")}
    tensors["embeddings"] = model.encode(texts, batch_size=32, convert_to_numpy=True)
    assert len(texts) == 1000, len(texts)
    save_file(tensors, path)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        for kind in sys.argv[2:] or MODELS:
            write_one(kind)
    elif sys.argv[1] == "sentences":
        sentences(*sys.argv[2:])
    else:
        sys.exit(not all([check(folder) for folder in sys.argv[2:]]))
