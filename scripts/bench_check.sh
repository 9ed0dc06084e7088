#!/usr/bin/env bash
# Measures a small set of workloads in turns with the bench of an earlier commit, and says what became slower beyond noise.
#   scripts/bench_check.sh [REF] [REPEATS] [HISTORY.jsonl]
# An empty REF is the last release: the newest tag v* in HEAD's history, without one the commit of docs/maintain/peers.txt.
# With a HISTORY appends a line a workload, and draws HISTORY.svg. Ends with 3 if anything became slower.
set -euo pipefail
cd "$(dirname "$0")/.."
ref="${1:-}"
if [ -z "$ref" ] && ! ref=$(git describe --tags --match 'v[0-9]*' --abbrev=0 2>/dev/null); then
	ref=$(git log -1 --format=%H -- docs/maintain/peers.txt)
	[ -n "$ref" ] || { echo "bench_check: no tag v* and no commit of docs/maintain/peers.txt: name a REF" >&2; exit 2; }
	echo "bench_check: no tag v*: the reference is $ref, the commit of docs/maintain/peers.txt" >&2
fi
reference=$(git rev-parse --verify --short=12 "$ref^{commit}")
commit=$(git rev-parse --short=12 HEAD)
git diff --quiet HEAD -- . ':!docs' || commit+=-dirty
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/before"
git archive "$reference" | tar -x -C "$folder/before"
(cd "$folder/before" && "${GO:-go}" build -o "$folder/bench-before" "$(test -d cmd/bench && echo ./cmd/bench || echo ./bench)")
"${GO:-go}" build -o "$folder/bench-now" ./cmd/bench
"$folder/bench-now" -check "$folder/bench-before" -repeats "${2:-9}" ${3:+-history "$3" -plot "${3%.jsonl}.svg" -commit "$commit" -reference "$reference"}
