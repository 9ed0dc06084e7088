package xla_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

func withoutMPI(o *launch.Options) { o.NoMPI, o.Mpirun = true, "" }

// A process of a job that opens a runtime without Across warns once, in the log if there is one.
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

// If one rank forgets Across, the others wait for it, and the job's last message has the cause.
func TestAcross_forgottenByOne(t *testing.T) {
	if !ranks.Inside(t) {
		said, err := ranks.Start(t, 2, func(o *launch.Options) { o.Env = append(o.Env, "LAZO_DEADLINE=2s") })
		require.Error(t, err)
		const why = "(it has opened a runtime without xla.Across, and computes alone: give xla.Open the option xla.Across(job))"
		require.Contains(t, said, why)
		require.Regexp(t, `rank 1 \(host .*\) is stuck .*`+regexp.QuoteMeta(why)+`\. rank 0 `, said)
		t.Log(said)
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	if job.Rank() == 1 {
		r, err := xla.Open(t.Context(), xla.Go)
		require.NoError(t, err)
		defer r.Close()
		select {} // it trains
	}
	require.NoError(t, job.Barrier("the first program"))
}

// A rank's note is in the message of mismatched calls, and is withdrawn once the rank opens a runtime across the job.
func TestAcross_forgottenUntilTheEnd(t *testing.T) {
	if !ranks.Over(t, 2) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	if job.Rank() == 1 {
		r, err := xla.Open(t.Context(), xla.Go)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		err = job.Barrier("the end")
		require.ErrorContains(t, err, "Barrier \"the end\" (it has opened a runtime without xla.Across, and computes alone: give xla.Open the option xla.Across(job)) by rank 1")
	} else {
		require.ErrorContains(t, job.Barrier("the first program"), "without xla.Across")
	}
	r, err := xla.Open(t.Context(), xla.CPU, xla.Across(job))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	err = job.Barrier(fmt.Sprint("of rank ", job.Rank()))
	require.ErrorIs(t, err, dist.ErrDisagree)
	require.NotContains(t, err.Error(), "without")
	require.NoError(t, job.Close())
}
