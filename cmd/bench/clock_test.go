package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// The end of the input is an error, not a measurement.
func TestTurns_inputEnds(t *testing.T) {
	in, giver := io.Pipe()
	require.NoError(t, giver.Close())
	err := run(t.Context(), []string{"-workload", "inplace", "-variant", "10", "-steps", "5", "-turns"}, in, io.Discard, io.Discard)
	require.ErrorContains(t, err, "standard input ended")
}
