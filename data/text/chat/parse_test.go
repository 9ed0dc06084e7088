package chat

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A cut template is an error, or a shorter one, and never a panic.
func TestParse_cut(t *testing.T) {
	content, err := os.ReadFile("testdata/chat.json")
	require.NoError(t, err)
	var all peerCases
	require.NoError(t, json.Unmarshal(content, &all))
	all.Templates["macro"] = "{% macro m(a, b=1) %}{% generation %}{{ a[1:2] is not none }}{% endgeneration %}{% endmacro m %}{% set x %}{% endset %}"
	cuts := 0
	for _, source := range all.Templates {
		for n := 0; n < len(source); n += 5 {
			for _, end := range []string{"", "{{", "{% $"} {
				_, _ = parse(source[:n]+end, special)
				cuts++
			}
		}
	}
	require.Greater(t, cuts, 1000)
	_, err = parse("{% macro m() %}{{", special)
	require.ErrorContains(t, err, "without its end")
}
