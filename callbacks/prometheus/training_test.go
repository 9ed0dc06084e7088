package prometheus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

type batch int

func (batch) Samples() int { return 32 }

// slow yields batches 1 to n, each after a tenth of a second.
func slow(n int, during func(i int)) loop.Data[batch] {
	return func(yield func(batch, error) bool) {
		for i := 1; i <= n; i++ {
			time.Sleep(50 * time.Millisecond)
			during(i)
			time.Sleep(50 * time.Millisecond)
			if !yield(batch(i), nil) {
				return
			}
		}
	}
}

func step(_ context.Context, s int, b batch) (int, loop.Logs, error) {
	time.Sleep(10 * time.Millisecond)
	var logs loop.Logs
	logs.Loss("loss", 1/float64(b))
	logs.Metric("bad\xffname", 2)
	logs.Output("text", "no number")
	if s == 6 {
		return s, logs, errors.New("no memory")
	}
	return s + 1, logs, nil
}

type job struct{}

func (job) Rank() int           { return 1 }
func (job) Size() int           { return 4 }
func (job) Agree([]int64) error { return nil }

// S52: a run's numbers, counted over two runs of a name, the second of which continues the first and fails.
func TestTraining(t *testing.T) {
	m := New()
	metrics := m.Training("digits", loop.Every(loop.Steps(2)))
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)))
	synctest.Test(t, func(t *testing.T) {
		result, err := training.Run(t.Context(), 0, slow(5, func(i int) {
			if i == 5 {
				require.Contains(t, values(t, m, "lazo_training"), `lazo_training_running{run="digits"} 1`)
				require.Contains(t, values(t, m, "lazo_training"), `lazo_training_data_wait_seconds_total{run="digits"} 0.45`, "with the wait in progress")
				require.Contains(t, values(t, m, "lazo_training"), `lazo_training_step{run="digits"} 4`)
				time.Sleep(time.Hour)
				require.Contains(t, values(t, m, "lazo_training"), `lazo_training_idle_seconds{run="digits"} 3600.05`, "it is stuck")
			}
		}), metrics)
		require.NoError(t, err)
		_, err = training.Run(t.Context(), result.State, slow(9, func(int) {}), metrics, loop.Continue(result.Elapsed, nil))
		require.ErrorContains(t, err, "no memory")
	})
	require.Equal(t, `lazo_job_rank{run="digits"} 0
lazo_job_ranks{run="digits"} 1
`, values(t, m, "lazo_job"))
	got := values(t, m, "lazo_training")
	for line := range strings.Lines(`lazo_training_ends_total{reason="data ended",run="digits"} 1
lazo_training_ends_total{reason="failed",run="digits"} 1
lazo_training_running{run="digits"} 0
lazo_training_idle_seconds{run="digits"} 0
lazo_training_step{run="digits"} 6
lazo_training_steps_total{run="digits"} 6
lazo_training_examples_total{run="digits"} 192
lazo_training_value{collection="losses",name="loss",run="digits"} 0.16666666666666666
lazo_training_value{collection="metrics",name="bad�name",run="digits"} 2
`) {
		require.Contains(t, got, line)
	}
	require.NotContains(t, got, "text")
	problems, err := testutil.GatherAndLint(m)
	require.NoError(t, err)
	for _, p := range problems {
		require.False(t, strings.HasPrefix(p.Metric, "lazo_"), "%s: %s", p.Metric, p.Text)
	}
}

// A process of a job has its rank.
func TestTraining_ofAJob(t *testing.T) {
	m := New()
	a, err := m.Training("digits", loop.EachStep).Start(loop.Beginning{Job: job{}})
	require.NoError(t, err)
	require.Equal(t, "lazo_job_rank{run=\"digits\"} 1\nlazo_job_ranks{run=\"digits\"} 4\n", values(t, m, "lazo_job"))
	require.NoError(t, a.End(t.Context(), loop.Ending{}))
}

// S52: checkpoints: how many, how long, the newest step, failures.
func TestSaved(t *testing.T) {
	m := New()
	saved := m.Saved("digits")
	saved(100, 2*time.Second, nil)
	saved(200, time.Second, fmt.Errorf("save: %w", syscall.ENOSPC))
	saved(300, time.Second, fmt.Errorf("%w: read-only", checkpoint.ErrNotPruned))
	require.Equal(t, `lazo_checkpoint_failures_total{run="digits"} 1
lazo_checkpoint_last_step{run="digits"} 300
lazo_checkpoint_save_seconds_total{run="digits"} 4
lazo_checkpoint_saves_total{run="digits"} 2
`, values(t, m, "lazo_checkpoint"))
}
