"""Counts what the gradients of workloads_test.go cost: as GoMLX comes, with lazo's rules, and in JAX.

    go test ./internal/autodiff -run TestGradientPrograms -args -dump DIR
    python internal/autodiff/testdata/jax_counts.py DIR
    python internal/autodiff/testdata/jax_counts.py --time DIR [WORKLOAD...]
    python internal/autodiff/testdata/jax_counts.py --tsv > internal/autodiff/testdata/jax.tsv

Needs jax, flax and optax. Every program returns the loss and its gradients. Counted are the operations that lead to an
output, except constants, iota, reshapes, broadcasts and convolutions' reversals of a kernel, none of which computes; and
the elements that they produce. The flops and bytes are the ones of XLA's cost analysis of the compiled program, by the
same compiler for all three.
"""

import pathlib
import sys
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jaxlib.mlir import ir

FREE = {"constant", "iota", "reshape", "broadcast_in_dim", "reverse", "return", "call"}


def f32(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.float32)


def i32(*dims):
    return jax.ShapeDtypeStruct(dims, jnp.int32)


WORKLOADS = {}


def add(name, f, learned, fixed=()):
    """Adds f(*learned, *fixed), differentiated with respect to the learned ones."""
    assert name not in WORKLOADS, name
    WORKLOADS[name] = (f, learned, fixed)


def layer(name, module, learned, fixed=(), collections=("params",)):
    """Adds a flax module, differentiated with respect to its parameters and the learned inputs."""
    variables = jax.eval_shape(module.init, jax.random.key(0), *learned, *fixed)
    params = variables.pop("params")
    others = list(variables)

    def f(params, *rest):
        rest, state = rest[: len(rest) - 1], rest[-1]
        if not others:
            return module.apply({"params": params}, *rest)
        y, updated = module.apply({"params": params, **state}, *rest, mutable=others)
        return y

    add(name, f, (params, *learned), (*fixed, dict(variables)))


def sparse_loss(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


M, IMAGE = f32(128, 512), f32(8, 28, 28, 16)


def mlp(w1, b1, w2, b2, x, labels):
    return sparse_loss(nn.relu(x @ w1 + b1) @ w2 + b2, labels)


add("mlp", mlp, (f32(784, 512), f32(1, 512), f32(512, 10), f32(1, 10)), (f32(128, 784), i32(128)))


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x, labels):
        for channels in (32, 64):
            x = nn.max_pool(nn.relu(nn.Conv(channels, (3, 3))(x)), (2, 2), (2, 2))
        x = x.reshape(x.shape[0], -1)
        return sparse_loss(nn.Dense(10)(nn.relu(nn.Dense(256)(x))), labels)


class FeedForward(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(128)(nn.gelu(nn.Dense(512)(x), approximate=False))


layer("cnn", CNN(), (), (f32(32, 28, 28, 1), i32(32)))
layer("attention", nn.MultiHeadDotProductAttention(4, qkv_features=128), (f32(8, 64, 128),))
layer("feed_forward", FeedForward(), (f32(8, 64, 128),))
add("vector_dot_vector", jnp.dot, (f32(512), f32(512)))
add("matrix_dot_vector", jnp.dot, (M, f32(512)))
add("batched_dot", lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), (f32(8, 64, 4, 32),) * 2)


def conv(name, kernel, padding=((1, 1), (1, 1)), strides=(1, 1), **kwargs):
    def f(x, w):
        return lax.conv_general_dilated(x, w, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **kwargs)

    add(name, f, (IMAGE, f32(*kernel)))


conv("conv_same", (3, 3, 16, 32))
conv("conv_valid", (3, 3, 16, 32), padding="VALID")
conv("conv_strides", (3, 3, 16, 32), strides=(2, 2))
conv("conv_dilated", (3, 3, 16, 32), padding=((2, 2), (2, 2)), rhs_dilation=(2, 2))
conv("conv_groups", (3, 3, 4, 32), feature_group_count=4)
conv("conv_depthwise", (3, 3, 1, 16), feature_group_count=16)
conv("conv_batch_groups", (3, 3, 16, 32), batch_group_count=2)

add("max_pool", lambda x: nn.max_pool(x, (2, 2), (2, 2)), (IMAGE,))
add("max_pool_overlapping", lambda x: nn.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1))), (IMAGE,))
add("mean_pool", lambda x: nn.avg_pool(x, (2, 2), (2, 2)), (IMAGE,))
add("sum_pool_overlapping", lambda x: nn.pool(x, 0.0, lax.add, (3, 3), (2, 2), ((1, 1), (1, 1))), (IMAGE,))
layer("embedding", nn.Embed(1000, 64), (), (i32(128, 16),))
layer("layer_norm", nn.LayerNorm(use_fast_variance=False), (M,))
layer("rms_norm", nn.RMSNorm(), (M,))
layer("batch_norm", nn.BatchNorm(use_running_average=False, use_fast_variance=False), (IMAGE,))
add("sparse_cross_entropy", sparse_loss, (M,), (i32(128),))
add("cross_entropy", lambda x, labels: optax.softmax_cross_entropy(x, labels).mean(), (M,), (M,))

