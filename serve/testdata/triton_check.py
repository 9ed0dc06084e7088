"""Calls the server at argv[1] by tritonclient, as its users do: binary tensors, JSON, compression, metadata, errors.

The model "all" returns its inputs, one of each datatype of two elements, and texts.
"""
import sys

import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

client = http.InferenceServerClient(sys.argv[1], concurrency=4)
assert client.is_server_live() and client.is_server_ready()
assert client.is_model_ready("all") and client.is_model_ready("all", "1")
assert client.get_server_metadata()["name"] == "lazo"
assert client.get_model_repository_index() == [{"name": "all", "version": "1", "state": "READY", "reason": ""}]

metadata = client.get_model_metadata("all")
config = client.get_model_config("all")
assert config["max_batch_size"] == 4, config
assert [i["name"] for i in config["input"]] == [i["name"] for i in metadata["inputs"]]

types = {"BOOL": np.bool_, "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "UINT8": np.uint8, "UINT16": np.uint16,
         "UINT32": np.uint32, "UINT64": np.uint64, "FP32": np.float32, "FP64": np.float64}
given = {}
for i in metadata["inputs"]:
    dtype = types[i["datatype"]]
    assert i["shape"] == [-1, 2], i
    if dtype == np.bool_:
        values = [[True, False], [False, True], [True, True]]
    elif np.issubdtype(dtype, np.integer):
        values = [[np.iinfo(dtype).min, np.iinfo(dtype).max], [0, 1], [2, 3]]
    else:
        values = [[np.finfo(dtype).max, np.finfo(dtype).tiny], [0.1, -0.25], [1e-3, 7]]
    given[i["name"]] = np.array(values, dtype=dtype)


def inputs(binary):
    made = []
    for i in metadata["inputs"]:
        made.append(http.InferInput(i["name"], list(given[i["name"]].shape), i["datatype"]))
        made[-1].set_data_from_numpy(given[i["name"]], binary_data=binary)
    return made


def check(result, names):
    for name in names:
        got = result.as_numpy(name)
        if name == "words":
            assert [w if isinstance(w, str) else w.decode() for w in got] == ["wört"] * 3, got
            continue
        assert got.dtype == given[name].dtype and np.array_equal(got, given[name]), (name, got, given[name])


calls = 0
everything = [*given, "words"]
for binary in (True, False):
    for compression in (None, "gzip", "deflate"):
        result = client.infer("all", inputs(binary), request_id="7", request_compression_algorithm=compression, response_compression_algorithm="gzip")
        check(result, everything)
        assert result.get_response()["id"] == "7"
        for back in (True, False):
            outputs = [http.InferRequestedOutput(name, binary_data=back) for name in everything]
            check(client.infer("all", inputs(binary), outputs=outputs, model_version="1", request_compression_algorithm=compression), everything)
        calls += 3

waiting = [client.async_infer("all", inputs(True)) for _ in range(64)]
for w in waiting:
    check(w.get_result(), everything)
calls += 64

for wrong, text in ((lambda: client.infer("none", inputs(True)), "there is no model"),
                    (lambda: client.infer("all", inputs(True)[:1]), "there is no"),
                    (lambda: client.infer("all", inputs(True), outputs=[http.InferRequestedOutput("words", class_count=2)]), "classification is not supported"),
                    (lambda: client.infer("all", inputs(True), model_version="2"), "has no version")):
    try:
        wrong()
    except InferenceServerException as e:
        assert text in e.message(), e
        calls += 1
    else:
        raise AssertionError(f"no error with {text!r}")
print(f"{calls} calls")
