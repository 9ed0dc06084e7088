"""Writes the calls of cuDNN's flash attention as JAX lowers them for CUDA. Made with jax 0.10.2, without a GPU; run in this folder:

    python attention.py > attention.mlir

What is not of the attention (an empty constant) is left out, and the quotes in the configurations are written '.
"""
import math
import re

import jax
import jax.numpy as jnp
from jax._src.cudnn import fused_attention_stablehlo as cudnn

# JAX asks the GPU for these.
cudnn.check_cudnn_version = lambda: 92800
cudnn.check_compute_capability = lambda _: True

B, T, N, H = 2, 16, 4, 8
NONE, CAUSAL, PADDING, BOTH = cudnn.MaskType.NO_MASK, cudnn.MaskType.CAUSAL, cudnn.MaskType.PADDING, cudnn.MaskType.PADDING_CAUSAL


def lower(name, layout="BTNH", dtype=jnp.bfloat16, heads=N, keys=T, mask=NONE, bias=None, scale=0.25):
    def shape(heads, time):
        return jax.ShapeDtypeStruct((B, time, heads, H) if layout == "BTNH" else (B, heads, time, H), dtype)

    def both(query, key, value, gradient, *lengths):
        added = None if bias is None else jax.lax.broadcasted_iota(dtype, bias, 3)

        def attention(query, key, value):
            return cudnn.dot_product_attention(query, key, value, added, None, *lengths, scale=scale, mask_type=mask, qkv_layout=layout)

        output, back = jax.vjp(attention, query, key, value)
        return output, *back(gradient)

    arguments = [shape(N, T), shape(heads, keys), shape(heads, keys), shape(N, T)]
    if cudnn.has_padding(mask):
        arguments += 2 * [jax.ShapeDtypeStruct((B,), jnp.int32)]
    module = jax.jit(both).trace(*arguments).lower(lowering_platforms=("cuda",)).compiler_ir()
    print("//", name)
    for line in module.operation.get_asm(print_generic_op_form=True).splitlines():
        if re.search("custom_call|transpose|iota|func.return", line):
            print(line.strip().replace(r"\22", "'"))


lower("plain", scale=1 / math.sqrt(H))
lower("causal f16", mask=CAUSAL, dtype=jnp.float16)
lower("lengths, fewer heads of keys", mask=PADDING, heads=2, keys=24)
lower("causal lengths", mask=BOTH)
lower("shared bias, causal", bias=(1, 1, T, T), mask=CAUSAL)
lower("heads first, f16, fewer heads of keys", layout="BNTH", heads=2, dtype=jnp.float16)
lower("heads first, bias", layout="BNTH", bias=(B, N, T, 24), keys=24)
