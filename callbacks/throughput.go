package callbacks

import (
	"context"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

type throughput struct {
	last  loop.Elapsed
	begun bool
}

func (t *throughput) Logs(now loop.Elapsed) (logs loop.Logs) {
	if !t.begun {
		t.begun, t.last = true, now
		return logs
	}
	passed := now.Since(t.last)
	if passed.Time <= 0 {
		return logs
	}
	t.last = now
	logs.Metric("steps_per_second", float64(passed.Steps)/passed.Time.Seconds())
	logs.Metric("samples_per_second", float64(passed.Samples)/passed.Time.Seconds())
	return logs
}

// LogThroughput is a task that logs steps and samples per second since it was last due, at first since the first batch.
// Put it after the steps. The first values include compilation.
func LogThroughput[S, B any](when loop.Schedule) loop.Task[S, B] {
	return loop.OnTurnOf(when.AndAtStart(), func() func(context.Context, *loop.Turn[S, B]) error {
		var t throughput
		// The turn's time is its beginning's.
		start := time.Now()
		return func(_ context.Context, turn *loop.Turn[S, B]) error {
			now := turn.Elapsed
			now.Time = time.Since(start)
			turn.Logs.Merge(t.Logs(now))
			return nil
		}
	}).Named("throughput")
}
