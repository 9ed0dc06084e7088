"""Writes the ONNX files of the tests, and ONNX Runtime's outputs: `python models.py` in this folder; with `python models.py operators`, without
those exported by torch; with `python models.py real FOLDER`, those of magika and silero-vad, whose files are below FOLDER/onnx. It needs onnx, onnxruntime, onnxscript and torch.

refusals.json.gz: files that are refused, in base64, each with a part of the error.
faults.json.gz: files that cannot be built, as those.
operators.json.gz: for each case a file of one operator or a few, in base64, its inputs and outputs.
NAME.onnx, NAME.json: models exported by torch.
"""
import base64, contextlib, gzip, io, json, pathlib, sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto as T, helper as h, numpy_helper

NEGATIVE = -(2**31)
rng = np.random.default_rng(36)
f = lambda *dims: (np.round(rng.standard_normal(dims) * 64) / 64).astype(np.float32)  # numbers of few digits, for small files
i = lambda *values: np.array(values, np.int64)
s = lambda value: np.array(value, np.int64)


def array(x):
    x = np.asarray(x)
    return {"dtype": str(x.dtype), "dims": list(x.shape), "data": [float(f"{v:.7g}") if x.dtype == np.float32 else v for v in x.ravel().tolist()]}


def rounded(x):
    """The numbers that JSON has."""
    return np.array(array(x)["data"], np.asarray(x).dtype).reshape(np.shape(x))


