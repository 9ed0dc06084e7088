"""Writes to stdout the names that docs/from-keras.md must have a row for: python docs/testdata/keras_list.py > docs/testdata/keras_list.txt

Needs keras 3 (any backend). One name a line, with its group before it.
"""
import inspect
import os

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras

print(f"# keras {keras.__version__}")
for method in ("compile", "fit", "evaluate", "predict"):
    for name in inspect.signature(getattr(keras.Model, method)).parameters:
        if name not in ("self", "kwargs"):
            print(method, name)
for name, value in sorted(vars(keras.callbacks).items()):
    if inspect.isclass(value):
        print("callback", name)
for group, base in (("loss", keras.losses.Loss), ("metric", keras.metrics.Metric), ("optimizer", keras.optimizers.Optimizer)):
    names = vars(getattr(keras, {"loss": "losses", "metric": "metrics", "optimizer": "optimizers"}[group]))
    for name, value in sorted(names.items()):
        if inspect.isclass(value) and issubclass(value, base) and value is not base:
            print(group, name)
for group in (keras.layers, keras.utils):
    for name in ("Normalization", "StringLookup", "IntegerLookup", "CategoryEncoding", "Discretization", "Hashing", "HashedCrossing",
                 "FeatureSpace", "to_categorical", "split_dataset"):
        if hasattr(group, name):
            print("table", name)
