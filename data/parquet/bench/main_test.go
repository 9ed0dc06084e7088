package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	args := []string{"-repeats", "2", "-rows", "1000", "-turns", "-data", t.TempDir()}
	require.NoError(t, run(args, strings.NewReader("\n\n\n\n"), &out, io.Discard))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 6)
	for i, variant := range []string{numbers, classes} {
		require.Equal(t, []string{"ready", "ready"}, lines[3*i:3*i+2])
		var l line
		require.NoError(t, json.Unmarshal([]byte(lines[3*i+2]), &l))
		require.Equal(t, "parquet", l.Workload)
		require.Equal(t, variant, l.Variant)
		require.Len(t, l.Values, 2)
		require.Positive(t, l.Median)
	}
	require.EqualError(t, run([]string{"-variant", "words"}, nil, io.Discard, io.Discard), `unknown variant "words", expected numbers or classes`)
	require.ErrorContains(t, run(args, strings.NewReader("\n"), io.Discard, io.Discard), "standard input ended")
}
