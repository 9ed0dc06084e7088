"""mlp's data-parallel step in JAX over processes that exchange by gloo, as bench's ranks has it over MPI.

    python bench_ranks.py --processes 2 --workload mlp --variant metric
"""
import os
import socket
import subprocess
import sys
import time

import numpy as np

import common


def main():
    if "LAZO_JAX_RANK" not in os.environ:
        return launch()
    rank, size = int(os.environ["LAZO_JAX_RANK"]), int(os.environ["LAZO_JAX_SIZE"])
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import bench_train

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(os.environ["LAZO_JAX_ADDRESS"], size, rank)
    a = common.parse(["mlp"])
    mesh = Mesh(np.array(jax.devices()), ("data",))
    whole, divided = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    tx, step = bench_train.make_step(a.workload)
    jitted = jax.jit(step, donate_argnums=0, in_shardings=(whole, divided, divided), out_shardings=(whole, whole))
    xs, ys = common.data(a.workload)
    state = jax.device_put(bench_train.new_state(a.workload, tx), whole)
    part = a.batch // size

    def run(steps):
        nonlocal state
        for x, y in common.batches(xs, ys, a.batch, steps):
            own = slice(rank * part, (rank + 1) * part)
            x, y = (jax.make_array_from_process_local_data(divided, np.asarray(v[own])) for v in (x, y))
            state, _ = jitted(state, x, y)
        state = jax.block_until_ready(state)

    run(common.WARMUP["mlp"])
    if rank > 0:
        a.turns = False
    seconds, cpu = common.measure(a, lambda: run(a.steps))
    if rank == 0:
        a.workload, a.variant = "ranks", f"{size} processes, gloo"
        common.emit(a, "ms/step", [1e3 * s / a.steps for s in seconds], cpu_s=cpu, batch=a.batch, steps=a.steps)


def launch():
    size = 2
    if "--processes" in sys.argv:
        at = sys.argv.index("--processes")
        size = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    children = []
    for rank in range(size):
        env = {**os.environ, "LAZO_JAX_RANK": str(rank), "LAZO_JAX_SIZE": str(size), "LAZO_JAX_ADDRESS": f"127.0.0.1:{port}"}
        children.append(subprocess.Popen([sys.executable] + sys.argv, env=env, stdin=None if rank == 0 else subprocess.DEVNULL))
    codes = []
    for child in children:
        codes.append(child.wait())
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
