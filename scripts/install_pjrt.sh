#!/bin/sh
# Installs a PJRT plugin: a thin front of `lazo install`, which downloads, checks digests, and tries the plugin.
# Needs Go, and sha256sum or shasum for --from. Exit status: 0 done, 1 failure, 2 wrong usage.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
table=$root/internal/install/plugins.tsv

usage() {
	cat <<EOF
usage: scripts/install_pjrt.sh [KIND] [--check] [--prefix DIR] [--from FILE] [--sha256 HEX] [--index-url URL] [--force]

  KIND         $(kinds); cpu if not given
  --check      install nothing, tell whether the installed plugin is intact
  --prefix     folder to install into
  --from       a wheel, a library or a folder of wheels on this machine: nothing is downloaded
  --sha256     digest of FILE, if the table of known wheels does not list it
  --index-url  package index to download from; the digests stay those of the table
  --force      install again even if an intact plugin is there
EOF
}

kinds() {
	awk -F '\t' '!/^#/ && NF == 12 && !seen[$1]++ { printf "%s%s", sep, $1; sep = ", " }' "$table"
}

wrong() {
	printf 'install_pjrt.sh: %s\n' "$1" >&2
	usage >&2
	exit 2
}

fail() {
	printf 'install_pjrt.sh: %s\n' "$1" >&2
	exit 1
}

# absolute PATH: the same path, good in any folder.
absolute() {
	case $1 in
	/*) printf '%s\n' "$1" ;;
	*) printf '%s/%s\n' "$(pwd)" "$1" ;;
	esac
}

# matches DIGEST PATH
matches() {
	if command -v sha256sum >/dev/null 2>&1; then
		printf '%s  %s\n' "$1" "$2" | sha256sum -c - >/dev/null 2>&1
	elif command -v shasum >/dev/null 2>&1; then
		printf '%s  %s\n' "$1" "$2" | shasum -a 256 -c - >/dev/null 2>&1
	else
		fail "neither sha256sum nor shasum is here to check $2"
	fi
}

# rows FIELDS [NAME]: those fields of the table for this plugin and machine, of the wheel of that name or of all.
rows() {
	awk -F '\t' -v kind="$kind" -v platform="$platform" -v fields="$1" -v name="${2:-}" '
		!/^#/ && $1 == kind && $2 == platform && (name == "" || $5 == name) {
			n = split(fields, f, ",")
			for (i = 1; i <= n; i++) if ($(f[i]) != "-") print $(f[i])
		}' "$table"
}

# check_source PATH: stops unless all that will be read is in the table.
check_source() {
	if [ -d "$1" ]; then
		for wheel in $(rows 5); do
			[ -f "$1/$wheel" ] || fail "$1 lacks $wheel"
			matches "$(rows 7 "$wheel")" "$1/$wheel" || fail "$1/$wheel: wrong digest, want SHA-256 $(rows 7 "$wheel")"
		done
		return
	fi
	[ -f "$1" ] || fail "$1: no such file"
	digests=$(rows 7 "$(basename -- "$1")") # a known name must hold what the table says,
	[ -n "$digests" ] || digests=$(rows 7,10) # any other may be one of the known wheels or libraries
	for digest in $digests; do
		if matches "$digest" "$1"; then
			return
		fi
	done
	fail "$1: its SHA-256 is not one that the table has for $kind on $platform; if it is the file you mean, give --sha256"
}

kind='' from='' digest_given=''
count=$#
while [ "$count" -gt 0 ]; do
	argument=$1
	shift
	count=$((count - 1))
	case $argument in
	-h | --help)
		usage
		exit 0
		;;
	--prefix=* | --from=* | --sha256=* | --index-url=*)
		value=${argument#*=}
		argument=${argument%%=*}
		;;
	--prefix | --from | --sha256 | --index-url)
		[ "$count" -gt 0 ] || wrong "$argument needs a value"
		value=$1
		shift
		count=$((count - 1))
		;;
	--check | --force)
		set -- "$@" "$argument"
		continue
		;;
	-*) wrong "unknown option $argument" ;;
	*)
		[ -z "$kind" ] || wrong "one plugin at a time: $kind or $argument"
		kind=$argument
		continue
		;;
	esac
	[ -n "$value" ] || wrong "$argument needs a value"
	case $argument in
	--prefix) value=$(absolute "$value") ;;
	--from)
		value=$(absolute "$value")
		from=$value
		;;
	--sha256) digest_given=$value ;;
	esac
	set -- "$@" "$argument=$value"
done
kind=${kind:-cpu}
case ", $(kinds)," in
*", $kind,"*) ;;
*) wrong "unknown plugin $kind" ;;
esac

case $(uname -s) in
Linux) platform=linux ;;
Darwin) platform=darwin ;;
*) platform=$(uname -s) ;;
esac
case $(uname -m) in
x86_64 | amd64) platform=$platform/amd64 ;;
aarch64 | arm64) platform=$platform/arm64 ;;
*) platform=$platform/$(uname -m) ;;
esac

if [ -n "$from" ]; then
	if [ -n "$digest_given" ]; then
		matches "$digest_given" "$from" || fail "$from: its SHA-256 is not $digest_given"
	else
		check_source "$from"
	fi
fi
command -v go >/dev/null 2>&1 || fail "Go is needed: see https://go.dev/doc/install"
cd -- "$root"
exec go run ./cmd/lazo install "$kind" "$@"
