"""Writes keras_muon.json: the parameters after 100 steps of Keras's Muon on the problem of trajectories.py.

    KERAS_BACKEND=jax python keras_muon.py > keras_muon.json

Made with Keras 3.15.1 and JAX 0.10.2.
"""
import contextlib
import io
import json
import sys

import keras
import numpy as np

with contextlib.redirect_stdout(io.StringIO()):  # that script prints its own
    import trajectories as problem


def run(**options):
    matrix, rest = (keras.Variable(np.asarray(problem.tree(problem.START)[k]), name=k) for k in ("w", "b"))
    rule = keras.optimizers.Muon(0.02, weight_decay=None, adam_weight_decay=None, **options)
    rule.build([matrix, rest])
    for t in range(problem.STEPS):
        slope = problem.gradient({"w": matrix.value, "b": rest.value}, t)
        rule.apply([slope["w"], slope["b"]], [matrix, rest])
    return [float(str(np.float32(x))) for v in (matrix, rest) for x in np.asarray(v.value).ravel()]


json.dump({"as it is": run(), "rms_rate=None": run(rms_rate=None)}, sys.stdout)
print()
