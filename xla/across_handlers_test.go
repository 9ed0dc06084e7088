package xla_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

// XLA's CPU refuses a program over more devices without naming the limit, and rank 0 needs half a minute until then.
func TestRankLimit(t *testing.T) {
	require.NoError(t, xla.RankLimit(2))
	require.NoError(t, xla.RankLimit(2048))
	err := xla.RankLimit(2049)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.ErrorContains(t, err, "2048 devices at most")
}

// Ranks without MPI cannot exchange.
func TestF63_noMPI(t *testing.T) {
	if !ranks.Inside(t) {
		said, err := ranks.Start(t, 2, withoutMPI)
		require.NoError(t, err, said)
		require.Equal(t, 2, strings.Count(said, "F63: "), said)
		t.Log(said)
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	_, err = xla.Open(t.Context(), xla.CPU, xla.Across(job))
	require.ErrorContains(t, err, "across 2 processes: the processes have no MPI to exchange by: start them by lazo run or mpirun")
	os.Stderr.WriteString("F63: " + err.Error() + "\n")
	require.NoError(t, job.Close())
}
