"""Writes targets.json: scaled targets and restored predictions of scikit-learn's TransformedTargetRegressor."""
import json
import numpy as np
import sklearn
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

x = np.arange(12.0).reshape(-1, 1)
y = np.round(np.exp(x[:, 0] / 3) + 1e4 + 7 * (x[:, 0] % 3), 3)
new = np.array([[0.5], [7.25], [20.0]])
cases = []
for scale in ("", "standard", "minmax"):
    for log in (False, True):
        steps = ([FunctionTransformer(np.log1p, np.expm1)] if log else []) + {"": [], "standard": [StandardScaler()], "minmax": [MinMaxScaler()]}[scale]
        if not steps:
            continue
        r = TransformedTargetRegressor(LinearRegression(), transformer=make_pipeline(*steps)).fit(x, y)
        p = r.predict(x)
        cases.append({"scale": scale, "log": log, "scaled": r.transformer_.transform(y.reshape(-1, 1))[:, 0].tolist(),
                      "slope": float(np.ravel(r.regressor_.coef_)[0]), "intercept": float(np.ravel(r.regressor_.intercept_)[0]),
                      "predictions": r.predict(new).tolist(), "mae": mean_absolute_error(y, p), "rmse": root_mean_squared_error(y, p), "r2": r2_score(y, p)})
with open("targets.json", "w") as f:
    json.dump({"version": sklearn.__version__, "x": x[:, 0].tolist(), "y": y.tolist(), "new": new[:, 0].tolist(), "cases": cases}, f, indent=1)
    f.write("\n")
