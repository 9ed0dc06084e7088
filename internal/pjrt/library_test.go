package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// These errors occur before a file is loaded, so no child process is needed. Package probe tests the others.
func TestInspectRefusesFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.so")
	require.NoError(t, os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600))
	rows := []struct {
		name, path string
		want       error
	}{
		{"missing", filepath.Join(dir, "none.so"), ErrNotFound},
		{"directory", dir, ErrNotLoadable},
		{"text", text, ErrNotLoadable},
		{"device", os.DevNull, ErrNotLoadable},
		{"below a file", filepath.Join(text, "plugin.so"), ErrNotLoadable},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Inspect(row.path)
			require.ErrorIs(t, err, row.want)
			assert.Contains(t, err.Error(), row.path)
		})
	}
}
