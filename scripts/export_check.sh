#!/usr/bin/env bash
# Exports five small models, among them a recurrent one and one with branches, as models and as training steps, and checks
# that JAX computes the same from the folders.
#
#   scripts/export_check.sh
#
# JAX is installed, in the versions of export_requirements.txt, into .tools/jax, once. PYTHON (default python3) is the
# interpreter that makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
environment=.tools/jax
if ! cmp -s scripts/export_requirements.txt "$environment/installed"; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --requirement scripts/export_requirements.txt
	cp scripts/export_requirements.txt "$environment/installed" # last: what was broken off is made again
fi
folders=$(mktemp -d)
trap 'rm -rf "$folders"' EXIT
"${GO:-go}" run ./examples/export "$folders"
JAX_PLATFORMS=cpu "$environment/bin/python" scripts/load_stablehlo.py "$folders"/*
