#!/usr/bin/env bash
# Exchanges files with the Python package safetensors: tensors of every type, whole checkpoints, weights under Flax's names.
#
#   scripts/safetensors_check.sh
#
# The packages of safetensors_requirements.txt are installed into .tools/safetensors, once. PYTHON (default python3, 3.11 or
# later) is the interpreter that makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
environment=$PWD/.tools/safetensors
if ! cmp -s scripts/safetensors_requirements.txt "$environment/installed"; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes \
		--requirement scripts/safetensors_requirements.txt
	cp scripts/safetensors_requirements.txt "$environment/installed" # last: what was broken off is made again
fi
# -count=1: Go's cache of results does not know whether the script has changed.
LAZO_PYTHON="$environment/bin/python" "${GO:-go}" test -count=1 -vet=off -ldflags=-w -v -run '^TestInterop' ./checkpoint ./checkpoint/safetensors ./cmd/lazo
