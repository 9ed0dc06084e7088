"""Seconds from the start of a process to the end of its first step of the cnn workload, in JAX."""
import os
import subprocess
import sys
import tempfile
import time

CHILD = "--child"


def child(started):
    import numpy as np
    r = np.random.default_rng(0)
    x = r.standard_normal((128, 28, 28, 1), dtype=np.float32)
    y = r.integers(0, 10, 128).astype(np.int32)
    import bench_train
    import jax
    tx, step = bench_train.make_step("cnn")
    state = jax.block_until_ready(jax.jit(lambda: bench_train.new_state("cnn", tx))())
    jax.block_until_ready(jax.jit(step, donate_argnums=0)(state, x, y))
    print(time.time() - started)


def main():
    if sys.argv[1] == CHILD:
        return child(float(sys.argv[2]))
    import common
    a = common.parse(["ttfs"])
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ)
        if a.variant == "first step cached":
            environment |= {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        seconds = []
        for i in range(a.repeats + 1):  # the first warms the caches and does not count
            if i > 0:
                common.turn(a)
            command = [sys.executable, os.path.abspath(__file__), CHILD, repr(time.time())]
            out = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            seconds += [float(out)] if i > 0 else []
    common.emit(a, "s", seconds)


if __name__ == "__main__":
    main()
