#!/usr/bin/env bash
# Compares package text's tokenizers with Python's tokenizers and sentencepiece: tokenizers of each kind, and real and random texts.
#
#   scripts/tokenizers_check.sh [NUMBER]   # of texts, 3000 or more
#
# The packages of tokenizers_requirements.txt are installed into .tools/tokenizers, once. PYTHON (default python3, 3.11 or
# later) is the interpreter that makes that environment.
set -euo pipefail

cd "$(dirname "$0")/.."
environment=$PWD/.tools/tokenizers
if ! cmp -s scripts/tokenizers_requirements.txt "$environment/installed"; then
	rm -rf "$environment"
	"${PYTHON:-python3}" -m venv "$environment"
	"$environment/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --no-deps \
		--requirement scripts/tokenizers_requirements.txt
	cp scripts/tokenizers_requirements.txt "$environment/installed" # last: what was broken off is made again
fi
texts=$(mktemp -d)
trap 'rm -rf "$texts"' EXIT
"$environment/bin/python" data/text/testdata/tokenizers.py "$texts" "${1:-3000}"
"${GO:-go}" test -count=1 -vet=off -ldflags=-w -v -timeout 120m -run '^TestOpen_asThePeers$' ./data/text -args -peers "$texts"
