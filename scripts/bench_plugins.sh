#!/usr/bin/env bash
# Measures lazo on several plugins in turns, and prints a table of medians and of ratios to the first one.
#   scripts/bench_plugins.sh [--repeats N] [--only mlp,gpt,...] [--lines FILE] NAME=PLUGIN[::XLA_FLAGS] NAME=PLUGIN...
# PLUGIN is the path of a library, or a name that lazo install knows. PY is a Python 3, default python3; it needs no package.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${GO:-go}" build -o "$folder/bench" ./cmd/bench
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-3}"
"${PY:-python3}" -B cmd/bench/python/plugins.py "$folder/bench" "$@"
