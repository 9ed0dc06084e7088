package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/install"
)

func TestDoctor_mpi(t *testing.T) {
	got := run(t, "doctor", "--plugin", "mpi")
	require.Zero(t, got.code, got.stdout+got.stderr)
	require.Contains(t, got.stdout, "two processes")
	found, err := install.Find(install.MPI, "")
	require.NoError(t, err)
	require.Contains(t, got.stdout, found.Launcher())

	got = run(t, "doctor", "--plugin", "mpi", "--prefix", t.TempDir())
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stdout, "lazo install mpi")
}
