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
for folder in internal/autodiff internal/graphs internal/fetch xla xla/hlo xla/pjrt xla/probe xla/install; do
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
export GOMODCACHE GOCACHE HOME="$copy/home" GOFLAGS=-mod=mod GOMLX_NO_AUTO_INSTALL=1 GOMLX_BACKEND="lazo:$plugin"

cd "$copy/gomlx"
paths=()
for package in "${packages[@]}"; do
	name=$(go list -f '{{.Name}}' "./$package")
	cat >"$package/lazo_test.go" <<-GO
		package ${name}_test

		import (
			"context"

			"github.com/gomlx/gomlx/backends"
			rules "github.com/gomlx/gomlx/pkg/lazo/autodiff"
			"github.com/gomlx/gomlx/pkg/lazo/xla"
		)

		func init() {
			rules.Install()
			backends.Register("lazo", func(plugin string) (backends.Backend, error) { return xla.Open(context.Background(), plugin) })
		}
	GO
	paths+=("./$package")
done
go test -json "${paths[@]}" >"$copy/results" || true
# What lazo does not do, with the reason. Each must fail: one that passes is to be taken out.
#  - TestDonate wants a tensor in memory that host and device share; a program would read it while the host writes.
known='"Test":"TestDonate"'
# Every test and subtest reports once how it ended; a package reports too, without a test's name.
for outcome in pass fail skip; do
	echo "$outcome: $(grep "\"Action\":\"$outcome\".*\"Test\":" "$copy/results" | grep -vcE "$known" || true)"
done
echo "known to fail: $(grep '"Action":"fail".*"Test":' "$copy/results" | grep -cE "$known" || true)"
if grep '"Action":"fail".*"Test":' "$copy/results" | grep -vE "$known" || grep '"FailedBuild"' "$copy/results"; then
	grep '"Action":"output"' "$copy/results" | grep -iE 'fail|panic|error' | head -n 40
	exit 1
fi
