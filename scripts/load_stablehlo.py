#!/usr/bin/env python3
"""Loads a program that lazo exported (docs/export.md) in JAX, and checks that it computes what lazo stored.

    load_stablehlo.py FOLDER... [--tolerance 1e-6] [--portable FILE]

Needs jax and numpy (export_requirements.txt). Each FOLDER must have an example.safetensors (managed.ExportOptions.Example). The figure
of an output is its largest difference from lazo's, relative to the largest magnitude in lazo's; integers must be equal.
--portable writes the program of the one FOLDER as MLIR's portable artifact too, for the version of StableHLO that the
manifest names. To use a program in other code, import this file and call load(folder).
Exit status: 0 all equal within the tolerance, 1 not, 2 wrong usage or a folder that cannot be read.
"""

import argparse
import hashlib
import json
import math
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jaxlib.mlir.dialects import stablehlo

FORMATS = (1, 2)  # of the manifest; 2 has programs for other sizes of batch too, which are left out here

# StableHLO's name: that of NumPy (or ml_dtypes), that of safetensors
DTYPES = {
    "i1": ("bool", "BOOL"),
    "i8": ("int8", "I8"), "i16": ("int16", "I16"), "i32": ("int32", "I32"), "i64": ("int64", "I64"),
    "ui8": ("uint8", "U8"), "ui16": ("uint16", "U16"), "ui32": ("uint32", "U32"), "ui64": ("uint64", "U64"),
    "f16": ("float16", "F16"), "bf16": ("bfloat16", "BF16"), "f32": ("float32", "F32"), "f64": ("float64", "F64"),
    "complex<f32>": ("complex64", "C64"), "complex<f64>": ("complex128", None),
}


class BadFolder(Exception):
    """A folder that is not what lazo wrote."""


class Program:
    """A program as a function that jax.jit can trace, with the names of what goes in and comes out."""

    def __init__(self, manifest, exported, artifact, weights):
        self.inputs, self.outputs = manifest["inputs"], manifest["outputs"]
        self.artifact, self.weights, self._exported = artifact, weights, exported

    def __call__(self, batch, state=None):
        """batch and state (default: the weights) are arrays by name; so is the result, the new state included."""
        state = self.weights if state is None else state
        arguments = [(batch if v["role"] == "batch" else state)[v["name"]] for v in self.inputs]
        return {v["name"]: out for v, out in zip(self.outputs, self._exported.call(*arguments))}


def read(folder, name, manifest):
    with open(os.path.join(folder, name), "rb") as f:
        data = f.read()
    said = manifest["files"][name]
    if len(data) != said["bytes"] or hashlib.sha256(data).hexdigest() != said["sha256"]:
        raise BadFolder(f"{folder}/{name}: damaged: its size or digest is not the manifest's")
    return data


def tensors(data, want):
    """The arrays of a safetensors file. want has name, dtype and shape of each."""
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    arrays = {}
    for name, v in want.items():
        dtype, in_file = DTYPES[v["dtype"]]
        entry = header[name]
        begin, end = entry["data_offsets"]
        if entry["dtype"] != in_file or entry["shape"] != v["shape"]:
            raise BadFolder(f"{name}: {entry['dtype']}{entry['shape']}, the manifest says {v['dtype']}{v['shape']}")
        arrays[name] = np.frombuffer(body[begin:end], jnp.dtype(dtype)).reshape(v["shape"])
    return arrays


def avals(values):
    return tuple(jax.core.ShapedArray(tuple(v["shape"]), jnp.dtype(DTYPES[v["dtype"]][0])) for v in values)


