package loop

import (
	"context"
	"sync"
	"time"
	"weak"
)

// Throughput measures how fast a loop goes, from one call to the next. The zero value is ready. Each is of one run.
type Throughput struct {
	last  Elapsed
	begun bool
}

// Logs gives the metrics steps_per_second and samples_per_second since the call before. The first call begins to measure and
// gives none, nor does one for which no time has passed. Jaxloop gives examples a second only where steps a second are wanted
// too and the batch size is set; ours needs neither, because the loop counts samples anyway.
func (t *Throughput) Logs(now Elapsed) (logs Logs) {
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
func LogThroughput[S, B any](when Schedule) Task[S, B] {
	var runs runsOf[Turn[S, B]]
	task := OnTurn(when.AndAtStart(), func(_ context.Context, turn *Turn[S, B]) error {
		turn.Logs.Merge(runs.of(turn).logs(turn.Elapsed))
		return nil
	})
	task.blind = true // it takes the time behind the tasks before it
	return task.Named("throughput")
}

// throughputRun is a Throughput with a clock of its own: a task sees the time at which its turn began, in which the step is
// counted already.
type throughputRun struct {
	Throughput
	start time.Time
}

func (t *throughputRun) logs(now Elapsed) Logs {
	now.Time = time.Since(t.start)
	return t.Throughput.Logs(now)
}

// runsOf tells the runs of a loop apart by the place of their turns, since a task has nothing of its own that begins with
// a run. It keeps no run alive.
type runsOf[T any] struct {
	mu   sync.Mutex
	runs map[weak.Pointer[T]]*throughputRun
}

func (r *runsOf[T]) of(turn *T) *throughputRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := weak.Make(turn)
	if run, ok := r.runs[key]; ok {
		return run
	}
	for other := range r.runs {
		if other.Value() == nil {
			delete(r.runs, other)
		}
	}
	if r.runs == nil {
		r.runs = map[weak.Pointer[T]]*throughputRun{}
	}
	run := &throughputRun{start: time.Now()}
	r.runs[key] = run
	return run
}
