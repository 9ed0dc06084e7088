//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

func TestTimeToFirstStep(t *testing.T) {
	command := exec.Command(plugintest.UncachedProgram(t, "."), "-workload", "ttfs", "-repeats", "1")
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err)
	d, n := json.NewDecoder(bytes.NewReader(out)), 0
	for ; d.More(); n++ {
		var l line
		require.NoError(t, d.Decode(&l))
		require.Positive(t, l.Median)
	}
	require.Equal(t, 6, n)
}