def run(text, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def case(name, nodes, inputs, outputs="z", weights=None, version=18):
    """One graph. Each node is (operator, inputs, outputs, attributes)."""
    inputs = {k: rounded(v) for k, v in inputs.items()}
    graph = h.make_graph(
        [h.make_node(op, ["" if x == "-" else x for x in a.split()], b.split(), **attributes) for op, a, b, attributes in nodes], "g",
        [h.make_tensor_value_info(k, h.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs.split()],
        [numpy_helper.from_array(v, k) for k, v in (weights or {}).items()])
    model = onnx.shape_inference.infer_shapes(h.make_model(graph, opset_imports=[h.make_opsetid("", version)], ir_version=8))
    del model.graph.value_info[:]
    text = model.SerializeToString()
    return {"name": name, "operators": sorted({n.op_type for n in model.graph.node}), "model": base64.b64encode(text).decode(), "inputs": {k: array(v) for k, v in inputs.items()},
            "outputs": {k: array(v) for k, v in run(text, inputs).items()}}


def one(op, *arrays, name=None, version=18, weights=None, **attributes):
    """A node of one operator on inputs x, y, w, and then constants by name."""
    inputs = dict(zip("xyw", arrays))
    return case(name or op, [(op, " ".join([*inputs, *(weights or {})]), "z", attributes)], inputs, weights=weights, version=version)


def branch(*values):
    name = f"b{values[0]:g}"
    return h.make_graph([h.make_node("Add", ["x", name], [f"o{name}"])], name, [], [h.make_tensor_value_info(f"o{name}", T.FLOAT, [2, 3])],
                        [numpy_helper.from_array(np.array(values, np.float32), name)])


def operators():
    a, b, p = f(2, 3), f(2, 3), np.abs(f(2, 3)) + np.float32(0.5)
    image, sequence, ints = f(2, 2, 5, 6), f(4, 2, 3), np.array([[-7, 5, 3], [7, -2, 9]], np.int64)
    bools, others = np.array([True, False, True]), np.array([True, True, False])
    for op in ["Add", "Sub", "Mul", "Div", "Min", "Max"]:
        yield one(op, a, f(3))
    yield one("Add", f(3), f(4, 1, 3), name="Add of ranks")
    yield one("Div", ints, np.array([[2, -3, 2], [-2, 4, 4]], np.int64), name="Div of integers")
    yield one("Max", a, b, f(1, 3), name="Max of three")
    for op in ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"]:
        yield one(op, np.array([1, 2, 3], np.float32), np.array([2, 2, 2], np.float32))
    for op in ["And", "Or", "Xor"]:
        yield one(op, bools, others)
    yield one("Not", bools)
    for op in ["Exp", "Erf", "Relu", "Abs", "Neg", "Sign", "Ceil", "Floor", "Identity", "Tanh", "Sin", "Cos", "Sigmoid", "HardSwish"]:
        yield one(op, 3 * f(2, 4))
    for op in ["Sqrt", "Log", "Reciprocal"]:
        yield one(op, p)
    yield case("IsNaN", [("Sqrt", "x", "y", {}), ("IsNaN", "y", "z", {})], {"x": a})
    yield one("Gelu", 3 * a, version=20)
    for power in [2, 1, 0.5, -0.5, -1, -2, 1.7]:
        yield one("Pow", p, weights={"c": np.float32(power)}, name=f"Pow {power}")
    yield one("Pow", p, a, name="Pow of inputs")
    yield one("Mod", ints, np.array([3, -4, 5], np.int64))
    yield one("Mod", a, p, name="Mod fmod", fmod=1)
    yield one("MatMul", f(2, 3), f(3, 4))
    yield one("MatMul", f(2, 2, 3), f(3, 2), name="MatMul of ranks")
    yield one("MatMul", f(3), f(2, 3, 2), name="MatMul of a vector")
    yield one("Einsum", f(2, 3, 4), f(2, 4, 2), equation="bij,bjk->bik")
    yield one("Clip", 2 * a, weights={"low": np.float32(-1), "high": np.float32(0.5)})
    yield case("Clip above", [("Clip", "x low", "z", {})], {"x": a}, weights={"low": np.float32(0)})
    yield one("Where", bools, a, f(1, 3))
    yield case("Constant", [("Constant", "", "c", {"value": numpy_helper.from_array(f(3))}), ("Add", "x c", "z", {})], {"x": a})
    yield case("Constant, typed data", [("Constant", "", "c", {"value": h.make_tensor("c", T.FLOAT16, [3], [1.5, -2, 0.25])}), ("Cast", "c", "d", {"to": 1}), ("Add", "x d", "z", {})], {"x": a})
    yield case("ConstantOfShape", [("Shape", "x", "d", {}), ("ConstantOfShape", "d", "c", {"value": numpy_helper.from_array(np.array([2], np.float32))}), ("Add", "x c", "z", {})], {"x": a})
    yield case("ConstantOfShape, zero", [("Shape", "x", "d", {}), ("ConstantOfShape", "d", "c", {}), ("Add", "x c", "z", {})], {"x": a})
    yield one("Gather", f(4, 3), np.array([[1, -1], [0, 2]], np.int64))
    yield one("Gather", f(2, 4, 2), i(3, 0), name="Gather axis 1", axis=1)
    yield case("Gather of a trained table", [("Gather", "w x", "z", {})], {"x": i(2, 0)}, weights={"w": f(4, 3)})
    yield one("GatherElements", f(2, 3), np.array([[2, 0], [-1, 1]], np.int64), axis=1)
    yield one("GatherND", f(2, 3, 2), np.array([[0, 1], [1, 2]], np.int64))
    yield one("ScatterND", f(4, 2), np.array([[1], [3]], np.int64), f(2, 2))
    yield one("Shape", f(2, 3, 4))
    yield one("Shape", f(2, 3, 4), name="Shape start", start=1)
    yield one("Size", a)
    yield one("Concat", a, b, axis=-1)
    yield case("Split", [("Split", "x n", "z y", {"axis": 1})], {"x": f(2, 5)}, "z y", {"n": i(2, 3)})
    yield case("Split equally", [("Split", "x", "z y", {"axis": -1, "num_outputs": 2})], {"x": f(2, 4)}, "z y")
    yield case("Slice", [("Slice", "x b e a s", "z", {})], {"x": f(4, 6)}, weights={"b": i(1, -5), "e": i(2**31, -1), "a": i(0, 1), "s": i(2, 3)})
    yield case("Slice, two inputs", [("Slice", "x b e", "z", {})], {"x": f(4, 6)}, weights={"b": i(1, 2), "e": i(3, 4)})
    yield case("Slice reversed", [("Slice", "x b e a b", "z", {})], {"x": f(3, 4)}, weights={"b": i(-1), "e": i(-(2**63) + 1), "a": i(1)})
    yield one("Pad", a, weights={"n": i(0, 1, 2, 0)})
    yield one("Pad", a, weights={"n": i(0, 1, 1, 0), "c": np.float32(2.5)}, name="Pad constant", mode="constant")
    yield one("Pad", f(2, 4), weights={"n": i(0, 2, 0, 1)}, name="Pad reflect", mode="reflect")
    yield one("Pad", f(2, 4), weights={"n": i(0, -1, 0, 1)}, name="Pad negative")
    yield one("Transpose", f(2, 3, 2), perm=[2, 0, 1])
    yield one("Transpose", a, name="Transpose reversed")
    yield one("Reshape", f(2, 3, 2), weights={"n": i(0, -1)})
    yield one("Flatten", f(2, 3, 2))
    yield one("Flatten", f(2, 3, 2), name="Flatten axis 2", axis=2)
    yield one("Squeeze", f(2, 1, 3), weights={"n": i(1)})
    yield one("Squeeze", f(2, 1, 3), name="Squeeze all")
    yield one("Unsqueeze", a, weights={"n": i(0, -1)})
    yield one("Expand", f(3, 1), weights={"n": i(2, 1, 2)})
    yield one("Tile", a, weights={"n": i(2, 1)})
    yield case("Range", [("Size", "x", "e", {}), ("Range", "k e l", "r", {}), ("Add", "x r", "z", {})], {"x": i(4, 5, 6)}, weights={"k": s(0), "l": s(1)})
    yield case("Range of a computed limit", [("Shape", "x", "d", {}), ("Gather", "d o", "e", {}), ("Range", "k e l", "z", {})],
               {"x": f(2, 9)}, weights={"k": s(1), "o": s(1), "l": s(3)})
    yield case("Range of floats", [("Range", "k e l", "r", {}), ("Add", "x r", "z", {})], {"x": f(4)}, weights={"k": np.float32(1), "e": np.float32(-1), "l": np.float32(-0.5)})
    yield one("CumSum", a, weights={"n": s(1)})
    yield one("CumSum", a, weights={"n": s(-1)}, name="CumSum reversed", exclusive=1, reverse=1)
    yield one("Trilu", f(3, 3))
    yield one("Trilu", f(2, 3, 3), weights={"n": s(-1)}, name="Trilu lower", upper=0)
    yield one("Cast", 3 * f(2, 4), to=T.INT32)
    yield one("Cast", np.array([0, -0.3, 2], np.float32), name="Cast to bool", to=T.BOOL)
    yield one("Cast", bools, name="Cast of bool", to=T.FLOAT)
    yield one("Cast", ints, name="Cast of integers", to=T.DOUBLE)
    yield one("Softmax", a)
    yield one("Softmax", f(2, 3, 2), name="Softmax axis 1", axis=1)
    yield one("Gemm", f(2, 3), f(3, 4))
    yield one("Gemm", f(3, 2), f(4, 3), f(4), name="Gemm of all", alpha=0.5, beta=2.0, transA=1, transB=1)
    for op in ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceL2"]:
        yield one(op, f(2, 3, 2), weights={"n": i(-1, 0)}, keepdims=0)
        yield one(op, a, name=op + " of all")
    yield one("ReduceMean", f(2, 3, 2), name="ReduceMean by attribute", version=13, axes=[1])
    yield one("ReduceSum", a, weights={"n": np.array([], np.int64)}, name="ReduceSum of nothing", noop_with_empty_axes=1)
    for op in ["ArgMax", "ArgMin"]:
        yield one(op, f(3, 4), axis=1)
        yield one(op, np.array([[2, 1, 2, 1], [0, 0, 0, 0]], np.float32), name=op + " of ties", axis=1)
        yield one(op, f(3, 4), name=op + " squeezed", axis=0, keepdims=0)
    lstm = lambda n: {"w": f(n, 8, 3), "r": f(n, 8, 2), "b": f(n, 16)}
    yield case("LSTM", [("LSTM", "x w r b", "z y c", {"hidden_size": 2})], {"x": sequence}, "z y c", lstm(1))
    yield case("LSTM reverse", [("LSTM", "x w r b", "z", {"hidden_size": 2, "direction": "reverse"})], {"x": sequence}, "z", lstm(1))
    w = lstm(2)
    yield case("LSTM of states", [("LSTM", "x w r b - h k", "z y c", {"hidden_size": 2, "direction": "bidirectional"})],
               {"x": sequence, "h": f(2, 2, 2), "k": f(2, 2, 2)}, "z y c", w)
    yield case("Conv", [("Conv", "x w b", "z", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]})], {"x": image}, weights={"w": f(3, 2, 3, 2), "b": f(3)})
    yield case("Conv dilated", [("Conv", "x w", "z", {"dilations": [1, 2], "strides": [1, 1]})], {"x": image}, weights={"w": f(3, 2, 3, 2)})
    yield case("Conv of groups", [("Conv", "x w", "z", {"group": 2, "auto_pad": "NOTSET"})], {"x": image}, weights={"w": f(2, 1, 2, 2)})
    yield case("Conv of one axis", [("Conv", "x w", "z", {"strides": [2]})], {"x": f(1, 2, 6)}, weights={"w": f(2, 2, 3)})
    yield one("MaxPool", image, kernel_shape=[2, 3], strides=[2, 1], pads=[1, 1, 0, 1], dilations=[1, 1], ceil_mode=0)
    yield one("AveragePool", image, kernel_shape=[2, 2], strides=[1, 2], count_include_pad=0)
    yield one("AveragePool", image, name="AveragePool padded", kernel_shape=[2, 3], strides=[2, 2], pads=[1, 1, 0, 1])
    yield one("GlobalAveragePool", image)
    yield one("GlobalMaxPool", image)
    yield one("GlobalMaxPool", f(2, 3, 4), name="GlobalMaxPool of one axis")
    yield case("BatchNormalization", [("BatchNormalization", "x s b m v", "z", {"epsilon": 1e-3, "momentum": 0.5})], {"x": f(2, 3, 2)},
               weights={"s": f(3), "b": f(3), "m": f(3), "v": np.abs(f(3)) + 1})
    yield case("LayerNormalization", [("LayerNormalization", "x s b", "z", {"epsilon": 1e-3})], {"x": f(2, 4)}, weights={"s": f(4), "b": f(4)})
    yield case("LayerNormalization axis 1", [("LayerNormalization", "x s", "z", {"axis": 1})], {"x": f(2, 3, 2)}, weights={"s": f(3, 2)})
    for name, limit in [("If true", -1e9), ("If false", 1e9)]:
        yield case(name, [("ReduceSum", "x", "y", {"keepdims": 0}), ("Greater", "y l", "c", {}), ("If", "c", "z", {"then_branch": branch(1, 2, 3), "else_branch": branch(5, 0, 1)})],
                   {"x": a}, weights={"l": np.float32(limit)})
    yield case("If by shape", [("Size", "x", "y", {}), ("Greater", "y l", "c", {}), ("If", "c", "z", {"then_branch": branch(1, 2, 3), "else_branch": branch(5, 0, 1)})],
               {"x": a}, weights={"l": s(4)})
    yield from forms()


