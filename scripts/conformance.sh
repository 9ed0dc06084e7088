#!/usr/bin/env bash
# Runs GoMLX's own test suites on lazo's backend, with lazo's gradient rules, in the place of GoMLX's.
#
#   scripts/conformance.sh PLUGIN [PACKAGE...]
#
# PLUGIN is the path of a PJRT CPU plugin. A PACKAGE is a folder of GoMLX's module; the default is every one whose tests
# build graphs. GoMLX is copied out of the module cache into a temporary folder, with lazo's packages inside it: its
# tests could not import a package that itself imports the one they test from another module.
set -euo pipefail

if [[ $# -lt 1 || ! -f $1 ]]; then
	echo "usage: scripts/conformance.sh PLUGIN [PACKAGE...]: PLUGIN must be the path of a PJRT CPU plugin, got '${1-}'" >&2
	exit 2
fi
plugin=$(realpath "$1")
shift
packages=("$@")
if [[ ${#packages[@]} -eq 0 ]]; then
	packages=(pkg/core/graph pkg/core/graph/nanlogger pkg/ml/context pkg/ml/layers pkg/ml/layers/activations
		pkg/ml/layers/bsplines pkg/ml/layers/fnn pkg/ml/layers/kan pkg/ml/layers/lstm pkg/ml/layers/rational
		pkg/ml/layers/regularizers pkg/ml/layers/vnn pkg/ml/train pkg/ml/train/losses pkg/ml/train/metrics
		pkg/ml/train/optimizers pkg/ml/train/optimizers/cosineschedule pkg/ml/datasets)
fi

cd "$(dirname "$0")/.."
gomlx=$(go list -m -f '{{.Dir}}' github.com/gomlx/gomlx)
goxla=$(go list -m -f '{{.Dir}}' github.com/gomlx/go-xla)
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
cp -r "$gomlx/." "$copy/gomlx"
chmod -R u+w "$copy/gomlx"
for folder in $(go list -deps ./xla ./internal/autodiff | sed -n 's|^github.com/lazo-ml/lazo/||p'); do
	to="$copy/gomlx/pkg/lazo/${folder#internal/}" # what is internal could not be imported there
	mkdir -p "$to"
	for file in "$folder"/*; do
		[[ -d $file || $file == *_test.go ]] || cp "$file" "$to/"
	done
done
find "$copy/gomlx/pkg/lazo" -name '*.go' -exec sed -i 's|"github.com/lazo-ml/lazo/internal/|"github.com/lazo-ml/lazo/|
	s|"github.com/lazo-ml/lazo/|"github.com/gomlx/gomlx/pkg/lazo/|' {} +

# GoMLX's tests install a plugin if the home folder has none of its version's name, and then open the one named "cpu".
GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
version=$(sed -n 's/.*DefaultCPUVersion = "\(.*\)".*/\1/p' "$goxla"/internal/utils/*.go | head -n 1)
mkdir -p "$copy/home/.local/lib/go-xla"
for name in "cpu_$version" cpu; do
	ln -s "$plugin" "$copy/home/.local/lib/go-xla/pjrt_c_api_${name}_plugin.so"
done
export GOMODCACHE GOCACHE HOME="$copy/home" GOFLAGS=-mod=mod GOMLX_NO_AUTO_INSTALL=1

cd "$copy/gomlx"
paths=()
for package in "${packages[@]}"; do
	name=$(go list -f '{{.Name}}' "./$package")
	cat >"$package/lazo_test.go" <<-GO
		package ${name}_test

		import (
			"context"
			"strconv"
			"strings"

			"github.com/gomlx/gomlx/backends"
			rules "github.com/gomlx/gomlx/pkg/lazo/autodiff"
			"github.com/gomlx/gomlx/pkg/lazo/xla"
		)

		func init() {
			rules.Install()
			backends.Register("lazo", func(config string) (backends.Backend, error) {
				plugin, devices, _ := strings.Cut(config, ",")
				n, err := strconv.ParseInt(devices, 10, 64)
				if err != nil {
					return nil, err
				}
				return xla.Open(context.Background(), plugin, xla.ClientOption("cpu_device_count", n))
			})
		}
	GO
	paths+=("./$package")
done
# What is left out, and why. Of a line, the pattern is what stands before the colon.
left_out=(
	'^TestDonate$: it wants memory that host and device share; lazo writes a state in place, and would do so under the hands of whoever reads it'
)
skip=$(printf '%s\n' "${left_out[@]}" | sed 's/: .*//' | paste -sd '|')
# What GoMLX skips on one device runs on four.
distributed='^(TestPortable|TestCollective|TestAutoSharding|TestDistributedAccumulator)$'
conform() {
	local devices=$1
	shift
	GOMLX_BACKEND="lazo:$plugin,$devices" go test -json -coverpkg=github.com/gomlx/gomlx/pkg/lazo/xla/hlo -coverprofile="$copy/cover$devices" \
		"$@" >>"$copy/results" || true
}
conform 1 -skip "$distributed|$skip" "${paths[@]}"
mapfile -t several < <(printf '%s\n' "${paths[@]}" | grep -xE '\./pkg/(core/graph|ml/context|ml/datasets)')
[[ ${#several[@]} -eq 0 ]] || conform 4 -run "$distributed" -skip "$skip" "${several[@]}"
# Every test and subtest reports once how it ended; a package reports too, without a test's name.
for outcome in pass fail skip; do
	echo "$outcome: $(grep -c "\"Action\":\"$outcome\".*\"Test\":" "$copy/results" || true)"
done
printf 'left out: %s\n' "${left_out[@]}"
grep '"Action":"skip".*"Test":' "$copy/results" || true

# Which of the interface's operations the tests reached: the methods of lazo's builder that ran.
mkdir -p "$copy/gomlx/pkg/lazo/operations"
cat >"$copy/gomlx/pkg/lazo/operations/main.go" <<-GO
	// Command operations lists the methods of the interface that a backend's builder implements.
	package main

	import (
		"fmt"
		"reflect"

		"github.com/gomlx/gomlx/backends"
	)

	func main() {
		for t, i := reflect.TypeFor[backends.Builder](), 0; i < t.NumMethod(); i++ {
			fmt.Println(t.Method(i).Name)
		}
	}
GO
go run ./pkg/lazo/operations | sort -u >"$copy/operations"
tail -q -n +2 "$copy"/cover? | sed '1i mode: set' >"$copy/cover"
go tool cover -func "$copy/cover" | awk '$3 != "0.0%" {print $2}' | sort -u >"$copy/reached"
echo "operations of backends.Builder: $(comm -12 "$copy/operations" "$copy/reached" | wc -l) of $(wc -l <"$copy/operations") exercised:" \
	$(comm -12 "$copy/operations" "$copy/reached")
echo "not exercised:" $(comm -23 "$copy/operations" "$copy/reached")

mapfile -t failed < <(sed -n 's/.*"Action":"fail".*"Test":"\([^"]*\)".*/\1/p' "$copy/results")
for name in "${failed[@]}"; do
	echo "failed: $name"
	grep -F "\"Test\":\"$name\",\"Output\"" "$copy/results" | sed 's/.*"Output":"//; s/\\n"}$//; s/\\t/\t/g' | tail -n 20
done
grep '"Action":"build-output"' "$copy/results" || true
# A package whose tests did not run at all is no success.
passed=$(grep '"Action":"pass"' "$copy/results" | grep -cv '"Test":' || true)
if [[ $passed -ne $((${#paths[@]} + ${#several[@]})) ]]; then
	echo "$passed of $((${#paths[@]} + ${#several[@]})) runs of a package's tests passed" >&2
	exit 1
fi
