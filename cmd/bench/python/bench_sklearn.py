"""Steps of `linear` by scikit-learn: a softmax regression by Adam, its MLPClassifier without a hidden layer."""
import numpy as np
import sklearn
from sklearn.neural_network import MLPClassifier

import common


def main():
    a = common.parse(["linear"])
    x, y = common.data(a.workload)
    model = MLPClassifier(hidden_layer_sizes=(), solver="adam", learning_rate_init=1e-3, batch_size=a.batch, shuffle=False)

    def run(steps):
        each = len(x) // a.batch
        while steps > 0:
            n = min(steps, each) * a.batch
            model.partial_fit(x[:n], y[:n], classes=np.arange(10))
            steps -= each

    run(common.WARMUP[a.workload])
    seconds, cpu = common.measure(a, lambda: run(a.steps))
    common.emit(a, "steps/s", [a.steps / s for s in seconds], cpu_s=cpu, impl="sklearn", batch=a.batch, steps=a.steps, sklearn=sklearn.__version__)


if __name__ == "__main__":
    main()