def forms():
    """Forms of inputs and attributes that files may have, and values at which an operator is easily wrong."""
    line, image = f(1, 2, 6), f(2, 2, 5, 6)
    for op in ["MaxPool", "AveragePool"]:
        yield one(op, line, name=op + " without strides", kernel_shape=[2])
        yield one(op, image, name=op + " without strides, padded", kernel_shape=[2, 3], pads=[0, 1, 1, 1])
    ends, rows = np.array([[[-1, 0], [1, -2]]], np.int64), np.array([[-1], [-4]], np.int64)
    yield one("GatherND", f(2, 3, 2), ends, name="GatherND from the end")
    yield one("GatherND", f(2, 3, 2), weights={"i": ends}, name="GatherND from the end, constant")
    yield one("ScatterND", f(5, 2), rows, f(2, 2), name="ScatterND from the end")
    yield one("ScatterND", f(5, 2), weights={"i": np.array([[-1, -2]], np.int64), "u": f(1)}, name="ScatterND from the end, constant")
    yield one("Gather", f(4, 3), np.array([-1, -3], np.int32), name="Gather from the end", axis=-1)
    yield one("GatherElements", f(3, 2), np.array([[-1, 0], [1, -3]], np.int64), name="GatherElements from the end", axis=0)
    left, right = np.array([40000, -40000, 40000, -40000, 7, -7, 6, 2**31 - 1]), np.array([60000, 60000, -60000, -60000, -7, 7, 4, -2])
    for dtype in [np.int32, np.int64]:
        yield one("Mod", left.astype(dtype), right.astype(dtype), name=f"Mod of large {dtype.__name__}")
        yield one("Mod", left.astype(dtype), right.astype(dtype), name=f"Mod fmod of large {dtype.__name__}", fmod=1)
    for name, to, x, y in [("int8", T.INT8, i(20, -100, 100, -128), i(100, 90, -90, 127)), ("uint8", T.UINT8, i(200, 7), i(250, 200))]:
        yield case(f"Mod of {name}", [("Cast", "x", "a", {"to": to}), ("Cast", "y", "b", {"to": to}), ("Mod", "a b", "c", {}), ("Cast", "c", "z", {"to": T.INT64})], {"x": x, "y": y})
    for op in ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd"]:
        for dtype in [np.int32, np.int64]:
            x = (4 * f(2, 3, 2)).astype(dtype)
            yield one(op, x, weights={"n": i(-1, 0)}, keepdims=0, name=f"{op} of {dtype.__name__}")
            yield one(op, x[:, :1], name=f"{op} of all {dtype.__name__}")
    down = lambda *names: [("Cast", n, n + "h", {"to": T.FLOAT16}) for n in names]
    large, many = 1000 + np.round(16 * f(2, 8)), np.full((1, 1, 4, 75), 1000, np.float32)
    yield case("LayerNormalization of float16", [*down("x", "s", "b"), ("LayerNormalization", "xh sh bh", "z", {})], {"x": large}, weights={"s": f(8), "b": f(8)})
    for op in ["GlobalAveragePool", "ReduceMean", "ReduceL2"]:
        yield case(op + " of float16", [*down("x"), (op, "xh", "z", {})], {"x": many})
    yield case("AveragePool of float16", [*down("x"), ("AveragePool", "xh", "z", {"kernel_shape": [4, 25], "strides": [4, 25]})], {"x": many})
    for op, x in [("ReduceSum", f(16, 8)), ("Softmax", f(2, 8)), ("CumSum", f(20)), ("Gelu", f(8)), ("HardSwish", f(8))]:
        axis = {"CumSum": {"n": s(0)}}.get(op, {})
        yield case(op + " of float16", [*down("x"), (op, " ".join(["xh", *axis]), "z", {})], {"x": x}, weights=axis, version=20)
    yield case("Pow of float16", [*down("x"), ("Pow", "xh e", "z", {})], {"x": np.array([300, 1000, 0.25], np.float32)}, weights={"e": np.float32(-2)})
    yield case("BatchNormalization of float16", [*down("x", "s", "b", "m", "v"), ("BatchNormalization", "xh sh bh mh vh", "z", {})], {"x": 900 + np.round(64 * f(2, 3, 2))},
               weights={"s": 1 + f(3), "b": f(3), "m": np.float32([900, 899, 901]), "v": np.float32([4, 1, 0.25])})
    ones, column = np.ones((1, 4096), np.float32), np.ones((4096, 1), np.float32)
    yield case("MatMul of float16", [*down("x", "y"), ("MatMul", "xh yh", "z", {})], {"x": ones[:, :2049], "y": column[:2049]})
    yield case("Gemm of float16", [*down("x", "y"), ("Gemm", "xh yh", "z", {"alpha": 0.25})], {"x": 16 * ones[:, :512], "y": 16 * column[:512]})
    yield case("Conv of float16", [*down("x", "w"), ("Conv", "xh wh", "z", {})], {"x": ones[:, :3001].reshape(1, 1, 3001)}, weights={"w": np.ones((1, 1, 3001), np.float32)})
    yield case("LSTM of float16", [*down("x", "w", "r"), ("LSTM", "xh wh rh", "z", {"hidden_size": 2})], {"x": f(4, 2, 3)}, weights={"w": f(1, 8, 3), "r": f(1, 8, 2)})
    yield one("Pad", f(4), weights={"n": i(-1, 0)}, name="Pad reflect, cut", mode="reflect")
    yield one("Pad", f(5, 4), weights={"n": i(-1, 2, 1, -1)}, name="Pad reflect, cut and padded", mode="reflect")
    yield case("Pad reflect, computed", [("Shape", "x", "d", {}), ("Sub", "d k", "n", {}), ("Pad", "x n", "z", {"mode": "reflect"})], {"x": f(4)}, weights={"k": i(5, 2)})
    yield case("Gemm, C left out", [("Gemm", "x y -", "z", {})], {"x": f(2, 3), "y": f(3, 2)})
    yield case("Pad, value left out", [("Pad", "x n -", "z", {})], {"x": f(3)}, weights={"n": i(1, 2)})
    yield case("Slice, axes left out", [("Slice", "x b e - s", "z", {})], {"x": f(4, 5)}, weights={"b": i(0, 1), "e": i(4, 5), "s": i(2, 3)})
    yield case("ReduceSum, axes left out", [("ReduceSum", "x -", "z", {})], {"x": f(2, 3)})
    yield case("Clip, the least left out", [("Clip", "x - c", "z", {})], {"x": f(2, 3)}, weights={"c": np.float32(0.25)})
    lstm = lambda n: {"w": f(n, 8, 3), "r": f(n, 8, 2)}
    yield case("LSTM without a bias", [("LSTM", "x w r", "z y c", {"hidden_size": 2})], {"x": f(4, 2, 3)}, "z y c", lstm(1))
    yield case("LSTM without a bias, with a state", [("LSTM", "x w r - - h", "z", {"hidden_size": 2, "direction": "bidirectional"})], {"x": f(4, 2, 3), "h": f(2, 2, 2)}, weights=lstm(2))
    yield case("Conv of strides and dilations", [("Conv", "x w b", "z", {"strides": [2, 3], "dilations": [1, 2], "pads": [1, 2, 0, 1], "group": 2})], {"x": image}, weights={"w": f(4, 1, 2, 3), "b": f(4)})
    yield case("Conv of one axis, strides and dilations", [("Conv", "x w", "z", {"strides": [3], "dilations": [2]})], {"x": f(1, 2, 12)}, weights={"w": f(2, 2, 3)})
    yield one("Flatten", f(2, 3), name="Flatten of all axes", axis=2)
    yield one("Flatten", f(3), name="Flatten of one axis")
    yield one("Flatten", f(2, 3, 2), name="Flatten axis -1", axis=-1)
    yield case("Range of nothing", [("Range", "b e d", "r", {}), ("Size", "r", "n", {}), ("Add", "x n", "z", {})], {"x": i(5)}, weights={"b": s(3), "e": s(1), "d": s(1)})
    yield one("Pow", np.array([3, -2, 0.5], np.float32), weights={"e": s(3)}, name="Pow by an integer")
    yield one("Pow", np.array([3, -2, 0.5], np.float32), i(2, 3, -1), name="Pow by integers")
    yield one("Pow", i(3, -2), i(2, 3), name="Pow of integers")
    yield one("Pow", i(3, -2).astype(np.int32), i(2, 3), name="Pow of int32 by int64")
    yield one("CumSum", f(2, 3), weights={"n": i(1)}, name="CumSum, a list of one axis")
    yield one("Einsum", f(2, 3), f(3, 4), name="Einsum with spaces", equation=" ij , jk -> ik ")
    yield one("Einsum", f(2, 3), f(4, 2), name="Einsum without a result", equation="ki,jk")
    for start in [9, 2, -1, -5]:
        yield case(f"Shape start {start}", [("Shape", "x", "y", {"start": start}), ("ReduceSum", "y", "z", {})], {"x": f(2, 3)})
    part = lambda p: h.make_graph(
        [h.make_node("Split", ["x", p + "n"], [p + "v", p + "w"], axis=1), h.make_node("GatherND", [p + "w", p + "i"], [p + "g"]), h.make_node("Mul", [p + "g", "l"], [p + "o"])] if p == "t" else
        [h.make_node("GatherND", ["x", p + "i"], [p + "o"])], p, [], [onnx.ValueInfoProto(name=p + "o")], [numpy_helper.from_array(v, p + k) for k, v in {"n": i(1, 2), "i": np.array([[-1, -2]])}.items()])
    for name, limit in [("true", -64), ("false", 64)]:
        yield case("Forms in a branch, " + name, [("ReduceSum", "x", "y", {"keepdims": 0}), ("Greater", "y l", "c", {}), ("If", "c", "z", {"then_branch": part("t"), "else_branch": part("e")})],
                   {"x": f(2, 3)}, weights={"l": np.float32(limit)})
    yield case("ConstantOfShape of a scalar", [("ConstantOfShape", "d", "c", {"value": numpy_helper.from_array(i(7))}), ("Expand", "c e", "f", {}), ("Add", "x f", "z", {})], {"x": i(1, 2)},
               weights={"d": i(), "e": i(2)})


