"""Reads the record of a run by MLflow's own client: check.py URL EXPERIMENT."""

import json
import sys

import mlflow

mlflow.set_tracking_uri(sys.argv[1])
client = mlflow.MlflowClient()
experiment = client.get_experiment_by_name(sys.argv[2])
runs = client.search_runs([experiment.experiment_id], order_by=["attributes.start_time"])
found = []
for run in runs:
    model = None
    files = []
    folders = [""]
    while folders:
        for f in client.list_artifacts(run.info.run_id, folders.pop() or None):
            if f.is_dir:
                folders.append(f.path)
            else:
                files.append([f.path, f.file_size])
    if any(path == "model/MLmodel" for path, _ in files):
        info = mlflow.models.get_model_info(f"runs:/{run.info.run_id}/model")
        model = {
            "inputs": [[s.name, str(s.type), list(s.shape)] for s in info.signature.inputs],
            "outputs": [[s.name, str(s.type), list(s.shape)] for s in info.signature.outputs],
            "flavors": info.flavors,
        }
        local = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="model/model.safetensors")
        model["file"] = local
    found.append({
        "name": run.info.run_name,
        "status": run.info.status,
        "ended": run.info.end_time is not None,
        "params": run.data.params,
        "tags": run.data.tags,
        "last": {k: repr(v) for k, v in run.data.metrics.items()},
        "metrics": {k: [[m.step, repr(m.value)] for m in sorted(client.get_metric_history(run.info.run_id, k), key=lambda m: (m.step, m.timestamp))] for k in run.data.metrics},
        "files": sorted(files),
        "model": model,
    })
print(json.dumps(found))
