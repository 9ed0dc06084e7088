package pjrt

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Text that would overflow the compiler's stack is refused with its line. Text that only looks nested is accepted.
func TestR20_nestingIsBounded(t *testing.T) {
	for _, row := range []struct {
		name, text string
		line       string // "" for none
	}{
		{"a program", "module @m {\n func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>) { return %x : tensor<2xf32> }\n}", ""},
		{"at the bound", strings.Repeat("({", maxNesting/2) + strings.Repeat("})", maxNesting/2), ""},
		{"regions", "a\n" + strings.Repeat("({\n", maxNesting) + strings.Repeat("})\n", maxNesting), "line 130: "},
		{"types", "a\nb\n" + strings.Repeat("tuple<", 5000) + strings.Repeat(">", 5000), "line 3: "},
		{"attributes", strings.Repeat("[", 100_000), "line 1: "},
		{"arrows close nothing", strings.Repeat("() -> (f32, ", maxNesting+1), "line 1: "},
		{"one after the other", strings.Repeat("{[(<>)]}\n", 1000), ""},
		{"in strings", `"` + strings.Repeat(`[\"`, 1000) + `"`, ""},
		{"in comments", strings.Repeat("// {\"\n", 1000), ""},
		{"more are closed", strings.Repeat(")>", 1000) + "{}", ""},
		{"bytecode", "ML\xefR" + strings.Repeat("{", 1000), ""},
		{"nothing", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := checkNesting([]byte(row.text))
			if row.line == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrInvalidArgument)
			require.ErrorContains(t, err, row.line)
		})
	}
}
