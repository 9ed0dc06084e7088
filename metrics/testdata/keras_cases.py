"""Writes keras_cases.json.gz: what Keras's metrics and losses give for many inputs.

    pip install numpy keras jax pytest absl-py
    KERAS_BACKEND=jax python keras_cases.py | gzip -9n > keras_cases.json.gz

Made with Keras 3.15.1, JAX 0.10.2. The inputs are of two kinds: those that Keras's own tests use, which are recorded by
a hook while the tests of the installed wheel run, and those drawn here. A row has the public name of a class, its
options, the inputs of each update, and the result. No text of Keras is in it.
"""
import contextlib
import importlib
import inspect
import io
import itertools
import json
import sys
import unittest

import keras
import numpy as np

TESTS = ["metrics." + n for n in ("accuracy_metrics", "confusion_metrics", "correlation_metrics", "f_score_metrics", "hinge_metrics",
                                  "iou_metrics", "probabilistic_metrics", "regression_metrics", "reduction_metrics")] + ["losses.losses"]
LIMIT = 600  # numbers in a row: larger inputs are not recorded

rows, seen, depth = [], set(), 0


def plain(x):
    """An array as nested lists of numbers, with its type; None as it is."""
    if x is None:
        return None
    x = np.asarray(keras.ops.convert_to_numpy(x) if keras.ops.is_tensor(x) else x)
    if x.dtype == object or x.dtype.kind not in "fiub":
        raise ValueError("not numbers")
    flat = [("nan" if np.isnan(v) else "inf" if v > 0 else "-inf") if not np.isfinite(v) else v.item() for v in x.ravel()]
    return dict(shape=list(x.shape), type="bool" if x.dtype.kind == "b" else "int" if x.dtype.kind in "iu" else "float", flat=flat)


def settings(of):
    """The options of a constructor that are plain values."""
    drop = ("name", "dtype", "fn", "reduction") if isinstance(of, keras.Metric) else ("name", "dtype", "fn")
    config = {k: np.asarray(v).tolist() if isinstance(v, (np.ndarray, tuple)) else v for k, v in of.get_config().items() if k not in drop}
    json.dumps(config)
    return config


def record(kind, of, updates, result, source):
    public = getattr(getattr(keras, kind), type(of).__name__, None)
    if public is not type(of) or not updates:
        return
    try:
        row = dict(kind=kind, name=type(of).__name__, options=settings(of), updates=[[plain(x) for x in u] for u in updates], result=plain(result))
    except (ValueError, TypeError):
        return
    key = json.dumps(row)
    if key in seen or sum(len(x["flat"]) for u in row["updates"] for x in u if x) > LIMIT:
        return
    seen.add(key)
    rows.append(dict(source=source, **row))


@contextlib.contextmanager
def inner():
    global depth
    depth += 1
    try:
        yield depth == 1
    finally:
        depth -= 1


def watch(source):
    """Has all public classes record what they are given, until the returned function is called."""
    undo = []

    def patch(cls, name, make):
        if name in vars(cls):
            old = vars(cls)[name]
            undo.append((cls, name, old))
            setattr(cls, name, make(old))

    def update(old):
        signature = inspect.signature(old)

        def call(self, *args, **kw):
            with inner() as outer:
                if outer:
                    bound = signature.bind(self, *args, **kw)
                    given = {k: v for k, v in bound.arguments.items() if k != "self"}
                    order = ["y_true", "y_pred", "sample_weight"] if "y_pred" in signature.parameters else ["values", "sample_weight"]
                    self.__dict__.setdefault("_given", []).append([given.get(k) for k in order])
                return old(self, *args, **kw)
        return call

    def reset(old):
        def call(self, *args, **kw):
            if depth == 0:
                self.__dict__["_given"] = []
            return old(self, *args, **kw)
        return call

    def result(old):
        def call(self, *args, **kw):
            with inner() as outer:
                value = old(self, *args, **kw)
            if outer and not isinstance(value, dict):
                record("metrics", self, self.__dict__.get("_given"), value, source)
            return value
        return call

    def loss(old):
        def call(self, y_true, y_pred, sample_weight=None):
            masked = any(getattr(x, "_keras_mask", None) is not None for x in (y_true, y_pred))
            with inner() as outer:
                value = old(self, y_true, y_pred, sample_weight)
            if outer and not masked:
                record("losses", self, [[y_true, y_pred, sample_weight]], value, source)
            return value
        return call

    def family(cls):
        return {cls}.union(*map(family, cls.__subclasses__()))

    for cls in family(keras.Metric):
        patch(cls, "update_state", update)
        patch(cls, "reset_state", reset)
        patch(cls, "result", result)
    for cls in family(keras.Loss):
        patch(cls, "__call__", loss)

    def stop():
        for cls, name, old in undo:
            setattr(cls, name, old)
    return stop


def tests():
    """Runs Keras's own tests, from the wheel, under the hook."""
    suite = unittest.TestSuite()
    for name in TESTS:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(f"keras.src.{name}_test")))
    stop = watch("tests")
    with contextlib.redirect_stdout(io.StringIO()):
        done = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    stop()
    print(f"{done.testsRun} tests of Keras, {len(done.errors) + len(done.failures)} of them fail here; {len(rows)} rows", file=sys.stderr)


