#!/usr/bin/env bash
# The four programs of Fit beside the same ones in Keras: lines, final figures and seconds, means over three seeds, both
# in turns.
#
#   scripts/fit_programs.sh PYTHON
#
# PYTHON is a Python that has keras, jax, pandas, scikit-learn and pillow. A program's seconds are those of its process,
# with all that it compiles; lazo's first run of each fills its cache of compiled programs, Keras has none here.
set -euo pipefail

if [[ $# -ne 1 ]]; then
	echo "usage: scripts/fit_programs.sh PYTHON" >&2
	exit 2
fi
python=$1
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export KERAS_BACKEND=jax
table=$PWD/examples/tabular/penguins.csv
digits=${XDG_CACHE_HOME:-$HOME/.cache}/lazo/digits # which examples/images writes

# lines FILE: without blank ones and comments.
lines() { grep -vcE '^\s*(//|#|$)' "$1"; }

# timed NAME COMMAND...: adds its figures and seconds to the file of that name.
timed() {
	local to=$dir/$1 from
	shift
	from=$(date +%s.%N)
	(cd "$dir" && "$@" 2>/dev/null) | sed -nE 's/^test ([a-z_]+): ([0-9.]+)$/\1 \2/p' >>"$to"
	echo "seconds $(echo "$(date +%s.%N) - $from" | bc)" >>"$to"
}

for name in tabular images text outputs; do
	go build -o "$dir/$name" "./examples/$name"
	for seed in 0 1 2; do
		ours=("$dir/$name" -seed "$seed")
		peer=("$python" "$PWD/examples/$name/peer.py")
		case $name in
		tabular) ours+=("$table") peer+=("$table") ;;
		images | outputs) peer+=("$digits") ;;
		esac
		timed "$name.lazo" "${ours[@]}"
		timed "$name.keras" "${peer[@]}" "$seed"
	done
	for who in lazo keras; do
		file=examples/$name/main.go
		[[ $who == lazo ]] || file=examples/$name/peer.py
		awk -v name="$name" -v who="$who" -v lines="$(lines "$file")" '
			!($1 in sum) { order[++n] = $1 }
			{ sum[$1] += $2; count[$1]++ }
			END { printf "%-8s %-6s %2d lines", name, who, lines; for (i = 1; i <= n; i++) printf "  %s %.3f", order[i], sum[order[i]] / count[order[i]]; print "" }' "$dir/$name.$who"
	done
done
