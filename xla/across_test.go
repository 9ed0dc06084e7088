package xla_test

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

func withoutMPI(o *launch.Options) { o.NoMPI = true }

// A process of a job that opens a runtime for itself alone says so once, to the log where there is one.
func TestAcross_forgotten(t *testing.T) {
	for _, where := range []string{"standard error", "log"} {
		t.Run(where, func(t *testing.T) {
			if !ranks.Inside(t) {
				said, err := ranks.Start(t, 2, withoutMPI)
				require.NoError(t, err, said)
				lines := strings.Count(said, "xla: Open without Across in a job of several processes")
				require.Equal(t, map[string]int{"standard error": 1, "log": 0}[where], lines, said)
				t.Log(said)
				return
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			var log bytes.Buffer
			var options []xla.Option
			if where == "log" {
				options = append(options, xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
			}
			for range 2 {
				r, err := xla.Open(t.Context(), xla.Go, options...)
				require.NoError(t, err)
				require.NoError(t, r.Close())
			}
			want := 0
			if where == "log" && job.Rank() == 0 {
				want = 1
			}
			require.Equal(t, want, strings.Count(log.String(), "level=WARN"), log.String())
			require.NoError(t, job.Close())
		})
	}
}

// Ranks without MPI have nothing by which a program could exchange.
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
