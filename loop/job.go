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

// Job is the processes that run one loop together, each on a state and on data of its own. Package dist has one.
//
// The steps of a state with the method
//
//	Job() loop.Job
//
// are made by the processes together, as one program that exchanges numbers; nil says that it belongs to this process
// alone. All of them must make the same steps, and run the same tasks and callbacks in the same iterations, or they
// wait for each other for ever. So all processes agree on what a clock, a signal, the data or an error of one of them
// decides: a schedule of time is due everywhere in the same iteration, a context that ends in one process ends all runs
// at one border between iterations, and so do an [ErrStop], an error, a panic and data that ends.
//
// Tasks, callbacks, their schedules and what is logged must be the same in all processes. [Callback].AtRank0 is for
// what only one of them is to do. The time of an iteration is what was agreed before it, so a schedule of time may be
// due an iteration later than alone. The context of a task or callback does not end with that of the run, because one
// process alone would then leave its iteration; a run within it, as an [Evaluation], ends with the context of the outer
// run. A job has one run at a time: a second one is an error, unless it is given the context of a task or callback of
// the first.
type Job interface {
	// Rank is the number of this process, from 0 to Size()-1.
	Rank() int
	// Size is the number of processes.
	Size() int
	// Agree replaces each word by the largest that any of the processes gave in its place. All of them call it equally
	// often and with equally many words; it returns when all have. After an error the processes can agree no more.
	Agree(words []int64) error
}

// withJob is a state whose steps are made by the processes of a job together.
type withJob interface{ Job() Job }

// jobOf is the job of a state, nil if it has none or is its only process.
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

// rankError is the error of a run that another process of its [Job] has ended, by an error, by data that it could not
// read, or because its context ended. As [Result].Stop it wraps [ErrStop].
type rankError struct {
	// Rank is the process that ended the run.
	Rank int
	// Message is what it said, at most 448 bytes of it.
	Message string
	cause   error // a *SignalError, ErrStop, ErrPause, or nil
	reason  Reason
}

func (e *rankError) Error() string { return "loop: " + e.Point() }
func (e *rankError) Unwrap() error { return e.cause }

// Point is the error without the name of this package.
func (e *rankError) Point() string { return fmt.Sprintf("rank %d: %s", e.Rank, e.Message) }

// running has the jobs on which a run is being made. The processes of a job meet in one order, which two runs beside
// each other have not; a job is one of the process, and so is this.
var running sync.Map // of Job

type runningKey struct{}

// claim takes the job for a run. It is an error where another run is being made on it; runs within one, which are given
// the context of a task or callback of it, are no others. own is the context for this run.
func claim(ctx context.Context, job Job) (own context.Context, end func(), err error) {
	if job == nil || !reflect.ValueOf(job).Comparable() {
		return ctx, func() {}, nil
	}
	if ctx.Value(runningKey{}) == job {
		return ctx, func() {}, nil
	}
	if _, other := running.LoadOrStore(job, true); other {
		return ctx, nil, fmt.Errorf("loop: rank %d makes another run on this job already: its processes make one at a time: wait for the other's end; "+
			"a run within a task or callback is given the context of that", job.Rank())
	}
	return context.WithValue(ctx, runningKey{}, job), func() { running.Delete(job) }, nil
}

// held is the context of tasks and callbacks where processes agree: it does not end.
func held(ctx context.Context) context.Context {
	return context.WithValue(context.WithoutCancel(ctx), heldKey{}, ctx)
}

type heldKey struct{}

// released is a context that ends with one of [held], and with that which it was made of.
func released(ctx context.Context) (context.Context, context.CancelFunc) {
	outer, ok := ctx.Value(heldKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return ctx, func() { stop(); cancel(nil) }
}

// causeCode is 0 while a context has not ended, else 1 plus the signal that ended it.
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

// causeOf is the error for a causeCode.
func causeOf(code int64) error {
	if code < 2 {
		return nil
	}
	return &SignalError{syscall.Signal(code - 1)}
}
