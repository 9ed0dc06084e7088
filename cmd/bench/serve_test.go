package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

func TestServing(t *testing.T) {
	command := exec.Command(plugintest.UncachedProgram(t, "."), "-workload", "serve", "-variant", "8", "-steps", "50", "-repeats", "1")
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err)
	var l line
	require.NoError(t, json.Unmarshal(out, &l))
	require.Equal(t, "serve", l.Workload)
	require.Positive(t, l.Median)
	require.Positive(t, l.P50)
	require.GreaterOrEqual(t, l.P99, l.P50)
}