X, Z = h.make_tensor_value_info("x", T.FLOAT, ["n", 3]), onnx.ValueInfoProto(name="z")


def file(error, *nodes, weights=(), inputs=(X,), outputs=(Z,), version=18, change=None):
    model = h.make_model(h.make_graph(list(nodes), "g", list(inputs), list(outputs), list(weights)), opset_imports=[h.make_opsetid("", version)], ir_version=8)
    if change:
        change(model)
    return {"error": error, "model": base64.b64encode(model.SerializeToString()).decode()}


def faults():
    """Files that cannot be built for an input x of 2x3, each with a part of the error."""
    n, node = numpy_helper.from_array, h.make_node
    split = node("Split", ["x", "n"], ["y", "w"], name="parts", axis=1)
    sizes = 'the node "parts" of the operator Split: its sizes [1 1] add up to 2, expected the size of axis 1'
    yield file(sizes, split, node("Relu", ["y"], ["z"]), weights=[n(i(1, 1), "n")])
    yield file(sizes, node("Neg", ["x"], ["v"]), split, node("Add", ["y", "v"], ["z"]), node("MatMul", ["x", "x"], ["unused"]), weights=[n(i(1, 1), "n")])
    yield file('the node "m" of the operator MatMul', node("Relu", ["x"], ["y"]), node("MatMul", ["y", "x"], ["m"]), node("Relu", ["m"], ["z"]))
    yield file('the node "m" of the operator Add', node("Shape", ["x"], ["y"]), node("Add", ["y", "x"], ["m"]), node("Relu", ["m"], ["z"]))
    yield file('the node "m" of the operator GatherElements', node("GatherElements", ["x", "i"], ["m"], axis=1), node("Relu", ["m"], ["z"]), weights=[n(np.array([[1]]), "i")])
    yield file('the node "m" of the operator GatherND', node("GatherND", ["x", "i"], ["m"]), node("Relu", ["m"], ["z"]), weights=[n(np.array([[1, 1, -1]]), "i")])
    body = h.make_graph([node("MatMul", ["x", "x"], ["b"])], "b", [], [onnx.ValueInfoProto(name="b")])
    yield file('the node "i" of the operator If', node("ReduceSum", ["x"], ["s"], keepdims=0), node("Greater", ["s", "s"], ["c"]), node("If", ["c"], ["i"], then_branch=body, else_branch=body), node("Relu", ["i"], ["z"]))


