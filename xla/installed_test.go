package xla

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

// An installation for a user shows the share and the size of each download.
func TestAsLines(t *testing.T) {
	var lines []string
	report := asLines(func(line string) { lines = append(lines, line) })
	report(install.Event{Stage: install.Resolve, File: "a.whl"})
	for done := range int64(101) {
		report(install.Event{Stage: install.Download, File: "a.whl", Done: done * 1e6, Total: 1e8})
	}
	report(install.Event{Stage: install.Extract, File: "a.whl"})
	report(install.Event{Stage: install.Download, File: "b.whl", Done: 5})
	report(install.Event{Stage: install.Download, File: "b.whl", Done: 9})
	report(install.Event{Stage: install.Probe, File: "lib/plugin.so"})
	require.Equal(t, "download a.whl:   0 % of 100.0 MB", lines[0])
	require.Equal(t, "download a.whl:  10 % of 100.0 MB", lines[1])
	require.Equal(t, []string{"download a.whl: 100 % of 100.0 MB", "extract a.whl", "download b.whl", "probe plugin.so"}, lines[10:])
}
