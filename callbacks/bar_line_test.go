package callbacks_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestF34_barWithHostileNames(t *testing.T) {
	for _, name := range []string{"\x1b[2J\x1b[31mred", "two\nlines", "\rback", "bell\a", "\u202eright to left", "\xff\xfe", "\u009b2J", "a\x00b"} {
		var out bytes.Buffer
		bar := callbacks.NewBar(&out)
		report := loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: metric(name, 1)}
		require.NoError(t, bar.Watch(t.Context(), report))
		line := strings.TrimSuffix(out.String(), "\n")
		require.Contains(t, line, ": 1.0000")
		for _, r := range line {
			require.True(t, unicode.IsPrint(r) && r != unicode.ReplacementChar, "%q in %q", r, line)
		}
	}
	var out bytes.Buffer
	require.NoError(t, callbacks.NewBar(&out).Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: metric("η 学习", 1)}))
	require.Contains(t, out.String(), "η 学习: 1.0000", "what can be printed stays")
}
