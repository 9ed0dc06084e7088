package callbacks

import (
	"context"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Throughput measures how fast a loop goes, from one call to the next. The zero value is ready. Each is of one run.
type Throughput struct {
	last  loop.Elapsed
	begun bool
}

// Logs gives the metrics steps_per_second and samples_per_second since the call before. The first call begins to measure and
// gives none, nor does one for which no time has passed. Jaxloop gives examples a second only where steps a second are wanted
// too and the batch size is set; ours needs neither, because the loop counts samples anyway.
func (t *Throughput) Logs(now loop.Elapsed) (logs loop.Logs) {
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

// LogThroughput is a task that logs what [Throughput] measures since it was last due, the first time since the first
// batch. Give it behind the steps. The first numbers have what is done once in them, such as compiling.
func LogThroughput[S, B any](when loop.Schedule) loop.Task[S, B] {
	return loop.OnTurnOf(when.AndAtStart(), func() func(context.Context, *loop.Turn[S, B]) error {
		var t Throughput
		// A clock of its own: a task sees the time at which its turn began, in which the step is counted already.
		start := time.Now()
		return func(_ context.Context, turn *loop.Turn[S, B]) error {
			now := turn.Elapsed
			now.Time = time.Since(start)
			turn.Logs.Merge(t.Logs(now))
			return nil
		}
	}).Named("throughput")
}