def refusals():
    """Files that Open refuses, each with a part of its error."""
    x, z = X, Z

    def function(model):
        model.functions.append(h.make_function("own", "F", ["x"], ["y"], [h.make_node("Relu", ["x"], ["y"])], [h.make_opsetid("", 18)]))

    def deep(n):
        graph = h.make_graph([h.make_node("Relu", ["x"], [f"z{n}"])], "g", [], [onnx.ValueInfoProto(name=f"z{n}")])
        for i in reversed(range(n)):
            graph = h.make_graph([h.make_node("If", ["c"], [f"z{i}"], then_branch=graph, else_branch=graph)] if i == n - 1 else
                                 [h.make_node("If", ["c"], [f"z{i}"], then_branch=graph, else_branch=h.make_graph([h.make_node("Relu", ["x"], [f"y{i}"])], "g", [], [onnx.ValueInfoProto(name=f"y{i}")]))],
                                 "g", [], [onnx.ValueInfoProto(name=f"z{i}")])
        return graph.node[0]

    relu, n = h.make_node("Relu", ["x"], ["z"]), numpy_helper.from_array
    external = n(f(2), "w")
    external.ClearField("raw_data")
    external.data_location = T.EXTERNAL
    external.external_data.append(onnx.StringStringEntryProto(key="location", value="../../secret"))
    short, many, negative, texts, eight = n(f(3), "w"), n(f(3), "w"), n(f(3), "w"), h.make_tensor("w", T.STRING, [1], [b"a"]), T(name="w", dims=[1], data_type=T.FLOAT8E4M3FN, raw_data=b"0")
    short.dims[0] = 4
    many.dims[:] = [2**40, 2**40]
    negative.dims[0] = -3
    twice = h.make_node("Softmax", ["x"], ["z"], axis=1)
    twice.attribute.append(h.make_attribute("axis", 0))
    slice_ = h.make_node("Slice", ["x", "b", "e", "a", "s"], ["z"])
    limits = lambda b, e, a, s: [n(i(v), k) for k, v in zip("beas", (b, e, a, s))]
    yield file('the node "leak" of the operator LeakyRelu: it is not implemented', h.make_node("LeakyRelu", ["x"], ["z"], name="leak"))
    yield file('the node "z" of the operator com.microsoft.Relu: it is not implemented', h.make_node("Relu", ["x"], ["z"], domain="com.microsoft"))
    yield file("Gelu: the attribute approximate is [tanh], expected none", h.make_node("Gelu", ["x"], ["z"], approximate="tanh"), version=20)
    yield file("Shape: the attribute end is not implemented", h.make_node("Shape", ["x"], ["z"], end=1))
    yield file("Add: it has 1 inputs", h.make_node("Add", ["x"], ["z"]))
    yield file("Add: its input 0 is not given", h.make_node("Add", ["", "x"], ["z"]))
    yield file("Gemm: it has 1 inputs", h.make_node("Gemm", ["x", "", ""], ["z"]))
    yield file("Pad: its input 1 is not given", h.make_node("Pad", ["x", "", "c"], ["z"]), weights=[n(np.float32(1), "c")])
    yield file("ReduceL2: its input \"y\" is of Int64", h.make_node("Shape", ["x"], ["y"]), h.make_node("ReduceL2", ["y"], ["z"]))
    yield file("ReduceL2: the attribute noop_with_empty_axes is [1], expected 0", h.make_node("ReduceL2", ["x"], ["z"], noop_with_empty_axes=1))
    yield file("Mod: its attribute fmod is 0", h.make_node("Mod", ["x", "x"], ["z"]))
    yield file("Pow: it is a power of Int64 by Float32", h.make_node("Shape", ["x"], ["y"]), h.make_node("Pow", ["y", "x"], ["z"]))
    yield file("Cast: it casts to the data type [8]", h.make_node("Cast", ["x"], ["z"], to=8))
    yield file("LSTM: it lacks the attribute hidden_size", h.make_node("LSTM", ["x", "x", "x"], ["z"]))
    yield file("MaxPool: it lacks the attribute kernel_shape", h.make_node("MaxPool", ["x"], ["z"]))
    yield file("Softmax: the attribute axis is of ONNX's type 1, expected 2", h.make_node("Softmax", ["x"], ["z"], axis=1.0))
    yield file("Softmax: it has the attribute axis twice", twice)
    for equation in ["...ij,jk->...ik", "ii,j->j", "ij,jk->ijj", "ij,jk->il", "ij->ji", "Ij,jk->Ik"]:
        yield file("Einsum: the attribute equation is", h.make_node("Einsum", ["x", "x"], ["z"], equation=equation))
    yield file("Split: it has 3 sizes, expected 2", h.make_node("Split", ["x", "n"], ["z", "y"], axis=1), weights=[n(i(1, 1, 1), "n")])
    yield file("Split: it has the sizes [4 -1]", h.make_node("Split", ["x", "n"], ["z", "y"], axis=1), weights=[n(i(4, -1), "n")])
    yield file("Split: its sizes: \"n\" is computed", h.make_node("Shape", ["x"], ["n"]), h.make_node("Split", ["x", "n"], ["z", "y"]))
    yield file("Split: the attribute num_outputs is 3, expected 2", h.make_node("Split", ["x"], ["z", "y"], axis=1, num_outputs=3))
    yield file("Conv: it has the strides [2] and dilations [2 2]", h.make_node("Conv", ["x", "x"], ["z"], strides=[2], dilations=[2, 2]))
    yield file("ConstantOfShape: its value has the shape [2]", h.make_node("Shape", ["x"], ["y"]), h.make_node("ConstantOfShape", ["y"], ["z"], value=n(f(2))))
    yield file('a name with " | "', h.make_node("Relu", ["x"], ["x | 1"]), h.make_node("Relu", ["x | 1"], ["z"]))
    yield file("Pad: it has 4 inputs", h.make_node("Pad", ["x", "p", "", "a"], ["z"]), weights=[n(i(0, 1), "p"), n(i(1), "a")])
    yield file("MaxPool: it has 2 outputs", h.make_node("MaxPool", ["x"], ["z", "y"], kernel_shape=[1]))
    yield file("LSTM: its input 4", h.make_node("LSTM", ["x", "x", "x", "x", "x"], ["z"]))
    yield file("only an axis in reverse", slice_, weights=limits(2, 0, 1, -1))
    yield file("only an axis in reverse", slice_, weights=limits(-1, -(2**31) + 1, 1, -2))
    yield file("its steps", slice_, weights=limits(-1, -(2**31) + 1, 1, -1)[:3], inputs=(x, h.make_tensor_value_info("s", T.INT64, [1])))
    yield file("version 12, expected 13 to 21", relu, version=12)
    yield file("version 22, expected 13 to 21", relu, version=22)
    yield file("functions", relu, change=function)
    yield file("no node before it makes", h.make_node("Add", ["x", "y"], ["z"]), h.make_node("Relu", ["z"], ["y"]))
    yield file("a name that is taken", relu, h.make_node("Abs", ["x"], ["z"]))
    yield file("a name that is taken", h.make_node("Relu", ["x"], ["x"]))
    yield file("is not the output of a node", h.make_node("Relu", ["x"], ["y"]))
    yield file("has no output", relu, outputs=())
    yield file('two inputs are named "x"', relu, inputs=(x, x))
    yield file("no input", h.make_node("Relu", ["w"], ["z"]), inputs=(), weights=[n(f(2), "w")])
    yield file("is not a tensor with a shape", relu, inputs=(onnx.ValueInfoProto(name="x"),))
    yield file("has the data type 8", relu, inputs=(h.make_tensor_value_info("x", T.STRING, [2]),))
    yield file("has an axis of size 0", relu, inputs=(h.make_tensor_value_info("x", T.FLOAT, [0]),))
    for error, bad in [("is external data", external), ("has 12 bytes, expected 16", short), ("expected at most", many), ("expected at most", negative), ("has the data type 8", texts), ("has the data type 17", eight)]:
        yield file(error, h.make_node("Add", ["x", "w"], ["z"]), weights=[bad])
    yield file("is external data", h.make_node("Constant", [], ["w"], value=external), h.make_node("Add", ["x", "w"], ["z"]))
    yield file('two initializers are named "w"', h.make_node("Add", ["x", "w"], ["z"]), weights=[n(f(3), "w"), n(f(3), "w")])
    yield file("have one name as variables", h.make_node("Max", ["x", "a/b", "a|b"], ["z"]), weights=[n(f(3), "a/b"), n(f(3), "a|b")])
    yield file("deeper than 8", h.make_node("IsNaN", ["x"], ["c"]), deep(9), outputs=(onnx.ValueInfoProto(name="z0"),))
    yield file("it has no graph", relu, change=lambda m: m.ClearField("graph"))
    yield file("sparse", relu, change=lambda m: m.graph.sparse_initializer.add())


