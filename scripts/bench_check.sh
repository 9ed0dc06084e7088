#!/usr/bin/env bash
# Measures a small set of workloads in turns with the bench of an earlier commit, and says what became slower beyond noise.
#   scripts/bench_check.sh REF [REPEATS]
# Ends with 3 if anything did.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/before"
git archive "$1" | tar -x -C "$folder/before"
(cd "$folder/before" && "${GO:-go}" build -o "$folder/bench-before" "$(test -d cmd/bench && echo ./cmd/bench || echo ./bench)")
"${GO:-go}" build -o "$folder/bench-now" ./cmd/bench
"$folder/bench-now" -check "$folder/bench-before" -repeats "${2:-9}"
