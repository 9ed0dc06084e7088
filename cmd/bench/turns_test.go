package main

import (
	"bufio"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// With -turns nothing is measured before its line came: "ready", a line, "ready", a line, the result.
func TestTurns(t *testing.T) {
	lines, in := io.Pipe()
	out, text := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := run(t.Context(), []string{"-workload", "inplace", "-variant", "10", "-steps", "5", "-repeats", "2", "-turns"}, lines, text, io.Discard)
		text.CloseWithError(io.EOF)
		done <- err
	}()
	printed := bufio.NewScanner(out)
	for range 2 {
		require.True(t, printed.Scan())
		require.Equal(t, "ready", printed.Text())
		_, err := io.WriteString(in, "\n")
		require.NoError(t, err)
	}
	require.True(t, printed.Scan())
	var l line
	require.NoError(t, json.Unmarshal(printed.Bytes(), &l))
	require.Equal(t, 2, l.N)
	require.Len(t, l.CPU, 2)
	require.False(t, printed.Scan())
	require.NoError(t, <-done)
}