def torch_models():
    import torch
    from torch import nn
    torch.manual_seed(36)
    torch.set_num_threads(1)

    class Texts(nn.Module):
        """A transformer's block over token ids."""
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(20, 8), nn.Embedding(6, 8)
            self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))
            self.first, self.second = nn.LayerNorm(8), nn.LayerNorm(8)
            nn.init.normal_(self.first.bias), nn.init.normal_(self.second.bias)
            self.up, self.down, self.head = nn.Linear(8, 12), nn.Linear(12, 8), nn.Linear(8, 3)

        def forward(self, ids, mask):
            x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
            split = lambda y: y.reshape(y.shape[0], y.shape[1], 2, 4).transpose(1, 2)
            scores = split(self.q(x)) @ split(self.k(x)).transpose(2, 3) / 2
            scores = scores + (1 - mask[:, None, None, :].float()) * -1e9
            y = (scores.softmax(-1) @ split(self.v(x))).transpose(1, 2).reshape(x.shape)
            x = self.first(x + self.o(y))
            x = self.second(x + self.down(nn.functional.gelu(self.up(x))))
            return self.head(x[:, 0])

    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 4, batch_first=True, bidirectional=True), nn.Linear(8, 2)

        def forward(self, x):
            return self.head(self.lstm(x)[0].mean(1))

    ids = torch.randint(0, 20, (3, 6))
    mask = torch.tensor([[1] * 6, [1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 0, 0]])
    batch = torch.export.Dim("batch")
    cnn = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    cnn[1].running_mean.uniform_(), cnn[1].running_var.uniform_(0.5, 1.5)
    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), (torch.randn(5, 4),), ["x"], False, {"x": {0: "batch"}}),
        "mlp_dynamo": (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), (torch.randn(5, 4),), ["x"], True, [{0: batch}]),
        "cnn": (cnn, (torch.randn(2, 1, 8, 8),), ["x"], False, {"x": {0: "batch"}}),
        "texts": (Texts(), (ids, mask), ["ids", "mask"], False, {"ids": {0: "batch", 1: "places"}, "mask": {0: "batch", 1: "places"}}),
        "texts_dynamo": (Texts(), (ids, mask), ["ids", "mask"], True, [{0: batch}, {0: batch}]),
        "sequence": (Sequence(), (torch.randn(3, 5, 3),), ["x"], False, {"x": {0: "batch"}}),
    }


