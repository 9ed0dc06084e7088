package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/shield"
)

// ErrStop is returned by a task or callback to end the run without an error after the iteration. The run uses its
// state and logs.
var ErrStop = errors.New("stop")

// ErrPause is an [ErrStop] that does not end the training: a resumed run makes further iterations ([Continue]).
var ErrPause error = pause{}

type pause struct{}

func (pause) Error() string { return ErrStop.Error() }
func (pause) Unwrap() error { return ErrStop }

var errNoFunction = errors.New("no function given")

var errNoSchedule = errors.New("no schedule given; if it must never be due, use Never")

func isStop(err error) bool { return errors.Is(err, ErrStop) }

// PanicError is the error for a panic or a [runtime.Goexit] in a task, a callback or the data. It wraps the panic's
// Value if that is an error. Where is the innermost line of the user's code. The text lacks Stack.
type PanicError = shield.Panic

// An activity for each schedule would cost time.
type scheduleFault struct {
	schedule string
	*PanicError
}

func (f *scheduleFault) Error() string { return "schedule " + f.schedule + ": " + f.PanicError.Error() }

// Reason is why a run ended.
type Reason int

const (
	DataEnded Reason = iota
	UntilReached
	// Stopped: a task or callback returned [ErrStop].
	Stopped
	// Cancelled: the context ended. The run's error wraps its cause.
	Cancelled
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
