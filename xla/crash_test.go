package xla_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestR20_F45_crashesSpeak: a process that crashes inside XLA, by a program or a variable, ends with an error or a
// message.
func TestR20_F45_crashesSpeak(t *testing.T) {
	function := func(body string) string {
		return "module @m {\n func.func public @main() -> tensor<i32> {\n" + body + " : tensor<i32> }\n}\n"
	}
	division := function("%one = stablehlo.constant dense<1> : tensor<i32>\n%zero = stablehlo.constant dense<0> : tensor<i32>\n" +
		"%y = stablehlo.divide %one, %zero : tensor<i32>\nreturn %y")
	deep := func(n int) string {
		return function("%p = stablehlo.constant dense<true> : tensor<i1>\n%c = stablehlo.constant dense<1> : tensor<i32>\n%y = " +
			strings.Repeat("\"stablehlo.if\"(%p) ({\n%r = ", n) + "stablehlo.add %c, %c : tensor<i32>\n" +
			strings.Repeat("stablehlo.return %r : tensor<i32>\n}, {stablehlo.return %c : tensor<i32>}) : (tensor<i1>) -> tensor<i32>\n", n) + "return %y")
	}
	messages, errors := 0, 0
	rows := []struct{ name, text, env, message, error string }{
		{"a signal of arithmetic", division, "A=", "SIGFPE", ""},
		{"the same, without a trace", division, "GOTRACEBACK=none", "SIGFPE", ""},
		{"a stack that overflows", function("%y = func.call @main() : () -> tensor<i32>\nreturn %y"), "A=", "SIGSEGV", ""},
		{"deep regions", deep(1000), "A=", "", "line 132: brackets are nested more than 256 deep"},
		{"deep attributes", "module attributes {x.y = " + strings.Repeat("[", 100_000), "A=", "", "line 1: brackets are nested"},
		{"no program", "garbage", "A=", "", "error: custom op 'garbage' is unknown"},
		{"flags without sense", deep(1), "XLA_FLAGS=\x01", "", "XLA_FLAGS"},
		{"flags that are not known", deep(1), "XLA_FLAGS=--garbage", "", "XLA_FLAGS names --garbage"},
		{"options of LLVM that are not known", deep(1), "XLA_FLAGS=--xla_backend_extra_options=garbage", "", "garbage"},
		{"what works", deep(1), "A=", "", ""},
		{"as deep as may be", deep(120), "A=", "", ""},
	}
	path := filepath.Join(t.TempDir(), "program.mlir")
	for _, row := range rows {
		require.NoError(t, os.WriteFile(path, []byte(row.text), 0o600))
		got := task{Program: path}.inChild(t, "", row.env)
		require.NoError(t, got.spoke(), row.name)
		if row.message != "" {
			assert.NotZero(t, got.code, row.name)
			assert.Contains(t, got.stderr, row.message, row.name)
			messages++
			continue
		}
		assert.Zero(t, got.code, "%s: %s", row.name, got.stderr)
		assert.Contains(t, got.Error, row.error, row.name)
		assert.Equal(t, row.error == "", got.Error == "", "%s: %s", row.name, got.Error)
		errors++
	}
	t.Logf("F45: %d children: %d messages, %d errors or results, 0 deaths without a word", len(rows), messages, errors)
}
