package callbacks

import (
	"context"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// throughput measures the speed of a run from one call to the next. The zero value is ready for use.
type throughput struct {
	last  loop.Elapsed
	begun bool
}

// Logs has the metrics steps_per_second and samples_per_second since the call before. It is empty at the first call,
// which begins to measure, and if no time has passed.
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

// LogThroughput is a task that logs the steps and samples a second since it was last due, the first time since the
// first batch. It should stand after the steps. The first numbers include what is done once, such as compiling.
func LogThroughput[S, B any](when loop.Schedule) loop.Task[S, B] {
	return loop.OnTurnOf(when.AndAtStart(), func() func(context.Context, *loop.Turn[S, B]) error {
		var t throughput
		// Not the turn's time: that is of its beginning, while its step is counted already.
		start := time.Now()
		return func(_ context.Context, turn *loop.Turn[S, B]) error {
			now := turn.Elapsed
			now.Time = time.Since(start)
			turn.Logs.Merge(t.Logs(now))
			return nil
		}
	}).Named("throughput")
}
