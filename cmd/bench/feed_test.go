package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files are written once, where a peer's script finds them, and read without a plugin.
func TestFeeding(t *testing.T) {
	dir := t.TempDir()
	var before os.FileInfo
	for range 2 {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), []string{"-workload", "csv", "-variant", "classes", "-repeats", "1", "-data", dir, "-plugin", "none"}, nil, &out, io.Discard))
		var l line
		require.NoError(t, json.Unmarshal(out.Bytes(), &l))
		require.Equal(t, "csv", l.Workload)
		require.Positive(t, l.Median)
		info, err := os.Stat(filepath.Join(dir, "csv-classes", "table.csv"))
		require.NoError(t, err)
		require.True(t, before == nil || os.SameFile(before, info) && before.ModTime().Equal(info.ModTime()))
		before = info
	}
}
