package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

// A download shows its size.
func TestProgress(t *testing.T) {
	var text strings.Builder
	report := progress(&text)
	report(install.Event{Stage: install.Resolve, File: "a.whl"})
	report(install.Event{Stage: install.Download, File: "a.whl", Done: 1, Total: 94_100_000})
	report(install.Event{Stage: install.Download, File: "a.whl", Done: 94_100_000, Total: 94_100_000})
	require.Equal(t, "resolve   a.whl\ndownload  a.whl, 94.1 MB\n", text.String())
}
