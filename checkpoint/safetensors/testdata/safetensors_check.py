"""Exchange of files between lazo and the safetensors package of Python; the tests TestInterop… run it.

safetensors_check.py write DIR       writes numpy.safetensors and packed.safetensors
safetensors_check.py check DIR       reads lazo.safetensors, and says how many tensors are equal
safetensors_check.py checkpoint DIR  reads a checkpoint: its tensors, its manifest, its COMMIT
safetensors_check.py flax DIR        reads weights.safetensors into nested dicts, as of Flax, computes the model of batch.safetensors
                                     with them, and writes them doubled into doubled.safetensors

All end with 1 if something is not equal.
"""

import hashlib
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from safetensors import TensorSpec, deserialize, safe_open, serialize_file
from safetensors.numpy import load_file, save_file

METADATA = {'é "\\/\n': "😀\x01"}  # one entry, because the package writes several in a random order

inf = float("inf")

# Name: type in the file, type here, values. ../interop_test.go has the same as bytes.
TENSORS = {
    "bool": ("BOOL", np.bool_, [[True, False], [False, True]]),
    "u8": ("U8", np.uint8, [0, 1, 255]),
    "i8": ("I8", np.int8, [-128, -1, 127]),
    "i16": ("I16", np.int16, [-32768, -2, 32767]),
    "u16": ("U16", np.uint16, [0, 0x0102, 65535]),
    "f16": ("F16", np.float16, [0.5, -2, inf, -0.0]),
    "bf16": ("BF16", ml_dtypes.bfloat16, [1, -2.5, inf, 3.140625]),
    "i32": ("I32", np.int32, [-(2**31), 0x010203, -1]),
    "u32": ("U32", np.uint32, [[0], [0x01020304], [2**32 - 1]]),
    "f32": ("F32", np.float32, [[1.5, -0.0], [inf, 3.4028234663852886e38]]),
    "c64": ("C64", np.complex64, [1.5 - 2j]),
    "f64": ("F64", np.float64, [-1.5, 5e-324]),
    "i64": ("I64", np.int64, [-(2**63), 2**53 + 1]),
    "u64": ("U64", np.uint64, [2**64 - 1, 2**63 + 1]),
    "f8_e4m3": ("F8_E4M3", ml_dtypes.float8_e4m3fn, [1, -448, 0.5]),
    "f8_e5m2": ("F8_E5M2", ml_dtypes.float8_e5m2, [1, -57344, inf]),
    "f8_e4m3fnuz": ("F8_E4M3FNUZ", ml_dtypes.float8_e4m3fnuz, [1, 240, 0.5]),
    "f8_e5m2fnuz": ("F8_E5M2FNUZ", ml_dtypes.float8_e5m2fnuz, [1, 57344, -1]),
    "f8_e8m0": ("F8_E8M0", ml_dtypes.float8_e8m0fnu, [1, 2, 0.25]),
    "scalar": ("F32", np.float32, -1.0),
    "empty": ("I64", np.int64, np.zeros((0, 3))),
    'é/😀\n"\\': ("U8", np.uint8, [7]),
}

# Types of less than a byte have no arrays here: name, type in the file, dims, bytes.
PACKED = {
    "f4": ("F4", [2, 2], b"\xc2\x1f"),
    "f6_e2m3": ("F6_E2M3", [4], b"\x01\x02\x03"),
    "f6_e3m2": ("F6_E3M2", [2, 2], b"\xff\x00\x80"),
}


def array(name):
    _, dtype, values = TENSORS[name]
    return np.array(values).astype(dtype)


def write(folder):
    save_file({name: array(name) for name in TENSORS}, folder / "numpy.safetensors", METADATA)
    f4 = np.frombuffer(PACKED["f4"][2], np.uint8)
    spec = TensorSpec(dtype="float4_e2m1fn_x2", shape=(2, 1), data_ptr=f4.ctypes.data, data_len=f4.nbytes)
    serialize_file({"f4": spec}, folder / "packed.safetensors")


def check(folder):
    path = folder / "lazo.safetensors"
    raw = dict(deserialize(path.read_bytes()))
    assert raw.keys() == TENSORS.keys() | PACKED.keys(), raw.keys()
    check_tensors(raw)
    for name, (code, dims, data) in PACKED.items():
        got = raw[name]
        assert (got["dtype"], got["shape"], bytes(got["data"])) == (code, dims, data), (name, got)
    arrays = check_arrays(path, METADATA)
    print(f"{len(raw)} tensors equal, {arrays} of them as arrays")


def check_tensors(raw):
    for name, (code, dtype, _) in TENSORS.items():
        want, got = array(name), raw[name]
        assert got["dtype"] == code, (name, got)
        assert got["shape"] == list(want.shape), (name, got)
        values = np.frombuffer(bytes(got["data"]), dtype).reshape(got["shape"])
        assert np.array_equal(values, want), (name, values, want)
        assert values.tobytes() == want.tobytes(), name  # -0 is not 0


def check_arrays(path, metadata):
    arrays = 0
    with safe_open(path, framework="np") as file:
        assert file.metadata() == metadata, file.metadata()
        for name, (code, _, _) in TENSORS.items():
            if code.startswith("F8"):
                continue  # its NumPy loader knows none of these
            got = file.get_tensor(name)
            assert got.dtype == array(name).dtype and np.array_equal(got, array(name)), (name, got)
            arrays += 1
    return arrays


def checkpoint(folder):
    text = (folder / "manifest.json").read_bytes()
    assert (folder / "COMMIT").read_text() == f"{hashlib.sha256(text).hexdigest()}  manifest.json\n"
    path = folder / "state.safetensors"
    raw = dict(deserialize(path.read_bytes()))
    assert raw.keys() == TENSORS.keys() == json.loads(text)["tensors"].keys(), raw.keys()
    check_tensors(raw)
    print(f"{len(raw)} tensors equal, {check_arrays(path, None)} of them as arrays")


def nested(flat):
    tree = {}
    for name, value in flat.items():
        *scopes, leaf = name.split("/")
        at = tree
        for scope in scopes:
            at = at.setdefault(scope, {})
        at[leaf] = value
    return tree


def flax(folder):
    flat = load_file(folder / "weights.safetensors")
    batch = load_file(folder / "batch.safetensors")
    params = nested(flat)["params"]

    def dense(name, x):
        layer = params[name]["dense"]
        return x @ layer["kernel"] + layer["bias"]

    got = dense("out", np.tanh(dense("h", batch["x"])))
    worst = np.abs(got - batch["y"]).max()
    assert got.shape == batch["y"].shape and worst <= 1e-6, worst
    save_file({name: 2 * value for name, value in flat.items()}, folder / "doubled.safetensors")
    print(f"{len(flat)} weights; outputs within {worst:.1g}")


if __name__ == "__main__":
    {"write": write, "check": check, "checkpoint": checkpoint, "flax": flax}[sys.argv[1]](Path(sys.argv[2]))
