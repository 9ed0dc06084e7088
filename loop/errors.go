package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/shield"
)

// ErrStop is returned by a task or callback to end the run after the present turn. The state and logs that a task
// returns with it are used, the other tasks and callbacks of the turn still run, and [Loop.Run] returns no error.
var ErrStop = errors.New("stop")

// ErrPause is an [ErrStop] that ends this run and not the training: a run resumed from there makes further turns,
// whereas one that was stopped otherwise stays ended (see [Continue]). callbacks.TimeLimit uses it.
var ErrPause error = pause{}

type pause struct{}

func (pause) Error() string { return ErrStop.Error() }
func (pause) Unwrap() error { return ErrStop }

// errNoFunction: a task, a callback or an option was given no function to call.
var errNoFunction = errors.New("no function given")

var errNoSchedule = errors.New("no schedule given; where it is never to be due, say Never")

func isStop(err error) bool { return errors.Is(err, ErrStop) }

// PanicError is the error for a panic, or a call of [runtime.Goexit], in a task, a callback or the data, wherever lazo
// met it: in package data or checkpoint too. Its Value is what the function panicked with, Where the innermost
// line of the user's own code, and its Stack that of the goroutine at the panic, which the text leaves out. It wraps a
// Value that is an error.
type PanicError = shield.Panic

// scheduleFault is a panic of the function of [When]. The run does not note which schedule it is asking, because that
// would cost time in each turn, so the panic carries the name.
type scheduleFault struct {
	schedule string
	*PanicError
}

func (f *scheduleFault) Error() string { return "schedule " + f.schedule + ": " + f.PanicError.Error() }

// Reason is why a run ended.
type Reason int

const (
	// DataEnded: there were no more batches.
	DataEnded Reason = iota
	// UntilReached: the period of [Until] is over.
	UntilReached
	// Stopped: a task or callback returned [ErrStop].
	Stopped
	// Cancelled: the context ended; the error of the run wraps its cause.
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