for name, f in {
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "masked_softmax": lambda x: jax.nn.softmax(x, where=x > 0),
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_approximate": jax.nn.gelu,
    "relu": jax.nn.relu,
    "leaky_relu": lambda x: jax.nn.leaky_relu(x, 0.3),
    "silu": jax.nn.silu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
    "softplus": jax.nn.softplus,
    "exp": jnp.exp,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "square": jnp.square,
    "cube": lambda x: x**3,
    "abs": jnp.abs,
    "clip": lambda x: jnp.clip(x, -1, 1),
    "l2_norm": lambda x: jnp.linalg.norm(x, axis=-1),
    "reduce_sum": lambda x: x.sum(1),
    "reduce_mean": lambda x: x.mean(1),
    "reduce_max": lambda x: x.max(1),
    "reduce_variance": lambda x: x.var(1),
    "slice": lambda x: x[3:99, ::2],
    "transpose": jnp.transpose,
}.items():
    add(name, f, (M,))

for name, f, dims in (
    ("bias", jnp.add, (1, 512)),
    ("sub", jnp.subtract, (128, 512)),
    ("mul", jnp.multiply, (128, 512)),
    ("mul_broadcast", jnp.multiply, (1, 512)),
    ("div", jnp.divide, (128, 512)),
    ("div_broadcast", jnp.divide, (128, 1)),
    ("pow", jnp.power, (128, 512)),
    ("max", jnp.maximum, (128, 512)),
    ("min_broadcast", jnp.minimum, (1, 512)),
    ("concatenate", lambda a, b: jnp.concatenate([a, b]), (64, 512)),
):
    add(name, f, (M, f32(*dims)))
add("where", lambda a, b, c: jnp.where(c > 0, a, b), (M, M), (M,))


def program(name):
    """The StableHLO of a workload's loss and gradients, in JAX."""
    f, learned, fixed = WORKLOADS[name]
    out = jax.eval_shape(f, *learned, *fixed)

    def loss(learned, fixed, weights):
        y = f(*learned, *fixed)
        return y if y.ndim == 0 else (y * weights).sum()

    return str(jax.jit(jax.value_and_grad(loss)).lower(learned, fixed, out).compiler_ir("stablehlo"))


def count(text):
    """Operations and elements, of calls too, of what leads to an output."""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        functions = {op.attributes["sym_name"].value: op for op in module.body.operations}

        def of(function):
            ops = elements = 0
            body = list(function.regions[0].blocks[0].operations)
            live = set()
            for op in reversed(body):
                kind = op.operation.name.split(".")[-1]
                results = list(op.operation.results)
                if kind != "return" and not any(r in live for r in results):
                    continue
                live.update(op.operation.operands)
                if kind == "call":
                    o, e = of(functions[op.attributes["callee"].value])
                    ops, elements = ops + o, elements + e
                elif kind not in FREE:
                    ops += 1
                    for r in results:
                        size = 1
                        for n in ir.ShapedType(r.type).shape:
                            size *= n
                        elements += size
            return ops, elements

        return of(functions["main"])


def compile(text):
    device = jax.devices("cpu")[0]
    return device.client.compile_and_load(text, xla_client.DeviceList((device,)), xla_client.CompileOptions())


def cost(text):
    """Flops and bytes of the compiled program."""
    analysis = compile(text).cost_analysis()
    return int(analysis.get("flops", 0)), int(analysis.get("bytes accessed", 0))


def times(texts, rounds=12):
    """The best time of a call of each program, in microseconds; their rounds alternate."""
    calls = []
    for text in texts:
        with mlir.make_ir_context():
            main = next(op for op in ir.Module.parse(text).body.operations if op.attributes["sym_name"].value == "main")
            shapes = [ir.ShapedType(t) for t in ir.FunctionType(main.attributes["function_type"].value).inputs]
            random = np.random.default_rng(0)
            args = [
                jnp.array(random.integers(0, 10, t.shape) if str(t.element_type) == "i32" else random.random(t.shape))
                for t in shapes
            ]
            args = [a.astype(jnp.int32 if str(t.element_type) == "i32" else jnp.float32) for a, t in zip(args, shapes)]
        compiled = compile(text)

        def call(compiled=compiled, args=args):
            for out in compiled.execute_sharded(args).disassemble_into_single_device_arrays():
                out[0].block_until_ready()

        call()
        calls.append(call)
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            n, start = 0, time.perf_counter()
            while n < 2 or time.perf_counter() - start < 0.04:
                call()
                n += 1
            best[i] = min(best[i], (time.perf_counter() - start) / n * 1e6)
    return best


def main():
    if sys.argv[1:] == ["--tsv"]:
        print("workload\toperations\telements")
        for name in WORKLOADS:
            print(name, *count(program(name)), sep="\t")
        return
    timed = sys.argv[1] == "--time"
    folder = pathlib.Path(sys.argv[2 if timed else 1])
    names = sys.argv[3:] or list(WORKLOADS)
    columns = ("µs",) if timed else ("operations", "elements", "Mflop", "MB")
    print("| gradient of | " + " | ".join(f"{c}: GoMLX | lazo | JAX" for c in columns) + " |")
    print("|---|" + "---:|" * 3 * len(columns))
    for name in names:
        texts = [(folder / f"{name}.{rules}.mlir").read_text() for rules in ("gomlx", "lazo")] + [program(name)]
        if timed:
            cells = [f"{t:,.0f}" for t in times(texts)]
        else:
            counts, costs = [count(t) for t in texts], [cost(t) for t in texts]
            cells = [f"{c[i]:,}" for i in (0, 1) for c in counts] + [f"{c[i] / 1e6:.2f}" for i in (0, 1) for c in costs]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
