//go:build nightly

package main

import (
	"bytes"
	"os"
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