def export(name, model, arguments, names, dynamo, dynamic):
    import torch
    text = io.BytesIO()
    with contextlib.redirect_stdout(sys.stderr):
        how = {"dynamic_shapes": dynamic, "opset_version": 18} if dynamo else {"dynamic_axes": dynamic, "opset_version": 17}
        made = torch.onnx.export(model.eval(), arguments, None if dynamo else text, input_names=names, output_names=["logits"], dynamo=dynamo, **how)
    made = made.model_proto if dynamo else onnx.load_from_string(text.getvalue())
    for part in [made, made.graph, *made.graph.node, *made.graph.input, *made.graph.initializer]:
        del part.metadata_props[:]
    for node in made.graph.node:
        node.doc_string = ""
    del made.graph.value_info[:]
    text = made.SerializeToString()
    pathlib.Path(name + ".onnx").write_bytes(text)
    inputs = {k: rounded(v.numpy()) for k, v in zip(names, arguments)}
    made = {"inputs": {k: array(v) for k, v in inputs.items()}, "outputs": {k: array(v) for k, v in run(text, inputs).items()}}
    (model(*arguments) ** 2).sum().backward()
    if name.startswith("mlp"):  # the exporters keep the names of its weights
        made["gradients"] = {k: array(v.grad.numpy()) for k, v in model.named_parameters()}
    if name != "cnn":  # whose normalization is in the kernels of the file
        gradients = {k: v.grad.double() for k, v in model.named_parameters()}
        if name.startswith("texts"):  # both exporters store equal weights once
            gradients["first.weight"] = gradients["first.weight"] + gradients.pop("second.weight")
        made["norm"] = sum(float((v ** 2).sum()) for v in gradients.values()) ** 0.5
    pathlib.Path(name + ".json").write_text(json.dumps(made) + "\n")