def load(folder):
    """Gives the manifest and the Program of a folder."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        manifest = json.load(f)
    if manifest["format"] not in FORMATS:
        raise BadFolder(f"{folder}: format {manifest['format']}, this script reads {FORMATS}")
    text = read(folder, "program.mlir", manifest).decode("utf-8")
    # JAX reads a program in the portable form, of this version or an older one.
    version = manifest["stablehlo"] or stablehlo.get_current_version()
    artifact = stablehlo.serialize_portable_artifact_str(text, version)
    inputs, outputs = avals(manifest["inputs"]), avals(manifest["outputs"])
    none_in, none_out = (None,) * len(inputs), (None,) * len(outputs)
    exported = export.Exported(
        fun_name=manifest["name"],
        in_tree=jax.tree.structure((tuple(inputs), {})), in_avals=inputs,
        out_tree=jax.tree.structure(tuple(outputs)), out_avals=outputs,
        _has_named_shardings=False, _in_named_shardings=none_in, _out_named_shardings=none_out,
        in_shardings_hlo=none_in, out_shardings_hlo=none_out,
        nr_devices=1, platforms=(jax.default_backend(),), ordered_effects=(), unordered_effects=(),
        disabled_safety_checks=(), mlir_module_serialized=artifact,
        calling_convention_version=export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(inputs))), uses_global_constants=False, _get_vjp=None)
    weights = None
    if "weights.safetensors" in manifest["files"]:
        state = {v["name"]: v for v in manifest["inputs"] if v["role"] == "state"}
        weights = tensors(read(folder, "weights.safetensors", manifest), state)
    return manifest, Program(manifest, exported, artifact, weights)


def difference(got, want):
    """The largest difference relative to the largest magnitude; infinite where a NaN, an infinity or an integer differs."""
    if want.dtype.kind in "biu":
        return 0.0 if np.array_equal(got, want) else math.inf
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = np.asarray(got).astype(wide), want.astype(wide)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True) or not np.isfinite(got[finite]).all():
        return math.inf
    if not finite.any():
        return 0.0
    scale = np.abs(want[finite]).max()
    most = np.abs(got[finite] - want[finite]).max()
    return float(most / scale) if scale > 0 else float(most)


def check(folder, tolerance, portable):
    manifest, program = load(folder)
    if portable:
        with open(portable, "wb") as f:
            f.write(program.artifact)
    if "example.safetensors" not in manifest["files"] or program.weights is None:
        raise BadFolder(f"{folder}: it has no example or no weights: export it with Example of managed.ExportOptions")
    named = {"inputs/" + v["name"]: v for v in manifest["inputs"] if v["role"] == "batch"}
    named |= {"outputs/" + v["name"]: v for v in manifest["outputs"]}
    example = tensors(read(folder, "example.safetensors", manifest), named)
    batch = {name.removeprefix("inputs/"): a for name, a in example.items() if name.startswith("inputs/")}
    outputs = jax.jit(program)(batch)
    worst = 0.0
    for v in manifest["outputs"]:
        d = difference(np.asarray(outputs[v["name"]]), example["outputs/" + v["name"]])
        worst = max(worst, d)
        if d > tolerance:
            print(f"{folder}: {v['role']} {v['name']}: differs by {d:.2e} of its scale, expected at most {tolerance:.0e}")
    print(f"{folder}: {len(manifest['outputs'])} outputs, largest difference {worst:.2e} of the scale (at most {tolerance:.0e})")
    return worst <= tolerance


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--tolerance", type=float, default=1e-6)
    parser.add_argument("--portable", metavar="FILE", help="write the portable artifact of the one FOLDER")
    arguments = parser.parse_args()
    if arguments.portable and len(arguments.folders) != 1:
        parser.error("--portable takes one FOLDER")
    jax.config.update("jax_enable_x64", True)  # lazo keeps 64 bits, for the random state for one
    fine = True
    for folder in arguments.folders:
        try:
            fine = check(folder, arguments.tolerance, arguments.portable) and fine
        except (OSError, BadFolder, ValueError, KeyError) as e:
            print(f"load_stablehlo: {folder}: {type(e).__name__}: {e}", file=sys.stderr)
            return 2
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
