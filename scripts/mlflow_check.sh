#!/usr/bin/env bash
# Records runs by the module callbacks/mlflow with a real `mlflow server`, and reads them by MLflow's own client.
#
#   scripts/mlflow_check.sh
#
# The package of mlflow_requirements.txt is installed into .tools/mlflow, once. With LAZO_PYTHON, an interpreter that has it, nothing is
# installed. PYTHON (default python3, 3.11 or later) makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
if [ -z "${LAZO_PYTHON:-}" ]; then
	environment=$PWD/.tools/mlflow
	if ! cmp -s scripts/mlflow_requirements.txt "$environment/installed"; then
		rm -rf "$environment"
		"${PYTHON:-python3}" -m venv "$environment"
		"$environment/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/mlflow_requirements.txt
		cp scripts/mlflow_requirements.txt "$environment/installed" # last: what was broken off is made again
	fi
	LAZO_PYTHON="$environment/bin/python"
fi
cd callbacks/mlflow
# -count=1: Go's cache of results does not know whether the script has changed.
LAZO_PYTHON="$LAZO_PYTHON" "${GO:-go}" test -count=1 -v -timeout 30m -run '^TestInterop' .
