"""The machine's limits in JAX: a float32 matrix product, x+1 over 256 MiB, and runs that change 10 to 600 small values in
place (their programs are started without waiting, one wait at the end)."""
import jax
import jax.numpy as jnp
import numpy as np

import common


def values(*shape):
    return (np.arange(np.prod(shape)) % 97 / 97).astype(np.float32).reshape(shape)


def main():
    a = common.parse(["matmul", "copy", "inplace"])
    if a.workload == "matmul":
        n = int(a.variant.removesuffix("^3"))
        inner, unit, work = {1024: 20}.get(n, 1), "GFLOP/s", 2 * n**3 / 1e9
        x, y = jax.device_put((values(n, n), values(n, n)))
        f = jax.jit(jnp.matmul)
        once = lambda: f(x, y).block_until_ready()
    elif a.workload == "copy":
        inner, unit, work = 3, "GB/s (read+write)", 2 * 256 * 2**20 / 1e9
        donated = a.variant.endswith("(donated)")
        f = jax.jit(lambda v: v + 1.0, donate_argnums=0 if donated else ())
        box = [jax.device_put(values(64 * 2**20)) + 0.0]

        def once():
            result = f(box[0]).block_until_ready()
            if donated:
                box[0] = result
    else:
        n = int(a.variant)
        inner, unit = a.steps or 240_000 // n, "us/run"
        f = jax.jit(lambda state: [v + 1.0 for v in state], donate_argnums=0)
        box = [[jnp.zeros(4) + float(i) for i in range(n)]]

        def once():
            box[0] = f(box[0])

    def run():
        for _ in range(inner):
            once()
        if a.workload == "inplace":
            jax.block_until_ready(box)

    run()
    seconds, cpu = common.measure(a, run)
    common.emit(a, unit, [1e6 * s / inner if unit == "us/run" else work * inner / s for s in seconds], cpu_s=cpu)


if __name__ == "__main__":
    main()
