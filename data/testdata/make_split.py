"""Writes the rows of digits.csv.gz that are the test set, in the order of the peers' benchmark: the last 20 % of
numpy's permutation with seed 0. Made with numpy 2.4; run in this folder:

    python make_split.py > ../digits_test_rows.txt

With scikit-learn at hand it also makes sure that its load_digits has the rows in the order of the file.
"""
import gzip
import sys

import numpy as np

with gzip.open("../digits.csv.gz") as f:
    rows = np.loadtxt(f, delimiter=",")
assert rows.shape == (1797, 65)
try:
    from sklearn.datasets import load_digits
except ImportError:
    print("no scikit-learn: the order of the rows was not compared", file=sys.stderr)
else:
    d = load_digits()
    assert (d.data == rows[:, :-1]).all() and (d.target == rows[:, -1]).all()
    print("the rows are those of load_digits", file=sys.stderr)

order = np.random.default_rng(0).permutation(len(rows))
print("\n".join(map(str, order[int(0.8 * len(rows)):])))
