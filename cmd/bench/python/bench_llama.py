"""The causal model of bench_pretrained.py by llama.cpp (llama-cpp-python), from --data's smollm.f32.gguf:
`lazo model convert --dtype float32 smollm.gguf smollm.f32.gguf`."""
import itertools
import os

from llama_cpp import Llama

import common


def main():
    a = common.parse(["pretrained"])
    threads, tokens = os.cpu_count(), min(a.steps or 64, 100)
    model = Llama(os.path.join(a.data, "smollm.f32.gguf"), n_ctx=128, n_threads=threads, n_threads_batch=threads, verbose=False)
    prompt = list(range(1000, 1016))

    def run():
        model.reset()
        return list(itertools.islice(model.generate(prompt, temp=0, repeat_penalty=1), tokens))

    run()
    seconds, cpu = common.measure(a, run)
    common.emit(a, "tokens/s", [tokens / s for s in seconds], cpu_s=cpu, impl="llama-cpp-python", batch=1)


if __name__ == "__main__":
    main()
