package loop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"syscall"

	"github.com/lazo-ml/lazo/internal/shield"
)

// Job is a group of processes that run one loop, each on its own state and data, as in package dist. A state belongs
// to a job if it has the method
//
//	Job() loop.Job
//
// and the result is not nil. Its steps are then one program of all processes.
//
// All processes must have the same tasks, callbacks, schedules, logged names and steps; otherwise they wait forever.
// They agree on clocks, signals, data and errors: all runs end between the same iterations. Schedules of time use the
// time agreed before the iteration, and may be one iteration late.
//
// The context of a task or callback does not end with the run's, because one process would leave its iteration alone;
// that of a run within it, as an [Evaluation], does. A second concurrent run of a job is an error, except within a
// task or callback of the first.
type Job interface {
	// Rank returns the number of this process, from 0 to Size()-1.
	Rank() int
	Size() int
	// Agree replaces each word by the largest that any process passed in its place. All must call it equally often
	// with equally many words; it waits for all. After an error the processes can no longer agree.
	Agree(words []int64) error
}

type withJob interface{ Job() Job }

func jobOf(state, pointer any) (job Job, err error) {
	s, ok := as[withJob](state, pointer)
	if !ok {
		return nil, nil
	}
	err = shield.Run(func() error {
		if job = s.Job(); job != nil && job.Size() < 2 {
			job = nil
		}
		return nil
	})
	return job, err
}

type rankError struct {
	Rank int
	// Message is at most 448 bytes of that process's error.
	Message string
	cause   error // a *SignalError, ErrStop, ErrPause, or nil
	reason  Reason
}

func (e *rankError) Error() string { return "loop: " + e.Point() }
func (e *rankError) Unwrap() error { return e.cause }

func (e *rankError) Point() string { return fmt.Sprintf("rank %d: %s", e.Rank, e.Message) }

// running has the jobs with a run: two concurrent runs would not meet in one order.
var running sync.Map

type runningKey struct{}

func claim(ctx context.Context, job Job) (own context.Context, end func(), err error) {
	if job == nil || !reflect.ValueOf(job).Comparable() {
		return ctx, func() {}, nil
	}
	if ctx.Value(runningKey{}) == job {
		return ctx, func() {}, nil
	}
	if _, other := running.LoadOrStore(job, true); other {
		return ctx, nil, fmt.Errorf("loop: rank %d already makes another run on this job, and a job makes one run at a time: wait for the other run to end; "+
			"pass the context of a task or callback to a run within it", job.Rank())
	}
	return context.WithValue(ctx, runningKey{}, job), func() { running.Delete(job) }, nil
}

func held(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), heldKey{}, ctx)
}

type heldKey struct{}

// released returns a context that also ends with the outer one of [held].
func released(ctx context.Context) (context.Context, context.CancelFunc) {
	outer, ok := ctx.Value(heldKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return ctx, func() { stop(); cancel(nil) }
}

func causeCode(ctx context.Context) int64 {
	if ctx.Err() == nil {
		return 0
	}
	var signalled *SignalError
	if errors.As(context.Cause(ctx), &signalled) {
		return 1 + int64(signalled.Signal)
	}
	return 1
}

func causeOf(code int64) error {
	if code < 2 {
		return nil
	}
	return &SignalError{syscall.Signal(code - 1)}
}
