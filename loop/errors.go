package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/shield"
)

// ErrStop is returned by a task or callback to end the run after the current iteration. The run uses the state and logs
// that a task returns with it, runs the other tasks and callbacks of the iteration, and returns no error.
var ErrStop = errors.New("stop")

// ErrPause is an [ErrStop] that ends this run and not the training: a run resumed from there makes further iterations.
// A run that was stopped by another ErrStop stays ended (see [Continue]). callbacks.TimeLimit uses it.
var ErrPause error = pause{}

type pause struct{}

func (pause) Error() string { return ErrStop.Error() }
func (pause) Unwrap() error { return ErrStop }

var errNoFunction = errors.New("no function given")

var errNoSchedule = errors.New("no schedule given; where it is never to be due, say Never")

func isStop(err error) bool { return errors.Is(err, ErrStop) }

// PanicError is the error for a panic or a [runtime.Goexit] in a task, a callback or the data, also where package data
// or checkpoint recovered it. Value is the value of the panic, Where the innermost line of the user's code, and Stack
// the stack of the goroutine, which the text omits. PanicError wraps a Value that is an error.
type PanicError = shield.Panic

// scheduleFault is a panic of the function of [When]. It carries the name of the schedule, because noting the current
// schedule would cost time in each iteration.
type scheduleFault struct {
	schedule string
	*PanicError
}

func (f *scheduleFault) Error() string { return "schedule " + f.schedule + ": " + f.PanicError.Error() }

// Reason is the reason why a run ended.
type Reason int

const (
	// DataEnded: the data ended.
	DataEnded Reason = iota
	// UntilReached: the period of [Until] was reached.
	UntilReached
	// Stopped: a task or callback returned [ErrStop].
	Stopped
	// Cancelled: the context ended. The error of the run wraps its cause.
	Cancelled
	// Failed: the run returned another error.
	Failed
)

func (r Reason) String() string {
	switch r {
	case DataEnded:
		return "data ended"
	case UntilReached:
		return "until reached"
	case Stopped:
		return "stopped"
	case Cancelled:
		return "cancelled"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("Reason(%d)", int(r))
}
