//go:build nightly

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/stretchr/testify/require"
)

func TestExchange_sums(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, launch.Run(t.Context(), launch.Options{
		N: 2, Mpirun: os.Getenv("LAZO_TEST_MPIRUN"), Command: []string{plugintest.Program(t, "."), "-workload", "exchange", "-variant", "sums", "-repeats", "1"},
		Env: []string{"OMPI_MCA_mpi_yield_when_idle=1"}, Stdout: &out, Stderr: os.Stderr,
	}))
	var expected []string
	for range sumSizes {
		expected = append(expected, "bare", "program")
	}
	require.Equal(t, expected, variantsOf(t, out.Bytes(), "exchange", 2))
}

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
