#!/usr/bin/env bash
# Serves models to NVIDIA's Python client tritonclient[http], and to OpenAI's.
#
#   scripts/serve_check.sh
#
# The packages of serve_requirements.txt and openai_requirements.txt are installed into .tools/serve, once. PYTHON (default python3, 3.11 or later) is
# the interpreter that makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
environment=$PWD/.tools/serve
wanted=$(cat scripts/serve_requirements.txt scripts/openai_requirements.txt)
if [ "$wanted" != "$(cat "$environment/installed" 2>/dev/null)" ]; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --no-deps \
		--requirement scripts/serve_requirements.txt --requirement scripts/openai_requirements.txt
	echo "$wanted" >"$environment/installed" # last: what was broken off is made again
fi
# -count=1: Go's cache of results does not know whether the script has changed.
LAZO_PYTHON="$environment/bin/python" "${GO:-go}" test -count=1 -vet=off -ldflags=-w -v -run '^TestInterop' ./serve ./pretrained/openai
