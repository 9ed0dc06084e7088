package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestR20_hostilePrograms: a file that crashes the plugin, or keeps it busy, ends in one line that says so.
func TestR20_hostilePrograms(t *testing.T) {
	cpuPlugin(t)
	dir := t.TempDir()
	function := func(body string) string {
		return "module @m {\n func.func public @main(%x: tensor<i32>) -> tensor<i32> {\n" + body + " : tensor<i32> }\n}\n"
	}
	for _, row := range []struct{ name, text, want string }{
		{"a division by the constant 0", function("%one = stablehlo.constant dense<1> : tensor<i32>\n%zero = stablehlo.constant dense<0> : tensor<i32>\n" +
			"%y = stablehlo.divide %one, %zero : tensor<i32>\nreturn %y"), "program.mlir: it crashed the plugin, which died of SIGFPE"},
		{"a function that calls itself", function("%y = func.call @main(%x) : (tensor<i32>) -> tensor<i32>\nreturn %y"), "program.mlir: it crashed the plugin, which died of SIGSEGV"},
		{"deep attributes", "module attributes {x.y = " + strings.Repeat("[", 100_000), "line 1: brackets are nested more than 256 deep"},
		{"an error of two thousand letters", "module attributes {x = [" + strings.Repeat("1, ", 3000) + "1]} {}", "xla: compile program.mlir: .*can only contain attributes with dialect-prefixed names"},
		{"what takes longer than it may", function("return %x"), "no end after 1ms: give it more with --timeout"},
	} {
		t.Run(row.name, func(t *testing.T) {
			args := []string{"hlo"}
			if strings.Contains(row.want, "timeout") {
				args = append(args, "--timeout", "1ms")
			}
			path := filepath.Join(dir, "program.mlir")
			require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
			got := run(t, append(args, path)...)
			assert.Equal(t, 1, got.code)
			assert.Empty(t, got.stdout)
			assert.Regexp(t, `^lazo: [^\n]*`+row.want+`[^\n]*\n$`, got.stderr)
		})
	}
}
