package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla/export"
)

const sum = `module @sum {
  func.func public @main(%x: tensor<256xf32>, %state: tensor<256xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<256xf32>) {
    %new = stablehlo.add %state, %x : tensor<256xf32>
    return %new : tensor<256xf32>
  }
}
`

// exported returns a folder and a file with the same program.
func exported(t *testing.T) (dir, file string) {
	t.Helper()
	cpuPlugin(t)
	s := shapes.Make(dtypes.Float32, 256)
	p := export.Program{Name: "sum", Text: sum,
		Inputs:  []export.Value{{Name: "x", Role: export.Batch, Shape: s}, {Name: "/state", Role: export.State, Shape: s}},
		Outputs: []export.Value{{Name: "/state", Role: export.State, Shape: s, Replaces: "/state"}}}
	dir, file = filepath.Join(t.TempDir(), "model"), filepath.Join(t.TempDir(), "sum.mlir")
	require.NoError(t, p.Write(dir))
	require.NoError(t, os.WriteFile(file, []byte(sum), 0o600))
	return dir, file
}

const estimates = `// cost   256 FLOPs, 0 transcendentals, 3072 bytes accessed
// memory 2048 bytes: arguments 2048, outputs 1024 (1024 in place of arguments), temporary 0
`

// counter is who counted the cost: it depends on the plugin.
var counter = regexp.MustCompile(` \(counted by (the plugin|lazo)\)(\n// memory )`)

func TestHLO(t *testing.T) {
	dir, file := exported(t)
	for _, path := range []string{dir, file} {
		got := run(t, "hlo", path)
		assert.Equal(t, 0, got.code, got.stderr)
		assert.Equal(t, sum+estimates, counter.ReplaceAllString(got.stdout, "$2"))
		assert.Regexp(t, counter, got.stdout)
		assert.Empty(t, got.stderr)
		got = run(t, "hlo", "--optimized", path)
		assert.Equal(t, 0, got.code, got.stderr)
		assert.True(t, strings.HasPrefix(got.stdout, "HloModule sum, is_scheduled=true, input_output_alias="), got.stdout)
		assert.True(t, strings.HasSuffix(counter.ReplaceAllString(got.stdout, "$2"), estimates), got.stdout)
		assert.Empty(t, got.stderr)
	}
}

func TestHLOMistakes(t *testing.T) {
	dir, file := exported(t)
	temp := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(temp, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	require.NoError(t, os.Truncate(filepath.Join(dir, "program.mlir"), 100))
	for _, row := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"nothing", nil, 2, "<path>"},
		{"a path that is not there", []string{"/none"}, 1, "/none: no such file"},
		{"a folder that was not exported", []string{temp}, 1, "it has no manifest.json: expected an exported folder"},
		{"a damaged folder", []string{dir}, 1, "program.mlir: damaged: 100 bytes"},
		{"a damaged program", []string{write("cut.mlir", sum[:200])}, 1, "xla: compile cut.mlir: "},
		{"a damaged program, optimized", []string{"--optimized", write("cut2.mlir", sum[:200])}, 1, "xla: compile cut2.mlir: "},
		{"an empty file", []string{write("empty", "")}, 1, "the program is empty"},
		{"no text", []string{write("binary", "\xff\xfe")}, 1, "is not text: expected a program in StableHLO"},
		{"no file", []string{"/dev/null"}, 1, "open /dev/null: is not a regular file (Dc---------): expected a program in StableHLO, or an exported folder"},
		{"the plugin go", []string{"--plugin", "go", file}, 1, "takes no StableHLO"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, append([]string{"hlo"}, row.args...)...)
			assert.Equal(t, row.code, got.code)
			assert.Empty(t, got.stdout)
			assert.Contains(t, got.stderr, row.want)
			assert.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
		})
	}
}
