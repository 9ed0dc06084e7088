#!/usr/bin/env bash
# Builds and tests lazo against the newest versions of what it stands on: the next patches and minor versions that can be
# had, whether or not somebody lists them. The checkout stays as it is: the work is done in a copy.
#
#	scripts/upstream.sh [package...]     the packages to test; all, if none is named
set -euo pipefail
cd "$(dirname "$0")/.."
GO=${GO:-go}
modules=(github.com/gomlx/compute github.com/gomlx/go-xla github.com/gomlx/gomlx github.com/janpfeifer/must)
ahead=6 # so many version numbers are tried before one counts as the newest

copy=$(mktemp -d)
trap 'chmod -R u+w "$copy" && rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do [ -e "$f" ] && printf '%s\0' "$f"; done | tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"

# has VERSION: whether a version of $module can be had, if need be with a newer Go, which is then used for all that follows.
has() {
	local out newer
	out=$($GO mod download -json "$module@$1" 2>&1) && return 0
	newer=$(sed -n 's/.*requires go [^ ]* \([0-9.]*\).*/\1/p' <<<"$out" | head -n 1)
	[ -n "$newer" ] || return 1
	[ "${newer#*.*.}" != "$newer" ] || newer=$newer.0
	if ! GOTOOLCHAIN=go$newer $GO version >/dev/null 2>&1; then
		echo "$module $1 wants go $newer, which cannot be had here"
		return 1
	fi
	export GOTOOLCHAIN=go$newer
	has "$1"
}

# newest MAJOR.MINOR PATCH: the newest patch from that one on; it is left in $best.
newest() {
	local minor=$1 patch=$2 tries=0
	while [ $tries -lt $ahead ]; do
		if has "v$minor.$patch"; then best=v$minor.$patch tries=0; else tries=$((tries + 1)); fi
		patch=$((patch + 1))
	done
}

for module in "${modules[@]}"; do
	have=$($GO list -m -f '{{.Version}}' "$module")
	best=$have
	IFS=. read -r major minor patch <<<"${have#v}"
	newest "$major.$minor" $((patch + 1))
	for next in 1 2; do newest "$major.$((minor + next))" 0; done
	echo "$module: have $have, newest $best ($($GO env GOVERSION))"
	[ "$best" = "$have" ] || $GO get "$module@$best"
done
$GO mod tidy
git -C "$OLDPWD" diff --no-index --stat -- "$OLDPWD/go.mod" go.mod || true
$GO vet ./...
$GO test -timeout 30m "${@:-./...}"