def drawn():
    """Inputs of many shapes, weights and edge cases."""
    stop = watch("drawn")
    rng = np.random.default_rng(11)
    M, L = keras.metrics, keras.losses
    f32 = np.float32

    def numbers(*shape):
        return (rng.integers(-24, 25, shape) / 8).astype(f32)

    def scores(n, classes):
        """No two of an example are equal."""
        return (np.stack([rng.permutation(48)[:classes] for _ in range(n)]) / 8 - 3).astype(f32)

    def shares(*shape):
        return ((rng.integers(0, 64, shape) + 0.5) / 64).astype(f32)

    def soft(*shape):
        e = np.exp(numbers(*shape).astype(np.float64))
        return (e / e.sum(-1, keepdims=True)).astype(f32)

    def bits(*shape):
        return rng.integers(0, 2, shape).astype(f32)

    def hot(n, classes, among=None):
        return np.eye(classes, dtype=f32)[rng.integers(0, among or classes, n)]

    def weights(kind, *shape):
        n = shape[0]
        return {"none": None, "plain": (rng.integers(0, 5, n) / 2).astype(f32), "column": (rng.integers(1, 5, (n, 1)) / 2).astype(f32),
                "zeros": np.zeros(n, f32), "some": (np.arange(n) % 2).astype(f32)}[kind]

    def metric(of, *inputs):
        for part in inputs:
            of.update_state(*part)
        of.result()

    def batches(y, p, kind):
        """Two batches of unequal size."""
        n = len(y)
        w = weights(kind, n)
        cut = n // 3
        return [(y[:cut], p[:cut], None if w is None else w[:cut]), (y[cut:], p[cut:], None if w is None else w[cut:])]

    kinds = ("none", "plain", "column", "zeros", "some")
    for kind in kinds:
        for width in (1, 3) if kind != "zeros" else (1,):
            y, p = numbers(12, width), numbers(12, width)
            for cls in (M.MeanSquaredError, M.RootMeanSquaredError, M.MeanAbsoluteError, M.MeanAbsolutePercentageError, M.LogCoshError, M.R2Score):
                metric(cls(), *batches(y, p, kind))
            counts, rates = rng.integers(0, 5, (12, width)).astype(f32), shares(12, width) * 4
            for cls in (M.Poisson, M.MeanSquaredLogarithmicError):
                metric(cls(), *batches(counts, rates, kind))
            signs = bits(12, width) * 2 - 1
            for cls in (M.Hinge, M.SquaredHinge):
                metric(cls(), *batches(signs, p, kind))
            y, p = bits(12, width), shares(12, width)
            for of in (M.BinaryAccuracy(), M.BinaryCrossentropy(), M.AUC(num_thresholds=129), M.AUC(num_thresholds=129, curve="PR")):
                metric(of, *batches(y, p, kind))
            metric(M.BinaryCrossentropy(from_logits=True), *batches(y, numbers(12, width), kind))
            if width == 1:
                for of in (M.Precision(), M.Recall(), M.PrecisionAtRecall(0.5, num_thresholds=129), M.RecallAtPrecision(0.5, num_thresholds=129),
                           M.SensitivityAtSpecificity(0.5, num_thresholds=129), M.SpecificityAtSensitivity(0.5, num_thresholds=129)):
                    metric(of, *batches(y, p, kind))
        y, p = numbers(12, 4), numbers(12, 4)
        for cls in (M.CosineSimilarity, M.PearsonCorrelation, M.ConcordanceCorrelation):
            metric(cls(), *batches(y, p, kind))
        for classes, among in ((3, 3), (5, 3), (8, 8)) if kind != "zeros" else ((3, 3),):
            y, p = hot(12, classes, among), scores(12, classes)
            q = np.exp(p) / np.exp(p).sum(-1, keepdims=True)
            integers = y.argmax(-1)
            metric(M.CategoricalAccuracy(), *batches(y, p, kind))
            metric(M.SparseCategoricalAccuracy(), *batches(integers, p, kind))
            metric(M.CategoricalCrossentropy(from_logits=True), *batches(y, p, kind))
            metric(M.SparseCategoricalCrossentropy(from_logits=True), *batches(integers, p, kind))
            metric(M.KLDivergence(), *batches(y, q, kind))
            metric(M.CategoricalHinge(), *batches(y, p, kind))
            for k in (1, 2, 5, 9) if kind in ("none", "plain") else (2,):
                metric(M.TopKCategoricalAccuracy(k=k), *batches(y, p, kind))
                metric(M.SparseTopKCategoricalAccuracy(k=k), *batches(integers, p, kind))
            for average in (None, "micro", "macro", "weighted") if kind in ("none", "plain") else ():
                metric(M.F1Score(average=average), *batches(y, q, kind))
                metric(M.FBetaScore(average=average, beta=2.0), *batches(y, q, kind))
            if kind in ("none", "zeros", "some"):  # Keras takes whole weights there
                metric(M.MeanIoU(num_classes=classes, sparse_y_pred=False), *batches(integers, q, kind))
                metric(M.MeanIoU(num_classes=classes), *batches(integers, p.argmax(-1), kind))
                metric(M.IoU(num_classes=classes, target_class_ids=[0]), *batches(integers, p.argmax(-1), kind))
            metric(M.Accuracy(), *batches(integers, p.argmax(-1), kind))
    # Edge cases.
    nan = f32("nan")
    for value in (nan, f32("inf")):
        broken = numbers(6, 3)
        broken[2, 1] = value
        for cls in (M.MeanSquaredError, M.MeanAbsoluteError, M.R2Score):
            metric(cls(), (numbers(6, 3), broken))
        metric(M.CategoricalCrossentropy(from_logits=True), (hot(6, 3), broken))
        metric(M.CategoricalAccuracy(), (hot(6, 3), broken))
    same = np.ones((4, 1), f32)
    metric(M.R2Score(), (same, numbers(4, 1)))
    metric(M.R2Score(), (same, same))
    metric(M.CosineSimilarity(), (np.zeros((4, 3), f32), numbers(4, 3)))
    metric(M.PearsonCorrelation(), (np.ones((4, 3), f32), numbers(4, 3)))
    metric(M.ConcordanceCorrelation(), (np.ones((4, 3), f32), np.ones((4, 3), f32)))
    metric(M.Precision(), (np.zeros((4, 1), f32), np.zeros((4, 1), f32)))
    metric(M.Recall(), (np.zeros((4, 1), f32), np.ones((4, 1), f32)))
    metric(M.AUC(), (np.zeros((4, 1), f32), shares(4, 1)))
    metric(M.AUC(), (np.ones((4, 1), f32), shares(4, 1)))
    metric(M.Mean(), (np.full(3, 0.8, f32),))
    metric(M.Sum(), (np.full(3, 0.8, f32),))
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        metric(M.Mean(), (numbers(*shape),))
        metric(M.Mean(), (numbers(*shape), shares(*shape)))
        metric(M.Sum(), (numbers(*shape), shares(*shape)))
    ties = np.array([[0.5, 0.5, 0.2], [0.3, 0.3, 0.3], [0.1, 0.7, 0.7]], f32)
    for k in (1, 2):
        metric(M.TopKCategoricalAccuracy(k=k), (hot(3, 3), ties))
    metric(M.CategoricalAccuracy(), (hot(3, 3), ties))
    metric(M.F1Score(average="macro"), (hot(3, 3), ties))
    # Losses: shapes, weights, saturated outputs.
    for shape, kind in itertools.product(((6, 1), (6, 4), (4, 3, 4)), kinds):
        w = weights(kind, *shape)
        if kind == "zeros" and shape != (6, 1):
            continue
        if w is not None and w.ndim == 2 and len(shape) == 3:
            continue  # Keras has [batch, 1] broadcast to [batch, time]
        if w is not None and len(shape) == 3:
            w = np.repeat(w[:, None], shape[1], 1)
        y, p = numbers(*shape), numbers(*shape)
        for of in (L.MeanSquaredError(), L.MeanAbsoluteError(), L.MeanAbsolutePercentageError(), L.Huber(), L.LogCosh()):
            of(y, p, w)
        L.MeanSquaredLogarithmicError()(rng.integers(0, 5, shape).astype(f32), shares(*shape) * 4, w)
        L.Poisson()(rng.integers(0, 5, shape).astype(f32), shares(*shape) * 4, w)
        L.Hinge()(bits(*shape) * 2 - 1, p, w)
        L.SquaredHinge()(bits(*shape) * 2 - 1, p, w)
        for far in (1, 12):
            z = p * far
            L.BinaryCrossentropy(from_logits=True)(bits(*shape), z, w)
            L.BinaryCrossentropy(from_logits=True, label_smoothing=0.2)(bits(*shape), z, w)
            L.BinaryFocalCrossentropy(from_logits=True)(bits(*shape), z, w)
            if shape[-1] == 1:
                continue
            one = hot(int(np.prod(shape[:-1])), shape[-1]).reshape(shape)
            L.CategoricalCrossentropy(from_logits=True)(one, z, w)
            L.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)(soft(*shape), z, w)
            L.CategoricalFocalCrossentropy(from_logits=True)(one, z, w)
            L.SparseCategoricalCrossentropy(from_logits=True)(one.argmax(-1), z, w)
            L.CategoricalHinge()(one, z, w)
            L.KLDivergence()(soft(*shape), np.asarray(keras.ops.softmax(z)), w)
        if shape[-1] > 1:
            L.CosineSimilarity()(y, p, w)
        if kind == "none":
            L.Dice()(bits(*shape), shares(*shape))
            L.Tversky()(bits(*shape), shares(*shape))
    stop()


tests()
drawn()
print(f"{len(rows)} rows of {len({(r['kind'], r['name']) for r in rows})} classes", file=sys.stderr)
json.dump(dict(keras=keras.__version__, rows=rows), sys.stdout, separators=(",", ":"))
print()
