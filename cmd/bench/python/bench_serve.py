"""A server of mlp's layers on jitted JAX, as bench's serve asks for it: JSON of the Open Inference Protocol over HTTP, by
starlette and uvicorn. As lazo's server it runs requests that wait together as one batch, of the sizes 1, 2, 4 to 64, all
compiled before it says its address; --one-by-one leaves that out. It ends with its input. Needs jax, starlette,
uvicorn[standard]."""
import argparse
import asyncio
import json
import socket
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

SIZES = (784, 512, 512, 10)
MOST = 64


def model():
    r = np.random.default_rng(0)
    parameters = jax.device_put([(r.normal(size=(a, b)).astype(np.float32) / np.sqrt(a), np.zeros(b, np.float32))
                                 for a, b in zip(SIZES, SIZES[1:])])

    @jax.jit
    def f(parameters, x):
        for i, (w, b) in enumerate(parameters):
            x = x @ w + b
            if i < len(parameters) - 1:
                x = jnp.maximum(x, 0)
        return x

    return lambda x: np.asarray(f(parameters, x))


class Batcher:
    """Runs what waits together, in a thread of its own, so that requests are read meanwhile."""

    def __init__(self, predict):
        self.predict, self.waiting = predict, asyncio.Queue()

    async def run(self):
        while True:
            together = [await self.waiting.get()]
            while len(together) < MOST and not self.waiting.empty():
                together.append(self.waiting.get_nowait())
            size = 1
            while size < len(together):
                size *= 2
            x = np.zeros((size, SIZES[0]), np.float32)
            for i, (row, _) in enumerate(together):
                x[i] = row
            y = await asyncio.get_running_loop().run_in_executor(None, self.predict, x)
            for i, (_, answer) in enumerate(together):
                if not answer.done():
                    answer.set_result(y[i])

    async def ask(self, row):
        answer = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((row, answer))
        return await answer


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--one-by-one", action="store_true")
    a = p.parse_args()
    predict = model()
    size = 1
    while size <= MOST:
        predict(np.zeros((size, SIZES[0]), np.float32))
        size *= 2
    batcher = None

    async def infer(request):
        nonlocal batcher
        given = json.loads(await request.body())["inputs"][0]
        if given["name"] != "x" or given["datatype"] != "FP32" or given["shape"] != [1, SIZES[0]]:
            return Response(json.dumps({"error": "expected x, FP32 [1, 784]"}), 400, media_type="application/json")
        x = np.asarray(given["data"], np.float32).reshape(1, SIZES[0])
        if a.one_by_one:
            y = predict(x)[0]
        else:
            if batcher is None:
                batcher = Batcher(predict)
                batcher.task = asyncio.create_task(batcher.run())
            y = await batcher.ask(x[0])
        answer = {"model_name": "mlp", "model_version": "1",
                  "outputs": [{"name": "preds", "datatype": "FP32", "shape": [1, SIZES[-1]], "data": y.tolist()}]}
        return Response(json.dumps(answer), media_type="application/json")

    app = Starlette(routes=[Route("/v2/models/mlp/infer", infer, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))

    def end():
        sys.stdin.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    server.run(sockets=[listening])


if __name__ == "__main__":
    main()
