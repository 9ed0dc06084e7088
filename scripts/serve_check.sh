#!/usr/bin/env bash
# Serves a model to NVIDIA's Python client tritonclient[http].
#
#   scripts/serve_check.sh
#
# The packages of serve_requirements.txt are installed into .tools/serve, once. PYTHON (default python3, 3.11 or later) is
# the interpreter that makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
environment=$PWD/.tools/serve
if ! cmp -s scripts/serve_requirements.txt "$environment/installed"; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --no-deps \
		--requirement scripts/serve_requirements.txt
	cp scripts/serve_requirements.txt "$environment/installed" # last: what was broken off is made again
fi
# -count=1: Go's cache of results does not know whether the script has changed.
LAZO_PYTHON="$environment/bin/python" "${GO:-go}" test -count=1 -v -run '^TestInterop' ./serve
