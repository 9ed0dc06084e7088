//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckpoint(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"-workload", "ckpt", "-repeats", "1"}, nil, &out, io.Discard))
	var got []string
	for d := json.NewDecoder(&out); d.More(); {
		var l line
		require.NoError(t, d.Decode(&l))
		require.Equal(t, "checkpoint", l.Workload)
		require.Equal(t, 200, l.MB)
		require.Positive(t, l.Floor)
		require.InDelta(t, l.Min/l.Floor, l.Ratio, 1e-9)
		got = append(got, l.Variant)
	}
	require.Equal(t, []string{"save: thread blocked", "save: thread blocked, state", "save+fsync", "restore"}, got)
}