def in_double(text, inputs):
    """The outputs in float64, by the reference implementation of ONNX, whose GlobalMaxPool takes no arrays of three axes."""
    from onnx.reference import ReferenceEvaluator
    model = onnx.load_from_string(text)
    for t in model.graph.initializer:
        if t.data_type == T.FLOAT:
            t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))
    for node in model.graph.node:
        if node.op_type == "GlobalMaxPool":
            node.op_type = "ReduceMax"
            node.attribute.extend([h.make_attribute("axes", [2]), h.make_attribute("keepdims", 1)])
        for a in node.attribute:
            if node.op_type == "Cast" and a.i == T.FLOAT:
                a.i = T.DOUBLE
    return dict(zip([o.name for o in model.graph.output], ReferenceEvaluator(model).run(None, inputs)))


def real(folder):
    """Outputs of the real models, as FOLDER/onnx.json."""
    folder = pathlib.Path(folder)
    path, cases = folder / "onnx", []
    sources = pathlib.Path(__file__).read_bytes(), pathlib.Path(json.__file__).read_bytes()
    tokens = np.full((8, 2048), 256, np.int32)
    for row in tokens:
        part = sources[rng.integers(2)]
        begin = rng.integers(len(part) - 1024)
        row[:1024] = list(part[begin:begin + 1024])
    cases.append(("magika/models/standard_v3_3/model.onnx", {"bytes": tokens}, []))
    sound = rounded((np.sin(np.arange(4 * 576) / 9) * rng.standard_normal(4 * 576) * 0.3).reshape(4, 576).astype(np.float32))
    states = f(2, 4, 128) / 4
    for name in ["silero_vad", "silero_vad_16k_op15", "silero_vad_op18_ifless", "silero_vad_half"]:
        inputs = {"input": sound, "state": states}
        cases.append((f"silero_vad/data/{name}.onnx", inputs | ({} if name == "silero_vad_half" else {"sr": s(16000)}), ["sr"]))
    cases.append(("silero_vad/data/silero_vad.onnx", {"input": sound[:, :288], "state": states, "sr": s(8000)}, ["sr"]))
    cases.append(("silero_vad/data/silero_vad_16k_sequence.onnx", {"input": sound, "h": f(1, 1, 128) / 4, "c": f(1, 1, 128) / 4}, []))
    made = [{"name": name, "constants": [c for c in constants if c in inputs], "inputs": {k: array(v) for k, v in inputs.items()},
             "outputs": {k: array(v) for k, v in run((path / name).read_bytes(), inputs).items()}} for name, inputs, constants in cases]
    double = in_double((path / cases[0][0]).read_bytes(), cases[0][1])
    made[0]["error"] = max(float(np.abs(double[k] - np.array(v["data"]).reshape(v["dims"])).max()) for k, v in made[0]["outputs"].items())
    (folder / "onnx.json").write_text(json.dumps(made))  # the last file: what was broken off is made again


if sys.argv[1:2] == ["real"]:
    real(sys.argv[2])
else:
    for name, of in [("operators", operators()), ("refusals", refusals()), ("faults", faults())]:
        pathlib.Path(name + ".json.gz").write_bytes(gzip.compress(json.dumps(list(of), separators=(",", ":")).encode(), mtime=0))
if not sys.argv[1:]:
    for name, of in torch_models().items():
        export(name, *of)
