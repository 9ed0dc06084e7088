"""A model of mlp's layers asked for one example at a time, from numpy and back, by a pool of threads that each wait for their
answer before they ask again. A variant is a number of threads. --impl torch needs torch, --impl onnxruntime that and onnx; their own
threads are set to one, as many ask at a time."""
import sys
import threading
import time

import numpy as np

import common

SIZES = (784, 512, 512, 10)


def weights():
    r = np.random.default_rng(0)
    return [(r.normal(size=(a, b)).astype(np.float32) / np.float32(np.sqrt(a)), np.zeros(b, np.float32)) for a, b in zip(SIZES, SIZES[1:])]


def jax_model():
    import jax
    import jax.numpy as jnp

    parameters = jax.device_put(weights())

    @jax.jit
    def f(parameters, x):
        for i, (w, b) in enumerate(parameters):
            x = x @ w + b
            if i < len(parameters) - 1:
                x = jnp.maximum(x, 0)
        return x

    return lambda x: np.asarray(f(parameters, x))


def torch_model():
    import torch

    torch.set_num_threads(1)
    layers = []
    for w, b in weights():
        layer = torch.nn.Linear(*w.shape)
        layer.weight.data, layer.bias.data = torch.from_numpy(w.T.copy()), torch.from_numpy(b)
        layers += [layer, torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1]).eval()

    def ask(x):
        with torch.inference_mode():
            return model(torch.from_numpy(x)).numpy()

    return ask


def onnxruntime_model():
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes, initial, x = [], [], "x"
    for i, (w, b) in enumerate(weights()):
        initial += [numpy_helper.from_array(w, f"w{i}"), numpy_helper.from_array(b, f"b{i}")]
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [x := f"h{i}"]))
        if i < len(SIZES) - 2:
            nodes.append(helper.make_node("Relu", [x], [x := f"r{i}"]))
    graph = helper.make_graph(nodes, "mlp", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", SIZES[0]])],
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n", SIZES[-1]])], initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def main():
    impl = "jax"
    if "--impl" in sys.argv:
        at = sys.argv.index("--impl")
        impl = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    a = common.parse(["predict"])
    a.batch, a.steps = 1, a.steps or 20_000
    ask = {"jax": jax_model, "torch": torch_model, "onnxruntime": onnxruntime_model}[impl]()
    examples = np.random.default_rng(1).normal(size=(256, 1, SIZES[0])).astype(np.float32)
    threads, took = int(a.variant), []

    def run(n):
        took.clear()
        each = [[] for _ in range(threads)]

        def work(k):
            for i in range(k, n, threads):
                start = time.perf_counter()
                ask(examples[i % len(examples)])
                each[k].append(time.perf_counter() - start)

        pool = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
        for t in pool:
            t.start()
        for t in pool:
            t.join()
        for times in each:
            took.extend(times)

    run(max(a.steps // 10, threads))
    seconds, cpu = common.measure(a, lambda: run(a.steps))
    took.sort()
    at = lambda share: round(1e6 * took[int(share * (len(took) - 1))], 1)
    common.emit(a, "requests/s", [a.steps / s for s in seconds], cpu_s=cpu, impl=impl, p50_us=at(0.5), p99_us=at(0.99))


if __name__ == "__main__":
    main()
